"""Graphs: objects with features and links, from tables or from interactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.columns import ITEM_NAMES, USER_NAMES, usual
from recsys.data.encoding import Features, encode_column, side_by_side
from recsys.data.interactions import Interactions
from recsys.data.reading import read_features
from recsys.data.tables import Table, read_table
from recsys.errors import InputError
from recsys.utils.validation import check_choice

WEIGHTINGS = ("none", "unit", "tf-idf")  # of objects' features
LABELS = ("title", "name", "label")  # columns that name an object, in lower case
MOST_SHOWN = 3  # columns named in a note


class Objects(NamedTuple):
    """The objects of one end of the links, with their names and features.

    >>> Objects.of("paper", ["a", "b"], ["word=net"]).labels.tolist()
    ['a', 'b']
    """

    noun: str  # one of them: "author"; the plural takes an s
    ids: NDArray[np.object_]  # (objects,) text, none of it twice
    labels: NDArray[np.object_]  # (objects,) readable names
    features: tuple[str, ...]  # names of the matrix' columns

    @staticmethod
    def of(
        noun: str, ids: Sequence[str], features: Sequence[str], labels: Sequence[str] | None = None
    ) -> Objects:
        """Return objects whose labels are their ids by default; duplicate labels get the id appended."""
        names = np.array(ids, dtype=object)
        shown = names
        if labels is not None:
            often = Counter(labels)
            shown = np.array(
                [
                    label if often[label] == 1 and label else f"{label} [{one}]".strip()
                    for label, one in zip(labels, ids, strict=True)
                ],
                dtype=object,
            )
        return Objects(noun, names, shown, tuple(features))


class Graph(NamedTuple):
    """Objects' features and links; B is None where both ends are objects of one kind (links i < j)."""

    A: sp.csr_matrix  # (objects, features) float64
    B: sp.csr_matrix | None
    links: NDArray[np.int64]  # (links, 2)
    left: Objects
    right: Objects  # the same where both ends are of one kind
    weighting: str = "unit"  # "none", "unit" or "tf-idf": what suits the features (see `weighted`)
    notes: tuple[str, ...] = ()  # what reading dropped, and caveats for its metric values
    by_id: bool = False  # whether the features of an end are nothing but the objects' ids

    @property
    def sizes(self) -> tuple[int, int | None]:
        """Numbers of objects of both kinds; the second is None for one kind."""
        return self.A.shape[0], None if self.B is None else self.B.shape[0]

    def weighted(self, how: str | None = None) -> Graph:
        """Return the graph with its features "none", of "unit" length, or "tf-idf" of unit length.

        By default the choice depends on the features.
        """
        how = self.weighting if how is None else how
        check_choice("weighting", how, WEIGHTINGS)
        return self._replace(
            A=_weighted(self.A, how), B=None if self.B is None else _weighted(self.B, how)
        )


def _weighted(X: sp.csr_matrix, how: str) -> sp.csr_matrix:
    if how == "none":
        return X
    from sklearn.feature_extraction.text import TfidfTransformer  # late: it takes half a second
    from sklearn.preprocessing import normalize

    return sp.csr_matrix(TfidfTransformer().fit_transform(X) if how == "tf-idf" else normalize(X))


class Described(NamedTuple):
    """Objects with their features, and which columns say nothing of others."""

    X: sp.csr_matrix
    objects: Objects
    dropped: tuple[str, ...]
    by_id: bool


