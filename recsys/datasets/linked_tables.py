"""A graph from tables: objects with features, and pairs of their ids; or users and items they like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.columns import ITEM_NAMES, USER_NAMES, usual
from recsys.data.encoding import Features, encode_column, ranges, side_by_side
from recsys.data.interactions import Interactions
from recsys.data.reading import read_features
from recsys.data.tables import Table, read_table
from recsys.datasets.graphs import Graph, Objects
from recsys.errors import InputError, counted

__all__ = ["encode_objects", "graph_of", "read_graph", "tell_tables_apart"]

LABELS = ("title", "name", "label")  # columns that name an object, in lower case
MOST_SHOWN = 3  # columns named in a note


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
        Of two columns of ids, a row a link. Repeated pairs are one link, and so are both directions
        where there is one kind of objects; pairs of an object with itself are dropped.
    left, right : path or Table, optional
        The objects of the first and the second column with their features (see `encode_objects`).
        Without `right` both ends are objects of the left table; without `left` too, all objects of the
        pairs, and nothing is known of them but their ids.
    left_id, right_id : str, optional
        The id column of these tables: a usual name, or else the first column, when not given.
    left_col, right_col : str, optional
        The columns of the pairs: usual names, or those that hold most of the objects' ids, when not
        given.
    one_kind : bool, optional
        Without tables of objects: whether both columns are of one kind. By default they are, unless they
        are called user and item, if half the ids of the shorter one are in the other.

    Raises
    ------
    InputError
        If a table cannot be read, an id is unknown, or there is no link.
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
    """Return the graph of users and the items they like, with the features there are of both.

    Parameters
    ----------
    data : Interactions
        Every pair is a link.
    ids : bool
        Whether each object's id is a feature, too: what it is like beyond what is told of it. Of a kind
        without features it is the only one.

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
    """Return the features of a table of objects, a row each, and the columns that are left out.

    Numbers are kept where they lie between −1 and 1 or at least half of them are 0 (truth values,
    counts, vectors); others are cut at quantiles, and named by what lies between these. Text gives one
    feature a value, of which a cell may hold several between `|`. Left out are titles, and columns of
    text whose values each occur once.

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
        cut = numeric and not kept
        parts.append(found._replace(values=tuple(_buckets(found.X, numbers))) if cut else found)
    return side_by_side(parts, len(table)), tuple(dropped)


def _buckets(X: sp.csr_matrix, numbers: pd.Series) -> list[str]:
    """Return each bucket of a column of numbers as its lowest and its highest: "20–29"."""
    values = numbers.to_numpy(np.float64)
    return ranges([values[bucket.indices] for bucket in X.tocsc().T])


def tell_tables_apart(paths: Sequence[str | Path]) -> tuple[Table, Table | None, Table | None]:
    """Read one to three tables, and return those of pairs, of left and of right objects.

    Pairs are the table whose two columns hold most of the others' ids; a table alone has pairs.
    """
    files = [Path(path) for path in paths]
    if not 1 <= len(files) <= 3:
        raise InputError(f"one to three tables make a graph: pairs, and objects; given: {len(files)}")
    if len(files) == 1:
        return read_table(files[0]), None, None
    tables = [read_table(path) for path in files]
    ids = [set(table.texts(_id_column(table))) for table in tables]
    best: tuple[float, int, list[int]] = (0.0, 0, [])
    for k, table in enumerate(tables):
        others = [j for j in range(len(files)) if j != k]
        if len(table.names) < 2:
            continue
        for order in [others] if len(others) == 1 else [others, others[::-1]]:
            known = [ids[order[0]], ids[order[-1]]]
            one = _best_column(table, known[0], ())
            two = _best_column(table, known[1], (one[0],))
            share = min(one[1], two[1])
            if share > best[0] or (
                share == best[0]
                and len(table.texts(table.names[0]))
                > len(tables[best[1]].texts(tables[best[1]].names[0]))
            ):
                best = (share, k, order)
    if best[0] == 0.0:
        raise InputError(
            "no table has pairs of the others' ids: give a table of objects whose first column is the "
            "id, and a table of pairs of these ids"
        )
    _, k, order = best
    return tables[k], tables[order[0]], None if len(order) == 1 else tables[order[1]]


def _table_of(given: str | Path | Table, what: str) -> Table:
    return given if isinstance(given, Table) else read_table(given)


def _objects_of(table: Table, column: str | None) -> Described:
    frame = read_features(table, column or _id_column(table), "object")
    found = _described("object", frame.index.to_numpy(dtype=object), frame, False)
    if found.by_id and len(table.names) == 1:
        raise InputError(f"{table.name} has no feature beside the ids")
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
            shown = ", ".join(left_out[:MOST_SHOWN])
            more = len(left_out) - MOST_SHOWN
            and_more = f" and {counted(more, 'column')} more" if more > 0 else ""
            notes.append(f"Left out, as no value occurs twice: {shown}{and_more}")
    if there is None:
        own = ends[:, 0] == ends[:, 1]
        if own.any():
            number = int(own.sum())
            notes.append(f"{counted(number, 'pair')} of an object with itself left out")
        ends = np.sort(ends[~own], axis=1)
    codes = ends[:, 0] * max(here.X.shape[0], 1 if there is None else there.X.shape[0]) + ends[:, 1]
    _, first = np.unique(codes, return_index=True)
    links = ends[np.sort(first)]
    if len(links) < len(ends):
        notes.append(f"{counted(len(ends) - len(links), 'repeated pair')} counted once")
    if len(links) == 0:
        raise InputError("there is no link between two objects")
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
