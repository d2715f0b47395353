"""Lists of all users in a folder of parts, made by an engine's workers.

The folder's manifest describes the parts. A worker reads it, maps the model, and keeps both for the
parts that follow. A task is small: the model's path and checksum, the folder, a user.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recsys.engines import Engine, opened
from recsys.engines.base import SAME, installed
from recsys.engines.local import LocalEngine
from recsys.errors import InputError
from recsys.rankers import ModelPackage, load_package
from recsys.recommender.filters import check_fair, left_out, merchandising, plain
from recsys.recommender.fitted import Fitted
from recsys.recommender.ids import id_list
from recsys.recommender.list_rows import ListRows
from recsys.recommender.lists import USERS, Block, ListRequest, Lists
from recsys.recommender.parts import FORMAT, Parts
from recsys.utils.files import shown
from recsys.utils.model_file import checksum, head_of
from recsys.utils.remote import plain_url, url_of
from recsys.utils.rows import write_rows
from recsys.utils.validation import check_flag, check_integer, check_real

Progress = Callable[[int, int], None]
Unit = tuple[str, str, str, int]  # model, checksum of the whole job, folder, first user
MODEL = "_model-"  # beginning of the name of a folder in the folder, which readers of Parquet skip
MOST_BLOCK = 1 << 20


@dataclass(frozen=True)
class Written:
    """The result of a run."""

    folder: Path
    written: int  # parts that this run wrote
    skipped: int  # those that were there
    users: int  # whose lists this run wrote
    fallbacks: int  # how many of them like nothing and got the most popular items
    workers: int
    seconds: float  # of this run, from the engine's start to the last part
    work: float  # what the workers' own work took, added up
    unfair: int = 0  # lists of this run with fewer items of the protected group than asked for

    @property
    def overhead(self) -> float:
        """Share of the time that passed in which a worker was not at work, on average."""
        return max(0.0, 1.0 - self.work / (self.workers * self.seconds)) if self.written else 0.0


def plain_options(
    n: int,
    items: Any = None,
    exclude: Any = None,
    dislikes: Any = (),
    diversity: float = 0.0,
    filters: Mapping[str, Any] | None = None,
    as_of: Any = None,
    why: bool = False,
    text: bool = False,
    filter_liked: bool = True,
    pinned: Any = (),
    boosts: Mapping[Any, float] | None = None,
    at_most: Mapping[str, int] | None = None,
    fair: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return how lists are made as JSON holds it; the rest as `Recommender.recommend` takes it.

    With `text` ids are text and columns those of the command line. A value of a wrong type is refused.
    """

    def names(what: str, given: Any) -> list[str] | None:
        return None if given is None else [str(one) for one in id_list(what, given)]

    if filters is not None and not isinstance(filters, Mapping):
        raise InputError(
            f"filters must be a mapping by column, as {{'year': (1980, 1999)}}, not {filters!r}"
        )
    found = {
        "n": check_integer("n", n, 1), "items": names("items", items),
        "exclude": names("exclude", exclude),
        "dislikes": [str(one) for one in id_list("dislikes", dislikes)],
        "diversity": check_real("diversity", diversity, 0.0, 1.0),
        "filters": {str(name): _plain_filter(one) for name, one in (filters or {}).items()} or None,
        "as_of": plain(as_of), "why": check_flag("why", why), "text": bool(text),
        "filter_liked": check_flag("filter_liked", filter_liked),
    }  # fmt: skip
    # Only where they are given, so that parts made before there were such options are gone on with.
    if names("pinned", pinned):
        found["pinned"] = names("pinned", pinned)
    for name, given in (("boosts", boosts), ("at_most", at_most)):
        if given:
            found[name] = {str(key): plain(value) for key, value in dict(given).items()}
    if fair is not None:
        found["fair"] = {str(key): plain(value) for key, value in check_fair(fair).items()}
        if isinstance(fair["protected"], Mapping):
            wanted = fair["protected"].items()
            found["fair"]["protected"] = {str(name): _plain_filter(one) for name, one in wanted}
    try:
        json.dumps(found)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"filters and as_of must be plain values, tuples, lists or sets: {error}"
        ) from None
    return found


