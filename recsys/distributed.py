"""Models and lists from Parquet folders of any size, by Dask.

Co-occurrence counts add up. Each partition of users gives the counts of its rows, a tree of sums joins
them, and rankers that are made of counts are fitted on the sum. Start a `dask.distributed.Client`
before; without one Dask computes in this process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from recsys.errors import CapabilityError, InputError
from recsys.rankers.base import Ranker
from recsys.rankers.package import ModelPackage, load_package
from recsys.rankers.registry import ranker_of
from recsys.utils.distribution import install_hint
from recsys.utils.validation import check_integer

if TYPE_CHECKING:
    import dask.dataframe as dd

FAN_IN = 4  # counts that are summed at once


def fit_counts(
    path: str | os.PathLike[str],
    model: Ranker | str = "ease",
    *,
    user: str = "user",
    item: str = "item",
    rating: str | None = None,
    time: str | None = None,
    min_rating: float | None = None,
    partitions: int | None = None,
) -> ModelPackage:
    """Fit a ranker from co-occurrence counts on a folder of Parquet files.

    The result equals a fit in memory on the same rows to 1e-6. It stores items but no users; make lists
    from histories, with `recommend_all` or `recsys.load(path).recommend_history`. The counts of all
    occurring pairs of items and the model must fit into the memory of one worker.

    Parameters
    ----------
    path : path
        A folder of Parquet files, or a pattern.
    model : Ranker or str
        `ease`, `cf-komd` or `msdw`, as NAME[:key=value,…].
    user, item : str
        Columns of ids, text or integers. Rows with missing ids are left out.
    rating, min_rating : str and float, optional
        Column of ratings, and the lowest rating of a like.
    time : str, optional
        Column of times. For repeated pairs, the latest row is compared with `min_rating`; without times,
        the last row.
    partitions : int ≥ 1, optional
        Number of partitions of users; by default the number of 64 MiB blocks of files.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> with Client(n_workers=2, threads_per_worker=1):  # doctest: +SKIP
    ...     fit_counts("likes/", "cf-komd", user="user_id", item="item_id").save("model.recsys")
    """
    from dask import compute, delayed

    if (rating is None) != (min_rating is None):
        raise InputError("rating and min_rating belong together: pass both or none")
    ranker = _ranker_of_counts(model)
    rows = _read(path, user, item, rating, time, partitions)
    known = rows["item"].drop_duplicates().compute()
    ids = np.sort(known.to_numpy())
    parts = [
        delayed(_counts)(part, ids, min_rating)
        for part in rows.shuffle("user", npartitions=partitions or rows.npartitions).to_delayed()
    ]
    while len(parts) > 1:
        parts = [delayed(_sum)(parts[k : k + FAN_IN]) for k in range(0, len(parts), FAN_IN)]
    ((counts, n_users),) = compute(parts[0])
    liked = np.flatnonzero(counts.diagonal())
    if len(liked) < len(ids):
        counts, ids = counts[liked][:, liked], ids[liked]
    if not len(ids):
        raise InputError("no row is an interaction: check the columns and min_rating")
    ranker._fit_counts(counts, n_users)
    ranker.n_users_, ranker.n_items_ = n_users, len(ids)
    ranker.popularity_ = counts.diagonal().astype(np.float32)
    return _package(ranker, ids)


def recommend_all(
    model: ModelPackage | str | os.PathLike[str],
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    n: int = 10,
    user: str = "user",
    item: str = "item",
    rating: str | None = None,
    time: str | None = None,
    min_rating: float | None = None,
    filter_liked: bool = True,
    partitions: int | None = None,
) -> None:
    """Write the first `n` items of every user of a Parquet folder to another one.

    The result has the columns user, rank, item and score. Unknown items are skipped, and so are users
    with unknown items only. Other parameters: as in `fit_counts`.

    Parameters
    ----------
    model : ModelPackage or path
        A model that recommends from histories. Workers open a path; a package is sent to them.
    out : path
        A folder that all workers can write to.
    """
    from dask import delayed

    check_integer("n", n, 1)
    shared: Any
    if isinstance(model, ModelPackage):
        package, shared = model, delayed(model)
    else:
        package = load_package(os.fspath(model), mapped=True)
        shared = delayed(_opened)(str(model), os.stat(model).st_mtime_ns)
    rows = _read(path, user, item, rating, time, partitions)
    ids = package.item_ids
    meta = pd.DataFrame(
        {
            "user": rows._meta["user"],
            "rank": np.empty(0, np.int32),
            "item": pd.Series(ids[:0].tolist(), dtype=rows._meta["item"].dtype),
            "score": np.empty(0, np.float32),
        }
    )
    lists = rows.shuffle("user", npartitions=partitions or rows.npartitions).map_partitions(
        _lists, shared, min_rating, n, filter_liked, meta=meta
    )
    lists.to_parquet(str(out), write_index=False, overwrite=True)


def _ranker_of_counts(model: Ranker | str) -> Any:
    model = ranker_of(model) if isinstance(model, str) else model
    if not hasattr(model, "_fit_counts"):
        raise CapabilityError(f"{model.name} cannot be fitted from counts: use ease, cf-komd or msdw")
    for name in ("votes", "sharpening", "recency"):
        if getattr(model, name, 0):
            raise CapabilityError(
                f"{model.name} with {name} cannot be fitted from counts: pass {name}=0"
            )
    return model


def _read(
    path: str | os.PathLike[str],
    user: str,
    item: str,
    rating: str | None,
    time: str | None,
    partitions: int | None,
) -> dd.DataFrame:
    """Return the rows with the columns user, item and, if named, rating and time."""
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise InputError(f"this needs Dask: {install_hint('dask')}") from error

    names = {user: "user", item: "item"}
    names |= {column: name for column, name in ((rating, "rating"), (time, "time")) if column}
    if partitions is not None:
        check_integer("partitions", partitions, 1)
    try:
        rows = dd.read_parquet(str(path), columns=list(names), blocksize="64MiB")
    except (FileNotFoundError, OSError) as error:
        raise InputError(f"{path} contains no Parquet files") from error
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} lacks a column of {', '.join(names)}: {error}") from None
    return rows.rename(columns=names).dropna(subset=["user", "item"])


def _liked(rows: pd.DataFrame, min_rating: float | None) -> pd.DataFrame:
    """Return one row for each pair of user and item that is a like."""
    if "time" in rows:
        rows = rows.sort_values("time", kind="stable")
    rows = rows.drop_duplicates(["user", "item"], keep="last")
    return rows if min_rating is None else rows[rows["rating"] >= min_rating]


def _matrix(rows: pd.DataFrame, ids: Any) -> tuple[sp.csr_matrix, Any]:
    """Return the matrix of a partition's users and known items, and the ids of these users."""
    columns = pd.Index(ids).get_indexer(rows["item"])
    rows, columns = rows[columns >= 0], columns[columns >= 0]
    numbers, users = pd.factorize(rows["user"], sort=True)
    ones = np.ones(len(rows), np.float32)
    return sp.csr_matrix((ones, (numbers, columns)), shape=(len(users), len(ids))), users


