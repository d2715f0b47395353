"""The catalogue's part of a ranker file: ids, titles and features as JSON, checked when read."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import Columns
from recsys.errors import InputError, ModelFileError
from recsys.utils.frames import KINDS

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # half of a pair in JSON, or both

Cell = str | int | float | bool | None


def packed(value: Any) -> NDArray[np.uint8]:
    """Return a value of JSON as bytes; text that is no Unicode is refused: nothing could answer it."""
    text = json.dumps(value, allow_nan=False)
    if not _is_unicode(text, value):
        raise InputError(
            "an id, a title or a feature holds half of a surrogate pair, which is no text; replace it"
        )
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _is_unicode(text: str, value: Any) -> bool:
    """Return whether UTF-8 can hold all text of a value; `text` is its JSON."""
    if SURROGATE.search(text) is None:
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def unpacked(path: str, key: str, given: NDArray[np.uint8]) -> Any:
    """Return the value from which `packed` made these bytes."""
    try:
        text = given.tobytes().decode("utf-8")
        found = json.loads(text, parse_constant=_refused)
        if _is_unicode(text, found):
            return found
    except (ValueError, RecursionError):
        pass
    raise ModelFileError(f"{path}: {key} is no JSON of Unicode text")


def whole(ids: NDArray[np.object_]) -> bool:
    """Return whether ids are integers; ids of both kinds are text."""
    return len(ids) > 0 and all(isinstance(name, int) for name in ids)


def plain_ids(ids: NDArray[np.object_]) -> list[str] | list[int]:
    """Return ids as JSON has them: integers where all are, else text."""
    return [int(name) for name in ids] if whole(ids) else [str(name) for name in ids]


def read_texts(path: str, key: str, given: NDArray[np.uint8], size: int) -> NDArray[np.object_]:
    """Return titles; where `key` names ids, these: text or integers, of one kind, none twice."""
    found = unpacked(path, key, given)
    kinds = {type(one) for one in found} if isinstance(found, list) else set()
    allowed = ({str}, {int}) if key.endswith("_ids") else ({str},)
    if kinds not in allowed or len(found) != size:
        raise ModelFileError(f"{path}: {key} does not name each of {size:,} rows")
    out = np.empty(size, dtype=object)
    out[:] = found
    if key.endswith("_ids") and pd.Index(out).has_duplicates:
        raise ModelFileError(f"{path}: {key} holds an id twice")
    return out


def plain_features(table: pd.DataFrame) -> dict[str, list[Cell]]:
    """Return a table of features as JSON has it: numbers, truth values and text; null where unknown."""
    return {str(name): [_cell(value) for value in table[name].tolist()] for name in table.columns}


def read_features(
    path: str, key: str, given: NDArray[np.uint8], ids: NDArray[np.object_]
) -> pd.DataFrame:
    """Return the features of items or users, a row for each id."""
    found = unpacked(path, key, given)
    fine = isinstance(found, dict) and all(
        isinstance(cells, list)
        and len(cells) == len(ids)
        and all(cell is None or isinstance(cell, (str, int, float)) for cell in cells)
        for cells in found.values()
    )
    if not fine:
        raise ModelFileError(f"{path}: {key} does not describe each of {len(ids):,} rows")
    columns = {name: _column(cells) for name, cells in found.items()}
    return pd.DataFrame(columns, index=pd.Index(ids, dtype=object))


# Fields of `Columns` that stand in a file only where they are known.
OPTIONAL = frozenset(("weight", "decimal", "day_first", "duplicates"))


def plain_columns(columns: Columns) -> dict[str, str | float | None]:
    """Return how a table was read as JSON has it."""
    found = asdict(columns)
    return {name: value for name, value in found.items() if value is not None or name not in OPTIONAL}


def read_columns(path: str, given: NDArray[np.uint8]) -> Columns:
    """Return how the table was read that the data came from."""
    found = unpacked(path, "columns", given)
    names = {field.name for field in fields(Columns)}
    described = isinstance(found, dict) and names - OPTIONAL <= set(found) <= names
    if not described or not all(_fits(name, value) for name, value in found.items()):
        raise ModelFileError(f"{path}: columns does not say which columns were read")
    return Columns(**found)


def _fits(name: str, value: Any) -> bool:
    """Return whether a field of `Columns` can have a value."""
    if name == "kind":
        return value in KINDS
    if name == "min_rating":
        return value is None or type(value) in (int, float)
    if name == "decimal":
        return value in (None, ".", ",")
    if name == "duplicates":
        return value in (None, "sum", "count", "last")
    if name == "day_first":
        return value is None or type(value) is bool
    return isinstance(value, str) or (value is None and name in ("rating", "time", "weight"))


def _cell(value: Any) -> Cell:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return None if value is None or value is pd.NaT or value is pd.NA else str(value)


def _column(cells: list[Cell]) -> Any:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        known = None not in cells and kinds == {int}
        try:
            return np.array(cells, dtype=np.int64 if known else np.float64)
        except OverflowError:  # beyond 64 bits: kept as they are
            pass
    return pd.array(cells, dtype=object)  # type: ignore[call-overload]


def _refused(constant: str) -> Any:
    raise ValueError(constant)
