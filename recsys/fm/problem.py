"""Rows of named features and a target: out of interactions with features, or a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.columns import absent
from recsys.data.encoding import SEPARATOR, encode_column, ranges
from recsys.data.readers import read_table
from recsys.errors import InputError, counted
from recsys.fm.encoder import SKIPPED, PairEncoder
from recsys.utils.validation import check_choice, check_integer, check_real

__all__ = ["Problem", "classes_of", "guess_target", "pairs_problem", "table_of", "table_problem"]

LIKED, RATING = "liked", "rating"  # targets of interactions
AUTO, CLASSES, NUMBERS = "auto", "classes", "numbers"  # what a target is taken for
RANGES, SCALED = "ranges", "scaled"  # what becomes of columns of numbers
TARGETS = (
    "target", "y", "label", "class", "outcome", "response", "rating", "score", "ziel", "klasse",
    "cible", "classe", "bersaglio",
)  # fmt: skip
LEAST_OF_CLASS = 5  # rows that a class needs
MOST_ROWS = 50_000
MISSING = ("na", "n/a", "nan", "null", "none", "?", "-", ".")  # beside numbers, in any case
COMMA = re.compile(r"[+-]?\d*,\d+")  # a decimal comma, where not all could be thousands
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
FEW = 20  # values that a column may have, however few its rows
WHOLE = 10**9  # ranges for an encoder to cut: none, they are words already
ROUNDS = 20  # of drawing again what is liked or drawn already


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of a study.

    Attributes
    ----------
    X : (rows, features) float64 CSR
    y : (rows,) float64
        Numbers, or 0 and 1.
    names, fields : tuple of str
        Of each feature, and of the column it is a value of.
    target : str
    classes : (str, str) or None
        What 0 and 1 stand for; None where the target is a number.
    groups : (rows,) int64
        Rows of one group (those of one user) belong together; 0…rows − 1 where each stands for itself.
    notes : tuple of str
        What was left out or drawn.
    name : str

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"colour": ["red", "blue"] * 10, "price": [1, 2, 3, 4, 5] * 4})
    >>> problem = table_problem(table, "price")
    >>> problem.names, problem.classes, problem.X.shape
    (('colour=blue', 'colour=red'), None, (20, 2))
    """

    X: sp.csr_matrix
    y: NDArray[np.float64]
    names: tuple[str, ...]
    fields: tuple[str, ...]
    target: str
    classes: tuple[str, str] | None
    groups: NDArray[np.int64]
    notes: tuple[str, ...] = ()
    name: str = "table"

    @property
    def wanted(self) -> str:
        """The meaning of a weight above 0: `target=class`, or the target."""
        return self.target if self.classes is None else f"{self.target}={self.classes[1]}"


