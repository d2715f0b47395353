"""Filters of recommended items: by id, or by attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import absent
from recsys.data.encoding import SEPARATOR
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.recommender.ids import id_list, one_id
from recsys.reranking import Fair, Merchandising
from recsys.utils.dates import iso_seconds
from recsys.utils.validation import check_integer, check_real

NOTHING_KNOWN = "filters need something known of the items: give Interactions.from_frame a table items="


def candidates(users: list[str | int], items: Any) -> list[tuple[list[str | int], Any]]:
    """Return users with the only items that they may get: together, or one by one of a mapping."""
    if not isinstance(items, Mapping):
        return [(users, items)]
    named = {str(user): some for user, some in items.items()}
    if absent := [user for user in users if str(user) not in named]:
        raise InputError(f"items has no candidates for user {absent[0]!r}")
    return [([user], named[str(user)]) for user in users]


def left_out(
    package: ModelPackage,
    items: Any,
    exclude: Any,
    filters: Mapping[str, Any] | None,
    name: str = "items",
) -> NDArray[np.int64] | None:
    """Return the items that are not to be recommended; None where all may.

    `items` are the only ones, `exclude` those that are not, `filters` are taken as by `passing`; `name`
    is that of `items`, for messages. That no item is left is refused.
    """
    keep = np.ones(len(package.item_ids), dtype=bool)
    if items is not None:
        keep[:] = False
        keep[package.items(id_list(name, items))] = True
    if exclude is not None:
        keep[package.items(id_list("exclude", exclude))] = False
    if filters is not None and not (isinstance(filters, dict) and not filters):
        keep &= passing(package.item_features, filters)
    if keep.all():
        return None
    if not keep.any():
        given = {name: items, "exclude": exclude, "filters": filters}
        raise InputError(
            f"no item passes {', '.join(key for key, value in given.items() if value is not None)}; "
            "widen them"
        )
    return np.flatnonzero(~keep)


def merchandising(
    package: ModelPackage,
    pinned: Any = (),
    boosts: Mapping[Any, float] | None = None,
    at_most: Mapping[str, int] | None = None,
    fair: Mapping[str, Any] | Fair | None = None,
) -> Merchandising | None:
    """Return the merchandising rules of every list; None without any.

    They are given as to `Recommender.recommend`: `boosts` by id, `at_most` by column of what is known of
    items, and `fair` with `protected`, which `passing` takes.
    """
    if fair is not None and not isinstance(fair, Fair):
        fair = _fair(package, fair)
    for name, given, form in (("boosts", boosts, "{'id': 1.5}"), ("at_most", at_most, "{'brand': 2}")):
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"{name} must be a mapping such as {form}, not {given!r}"[:200])
    ids = id_list("pinned", pinned)
    factors = {
        int(package.items([one_id("boosts", name)])[0]): check_real(f"boosts of {name!r}", factor, 0.0)
        for name, factor in (boosts or {}).items()
    }
    limits = [
        (_values(package.item_features, name), check_integer(f"at_most of {name!r}", most, 1))
        for name, most in (at_most or {}).items()
    ]
    if not (ids or factors or limits or fair):
        return None
    return Merchandising(list(dict.fromkeys(package.items(ids).tolist())), factors, limits, fair)


def check_fair(given: Any) -> Mapping[str, Any]:
    """Return a rule for a protected group: `protected`, and `p` and `alpha` where they are given."""
    form = "{'protected': {'genres': 'Drama'}, 'p': 0.5, 'alpha': 0.1}"
    if not isinstance(given, Mapping) or "protected" not in given:
        raise InputError(f"fair must be a mapping such as {form}, not {given!r}"[:200])
    if strange := set(given) - {"protected", "p", "alpha"}:
        raise InputError(
            f"fair has protected, p and alpha, as {form}; not {sorted(map(str, strange))[0]!r}"
        )
    return given


def _fair(package: ModelPackage, given: Any) -> Fair:
    given = check_fair(given)
    shares = {}
    for name, usual in (("p", 0.5), ("alpha", 0.1)):
        shares[name] = check_real(f"fair's {name}", given.get(name, usual), 0.0, 1.0)
        if shares[name] in (0.0, 1.0):
            raise InputError(f"fair's {name} must be above 0 and below 1, not {shares[name]:g}")
    return Fair(passing(package.item_features, given["protected"]), **shares)


def _values(features: pd.DataFrame | None, name: str) -> Callable[[int], list[str]]:
    """Return a function that gives the values of a column for an item by its index."""
    cells = _column(features, name).tolist()

    def values(item: int) -> list[str]:
        cell = cells[item]
        if cell is None or cell != cell or cell == "":
            return []
        return list(dict.fromkeys(_text(cell).split(SEPARATOR)))

    return values


def _column(features: pd.DataFrame | None, name: str) -> pd.Series:
    """Return a column of what is known of items."""
    if features is None or len(features.columns) == 0:
        raise InputError(NOTHING_KNOWN)
    if name not in features.columns:
        raise absent("items", name, [str(column) for column in features.columns])
    return features[name]


def passing(features: pd.DataFrame | None, filters: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return which items have what is wanted; what is unknown of an item does not pass.

    Parameters
    ----------
    features : DataFrame or None
        One row an item.
    filters : mapping of str to what is wanted
        By column: a pair (least, most) of numbers or dates, both included, None for no end; a list or
        set of values, of which any will do; or one value. A cell of several, `Drama|War`, has each.

    Examples
    --------
    >>> films = pd.DataFrame({"year": [1979, 1985], "genres": ["Horror|Sci-Fi", "Sci-Fi"]})
    >>> passing(films, {"year": (1980, None), "genres": "Sci-Fi"})
    array([False,  True])
    """
    if not isinstance(filters, Mapping):
        raise InputError(
            f"filters must be a mapping by column, as {{'year': (1980, 1999)}}, not {filters!r}"
        )
    if features is None or len(features.columns) == 0:
        raise InputError(NOTHING_KNOWN)
    keep = np.ones(len(features), dtype=bool)
    for name, wanted in filters.items():
        cells = _column(features, name)
        if isinstance(wanted, tuple):
            keep &= _between(name, cells, wanted)
        else:
            keep &= _among(name, cells, wanted)
    return keep


