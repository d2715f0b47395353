"""Filters of items, by id or by attribute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import absent
from recsys.data.features import SEPARATOR
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.utils.dates import iso_seconds


def left_out(
    package: ModelPackage,
    items: Any = None,
    exclude: Any = None,
    filters: Mapping[str, Any] | None = None,
) -> NDArray[np.int64] | None:
    """Return the items that may not be recommended; None where all may.

    `items` are the only ones that may, `exclude` those that may not; `filters` as in `passing`.
    """
    keep = np.ones(len(package.item_ids), dtype=bool)
    if items is not None:
        keep[:] = False
        keep[package.items(items)] = True
    if exclude is not None:
        keep[package.items(exclude, "exclude")] = False
    if filters is not None and not (isinstance(filters, Mapping) and not filters):
        keep &= passing(package.item_features, filters)
    if keep.all():
        return None
    if not keep.any():
        raise InputError("no item passes the filters (items, exclude, filters): widen them")
    return np.flatnonzero(~keep)


def passing(features: pd.DataFrame | None, filters: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return which items pass; an item without a value does not.

    `features` have a row an item. Filters say by column: a pair (least, most) of numbers or dates, both
    included, None for no end; a list or set of values; or one value. A cell `Drama|War` has both values.
    """
    if not isinstance(filters, Mapping):
        raise InputError(
            f"filters must be a mapping such as {{'year': (1980, 1999)}}, not {type(filters).__name__}"
        )
    if features is None or len(features.columns) == 0:
        raise InputError("filters need attributes: pass items= to Interactions.from_frame")
    keep = np.ones(len(features), dtype=bool)
    for name, condition in filters.items():
        if name not in features.columns:
            raise absent("items", name, [str(column) for column in features.columns])
        test = _between if isinstance(condition, tuple) else _among
        keep &= test(name, features[name], condition)
    return keep


def _between(name: str, cells: pd.Series, ends: tuple[Any, ...]) -> NDArray[np.bool_]:
    if len(ends) != 2:
        raise InputError(f"filter {name!r}: a range needs a pair (least, most), not {len(ends)} values")
    known = ~(pd.isna(cells) | (cells.astype(str) == "")).to_numpy(dtype=bool)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    dates = not np.isfinite(values[known]).all()
    if dates:
        values = np.array([iso_seconds(str(cell)) for cell in cells])
        if not np.isfinite(values[known]).all():
            raise InputError(f"filter {name!r}: the column contains text: pass a list of values")
    least, most = (_end(name, end, dates) for end in ends)
    return known & ~(values < least) & ~(values > most)


def _end(name: str, end: Any, dates: bool) -> float:
    """Return an end of a range as a number or in seconds; NaN for no end."""
    if end is None:
        return float("nan")
    value = float("nan")
    if dates and isinstance(end, (str, date, np.datetime64)):  # datetimes are dates
        value = iso_seconds(str(end))
    elif not dates and isinstance(end, (int, float, np.number)) and not isinstance(end, bool):
        value = float(end)
    if np.isnan(value):
        holds = "dates" if dates else "numbers"
        raise InputError(
            f"filter {name!r}: the column contains {holds}, but the bound is {str(end)[:40]!r}"
        )
    return value


def _among(name: str, cells: pd.Series, condition: Any) -> NDArray[np.bool_]:
    several = isinstance(condition, (list, set, frozenset, np.ndarray, pd.Series))
    if not several and not isinstance(condition, (str, bool, int, float, np.generic)):
        raise InputError(
            f"filter {name!r}: pass one value, a list of values or a pair (least, most), "
            f"not {condition!r}"
        )
    values = {_text(value) for value in (condition if several else [condition])}
    keep = np.zeros(len(cells), dtype=bool)
    for k, cell in enumerate(cells.tolist()):
        if cell is not None and cell == cell:  # NaN is not
            text = _text(cell)
            keep[k] = text in values or not values.isdisjoint(text.split(SEPARATOR))
    return keep


def _text(value: Any) -> str:
    """Return a cell as text; 1980.0 and 1980 are alike."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
