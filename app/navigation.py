"""The pages by name, in the order of the menu. A new page is a file in `app/views` and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import streamlit as st

PAGES = (
    "recommend",  # the first one opens
    "explain",
    "interactions",
    "links",
    "map",