def _plain_filter(wanted: Any) -> Any:
    if isinstance(wanted, tuple):
        return {"range": [plain(end) for end in wanted]}
    if isinstance(wanted, (set, frozenset)):
        return {"any": sorted(map(_plain_value, wanted), key=str)}
    if isinstance(wanted, list) or hasattr(wanted, "tolist") and np.ndim(wanted):
        return {"any": [_plain_value(one) for one in wanted]}
    return {"is": plain(wanted)}


def _plain_value(value: Any) -> Any:
    """Return one of several values; what JSON does not hold is compared by its text anyway."""
    found = value.item() if isinstance(value, np.generic) else value
    return found if isinstance(found, (str, bool, int, float)) else str(value)


def _filters(plain: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a filter from `_plain_filter` in the form that `left_out` takes."""
    if plain is None:
        return None
    return {
        name: tuple(one["range"]) if "range" in one else one.get("any", one.get("is"))
        for name, one in plain.items()
    }


def lists_of(package: ModelPackage, options: Mapping[str, Any]) -> Lists:
    """Return the lists of all users of a model package, made as `plain_options` say."""
    fair = options.get("fair")
    if fair is not None and isinstance(fair.get("protected"), Mapping):
        fair = fair | {"protected": _filters(fair["protected"])}
    return Lists(
        package, ListRequest.of_users(package, None, options["as_of"]), options["n"],
        package.items(options["dislikes"]).tolist(), options["diversity"],
        left_out(package, options["items"], options["exclude"], _filters(options["filters"])),
        options["filter_liked"],
        merchandising(
            package, options.get("pinned", ()), options.get("boosts"), options.get("at_most"), fair
        ),
    )  # fmt: skip


def read_model(path: str | os.PathLike[str]) -> tuple[ModelPackage, str]:
    """Return the content of a file, mapped, and the checksum of that very content.

    A file that is replaced at the same time is refused.
    """
    digest = checksum(path)
    package = load_package(path, mapped=True)
    _check_unchanged(path, digest)
    return package, digest


def _check_unchanged(path: str | os.PathLike[str], digest: str) -> None:
    if checksum(path) != digest:
        name = plain_url(os.fspath(path))
        raise InputError(f"{name} was replaced by another model meanwhile; run it again")


def write_all_users(
    folder: str | os.PathLike[str],
    package: ModelPackage,
    options: Mapping[str, Any],
    *,
    model: str | os.PathLike[str] | None = None,
    digest: str | None = None,
    on: str | Engine = "local",
    workers: int | None = None,
    threads: int | None = None,
    block: int = USERS,
    progress: Progress | None = None,
) -> Written:
    """Write the lists of all users to a folder of parts; parts that are there are left as they are.

    The folder is new or empty, or one that a run of the same job left; anything else in it is refused.
    `options` are those of `plain_options`.

    The workers read the file `model`, a path or URL, that the model package was read from. Without one
    it is written to the folder for as long as they need it. `digest` is the checksum when the model
    package was read, as `read_model` tells it; when not given it is looked up. The file must not have
    been replaced.

    `on` is taken as by `recsys.engines.engine`; an engine that is handed over stays open. `workers` are
    started, with `threads` each, 1 where they are processes of their own; `block` is the number of users
    a part. `progress` is called with the parts that are there and all parts.

    Also refused is a worker that sees other files than this process or has other versions, and that all
    workers ended; what is written stays.
    """
    block = check_integer("block", block, 1, MOST_BLOCK)
    if threads is not None:
        check_integer("threads", threads, 1)
    lists = lists_of(package, options)
    if model is None:
        digest = head_of(package.save)["sha256"]
    elif digest is None:
        digest = checksum(model)
    else:
        _check_unchanged(model, digest)
    job = {
        "format": FORMAT, "model": digest, "users": len(package.user_ids), "block": block,
        "lists": dict(options), "versions": {name: installed()[name] for name in SAME},
    }  # fmt: skip
    parts = Parts(Path(os.path.abspath(folder)), job)
    parts.begin()
    todo, done = parts.missing(), 0
    total, users, fallbacks, unfair = len(parts.starts()), 0, 0, 0
    began = time.perf_counter()
    if not todo:
        parts.finish()
        return Written(Path(folder), 0, total, 0, 0, 1, 0.0, 0.0)
    parts.unfinish()
    with opened(on, workers) as given, _file_of(package, model, parts, given) as path:
        before = given.seconds
        task: Callable[[Any], tuple[int, int, int] | None]
        units: list[Any]
        if isinstance(given, LocalEngine):
            task, units = functools.partial(_write, parts, lists), todo
        else:
            threads = 1 if threads is None else threads
            task, units = write_part, [(path, parts.digest, str(parts.folder), start) for start in todo]
        for found in given.map(task, units, threads=threads):
            if found is not None:
                done, users, fallbacks = done + 1, users + found[0], fallbacks + found[1]
                unfair += found[2]
            total_there = total - len(todo) + done
            if progress is not None:
                progress(total_there, total)
        spent, work, many = time.perf_counter() - began, given.seconds - before, given.workers
    parts.finish()
    return Written(Path(folder), done, total - done, users, fallbacks, many, spent, work, unfair)


@contextmanager
def _file_of(package: ModelPackage, model: Any, parts: Parts, runner: Engine) -> Iterator[str]:
    """Hold the path of the model for workers elsewhere: what is written for them is this run's own."""
    if model is not None or isinstance(runner, LocalEngine):
        yield "" if model is None else url_of(model) or os.path.abspath(model)
        return
    with tempfile.TemporaryDirectory(prefix=MODEL, dir=parts.folder) as folder:
        path = os.path.join(folder, "model.recsys")
        package.save(path)
        yield path


def write_part(unit: Unit) -> tuple[int, int, int] | None:
    """Write one part where it is not there yet.

    Returns its users, how many of them like nothing, and how many lists are not fair. Refused where this
    worker does not see the model or the folder, or they are not those of the unit.
    """
    path, job, folder, start = unit
    parts = Parts(Path(folder), {})
    try:
        parts = Parts.of(Path(folder))
    except InputError:
        raise InputError(
            f"worker {socket.gethostname()} does not see the folder {shown(folder)}: put it where every "
            "worker sees it"
        ) from None
    if parts.digest != job:
        raise InputError(f"{shown(folder)} on worker {socket.gethostname()} is of another job")
    if parts.path(start).exists():  # where nothing is to do no model is needed
        return None
    return _write(parts, _lists(path, parts.job["model"], json.dumps(parts.job["lists"])), start)


@functools.lru_cache(maxsize=1)
def _lists(path: str, digest: str, options: str) -> Lists:
    """Return a model's lists; a worker keeps them from part to part."""
    return lists_of(_package(path, digest), json.loads(options))


@functools.lru_cache(maxsize=1)
def _package(path: str, digest: str) -> ModelPackage:
    if url_of(path) is None and not os.path.isfile(path):
        raise InputError(
            f"worker {socket.gethostname()} does not see the model {shown(path)}: put it where every "
            "worker sees it"
        )
    return load_package(path, mapped=True, checked=digest)


def _write(parts: Parts, lists: Lists, start: int) -> tuple[int, int, int] | None:
    path = parts.path(start)
    if path.exists():  # a worker wrote it and was killed before it could say so
        return None
    stop = min(start + parts.job["block"], parts.job["users"])
    columns, rows = _table(lists, parts.job["lists"])
    before, unfair = lists.fallbacks, lists.unfair
    blocks = (rows(block) for block in lists.blocks(start, stop))
    write_rows(path, columns, blocks)
    return stop - start, lists.fallbacks - before, lists.unfair - unfair


def _table(
    lists: Lists, options: Mapping[str, Any]
) -> tuple[Mapping[str, type], Callable[[Block], Sequence[Any]]]:
    if options["text"]:
        return lists.columns, lists.lines
    return ListRows(Fitted(lists.package)).written(lists, options["why"])
