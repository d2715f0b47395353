"""What a protocol is, and a fold that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.interactions import Interactions, times_in_test
from recsys.errors import InputError


@dataclass(frozen=True)
class Fold:
    """One division of the interactions.

    Attributes
    ----------
    train, test : (users, items) float32 CSR
    users : (evaluated users,) int64
        Whose test rows are to be predicted from their train rows.
    train_only : int
        Users who were meant to be evaluated and have nothing to predict.
    cold : int
        Users with something to predict, who have nothing in training to predict it from.
    tied : int
        Evaluated users with items of one time on both sides of the division.
    fitted : (users, items) float32 CSR, optional
        What models are fitted on, where that is less than `train`, which they are then given to score.

    Examples
    --------
    >>> from recsys.data import split
    >>> from recsys.datasets import load_dataset
    >>> folds = list(split(load_dataset("sample"), "half-profile", folds=4))
    >>> [len(fold.users) for fold in folds]
    [100, 100, 100, 100]
    """

    train: sp.csr_matrix
    test: sp.csr_matrix
    users: NDArray[np.int64]
    train_only: int
    cold: int = 0
    tied: int = 0
    fitted: sp.csr_matrix | None = None


@dataclass(frozen=True)
class Protocol:
    """A way of dividing interactions.

    Attributes
    ----------
    name, description : str
    divide : callable
        From interactions, a number of folds and a random generator to the folds, one by one.
    most_folds : callable
        How many folds there may be of some interactions.
    default_folds : int
        Groups of users, windows, or repetitions with other draws.
    grouped : bool
        Whether folds are groups of users, of which there are two at least.
    needs_time : bool
        Whether it asks for times and has the future predicted.
    uses_time : bool
        Whether it has the future predicted where there are times, and a draw where there are none.
    without_time : str
        The protocol that comes nearest where there are no times.
    training, ties : str
        Sentences for a comparison of metric values in time with published ones: what training holds, and
        how items of equal time are ordered, where "{users}" is for whom that decides.
    comes_with_data : bool
        Whether the data say what is tested: their `held_out`.
    held : callable, optional
        From interactions and a random generator to which pairs are held out, where each fold evaluates
        all users. `users=groups`, `kept=2` and other parameters change it.

    Examples
    --------
    >>> from recsys.data import PROTOCOLS
    >>> PROTOCOLS.get("temporal").needs_time, PROTOCOLS.get("half-profile").default_folds
    (True, 5)
    """

    name: str
    description: str
    divide: Callable[[Interactions, int, np.random.Generator], Iterator[Fold]]
    most_folds: Callable[[Interactions], int]
    default_folds: int
    grouped: bool
    needs_time: bool = False
    uses_time: bool = False
    without_time: str = ""
    training: str = ""
    ties: str = ""
    comes_with_data: bool = False
    held: Callable[[Interactions, np.random.Generator], NDArray[np.bool_]] | None = None

    def predicts_future(self, data: Interactions) -> bool:
        """Return whether what is tested happened after what trains: a model may then use times."""
        if data.time is None or (self.comes_with_data and not tested_later(data)):
            return False
        return self.needs_time or self.uses_time or self.comes_with_data

    def validation(self, data: Interactions) -> str:
        """Return the protocol that divides what trains once more, to choose parameters by.

        Its own name, but for a test half that came with the data, which says nothing of what trains:
        "leave-one-out" where it is in time, else "holdout".
        """
        if not self.comes_with_data:
            return self.name
        return "leave-one-out" if self.predicts_future(data) else "holdout"

    def check(self, data: Interactions, folds: int) -> None:
        """Refuse interactions without times or a test half, or a number of folds, that it cannot serve.

        Raises
        ------
        InputError
        """
        if self.comes_with_data and data.held_out is None:
            raise InputError(
                f"protocol {self.name} needs a test half that came with the data, and {data.name} has "
                "none: give it with --test FILE (test= of evaluate), or use holdout"
            )
        if self.needs_time and data.time is None:
            raise InputError(
                f"protocol {self.name} needs times and {data.name} has none: name them with --time-col, "
                f"or use {self.without_time}"
            )
        most = self.most_folds(data)
        if self.grouped and not 2 <= folds <= most:
            raise InputError(f"folds must be from 2 to the number of users, {most}; not {folds}")
        if not self.grouped and folds > most:
            allowed = "1" if most == 1 else f"from 1 to {most}"
            raise InputError(f"folds must be {allowed} for {self.name} on {data.name}; not {folds}")


def tested_later(data: Interactions) -> bool:
    """Return whether no user's training rows are later than the user's test rows."""
    if data.time is None or data.held_out is None:
        return False
    first, last = np.full(data.n_users, np.inf), np.full(data.n_users, -np.inf)
    held, trains, tested = halves(data)
    np.minimum.at(first, data.users[held], tested[held])
    np.maximum.at(last, data.users[trains], data.time[trains])
    return bool((last <= first).all())


def halves(data: Interactions) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Return which pairs are tested and which train, some both, and their times in the test half."""
    held = np.asarray(data.held_out)
    trains = ~held if data.repeat_time is None else ~held | ~np.isnan(data.repeat_time)
    return held, trains, np.zeros(0) if data.time is None else times_in_test(data)
