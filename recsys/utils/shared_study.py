"""A study of Optuna's that several processes search at once, each trial made by one of them.

Optuna numbers trials without gaps, whoever asks. A trial is made if fewer than were asked for are
finished or under way among those of a lower number; so there are never too many, in whatever order
processes get to know of each other, and nobody has to wait for a lock. Who has begun a trial stands in
it: one whose process is gone counts no longer, and is made again under a new number.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from recsys.errors import InputError
from recsys.utils.files import OLD_SECONDS
from recsys.utils.remote import plain_url

STARTUP = 10  # trials of the lowest numbers, which are drawn and not searched
BY = "by"  # host, process and its start
REFUSED = "refused"  # why a trial has no value
UNSIGNED_SECONDS = 60.0  # after which a trial that nobody has put a name to is nobody's
START_SECONDS = 5.0  # by which a process's start may seem to differ when a clock is set
BEAT, SILENCE = 60, 300  # seconds: a process tells a data base that it lives; without a word it does not
DATABASES = ("sqlite", "mysql", "postgresql", "mariadb", "oracle", "mssql")


class Taken(NamedTuple):
    """How many trials of a study are not to be made any more.

    Attributes
    ----------
    complete : int
    refused : int
        Without a value, of the call that asks.
    running : int
        By processes that live, as far as can be known here.
    near : int
        Those among them of this host.
    """

    complete: int
    refused: int
    running: int
    near: int

    @property
    def all(self) -> int:
        """Return how many there are of all kinds."""
        return self.complete + self.refused + self.running


class _OneTooManyError(Exception):
    """Others have begun all trials that were asked for."""


def open_study(name: str, storage: str | None, seed: int) -> Any:
    """Return a study to raise a figure; the same one in all processes that name its storage.

    Parameters
    ----------
    name : str
    storage : str, optional
        A journal file, or the URL of a data base such as sqlite:///study.db; memory when not given.
    seed : int
        A trial's sampler is seeded by it and by the trial's number.

    Raises
    ------
    InputError
        If Optuna is not installed, or the storage cannot be opened.
    """
    try:
        import optuna
    except ImportError as error:
        raise InputError("tuning needs Optuna: pip install 'recsys[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        kept = None if storage is None else _storage(storage)
        study = optuna.create_study(
            study_name=name, storage=kept, load_if_exists=True, direction="maximize",
            sampler=_sampler(seed),
        )  # fmt: skip
        if [one.name for one in study.directions] != ["MAXIMIZE"]:
            raise InputError(
                f"study {plain_url(str(storage))}: {name!r} there does not raise one figure: name "
                "another file"
            )
        return study
    except InputError:
        raise
    except Exception as error:  # whatever a driver or a file that is none of these gives
        why = " ".join(str(error).splitlines()[:1])[:200]
        raise InputError(f"study {plain_url(str(storage))} cannot be opened: {why}") from None


def whole_name(storage: str | Path) -> str:
    """Return a storage by a name that holds in any folder."""
    text = str(storage)
    return text if "://" in text else str(Path(text).absolute())


def taken(study: Any, first: int, below: int | None = None) -> Taken:
    """Return which trials are finished or under way, after giving up those whose process is gone.

    Parameters
    ----------
    study : optuna.Study
    first : int
        From which number on refused trials count.
    below : int, optional
        Only trials of a lower number; all when not given.
    """
    import optuna

    states = optuna.trial.TrialState
    with _quiet():
        optuna.storages.fail_stale_trials(study)  # of data bases, where processes tell that they live
    complete = refused = running = near = 0
    for trial in study.get_trials(deepcopy=False):
        if below is not None and trial.number >= below:
            continue
        if trial.state == states.RUNNING:
            if _gone(trial) and _give_up(study, trial):
                continue
            running += 1
            near += _near(trial)
        complete += trial.state == states.COMPLETE
        refused += trial.number >= first and REFUSED in trial.user_attrs
    return Taken(complete, refused, running, near)


def _near(trial: Any) -> bool:
    """Return whether a trial is made on this host, or was begun just now by who has not said where."""
    if BY in trial.user_attrs:
        return str(trial.user_attrs[BY]).startswith(f"{_host()} ")
    began = trial.datetime_start
    return began is not None and (datetime.now() - began).total_seconds() < UNSIGNED_SECONDS


def one_trial(study: Any, trials: int, first: int, value: Callable[[Any], float]) -> str | None:
    """Make one trial, if fewer than so many are finished or under way.

    Parameters
    ----------
    study : optuna.Study
    trials, first : int
        How many there are to be; from which number on refused ones count.
    value : callable
        From a trial to its figure; an InputError of it refuses the trial.

    Returns
    -------
    str or None
        Why it was refused, if it was.
    """
    import optuna

    if taken(study, first).all >= trials:
        return None
    why: list[str] = []

    def objective(trial: Any) -> float:
        trial.set_user_attr(BY, _signature())
        if taken(study, first, below=trial.number).all >= trials:
            raise _OneTooManyError
        try:
            found = value(trial)
            if not np.isfinite(found):
                raise InputError("it has no value for any user")
        except InputError as error:
            why.append(str(error))
            trial.set_user_attr(REFUSED, str(error)[:400])
            raise
        return found

    # Whoever is given up for gone and comes back after all has made a trial that another makes again.
    with _quiet(), suppress(optuna.exceptions.UpdateFinishedTrialError):
        study.optimize(objective, n_trials=1, catch=(InputError, _OneTooManyError))
    return why[0] if why else None


def _storage(storage: str) -> Any:
    """Return where trials are kept: a journal file, or a data base."""
    import optuna

    kind, address, _ = storage.partition("://")
    if not address:
        from optuna.storages import journal

        # Its lock is a link to the file, which must not be relative to another folder.
        path = whole_name(storage)
        lock = journal.JournalFileOpenLock(path) if os.name == "nt" else None
        return optuna.storages.JournalStorage(journal.JournalFileBackend(path, lock_obj=lock))
    if kind.partition("+")[0] not in DATABASES:
        raise InputError(
            f"study {plain_url(str(storage))}: a file, or a data base of {', '.join(DATABASES)}, "
            "such as sqlite:///study.db"
        )
    options = {"connect_args": {"timeout": 60}} if kind.startswith("sqlite") else {}
    with _quiet():
        return optuna.storages.RDBStorage(
            storage, engine_kwargs=options, heartbeat_interval=BEAT, grace_period=SILENCE
        )


def _sampler(seed: int) -> Any:
    """Return a sampler whose draws depend on the trial's number and on what is known alone.

    So processes draw different start-up trials, and a study that is gone on with is the one that was
    not interrupted.
    """
    import optuna

    class ByNumber(optuna.samplers.BaseSampler):
        """The first trials at random, the others by TPE, each with a generator of its own."""

        def __init__(self) -> None:
            self._number, self._chosen = -1, None

        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return {}

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
            return {}

        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
            if trial.number != self._number:
                self._number, self._chosen = trial.number, self._made(trial.number)
            assert self._chosen is not None
            return self._chosen.sample_independent(study, trial, name, distribution)

        def _made(self, number: int) -> Any:
            own = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
            if number < STARTUP:
                return optuna.samplers.RandomSampler(seed=own)
            with _quiet():
                return optuna.samplers.TPESampler(seed=own, n_startup_trials=1, constant_liar=True)

    return ByNumber()


def _gone(trial: Any) -> bool:
    """Return whether the process that has begun a trial is known, or must be thought, not to go on."""
    began = trial.datetime_start
    seconds = 0.0 if began is None else (datetime.now() - began).total_seconds()
    host, _, rest = str(trial.user_attrs.get(BY, "")).partition(" ")
    if not host:
        return seconds > UNSIGNED_SECONDS
    if host != _host():
        return seconds > OLD_SECONDS
    number, _, start = rest.partition(" ")
    try:
        process = psutil.Process(int(number))
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return True  # nobody has asked how it ended; it does nothing more
        return abs(process.create_time() - float(start)) > START_SECONDS
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


def _give_up(study: Any, trial: Any) -> bool:
    """Let a trial have failed; return whether it has, if by nobody else's doing."""
    import optuna

    try:
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    except (ValueError, optuna.exceptions.UpdateFinishedTrialError):  # it has ended meanwhile
        return study.trials[trial.number].state == optuna.trial.TrialState.FAIL
    return True


@cache
def _host() -> str:
    """Return what a process number belongs to: a running system, and a container of it."""
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{told}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node().replace(" ", "_") or "host"


def _signature() -> str:
    own = psutil.Process()
    return f"{_host()} {own.pid} {own.create_time()}"


@contextmanager
def _quiet() -> Any:
    """Hide that Optuna calls some of this experimental."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
