"""Units of an evaluation that an engine runs: one model on one fold, in a process anywhere."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, NamedTuple

from recsys.data import split
from recsys.engines import Engine
from recsys.engines.local import LocalEngine
from recsys.errors import InputError
from recsys.evaluation.measuring import Measured, measure, parsed_metrics, warm_up
from recsys.evaluation.ranked import Ranked, RankedFold
from recsys.evaluation.shared_data import Shared, known
from recsys.utils.attempts import Dropped, attempt
from recsys.utils.files import shown
from recsys.utils.validation import check_integer

SCRATCH = "recsys-scratch-"  # beginning of a folder's name


class Division(NamedTuple):
    """The identifier of a fold of some data."""

    shared: Shared
    protocol: str
    folds: int | None
    seed: int
    number: int
    ranked: Ranked = Ranked()  # without candidates, which are in the file


class Unit(NamedTuple):
    """One model on one fold, as workers are handed it: small, for the data are a file."""

    division: Division
    model: Any
    metrics: tuple[str, ...]
    keep: int | None
    warm: str  # what a process warms up once for


def measured(unit: Unit) -> Measured:
    """Fit a model on a fold and measure it, where this runs."""
    found = known(unit.division.shared)
    side = found.side(unit.division.protocol)
    parsed = parsed_metrics(unit.metrics, found.data)
    ranked, table = _fold(unit.division), found.data.item_features
    if unit.warm not in _WARM:
        _WARM.add(unit.warm)
        warm_up(copy.deepcopy(unit.model), ranked.fold, parsed, side, table)
    return measure(
        copy.deepcopy(unit.model), ranked.fold, parsed, side, table=table, keep=unit.keep,
        left_out=ranked.left_out if ranked.changed else None,
    )  # fmt: skip


def measured_or_dropped(unit: Unit) -> Measured | Dropped:
    """Return the result of `measured`, or the reason why the model cannot be evaluated."""
    known(unit.division.shared)  # a file that cannot be read is no model's fault
    return attempt(lambda: measured(unit))


def sendable(label: str, model: Any) -> Any:
    """Return a model without what it has learned, which a worker could not be handed whole."""
    from sklearn.base import clone  # late: it takes half a second

    try:
        fresh = clone(model) if hasattr(model, "get_params") else copy.deepcopy(model)
    except (TypeError, RuntimeError):  # its parameters are not those that it is made of
        fresh = copy.deepcopy(model)
    try:
        ForkingPickler.dumps(fresh)  # as processes are handed it
    except Exception as error:
        why = " ".join(str(error).splitlines())[:200]
        raise InputError(
            f"model {label!r} cannot be sent to workers ({why}): pass the name of a ranker, or use the "
            "engine local"
        ) from None
    return fresh


def threads_of(runner: Engine, threads: int | None) -> int | None:
    """Return how many threads each worker gets: 1 where none are asked for, all in this process."""
    if threads is not None:
        return check_integer("threads", threads, 1)
    return None if isinstance(runner, LocalEngine) else 1


@contextmanager
def scratch_folder(scratch: str | Path | None) -> Iterator[Path]:
    """Hold a folder of one's own within another, removed in the end with what is in it."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch, ignore_cleanup_errors=True)
    except OSError as error:
        where = "the folder for temporary files" if scratch is None else shown(scratch)
        raise InputError(f"scratch: {where}: {error.strerror or error}") from None
    with folder as path:
        yield Path(path)


_WARM: set[str] = set()


@lru_cache(maxsize=1)
def _fold(division: Division) -> RankedFold:
    """Return a fold; units of one fold come after each other."""
    shared = known(division.shared)
    found = split(shared.data, division.protocol, folds=division.folds, seed=division.seed)
    fold = next(islice(found, division.number, None))
    ranked = replace(division.ranked, candidates=shared.candidates)
    return ranked.of(fold, division.number, shared.data)


def uses(models: Sequence[Any]) -> frozenset[str]:
    """Return which side information some of the models use."""
    wanted: set[str] = set()
    for model in models:
        wanted.update(model.wanted() if hasattr(model, "wanted") else getattr(model, "uses", ()))
    return frozenset(wanted)
