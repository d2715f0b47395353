"""Ids as users pass them: one, a list, a column of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import InputError

SHOWN = 60  # characters of what was given, in a message


def id_list(what: str, given: Any) -> list[str | int]:
    """Return ids as a list: of one id, a sequence, an array, or a Series of any kind.

    `what` is what messages call them.

    Examples
    --------
    >>> id_list("users", "12"), id_list("users", np.array([1, 2])), id_list("users", (3,))
    (['12'], [1, 2], [3])
    """
    if _plain(given) is not None:
        return [_plain(given)]
    found: Any = None
    if not isinstance(given, (bytes, dict)) and _several(given):
        for name in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, numpy
            if hasattr(given, name):
                found = getattr(given, name)()
                break
        else:
            found = given
    elif isinstance(given, (set, frozenset, range)) or hasattr(given, "__next__"):
        found = given
    ids = None if found is None else [_plain(one) for one in found]
    if ids is None or any(one is None for one in ids):
        shown = repr(given)[:SHOWN].split("\n")[0]
        raise InputError(f"{what} must be ids, text or integers, not {shown}")
    return ids


def _several(given: Any) -> bool:
    """Return whether these are several, also where NumPy can make no array of them."""
    try:
        return np.ndim(given) != 0
    except ValueError:
        return True


def one_id(what: str, given: Any) -> str | int:
    """Return one id, and refuse what is none."""
    found = _plain(given)
    if found is None:
        shown = repr(given)[:SHOWN].split("\n")[0]
        raise InputError(f"{what} must be an id, text or an integer, not {shown}")
    return found


def _plain(given: Any) -> Any:
    """Return an id as str or int, None where it is neither."""
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, (str, int, np.integer)):
        return None
    return str(given) if isinstance(given, str) else int(given)