def _counts(rows: pd.DataFrame, ids: Any, min_rating: float | None) -> tuple[sp.csr_matrix, int]:
    """Return the co-occurrence counts of a partition's users and the number of these users."""
    matrix, users = _matrix(_liked(rows, min_rating), ids)
    matrix = matrix.astype(np.int32)
    return (matrix.T @ matrix).tocsr(), len(users)


def _sum(parts: Sequence[tuple[sp.csr_matrix, int]]) -> tuple[sp.csr_matrix, int]:
    """Return the sum of several partitions' counts."""
    return reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), parts)


def _package(ranker: Ranker, ids: Any) -> ModelPackage:
    nobody = sp.csr_matrix((0, len(ids)), dtype=np.float32)
    ids = ids.astype(object)
    return ModelPackage(ranker, np.empty(0, object), ids, ids, nobody)


@lru_cache(maxsize=1)
def _opened(path: str, written: int) -> ModelPackage:
    """Open a model once in each worker; `written` tells a new file at the same path."""
    return load_package(path, mapped=True)


def _lists(
    rows: pd.DataFrame, package: ModelPackage, min_rating: float | None, n: int, filter_liked: bool
) -> pd.DataFrame:
    """Return the lists of a partition's users."""
    matrix, users = _matrix(_liked(rows, min_rating), package.item_ids)
    items, scores = package.ranker.recommend(
        np.arange(len(users)),
        matrix,
        N=n,
        filter_already_liked_items=filter_liked,
        recalculate_user=True,
    )
    listed = items >= 0
    owner, rank = np.nonzero(listed)
    return pd.DataFrame(
        {
            "user": np.asarray(users)[owner],
            "rank": (rank + 1).astype(np.int32),
            "item": pd.Series(package.item_ids[items[listed]], dtype=rows["item"].dtype),
            "score": scores[listed],
        }
    )
