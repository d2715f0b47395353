"""A study of Optuna's that can be resumed, and that several processes can search at once.

A process begins a trial while fewer than were asked for are finished. Trials of a process that was
killed are not finished, so another process makes them. Processes that search at once may each make one
trial more than was asked for.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import InputError, first_line
from recsys.utils.attempts import Dropped, attempt
from recsys.utils.extras import install_hint
from recsys.utils.remote import plain_url

STARTUP = 10  # trials of the lowest numbers, which are drawn and not searched
REFUSED = "refused"  # the attribute of a trial without a value: why it has none
DATABASES = ("sqlite", "mysql", "postgresql", "mariadb", "oracle", "mssql")


class _RefusedError(Exception):
    """A trial failed: its reason is kept."""


def open_study(name: str, storage: str | None, seed: int) -> Any:
    """Return a study that maximises a metric; the same one in all processes that name its storage.

    The storage is a journal file, or the URL of a data base such as sqlite:///study.db; memory when not
    given. A trial's sampler is seeded by the seed and by the trial's number.
    """
    try:
        import optuna
    except ImportError as error:
        raise InputError(f"tuning needs Optuna: {install_hint('tune')}") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        kept = None if storage is None else _storage(storage)
        study = optuna.create_study(
            study_name=name, storage=kept, load_if_exists=True, direction="maximize",
            sampler=_sampler(seed),
        )  # fmt: skip
        if [one.name for one in study.directions] != ["MAXIMIZE"]:
            raise InputError(
                f"study {plain_url(str(storage))}: {name!r} there does not maximise one value: name "
                "another file"
            )
        return study
    except InputError:
        raise
    except Exception as error:  # whatever a driver or a file that is none of these gives
        raise InputError(
            f"study {plain_url(str(storage))} cannot be opened: {first_line(error, 200)}"
        ) from None


def whole_name(storage: str | Path) -> str:
    """Return a storage by a name that holds in any folder."""
    text = str(storage)
    return text if "://" in text else str(Path(text).absolute())


def missing(study: Any, trials: int, first: int) -> int:
    """Return how many of `trials` are to be made; refused ones count as made from number `first` on."""
    complete = refused = 0
    for trial in study.get_trials(deepcopy=False):
        complete += trial.state.name == "COMPLETE"
        refused += trial.number >= first and REFUSED in trial.user_attrs
    return max(0, trials - complete - refused)


def one_trial(study: Any, trials: int, first: int, value: Callable[[Any], float]) -> Dropped | None:
    """Make one trial, if any is `missing`; return why it was refused, if what `value` raised did."""
    if not missing(study, trials, first):
        return None
    refused: list[Dropped] = []

    def objective(trial: Any) -> float:
        found = attempt(lambda: value(trial))
        if not isinstance(found, Dropped) and not np.isfinite(found):
            found = Dropped("it has no value for any user", True)
        if isinstance(found, Dropped):
            refused.append(found)
            trial.set_user_attr(REFUSED, found.reason)
            raise _RefusedError
        return found

    with _quiet():
        study.optimize(objective, n_trials=1, catch=(_RefusedError,))
    return refused[0] if refused else None


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
        return optuna.storages.RDBStorage(storage, engine_kwargs=options)


def _sampler(seed: int) -> Any:
    """Return a sampler whose draws depend only on the trial's number and the finished trials.

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


@contextmanager
def _quiet() -> Any:
    """Hide that Optuna calls some of this experimental."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
