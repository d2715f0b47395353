"""Rows as a frame of the kind that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from recsys.errors import InputError


def make_frame(rows: Sequence[Mapping[str, Any]], kind: str = "pandas") -> Any:
    """Return rows of the same keys as a frame."""
    if kind != "pandas":
        raise InputError(f"unknown kind of frame {kind!r}")
    return pd.DataFrame(list(rows))