def pairs_problem(
    data: Interactions,
    target: str = LIKED,
    *,
    ids: bool = False,
    ratio: int = 1,
    buckets: int = 5,
    categories: Sequence[str] = (),
    rows: int = MOST_ROWS,
    seed: int = 0,
) -> Problem:
    """Return pairs of users and items with the features of both.

    Parameters
    ----------
    data : Interactions
    target : "liked" or "rating"
        Whether a pair is among the interactions, against pairs drawn of the same users that are not;
        or its rating.
    ids : bool
        Whether the user and the item themselves are features, too.
    ratio : int ≥ 1
        Pairs drawn for each liked one.
    buckets : int ≥ 2
        Ranges that columns of more numbers are cut into, of about as many users (items) each.
    categories : sequence of str
        Columns whose numbers are codes: a feature each, and no ranges.
    rows : int ≥ 1
        Of more rows so many are drawn.
    seed : int ≥ 0

    Raises
    ------
    InputError
        If there are no features or no ratings, or a column is absent.
    """
    check_choice("target", target, (LIKED, RATING))
    _check_common(buckets, rows, seed)
    check_integer("ratio", ratio, 1)
    if target == RATING and data.rating is None:
        raise InputError(f"{data.name} has no ratings: take target='liked'")
    rng = np.random.default_rng(seed)
    there = [
        str(column)
        for known in (data.user_features, data.item_features)
        if known is not None
        for column in known.columns
    ]
    _check_there(data.name, categories, there)
    tables, notes = [], []
    for what, known, size in (
        ("user", data.user_features, data.n_users), ("item", data.item_features, data.n_items),
    ):  # fmt: skip
        given = pd.DataFrame(index=range(size)) if known is None else known
        table, remarks = _usable(given, buckets, f"{what}s", categories, skip=SKIPPED)
        tables.append(table)
        notes += remarks
    users, items = _told_apart(tables[0], tables[1])
    if not ids and users.shape[1] + items.shape[1] == 0:
        raise InputError(
            f"{data.name} has no features of users or items to combine: give tables of them, or combine "
            "the users and items themselves with ids (--ids)"
        )
    encoder = PairEncoder(users, items, buckets=WHOLE).fit(data.n_users, data.n_items)
    most = rows // (1 + ratio) if target == LIKED else rows
    if most < LEAST_OF_CLASS:
        raise InputError(
            f"ratio {ratio} leaves {counted(most, 'liked pair')} of {rows} rows: at least "
            f"{LEAST_OF_CLASS} are needed; take a smaller ratio, or more rows"
        )
    chosen, remarks = _drawn(len(data.users), most, rng, "pair")
    notes += remarks
    who, what_item = data.users[chosen].astype(np.int64), data.items[chosen].astype(np.int64)
    if target == RATING:
        assert data.rating is not None
        y = np.asarray(data.rating, dtype=np.float64)[chosen]
    else:
        drawn = _not_liked(data, np.repeat(who, ratio), rng)
        y = np.repeat([1.0, 0.0], [len(who), len(drawn)])
        who = np.concatenate([who, drawn[:, 0]])
        what_item = np.concatenate([what_item, drawn[:, 1]])
        notes.append(
            f"{counted(len(chosen), 'liked pair')} against {counted(len(drawn), 'pair')} of the same "
            "users drawn from what they did not like"
        )
    X = encoder.transform(who, what_item)
    keep = np.ones(X.shape[1], dtype=bool)
    if not ids:
        for name, first, last in encoder.fields_:
            if name in ("user", "item"):
                keep[first:last] = False
    fields = [name for name, first, last in encoder.fields_ for _ in range(last - first)]
    names = _with_ids(encoder, data) if ids else list(encoder.names_)
    return Problem(
        sp.csr_matrix(X[:, keep]), y, tuple(np.array(names, dtype=object)[keep]),
        tuple(np.array(fields, dtype=object)[keep]), target,
        None if target == RATING else ("no", "yes"), who, tuple(notes), data.name,
    )  # fmt: skip


