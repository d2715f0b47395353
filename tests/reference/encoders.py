"""Feature tables encoded cell by cell: the four encoders that `recsys.data.features` replaced."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from recsys.data.features import ranges

SEPARATOR = MANY = "|"
MOST_VALUES = 40


def table(frame: pd.DataFrame, buckets: int = 0) -> tuple[sp.csr_matrix, list[str]]:
    """Return a table's features, (rows, features), and their names.

    Numbers stay numbers where `buckets` is 0 (missing ones are 0), else they are cut at quantiles; text
    gives one feature a value, `|` separates several.
    """
    blocks: list[sp.csr_matrix] = [sp.csr_matrix((len(frame), 0))]
    names: list[str] = []
    for name in frame.columns:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if buckets == 0 and numbers.notna().sum() == frame[name].notna().sum():
            values = np.nan_to_num(numbers.to_numpy(np.float64))[:, None]
            blocks.append(sp.csr_matrix(values))
            names.append(str(name))
        else:
            block, found = column(str(name), frame[name], max(buckets, 1))
            blocks.append(block)
            names += found
    return sp.csr_matrix(sp.hstack(blocks, format="csr")), names


def column(name: str, column: pd.Series, buckets: int) -> tuple[sp.csr_matrix, list[str]]:
    numbers = pd.to_numeric(column, errors="coerce")
    numeric = numbers.notna().sum() == column.notna().sum() and numbers.nunique() > buckets
    ends: dict[str, list[float]] = {}
    if numeric:
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, buckets + 1)[1:-1]))
        code = np.searchsorted(edges, numbers.to_numpy(np.float64), side="right")
        sets = [[] if np.isnan(v) else [f"{c}"] for v, c in zip(numbers, code, strict=True)]
        for number, cell in zip(numbers, sets, strict=True):
            for c in cell:
                ends.setdefault(c, []).append(number)
    else:
        text = column.where(column.notna(), "").astype(str)
        sets = [[part.strip() for part in cell.split(SEPARATOR) if part.strip()] for cell in text]
    values = sorted({value for cell in sets for value in cell})
    at = {value: k for k, value in enumerate(values)}
    indptr = np.cumsum([0, *(len(set(cell)) for cell in sets)])
    indices = [at[value] for cell in sets for value in sorted(set(cell))]
    rows = sp.csr_matrix((np.ones(len(indices)), indices, indptr), (len(sets), len(values)))
    spans = ranges([np.array(ends[value]) for value in values]) if numeric else values
    return rows, [f"{name}={value}" for value in spans]


def attributes(name: str, column: pd.Series) -> dict[str, np.ndarray]:
    lower = name.lower()
    if lower in ("year", "release_year"):
        years = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
        decades = np.floor(years / 10) * 10
        return {f"{d:.0f}s": decades == d for d in np.unique(decades[np.isfinite(decades)])}
    text = column.where(column.notna(), "").astype(str)
    cells = text.str.split(MANY, regex=False)
    several = bool(text.str.contains(MANY, regex=False).any())
    values = sorted({part.strip() for cell in cells for part in cell} - {"", "nan"})
    if len(values) > (400 if several else MOST_VALUES):
        return {}
    plain = several or lower in ("genre", "genres", "category", "categories", "tags")
    sets = [{part.strip() for part in cell} for cell in cells]
    return {
        value if plain else f"{name}={value}": np.array([value in s for s in sets]) for value in values
    }


def one_hot(names, cells):
    """0/1 columns of a table without missing cells, and their names."""
    columns, features = [], []
    for k, name in enumerate(names):
        for value in sorted(set(cells[:, k])):
            columns.append(cells[:, k] == value)
            features.append(f"{name}={value}")
    return np.array(columns, dtype=np.uint8).T, features


def dummies(columns):
    return sp.csr_matrix(np.hstack([pd.get_dummies(column).to_numpy(float) for column in columns]))
