"""Choices that stay when another page opens: Streamlit forgets those of widgets that a page has not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import streamlit as st


def turn_to(page: str) -> None:
    """Say which page this run shows: on another one than before, widgets have what that one had."""
    st.session_state["turned"] = st.session_state.get("page") != page
    st.session_state["page"] = page


def restore(key: str, options: Collection[Any]) -> None:
    """Give the widget of this key, before it is shown, what was chosen on another page, if it has it.

    Parameters
    ----------
    key : str
        Of a widget that chooses one option, or a list of them.
    options : collection
    """
    shown = key in st.session_state and not st.session_state.get("turned")
    if shown or _name(key) not in st.session_state:
        return
    chosen = st.session_state[_name(key)]
    if all(one in options for one in (chosen if isinstance(chosen, list) else [chosen])):
        st.session_state[key] = chosen


def keep(key: str, chosen: Any) -> None:
    """Keep what a widget has, for pages to come."""
    st.session_state[_name(key)] = chosen


def _name(key: str) -> str:
    return f"kept {key}"