def read_graph(
    pairs: str | Path | Table,
    left: str | Path | Table | None = None,
    right: str | Path | Table | None = None,
    *,
    left_id: str | None = None,
    right_id: str | None = None,
    left_col: str | None = None,
    right_col: str | None = None,
    one_kind: bool | None = None,
) -> Graph:
    """Read a graph from tables of objects and of pairs.

    Parameters
    ----------
    pairs : path or Table
        Table with two columns of ids and one row per link. Repeated pairs are one link, and so are both
        directions for objects of one kind; pairs of an object with itself are dropped.
    left, right : path or Table, optional
        Objects of the first and second column with their features (see `encode_objects`). Without
        `right`, both ends are objects of the left table; without both tables, objects have no features.
    left_id, right_id : str, optional
        Id columns of these tables; by default a column with a usual name, else the first column.
    left_col, right_col : str, optional
        Columns of the pairs; by default columns with usual names, else those with most of the ids.
    one_kind : bool, optional
        Whether both columns have objects of one kind, without tables of objects. By default they do if
        half the ids of the shorter column are in the other, unless they are called user and item.
    """
    table = _table_of(pairs, "pairs")
    if len(table.names) < 2:
        raise InputError(f"{table.name}: a table of pairs needs two columns; found: {table.names[0]}")
    described: list[Described | None] = [
        None if given is None else _objects_of(_table_of(given, "objects"), column)
        for given, column in ((left, left_id), (right, right_id))
    ]
    named = _pair_columns(table, described, left_col, right_col)
    first, second = (table.texts(name) for name in named)
    if left is None and right is None:
        one = _alike(named, first, second) if one_kind is None else one_kind
        if one:
            described[0] = _by_id("object", np.concatenate([first, second]))
        else:
            described = [_by_id(_noun(0, named), first), _by_id(_noun(1, named), second)]
    elif left is None:
        described[0] = _by_id(_noun(0, named), first)
    here, there = described[0], described[1]
    assert here is not None
    other = here if there is None else there
    what = ("left object", "right object") if there is not None else ("object", "object")
    ends = np.column_stack(
        [
            Interactions.lookup(what[0], here.objects.ids, list(first)),
            Interactions.lookup(what[1], other.objects.ids, list(second)),
        ]
    )
    return _graph(ends, here, there)


def graph_of(data: Interactions, ids: bool = False) -> Graph:
    """Return the graph of users and liked items with their features.

    Parameters
    ----------
    data : Interactions
        Every pair is a link.
    ids : bool
        Whether ids are features; for a kind without features they are the only ones.

    Examples
    --------
    >>> from recsys.data import Interactions
    >>> found = graph_of(Interactions.from_ids(["ada", "bob", "ada"], ["tea", "tea", "milk"]))
    >>> found.A.shape, found.links.tolist(), found.right.features
    ((2, 2), [[0, 0], [1, 0], [0, 1]], ('item=tea', 'item=milk'))
    """
    sides = [
        _described("user", data.user_ids, data.user_features, ids),
        _described("item", data.item_ids, data.item_features, ids),
    ]
    links = np.column_stack([data.users, data.items]).astype(np.int64)
    return _graph(links, sides[0], sides[1])


def encode_objects(table: pd.DataFrame) -> tuple[Features, tuple[str, ...]]:
    """Return the features of a table of objects, one row each, and the names of omitted columns.

    Numeric columns are kept if values are between −1 and 1 or at least half of them are 0; others are
    binned at quantiles. Text gives one feature per value, with `|` between values of a cell. Titles and
    text columns of unique values are left out.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"title": ["A", "B"], "words": ["net|gene", "net"], "x": [0.5, 0]})
    >>> found, dropped = encode_objects(table)
    >>> found.names, dropped
    (('words=gene', 'words=net', 'x'), ('title',))
    """
    parts: list[Features] = []
    dropped: list[str] = []
    for position, name in enumerate(map(str, table.columns)):
        column = table.iloc[:, position]
        if name.lower() in LABELS:
            dropped.append(name)
            continue
        numbers = pd.to_numeric(column, errors="coerce")
        filled = numbers.dropna().to_numpy(np.float64)
        numeric = len(filled) == int(column.notna().sum())
        small = bool(np.abs(filled).max(initial=0.0) <= 1)
        kept = numeric and (small or 2 * int((filled == 0).sum()) >= len(filled))
        found = encode_column(name, column, numbers="keep" if kept else "quantiles")
        often = np.diff(found.X.tocsc().indptr).max(initial=0)
        if not kept and not numeric and often <= 1:
            dropped.append(name)
            continue
        parts.append(found)
    return side_by_side(parts, len(table)), tuple(dropped)


def _table_of(given: str | Path | Table, what: str) -> Table:
    return given if isinstance(given, Table) else read_table(given)


def _objects_of(table: Table, column: str | None) -> Described:
    frame = read_features(table, column or _id_column(table), "object")
    found = _described("object", frame.index.to_numpy(dtype=object), frame, False)
    if found.by_id and len(table.names) == 1:
        raise InputError(f"{table.name} has no features besides the ids")
    return found


def _id_column(table: Table) -> str:
    return usual(table.names, (*ITEM_NAMES, *USER_NAMES, "id")) or table.names[0]


