"""Graphs: objects with features and links, from tables or from interactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.columns import ITEM_NAMES, USER_NAMES, some
from recsys.data.features import Features, encode_column, side_by_side
from recsys.data.interactions import Interactions
from recsys.data.reading import read_features
from recsys.data.tables import read_table
from recsys.errors import InputError
from recsys.utils.validation import check_choice

WEIGHTINGS = ("none", "unit", "tf-idf")  # of objects' features
LABELS = ("title", "name", "label")  # columns that name an object, in lower case
OBJECT_IDS = (*ITEM_NAMES, *USER_NAMES, "id")


class Objects(NamedTuple):
    """The objects of one end of the links, with their names and features."""

    noun: str  # one of them: "author"; the plural takes an s
    ids: NDArray[np.object_]  # (objects,) text, none of it twice
    labels: NDArray[np.object_]  # (objects,) readable names
    features: tuple[str, ...]  # names of the matrix' columns

    @staticmethod
    def of(
        noun: str, ids: Sequence[str], features: Sequence[str], labels: Iterable[str] | None = None
    ) -> Objects:
        """Return objects whose labels are their ids by default; duplicate labels get the id appended."""
        names = list(ids if labels is None else labels)
        often = Counter(names)
        shown = [
            name if often[name] == 1 and name else f"{name} [{one}]".strip()
            for name, one in zip(names, ids, strict=True)
        ]
        return Objects(noun, np.array(ids, object), np.array(shown, object), tuple(features))


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
        if how == "none":
            return self
        from sklearn.feature_extraction.text import TfidfTransformer  # late: it takes half a second
        from sklearn.preprocessing import normalize

        scale = TfidfTransformer().fit_transform if how == "tf-idf" else normalize
        A, B = (None if X is None else sp.csr_matrix(scale(X)) for X in (self.A, self.B))
        return self._replace(A=A, B=B)


class _End(NamedTuple):
    """Objects with their features, and which columns of their table are left out."""

    X: sp.csr_matrix
    objects: Objects
    dropped: tuple[str, ...]
    by_id: bool


def read_graph(
    pairs: Any,
    left: Any = None,
    right: Any = None,
    *,
    left_col: str | None = None,
    right_col: str | None = None,
    left_id: str | None = None,
    right_id: str | None = None,
) -> Graph:
    """Read a graph from tables of pairs and of objects.

    Parameters
    ----------
    pairs : path or table
        Table with two columns of ids and one row per link. Repeated pairs are one link, and so are both
        directions for objects of one kind; pairs of an object with itself are dropped.
    left, right : path or table, optional
        Objects of the first and second column with their features (see `encode_objects`). Without
        `right`, both columns have objects of one kind. Without a table, ids are the features.
    left_col, right_col : str, optional
        Columns of the pairs; by default the first two.
    left_id, right_id : str, optional
        Id columns of the tables of objects; by default a column with a usual name, else the first.
    """
    table = read_table(pairs)
    if len(table.names) < 2:
        raise InputError(f"{table.name}: a table of pairs needs two columns; found: {table.names[0]}")
    first, second = table.texts([left_col or table.names[0], right_col or table.names[1]])

    def end(noun: str, ids: Any, source: Any, id_column: str | None) -> _End:
        if source is None:
            return _end(noun, list(dict.fromkeys(ids)), None)
        about = read_table(source)
        known = next((name for name in OBJECT_IDS if name in about.names), about.names[0])
        frame = read_features(about, id_column or known, "object")
        return _end(noun, frame.index, frame)

    if right is None:
        here, there = end("object", [*first, *second], left, left_id), None
    else:
        here = end("left object", first, left, left_id)
        there = end("right object", second, right, right_id)
    ends = [
        Interactions.lookup(one.objects.noun, one.objects.ids, list(ids))
        for one, ids in ((here, first), (there or here, second))
    ]
    return _graph(np.column_stack(ends), here, there)


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
    users = _end("user", data.user_ids, data.user_features, ids)
    items = _end("item", data.item_ids, data.item_features, ids)
    return _graph(np.column_stack([data.users, data.items]), users, items)


def encode_objects(table: pd.DataFrame) -> tuple[Features, tuple[str, ...]]:
    """Return the features of a table of objects, one row each, and the names of omitted columns.

    Numeric columns are kept if values are between −1 and 1 or at least half of them are 0; others are
    binned at quantiles. Text gives one feature per value, with `|` between values of a cell. Titles and
    text columns of unique values are left out.
    """
    parts: list[Features] = []
    dropped: list[str] = []
    for position, name in enumerate(map(str, table.columns)):
        if name.lower() in LABELS:
            dropped.append(name)
            continue
        column = table.iloc[:, position]
        numbers = pd.to_numeric(column, errors="coerce")
        filled = numbers.dropna().to_numpy(np.float64)
        numeric = len(filled) == int(column.notna().sum())
        small = bool(np.abs(filled).max(initial=0.0) <= 1)
        kept = numeric and (small or 2 * int((filled == 0).sum()) >= len(filled))
        found = encode_column(name, column, numbers="keep" if kept else "quantiles")
        if not numeric and np.bincount(found.X.indices, minlength=1).max() <= 1:
            dropped.append(name)
        else:
            parts.append(found)
    return side_by_side(parts, len(table)), tuple(dropped)


def _end(noun: str, ids: Any, table: pd.DataFrame | None, own: bool = False) -> _End:
    """Return objects with the features of a table; ids are features, too, if `own` or without others."""
    texts = list(map(str, ids))
    table = pd.DataFrame(index=texts) if table is None else table
    found, dropped = encode_objects(table)
    labels = next((table[c].astype(str) for c in table.columns if str(c).lower() in LABELS), None)
    X, names, by_id = found.X, found.names, not found.names
    if own or by_id:
        X = sp.csr_matrix(sp.hstack([X, sp.eye(len(texts))], format="csr"))
        names = (*names, *(f"{noun}={one}" for one in texts))
    return _End(X, Objects.of(noun, texts, names, labels), dropped, by_id)


def _graph(ends: NDArray[np.integer], here: _End, there: _End | None) -> Graph:
    other, notes = there or here, []
    for one in (here,) if there is None else (here, there):
        left_out = [name for name in one.dropped if name.lower() not in LABELS]
        if left_out:
            notes.append(f"Left out, as no value occurs twice: {some(left_out)}")
    links = ends.astype(np.int64)
    if there is None:
        own = links[:, 0] == links[:, 1]
        if own.any():
            notes.append(f"pairs of an object with itself, left out: {int(own.sum()):,}")
        links = np.sort(links[~own], axis=1)
    if len(links) == 0:
        raise InputError("the graph has no links")
    rows = len(links)
    links = pd.DataFrame(links).drop_duplicates().to_numpy()
    if len(links) < rows:
        notes.append(f"repeated pairs, counted once: {rows - len(links):,}")
    return Graph(
        here.X,
        None if there is None else there.X,
        links,
        here.objects,
        other.objects,
        notes=tuple(notes),
        by_id=here.by_id or other.by_id,
    )
