"""`fit_partitions`: from Parquet files to a ranker's file, stage by stage, none of which holds all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.columns import Columns
from recsys.engines import Engine, opened
from recsys.partitioned.ids import plain, unpacked
from recsys.partitioned.models import arrays_of, check_model
from recsys.partitioned.ordered import has_times, kept_times
from recsys.partitioned.rows import (
    CATALOGUE,
    ROWS,
    make_catalogue,
    read_catalogue,
    read_rows,
    rows_of_bucket,
)
from recsys.partitioned.shuffle import ITEMS, PAIRS, items_of_unit, number_items, pairs_of_unit
from recsys.partitioned.source import look
from recsys.partitioned.work import MOST_BUCKETS, Work, held, write_json
from recsys.rankers import Ranker
from recsys.rankers.catalogue_file import packed, plain_columns
from recsys.rankers.registry import ranker_of
from recsys.rankers.serialization import write_ranker
from recsys.utils.atomic import check_target
from recsys.utils.files import shown
from recsys.utils.memory import free_memory, parse_memory, size_text
from recsys.utils.model_file import Pieces
from recsys.utils.progress import report

PAIR_BYTES = 150  # that gathering and sorting takes a pair, text ids among them
BUCKET_ROWS = 2_000_000  # of a bucket, where memory does not ask for fewer
LISTED = 1_000_000  # users up to which their ids and histories are kept with the ranker


@dataclass
class Fitted:
    """The result of `fit_partitions`.

    Attributes
    ----------
    out, work : Path
    users, items, likes : int
    keeps_users : bool
        Whether ids and histories of users are in the file.
    seconds : dict of str to float
        Of each stage, the parent's waiting included; of none that was done before.
    notes : list of str
        Notes on deviations from the request.

    Examples
    --------
    >>> Fitted(Path("my.recsys"), Path("work"), users=2, items=2, likes=3).users
    2
    """

    out: Path
    work: Path
    users: int
    items: int
    likes: int
    keeps_users: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def fit_partitions(
    model: Ranker | str,
    paths: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    work: str | os.PathLike[str],
    engine: str | Engine = "local",
    workers: int | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    min_rating: float | None = None,
    memory: str | int | None = None,
    keep_users: bool | None = None,
) -> Fitted:
    """Fit a ranker on Parquet files in parts, never on all rows at once, and write it to one file.

    Finished stages are kept in the work folder. A second call after an interruption continues there, and
    another ranker on the same data starts from its rows and counts. Items are ordered by id, and users
    by a digest of their id. The model is in the sparse form, with the same bits as a fit in memory on
    these rows.

    Parameters
    ----------
    model : Ranker or str
        `cf-komd` with any kernel, `msdw`, `ease` (each item on its `top_k`, 200 when not given) or
        `slist` (its form "cosine"), as NAME[:key=value,…] or a ranker.
    paths : path
        A folder of .parquet files, searched with its subfolders; a pattern; or one file.
    out : path
        The ranker file to write; `load_ranker(out, mmap=True)` maps it.
    work : path
        A folder that all workers can read and write, with free space for about three times the Parquet
        files and the counts.
    engine : str or Engine
        As in `recsys.engines.engine`; each worker computes with one thread.
    workers : int ≥ 1, optional
        Number of workers that the engine starts.
    user, item : str, optional
        Columns of ids, text or integers; by default columns with usual names.
    rating, time : str, optional
        Columns of numbers, or timestamps for `time`. Of several rows of a pair, the latest one is
        compared with `min_rating`. With `min_rating` the default is columns with usual names; for
        `slist` also of times.
    min_rating : float, optional
        Least rating of an interaction; by default every row is one.
    memory : str or int, optional
        Memory budget of each worker, such as "2GB". It decides how finely the work is divided, and has
        no effect on a divided work folder. The default is a quarter of the free memory here, divided by
        the number of workers. Mapped files do not count, since the system frees them when it needs the
        memory.
    keep_users : bool, optional
        Store ids and histories of users with the ranker, which `recsys recommend` needs. By default they
        are stored for up to a million users. `recommend_partitions` makes lists without them.

    Returns
    -------
    Fitted

    Raises
    ------
    InputError
        If the ranker is not made of counts by blocks; files are absent, broken or without the columns;
        or the work folder belongs to other data, or another run is at work in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from recsys.rankers import load_ranker
    >>> likes = pd.DataFrame({"user": ["ada", "ada", "bob"], "item": ["tea", "milk", "tea"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = pathlib.Path(folder, "likes")
    ...     data.mkdir()
    ...     likes.to_parquet(data / "one.parquet")
    ...     found = fit_partitions("cf-komd", data, out=data / "my.recsys", work=data / "work")
    ...     ranker = load_ranker(found.out)
    >>> found.users, found.items, ranker.name
    (2, 2, 'cf-komd')
    """
    if isinstance(model, str):
        model = ranker_of(model)
    check_model(model)
    check_target(out)
    given = parse_memory(memory)
    source = look(paths, user, item, rating, time, min_rating, model.reads_times())
    with opened(engine, workers) as running, held(work):
        each = given if given is not None else max(1, free_memory() // (4 * running.workers))
        folder = Work.begun(work, source, _buckets(source.rows, each), each)
        found = _fitted(model, folder, running, each, Path(out), keep_users)
    if model.reads_times() and source.time is None:
        found.notes.append(
            f"no column of times was found: {model.name} orders interactions at random; name it with "
            "--time-col"
        )
    if given is not None and given < folder.memory:
        found.notes.append(
            f"{shown(work)} was divided for {size_text(folder.memory)} a worker, which stays so: for "
            f"{size_text(given)} name another folder"
        )
    return found


def _fitted(
    ranker: Ranker, work: Work, engine: Engine, memory: int, out: Path, keep_users: bool | None
) -> Fitted:
    seconds: dict[str, float] = {}
    make_rows(work, engine, seconds)
    with _timed(seconds, "counts"):
        arrays = arrays_of(ranker, work, engine, memory // 3)
    report("assemble", 0, 1)
    with _timed(seconds, "assemble"):
        catalogue = read_catalogue(work)
        users, likes = ranker.n_users_, int(catalogue["likes"].sum())
        arrays |= _catalogue(work, catalogue)
        keeps = keep_users or (keep_users is None and users <= LISTED)
        if keeps:
            arrays |= _users(work, users, likes)
            if ranker.reads_times() and has_times(work):
                arrays |= _times(work, ranker, arrays)
        write_ranker(out, ranker, arrays)
    return Fitted(out, work.folder, users, ranker.n_items_, likes, keeps, seconds)


def make_rows(work: Work, engine: Engine, seconds: dict[str, float]) -> None:
    """Do the stages from Parquet to rows and the catalogue, as far as they are not done."""
    folder = str(work.folder)
    if work.done(CATALOGUE):
        work.forget(PAIRS)  # a run may have been killed before it did
        return
    read = [(number, folder) for number in range(len(work.source.units))]
    with _timed(seconds, ITEMS):
        work.run(ITEMS, items_of_unit, read, engine)
        if not work.part(ITEMS, "all").exists():
            number_items(work)
    if not work.done(ROWS):
        with _timed(seconds, PAIRS):
            work.run(PAIRS, pairs_of_unit, read, engine)
        with _timed(seconds, ROWS):
            work.run(ROWS, rows_of_bucket, [(b, folder) for b in range(work.buckets)], engine)
    with _timed(seconds, CATALOGUE):
        (work.folder / CATALOGUE).mkdir(exist_ok=True)
        make_catalogue(work)
        write_json(work.part(CATALOGUE, "_SUCCESS"), {})
    work.forget(PAIRS)


def _buckets(rows: int, memory: int) -> int:
    return int(min(MOST_BUCKETS, max(1, -(-rows // BUCKET_ROWS), -(-rows * PAIR_BYTES // memory))))


def _catalogue(work: Work, catalogue: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the catalogue of items as a model package keeps it."""
    ids, source = plain(unpacked("ids", catalogue)), work.source
    columns = Columns(source.user, source.item, source.rating, source.time, source.min_rating)
    return {
        "catalogue.item_ids": packed(ids),
        "catalogue.titles": packed([str(name) for name in ids]),
        "catalogue.columns": packed(plain_columns(columns)),
        "catalogue.rows": catalogue["digest"].copy(),
    }


def _users(work: Work, users: int, likes: int) -> dict[str, Any]:
    """Return ids and histories of users as a model package keeps them."""
    names: list[Any] = []
    indptr = np.zeros(users + 1, dtype=np.int32 if likes < np.iinfo(np.int32).max else np.int64)
    for bucket in range(work.buckets):
        rows = read_rows(work, bucket)
        names += plain(rows.users)
        end = rows.first + len(rows.indptr)
        indptr[rows.first + 1 : end] = rows.indptr[1:] + indptr[rows.first]

    def items() -> Iterator[NDArray[np.int32]]:
        return (read_rows(work, bucket).items for bucket in range(work.buckets))

    return {
        "catalogue.user_ids": packed(names),
        "history.indptr": indptr,
        "history.indices": Pieces((likes,), np.dtype(np.int32), items),
        "history.data": Pieces(
            (likes,), np.dtype(np.float32), lambda: (np.ones(len(i), np.float32) for i in items())
        ),
    }


def _times(work: Work, ranker: Ranker, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return when interactions happened as a model package and a ranker keep it, of these histories."""
    history = {name: arrays[f"history.{name}"] for name in ("indptr", "indices")}
    likes = history["indices"].shape
    times = Pieces(likes, np.dtype(np.float64), kept_times(work))
    ranker.times_ = sp.csr_matrix((ranker.n_users_, ranker.n_items_))
    found = {"history.times": times, "times_.data": times}
    found |= {f"times_.{name}": array for name, array in history.items()}
    start = read_catalogue(work)["times"][:1]
    return found | ({"history.start": start.copy()} if start[0] else {})


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[stage] = perf_counter() - start