def _described(noun: str, ids: NDArray[np.object_], table: pd.DataFrame | None, own: bool) -> Described:
    texts = [str(one) for one in ids]
    if table is None:
        return _by_id(noun, np.array(texts, dtype=object))
    found, dropped = encode_objects(table)
    label = next((c for c in table.columns if str(c).lower() in LABELS), None)
    labels = None if label is None else [str(cell) for cell in table[label]]
    if found.X.shape[1] == 0:
        return _by_id(noun, np.array(texts, dtype=object), labels)._replace(dropped=dropped)
    X, names = found.X, found.names
    if own:
        X = sp.csr_matrix(sp.hstack([X, sp.eye(len(texts))], format="csr"))
        names = (*names, *(f"{noun}={one}" for one in texts))
    return Described(X, Objects.of(noun, texts, names, labels), dropped, False)


def _noun(side: int, named: tuple[str, str]) -> str:
    known = (("user", USER_NAMES), ("item", ITEM_NAMES))[side]
    return known[0] if named[side] in known[1] else ("left object", "right object")[side]


def _by_id(noun: str, ids: NDArray[np.object_], labels: Sequence[str] | None = None) -> Described:
    texts = list(dict.fromkeys(ids))
    named = Objects.of(noun, texts, [f"{noun}={one}" for one in texts], labels)
    return Described(sp.csr_matrix(sp.eye(len(texts))), named, (), True)


def _graph(ends: NDArray[np.int64], here: Described, there: Described | None) -> Graph:
    notes = []
    for one in (here, *((there,) if there is not None else ())):
        left_out = [name for name in one.dropped if name.lower() not in LABELS]
        if left_out:
            shown = ", ".join(left_out[:MOST_SHOWN]) + (", …" if len(left_out) > MOST_SHOWN else "")
            notes.append(f"Left out, as no value occurs twice: {shown}")
    if there is None:
        own = ends[:, 0] == ends[:, 1]
        if own.any():
            notes.append(f"pairs of an object with itself, left out: {int(own.sum()):,}")
        ends = np.sort(ends[~own], axis=1)
    codes = ends[:, 0] * max(here.X.shape[0], 1 if there is None else there.X.shape[0]) + ends[:, 1]
    _, first = np.unique(codes, return_index=True)
    links = ends[np.sort(first)]
    if len(links) < len(ends):
        notes.append(f"repeated pairs, counted once: {len(ends) - len(links):,}")
    if len(links) == 0:
        raise InputError("the graph has no links")
    other = here if there is None else there
    return Graph(
        here.X,
        None if there is None else there.X,
        links.astype(np.int64),
        here.objects,
        other.objects,
        notes=tuple(notes),
        by_id=here.by_id or other.by_id,
    )


def _pair_columns(
    table: Table, described: list[Described | None], left_col: str | None, right_col: str | None
) -> tuple[str, str]:
    """Return the two columns of ids: given ones, usual ones, those that hold most of the ids."""
    found = [left_col or usual(table.names, USER_NAMES), right_col or usual(table.names, ITEM_NAMES)]
    known = [None if one is None else set(one.objects.ids) for one in described]
    if known[1] is None and known[0] is not None:
        known[1] = known[0]
    if not (found[0] and found[1]):
        found = [left_col, right_col]
    for side in (1, 0) if known[0] is None and known[1] is not None else (0, 1):
        if found[side] is None:
            taken = tuple(name for name in found if name is not None)
            ids = known[side]
            if ids is None:
                found[side] = next(name for name in table.names if name not in taken)
            else:
                found[side] = _best_column(table, ids, taken)[0]
    assert found[0] is not None and found[1] is not None
    return found[0], found[1]


def _best_column(table: Table, ids: set[str], taken: tuple[str, ...]) -> tuple[str, float]:
    """Return the first column that holds the largest share of ids, and that share."""
    free = [name for name in table.names if name not in taken]
    shares = [float(np.mean([one in ids for one in table.texts(name)])) for name in free]
    at = int(np.argmax(shares))
    return free[at], shares[at]


def _alike(named: tuple[str, str], first: NDArray[np.object_], second: NDArray[np.object_]) -> bool:
    if named[0] in USER_NAMES and named[1] in ITEM_NAMES:
        return False
    one, two = set(first), set(second)
    return 2 * len(one & two) >= min(len(one), len(two))
