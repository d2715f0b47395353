"""Lists of many users from a mapped ranker and a work folder's rows, without all users' ids."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.engines import Engine, opened
from recsys.engines.base import SAME, installed
from recsys.errors import InputError
from recsys.partitioned.ids import plain, unpacked
from recsys.partitioned.rows import CATALOGUE, read_catalogue, read_rows, read_times
from recsys.partitioned.work import Work
from recsys.rankers import Ranker
from recsys.rankers.catalogue_file import read_texts
from recsys.rankers.serialization import read_ranker
from recsys.recommender.all_users import Written
from recsys.recommender.parts import FORMAT, Parts
from recsys.utils.atomic import replacing
from recsys.utils.digests import row_digests
from recsys.utils.files import shown
from recsys.utils.model_file import checksum
from recsys.utils.progress import report
from recsys.utils.validation import check_integer

BLOCK = 4096  # users of a part


def recommend_partitions(
    model: str | os.PathLike[str],
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    n: int = 10,
    users: int | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    block: int = BLOCK,
) -> Path:
    """Write lists of the best items of users to a folder of Parquet parts.

    Parts that are there are left as they are; `_SUCCESS` says that all are.

    Parameters
    ----------
    model : path
        What `fit_partitions` wrote.
    work : path
        Its work folder, which has the users' rows.
    out : path
        A new or empty folder, or one that a run of the same job left. Columns, as of `recsys recommend`:
        `user_id`, `rank` from 1, `item_id`, `score`.
    n : int ≥ 1
        Items a list.
    users : int ≥ 1, optional
        The first so many, in a fixed pseudo-random order; all when not given.
    engine : str or Engine
        Each worker computes with one thread.
    workers : int ≥ 1, optional
        How many the engine starts.
    block : int ≥ 1
        Users a part.

    Returns
    -------
    Path
        Of the folder.

    Raises
    ------
    InputError
        If the model is not that of the work folder, or the output folder is that of another job.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from recsys.partitioned import fit_partitions
    >>> likes = pd.DataFrame({"user": ["ada", "ada", "bob"], "item": ["tea", "milk", "tea"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "likes.parquet")
    ...     likes.to_parquet(path)
    ...     model, work = path.with_name("my.recsys"), path.with_name("work")
    ...     _ = fit_partitions("cf-komd", path, out=model, work=work)
    ...     lists = recommend_partitions(model, work, path.with_name("top"), n=1)
    ...     pd.read_parquet(lists)[["user_id", "item_id"]].values.tolist()
    [['bob', 'milk']]
    """
    return write_lists(model, work, out, n, users, engine, workers, block).folder


def write_lists(
    model: str | os.PathLike[str],
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    n: int,
    users: int | None,
    engine: str | Engine,
    workers: int | None,
    block: int,
) -> Written:
    """Do the work of `recommend_partitions`, and return its result."""
    check_integer("n", n, 1)
    check_integer("block", block, 1)
    found = Work.opened(work)
    if not found.done(CATALOGUE):
        raise InputError(f"{shown(work)} has no rows yet: run `recsys fit --partitions` to its end")
    catalogue = read_catalogue(found)
    everybody = int(catalogue["users"].sum())
    count = everybody if users is None else min(everybody, check_integer("users", users, 1))
    digest = _checked(model, found, catalogue)
    job = {
        "format": FORMAT, "model": digest, "rows": catalogue["digest"].tobytes().hex(), "users": count,
        "block": block, "lists": {"n": n},
        "versions": {name: installed()[name] for name in SAME},
    }  # fmt: skip
    parts = Parts(Path(out).absolute(), job)
    parts.begin()
    todo, total, began = parts.missing(), len(parts.starts()), perf_counter()
    if not todo:
        parts.finish()
        return Written(parts.folder, 0, total, 0, 0, 1, 0.0, 0.0)
    parts.unfinish()
    path = str(Path(model).absolute())
    units = [(path, digest, str(found.folder), str(parts.folder), start) for start in todo]
    with opened(engine, workers) as running:
        done, before = total - len(todo), running.seconds
        report("lists", done, total)
        for k, _ in enumerate(running.map(lists_of_users, units, threads=1), done + 1):
            report("lists", k, total)
        spent, own, many = perf_counter() - began, running.seconds - before, running.workers
    parts.finish()
    listed = sum(min(start + block, count) - start for start in todo)
    return Written(parts.folder, len(todo), done, listed, 0, many, spent, own)


def lists_of_users(unit: tuple[str, str, str, str, int]) -> None:
    """Write the part that begins with a user."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    model, digest, folder, out, start = unit
    parts = Parts.of(Path(out))
    path = parts.path(start)
    if path.exists():
        return
    work, ranker = Work.opened(folder), _ranker(model, digest)
    stop = min(start + parts.job["block"], parts.job["users"])
    names, rows, times = _rows(work, start, stop)
    digests = getattr(ranker, "row_digests_", None)
    if digests is not None and not np.array_equal(digests[start:stop], row_digests(rows)):
        raise InputError(f"{shown(model)} was not fitted on the rows of {shown(folder)}")
    how: dict[str, Any] = {}
    if ranker.reads_times():
        how = {"times": times, "recalculate_user": True}
    found = ranker.recommend(np.arange(start, stop), rows, N=parts.job["lists"]["n"], **how)
    kept = found.ids >= 0
    lengths = kept.sum(axis=1)
    user = np.repeat(np.arange(stop - start), lengths)
    rank = np.broadcast_to(np.arange(1, kept.shape[1] + 1, dtype=np.int32), kept.shape)[kept]
    table = pa.table(
        {
            "user_id": _taken(names, user), "rank": rank,
            "item_id": _taken(unpacked("ids", read_catalogue(work)), found.ids[kept].astype(np.int64)),
            "score": found.scores[kept],
        }
    )  # fmt: skip
    with replacing(path) as file:
        pq.write_table(table, file)


@functools.lru_cache(maxsize=1)
def _ranker(path: str, digest: str) -> Ranker:
    """Return a mapped ranker; a worker keeps it from part to part."""
    return read_ranker(path, mapped=True, checked=digest)[0]


def _checked(model: str | os.PathLike[str], work: Work, catalogue: dict[str, NDArray[Any]]) -> str:
    """Return a model's checksum, its content compared with it, and its items with those of the rows."""
    digest = checksum(model)
    ranker, arrays = read_ranker(model, mapped=True)
    fitted, ids = arrays.get("catalogue.rows"), arrays.get("catalogue.item_ids")
    same = ranker.n_items_ == len(catalogue["popularity"])
    if fitted is not None:
        same &= fitted.tobytes() == catalogue["digest"].tobytes()
    elif same and getattr(ranker, "row_digests_", None) is None:
        known = plain(unpacked("ids", catalogue))
        same = ids is not None and read_texts(str(model), "item_ids", ids, len(known)).tolist() == known
    if not same:
        raise InputError(f"{shown(model)} was not fitted on the rows of {shown(work.folder)}")
    return digest


def _rows(work: Work, start: int, stop: int) -> tuple[Any, sp.csr_matrix, sp.csr_matrix | None]:
    """Return ids, rows and times of the users start…stop."""
    users = read_catalogue(work)["users"]
    ends = np.cumsum(users)
    names, items, lengths, when = [], [], [], []
    for bucket in range(int(np.searchsorted(ends, start, side="right")), len(users)):
        if bucket and ends[bucket - 1] >= stop:
            break
        rows, times = read_rows(work, bucket), read_times(work, bucket)
        low, high = max(0, start - rows.first), min(len(rows.indptr) - 1, stop - rows.first)
        names.append(rows.users[low:high])
        items.append(rows.items[rows.indptr[low] : rows.indptr[high]])
        lengths.append(np.diff(rows.indptr[low : high + 1]))
        when.append(None if times is None else times[rows.indptr[low] : rows.indptr[high]])
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    indices: NDArray[np.int32] = np.concatenate(items)
    shape = (stop - start, len(read_catalogue(work)["popularity"]))
    liked = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape)
    known = [one for one in when if one is not None]
    timed = sp.csr_matrix((np.concatenate(known), indices, indptr), shape) if known else None
    return _together(names), liked, timed


def _together(parts: list[Any]) -> Any:
    import pyarrow as pa

    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def _taken(ids: Any, places: NDArray[np.int64]) -> Any:
    return ids[places] if isinstance(ids, np.ndarray) else ids.take(places)