def table_problem(
    table: pd.DataFrame,
    target: str | None = None,
    *,
    kind: str = AUTO,
    positive: str | None = None,
    numbers: str = RANGES,
    buckets: int = 5,
    categories: Sequence[str] = (),
    rows: int = MOST_ROWS,
    seed: int = 0,
    name: str = "table",
) -> Problem:
    """Return the rows of a table: all other columns are features, and one is the target.

    Parameters
    ----------
    table : DataFrame
        Cells of text or numbers; an empty one gives no feature. Text has one feature a value, `|`
        separates several in a cell; left out is text with more than 20 values, and more than one for
        two rows that have any.
    target : str, optional
        Column; one of a usual name or else the last.
    kind : "auto", "classes" or "numbers"
        What the target is taken for: by itself numbers where there are more than two and no text.
    positive : str, optional
        The class that weights above 0 speak for; the others are one. Of two by default the second.
    numbers : "ranges" or "scaled"
        Columns of numbers with more than `buckets` values: a feature for each range of about as many
        rows, or the number less its mean, over its standard deviation.
    buckets, categories, rows, seed
        As in `pairs_problem`.
    name : str
        What messages call the table.

    Raises
    ------
    InputError
        If the target is absent, has one class or more than two without `positive`, or no other column
        is a feature.
    """
    check_choice("kind", kind, (AUTO, CLASSES, NUMBERS))
    check_choice("numbers", numbers, (RANGES, SCALED))
    _check_common(buckets, rows, seed)
    columns = [str(column) for column in table.columns]
    _check_names(name, columns)
    if len(table) == 0:
        raise InputError(f"{name}: no rows; there is a header only")
    frame = table.set_axis(columns, axis=1)
    if target is None:
        target = guess_target(columns)
    elif target not in columns:
        raise absent(name, target, columns)
    _check_there(name, categories, columns)
    frame = frame.replace(r"^\s*$", np.nan, regex=True)
    notes: list[str] = []
    for position, column in enumerate(columns):
        found, remarks = _as_numbers(name, column, frame.iloc[:, position])
        frame[column] = found
        notes += remarks
    missing = int(frame[target].isna().sum())
    if missing == len(frame):
        raise InputError(f"{name}: no row has a value of {target!r}; name another target")
    if missing:
        frame = frame[frame[target].notna()]
        notes.append(f"{counted(missing, 'row')} without {target!r} left out")
    rng = np.random.default_rng(seed)
    chosen, remarks = _drawn(len(frame), rows, rng, "row")
    frame = frame.iloc[chosen]
    notes += remarks
    y, classes = _target(name, frame[target], kind, positive)
    features, remarks = _usable(
        frame.drop(columns=target), buckets, name, categories, scaled=numbers == SCALED
    )
    notes += remarks
    encoded = [
        encode_column(str(column), cells, numbers="keep" if cells.dtype.kind == "f" else "values")
        for column, cells in features.reset_index(drop=True).items()
    ]
    if not encoded:
        raise InputError(
            f"{name}: no column beside {target!r} is a feature: each has one value, or is text with "
            f"more than {FEW} values and more than one for two rows"
        )
    return Problem(
        sp.csr_matrix(sp.hstack([one.X for one in encoded], format="csr")), y,
        tuple(name for one in encoded for name in one.names),
        tuple(column for one in encoded for column in one.columns), target, classes,
        np.arange(len(y), dtype=np.int64), tuple(notes), name,
    )  # fmt: skip


def table_of(path: str | Path) -> pd.DataFrame:
    """Return the cells of a file of distinct columns: CSV and the like, gzip, Parquet or Excel."""
    read = read_table(path, what="rows")
    _check_names(str(path), read.names)
    return pd.DataFrame(dict(enumerate(read.columns))).set_axis(read.names, axis=1)


def classes_of(cells: pd.Series, kind: str = AUTO) -> list[str]:
    """Return the values of a target as classes, the most frequent first; none if it is of numbers.

    Two numbers are classes, too, and more are where `kind` is "classes".

    >>> classes_of(pd.Series(["b", "a", "b", ""])), classes_of(pd.Series(["1", "2", "3.5", "NA"]))
    (['b', 'a'], [])
    """
    found, _ = _as_numbers("", "", cells)
    text = found[found.notna()].astype(str).str.strip()
    text = text[text != ""]
    values = text.value_counts()
    numeric = not pd.to_numeric(text, errors="coerce").isna().any()
    if kind == NUMBERS or (kind == AUTO and len(values) > 2 and numeric):
        return []
    return [str(value) for value in values.index]


def guess_target(columns: list[str]) -> str:
    """Return the column that is most likely the target: one of a usual name, else the last."""
    usual = [column for known in TARGETS for column in columns if column.strip().lower() == known]
    return usual[0] if usual else columns[-1]


# ---- tables


def _check_common(buckets: int, rows: int, seed: int) -> None:
    check_integer("buckets", buckets, 2, 100)
    check_integer("rows", rows, 10)
    check_integer("seed", seed, 0, 2**31 - 1)