def _between(name: str, cells: pd.Series, wanted: tuple[Any, ...]) -> NDArray[np.bool_]:
    if len(wanted) != 2:
        raise InputError(f"filter {name!r}: a pair (least, most) is needed, not {len(wanted)} values")
    known = ~(pd.isna(cells) | (cells.astype(str) == "")).to_numpy(dtype=bool)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    has = "numbers"
    if not np.isfinite(values[known]).all():
        has = "dates"
        values = np.array([iso_seconds(str(cell)) for cell in cells])
        if not np.isfinite(values[known]).all():
            raise InputError(
                f"filter {name!r}: a pair is a range, and the column holds text; list the values wanted"
            )
    keep = known.copy()
    for end, above in zip(wanted, (True, False), strict=True):
        if end is None:
            continue
        bound = _end(end, dates=has == "dates")
        if np.isnan(bound):
            raise InputError(f"filter {name!r}: the column holds {has}, the end is {str(end)[:40]!r}")
        keep &= (values >= bound) if above else (values <= bound)
    return keep


def _end(end: Any, dates: bool) -> float:
    """Return an end of a range as a number; NaN where it is none, or no date where dates are needed."""
    if isinstance(end, (bool, np.bool_)):
        return float("nan")
    if not dates:
        return float(end) if isinstance(end, (int, float, np.number)) else float("nan")
    end = plain(end)
    return iso_seconds(end) if isinstance(end, str) else float("nan")


def plain(value: Any) -> Any:
    """Return a value of NumPy, or a date, as JSON has it."""
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, date):  # datetimes and pandas' timestamps are dates
        return value.isoformat()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return plain(value[()])
    return value.item() if isinstance(value, np.generic) else value


def _among(name: str, cells: pd.Series, wanted: Any) -> NDArray[np.bool_]:
    several = isinstance(wanted, (list, set, frozenset, np.ndarray, pd.Series))
    if not several and not isinstance(wanted, (str, bool, int, float, np.generic)):
        raise InputError(
            f"filter {name!r}: give one value, a list of values or a pair (least, most), not {wanted!r}"
        )
    values = {_text(value) for value in (wanted if several else [wanted])}
    keep = np.zeros(len(cells), dtype=bool)
    for k, cell in enumerate(cells.tolist()):
        if cell is not None and cell == cell:  # NaN is not
            text = _text(cell)
            keep[k] = text in values or any(part in values for part in text.split(SEPARATOR))
    return keep


def _text(value: Any) -> str:
    """Return a cell as text; 1980.0 and 1980 are alike."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
