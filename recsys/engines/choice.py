"""Engines by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recsys.engines.base import Engine
from recsys.engines.local import LocalEngine, ProcessEngine
from recsys.errors import InputError
from recsys.registry import did_you_mean
from recsys.utils.validation import check_integer

NAMES = ("local", "dask", "ray")
MOST = 1024  # workers that are started here


def engine(name: str | Engine = "local", workers: int | None = None) -> Engine:
    """Return an engine: something with `map`, to be closed.

    Parameters
    ----------
    name : str or Engine
        `local`, this process; `local=N`, N processes of this machine; `dask` or `ray`, workers of this
        machine that the engine starts; `dask=ADDRESS` or `ray=ADDRESS`, a cluster that runs. An engine
        is returned as it is, and takes no `workers`.
    workers : int ≥ 1, optional
        How many to start: one a core of `dask` and `ray` when not given; of `local`, processes instead
        of this one. A cluster that runs has its own.

    Raises
    ------
    InputError
        If the engine is not installed, cannot be reached, or its workers have other versions.

    Examples
    --------
    >>> with engine("local") as here:
    ...     list(here.map(abs, [-1, 2]))
    [1, 2]
    """
    if isinstance(name, Engine):
        if workers is not None:
            raise InputError(f"engine {name.name} has its own workers: leave the number out")
        return name
    kind, named, rest = str(name).partition("=")
    if kind not in NAMES:
        raise InputError(f"unknown engine {kind!r}; {did_you_mean(kind, NAMES)}")
    if named and not rest.strip():  # a variable that is not set must not start workers here
        what = "a number of processes" if kind == "local" else "the address of a cluster"
        raise InputError(f"engine {name}: {what} is missing behind the =")
    if workers is not None:
        check_integer("workers", workers, 1, MOST)
    if kind == "local":
        return _local(rest, workers)
    if rest and workers is not None:
        raise InputError(f"engine {name} has its own workers: leave the number out")
    if kind == "dask":
        from recsys.engines.dask import DaskEngine

        return DaskEngine(rest or None, workers)
    from recsys.engines.ray import RayEngine

    return RayEngine(rest or None, workers)


@contextmanager
def opened(given: str | Engine, workers: int | None = None) -> Iterator[Engine]:
    """Hold an engine: one that was given stays open, one that is named is closed in the end.

    Parameters
    ----------
    given, workers
        As in `engine`.

    Raises
    ------
    InputError
        As `engine`.

    Examples
    --------
    >>> from recsys.engines import opened
    >>> with opened("local") as here, opened(here) as same:
    ...     same is here
    True
    """
    found = engine(given, workers)
    if found is given:
        yield found
        return
    with found:
        yield found


def _local(rest: str, workers: int | None) -> Engine:
    if rest:
        if workers is not None:
            raise InputError(f"engine local={rest} has its own number of workers: leave the other out")
        if not rest.isdecimal() or not 1 <= int(rest) <= MOST:
            raise InputError(f"engine local={rest}: name a number of processes, such as local=2")
        workers = int(rest)
    return LocalEngine() if workers is None else ProcessEngine(workers)