def _usable(
    table: pd.DataFrame, buckets: int, name: str, categories: Sequence[str], *,
    skip: tuple[str, ...] = (), scaled: bool = False,
) -> tuple[pd.DataFrame, list[str]]:  # fmt: skip
    """Return the columns that say something, numbers as ranges, and notes on those left out."""
    out: dict[str, Any] = {}
    notes: list[str] = []
    for position, column in enumerate(map(str, table.columns)):
        if column.lower() in skip:
            continue
        cells = table.iloc[:, position]
        cells = cells.where(cells.astype(str).str.strip() != "", None)
        values = cells.nunique()
        parsed = pd.to_numeric(cells, errors="coerce").replace([np.inf, -np.inf], np.nan)
        numeric = column not in categories and bool(parsed.notna().sum() == cells.notna().sum())
        if values < 2:
            notes.append(f"{name}: column {column!r} left out: it has one value")
        elif numeric and scaled:
            numbers = parsed.to_numpy(np.float64)
            out[column] = (numbers - np.nanmean(numbers)) / np.nanstd(numbers)
        elif numeric and values > buckets:
            out[column] = _cut(parsed.to_numpy(np.float64), buckets)
        elif (several := _values(cells)) > max(FEW, cells.notna().sum() / 2):
            notes.append(
                f"{name}: column {column!r} left out: {several:,} values in {counted(len(cells), 'row')}"
            )
        else:
            out[column] = _as_text(cells)
    return pd.DataFrame(out, index=table.index), notes


def _as_numbers(name: str, column: str, cells: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return a column of text as numbers, if all but marks of missing values are numbers, and notes.

    Where the other cells are words, such a mark may be one of them, and stays.
    """
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return cells, []
    known = cells[cells.notna()].astype(str).str.strip()
    marks = known.str.lower().isin(MISSING)
    rest = known[~marks]
    commas = rest.str.fullmatch(COMMA)
    comma = bool(commas.any()) and not bool(rest[commas].str.fullmatch(THOUSANDS).all())
    numbers = pd.to_numeric(rest.str.replace(",", ".") if comma else rest, errors="coerce")
    if len(rest) == 0 or numbers.isna().any() or not (comma or marks.any()):
        return cells, []
    notes = []
    if marks.any():
        shown = known[marks].iloc[0]
        notes.append(
            f"{name}: {counted(int(marks.sum()), 'cell')} of {column!r}, as {shown!r}, taken as missing"
        )
    if comma:
        notes.append(
            f"{name}: the commas of {column!r}, as in {rest[commas].iloc[0]!r}, taken as decimal"
        )
    return numbers.reindex(cells.index), notes


def _check_names(name: str, columns: list[str]) -> None:
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        count = columns.count(twice)
        raise InputError(f"{name}: {count} columns are called {twice!r}; rename all but one")


def _check_there(name: str, asked: Sequence[str], columns: list[str]) -> None:
    for column in asked:
        if column not in columns:
            raise absent(name, column, columns)


def _as_text(cells: pd.Series) -> pd.Series:
    """Return codes as words, that nothing takes for numbers again."""

    def word(one: Any) -> str | None:
        if pd.isna(one):
            return None
        return str(int(one)) if isinstance(one, float) and one.is_integer() else str(one)

    return cells.map(word)


def _values(cells: pd.Series) -> int:
    """Return how many values a column of text has; a cell may hold several."""
    parts = {part.strip() for cell in cells.dropna().unique() for part in str(cell).split(SEPARATOR)}
    return len(parts - {""})


def _cut(numbers: NDArray[np.float64], buckets: int) -> NDArray[np.object_]:
    """Return each number's range as text, from the least to the greatest number in it."""
    edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, buckets + 1)[1:-1]))
    codes = np.searchsorted(edges, numbers, side="right")
    out = np.full(len(numbers), None, dtype=object)
    members = [(codes == code) & np.isfinite(numbers) for code in range(len(edges) + 1)]
    members = [rows for rows in members if rows.any()]
    for rows, text in zip(members, ranges([numbers[rows] for rows in members]), strict=True):
        out[rows] = text
    return out


def _told_apart(users: pd.DataFrame, items: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both tables, columns of one name in both marked with whose they are."""
    both = {*users.columns} & {*items.columns} | {"user", "item"}
    return (
        users.rename(columns={column: f"user's {column}" for column in both}),
        items.rename(columns={column: f"item's {column}" for column in both}),
    )


def _with_ids(encoder: PairEncoder, data: Interactions) -> list[str]:
    """Return the encoder's names, users and items by their ids."""
    names = list(encoder.names_)
    for field, ids in (("user", data.user_ids), ("item", data.item_ids)):
        first = next(start for name, start, _ in encoder.fields_ if name == field)
        names[first : first + len(ids)] = [f"{field}={one}" for one in ids]
    return names


def _drawn(
    size: int, most: int, rng: np.random.Generator, what: str
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows to take, all or `most` drawn at random, and a note on it."""
    if size <= most:
        return np.arange(size, dtype=np.int64), []
    chosen = np.sort(rng.choice(size, most, replace=False)).astype(np.int64)
    return chosen, [f"{most:,} of {counted(size, what)} drawn at random"]


def _not_liked(
    data: Interactions, users: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return different pairs of these users and items drawn evenly from what they did not like.

    (pairs, 2); fewer than users where a user has few items left.
    """
    liked = np.sort(data.users.astype(np.int64) * data.n_items + data.items)
    counts = np.bincount(data.users, minlength=data.n_users)
    users = users[counts[users] < data.n_items]
    items = rng.integers(0, data.n_items, len(users))
    right = np.zeros(len(users), dtype=bool)
    for _ in range(ROUNDS):
        keys = users * data.n_items + items
        # Each pair once: one that is drawn twice would be both learned from and measured on.
        right[:] = False
        right[np.unique(keys, return_index=True)[1]] = True
        right &= ~_among(keys, liked)
        wrong = np.flatnonzero(~right)
        if len(wrong) == 0:
            break
        items[wrong] = rng.integers(0, data.n_items, len(wrong))
    for user in np.unique(users[~right]):  # few items are left: they are dealt, as far as they go
        own = np.flatnonzero(users == user)
        free = np.setdiff1d(np.arange(data.n_items), data.items[data.users == user])
        dealt = rng.permutation(free)[: len(own)]
        items[own[: len(dealt)]] = dealt
        right[own] = np.arange(len(own)) < len(dealt)
    if not right.any():
        raise InputError(f"{data.name}: all users like all items; there is nothing to learn")
    return np.column_stack([users[right], items[right]])


def _among(keys: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: NDArray[np.bool_] = known[place] == keys
    return found


# ---- the target


def _target(
    name: str, cells: pd.Series, kind: str, positive: str | None
) -> tuple[NDArray[np.float64], tuple[str, str] | None]:
    """Return the target as numbers, or as 0 and 1 with the classes that they stand for."""
    target = cells.name
    text = cells.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
    numeric = bool(np.isfinite(numbers).all())
    values = sorted(text.unique(), key=lambda one: (float(one), one) if numeric else (0.0, one))
    if len(values) < 2:
        raise InputError(
            f"{name}: target {target!r} is {values[0][:40]!r} in every row; there is nothing to tell "
            "apart"
        )
    if kind == NUMBERS or (kind == AUTO and positive is None and numeric and len(values) > 2):
        if not numeric:
            bad = text[~np.isfinite(numbers)].iloc[0]
            raise InputError(
                f"{name}: target {target!r} holds {bad[:40]!r}; numbers are needed, or take it for "
                "classes"
            )
        check_real(f"{name}: the spread of {target!r}", float(np.std(numbers)), 0.0, open_low=True)
        return numbers, None
    if positive is None and len(values) > 2:
        shown = ", ".join(value[:20] for value in values[:5]) + (", …" if len(values) > 5 else "")
        raise InputError(
            f"{name}: target {target!r} has {len(values):,} classes ({shown}); name the one to tell "
            "from the rest (positive)"
        )
    chosen = values[1] if positive is None else positive.strip()
    if chosen not in values:
        shown = ", ".join(value[:20] for value in values[:5]) + (", …" if len(values) > 5 else "")
        raise InputError(f"{name}: {target!r} has no class {chosen[:40]!r}; it has {shown}")
    rest = [value for value in values if value != chosen]
    first = str(rest[0]) if len(rest) == 1 else "other"
    return (text == chosen).to_numpy().astype(np.float64), (first, str(chosen))
