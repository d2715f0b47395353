"""Protocols: how interactions are divided into what a model sees and what it must predict.

A protocol is one function with a decorator. `groups_of_users` takes the order in which the items of
a profile are seen: its first half trains and the rest is tested, for one group of users after the
other. `every_user` takes which interactions are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.interactions import Interactions
from recsys.errors import InputError
from recsys.registry import Registry
from recsys.utils.validation import check_choice, check_integer


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
        Groups of users, or repetitions with other draws.
    grouped : bool
        Whether folds are groups of users, of which there are two at least.
    needs_time : bool
        Whether it asks for times and has the future predicted; a validation inside then does the same.
    without_time : str
        The protocol that comes nearest where there are no times.

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
    without_time: str = ""

    def check(self, data: Interactions, folds: int) -> None:
        """Refuse interactions without times, or a number of folds, that it cannot serve.

        Raises
        ------
        InputError
        """
        if self.needs_time and data.time is None:
            raise InputError(
                f"protocol {self.name} needs times and {data.name} has none: name them with --time-col, "
                f"or use {self.without_time}"
            )
        most = self.most_folds(data)
        if self.grouped and not 2 <= folds <= most:
            raise InputError(f"folds must be from 2 to the number of users, {most}; not {folds}")
        if not self.grouped and folds > most:
            raise InputError(
                f"folds must be from 1 to {most} for {self.name} on {data.name}; not {folds}"
            )


PROTOCOLS: Registry[Protocol] = Registry("protocol")
MOST_REPETITIONS = 100

Order = Callable[[Interactions, np.random.Generator], NDArray[np.float64]]
Held = Callable[[Interactions, np.random.Generator], NDArray[np.bool_]]


def split(
    data: Interactions, protocol: str = "half-profile", *, folds: int | None = None, seed: int = 0
) -> Iterator[Fold]:
    """Yield the folds of a protocol.

    Parameters
    ----------
    data : Interactions
    protocol : str
        half-profile: users in `folds` groups; of each user of a group ceil(n/2) random items
        train and the rest is tested (thesis, 10.4.2); half-profile-time: the older ones
        train; half-profile-file: those that stand first in the order of the rows train, which
        says nothing about time (the thesis' Jester: jokes by their number); leave-one-out: each
        user's last item (random without times) is tested; holdout: 20% of each user's items;
        temporal: the last 20% of all interactions. `list(PROTOCOLS)` has all names.
    folds : int, optional
        5 groups for the half-profile protocols; else repetitions with other draws, 1 when
        not given.
    seed : int ≥ 0
        The same seed gives the same folds, whatever the order of the input's rows within
        the same first appearances of ids (half-profile-file: the same groups of users).

    Raises
    ------
    InputError
        If the protocol needs times that are absent, or `folds` does not fit.

    Examples
    --------
    >>> from recsys.data import split
    >>> from recsys.datasets import load_dataset
    >>> fold = next(split(load_dataset("sample"), "leave-one-out"))
    >>> fold.train.shape, fold.test.nnz
    ((400, 300), 400)
    """
    check_choice("protocol", protocol, tuple(PROTOCOLS))
    check_integer("seed", seed, 0)
    chosen = PROTOCOLS.get(protocol)
    folds = check_integer("folds", chosen.default_folds if folds is None else folds, 1)
    chosen.check(data, folds)
    return chosen.divide(data, folds, np.random.default_rng(seed))


def groups_of_users(
    name: str, description: str, *, needs_time: bool = False, without_time: str = ""
) -> Callable[[Order], Order]:
    """Register a protocol that tests the second half of each profile, one group of users a fold.

    The decorated function returns one number a pair: a profile's items are seen in their order.
    """

    def register(order: Order) -> Order:
        def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
            group = np.empty(data.n_users, dtype=np.int64)
            group[rng.permutation(data.n_users)] = np.arange(data.n_users) % folds
            place, lengths = _positions(data, order(data, rng))
            second = place >= (lengths[data.users] + 1) // 2
            for fold in range(folds):
                held = (group[data.users] == fold) & second
                yield _fold(data, held, group == fold)

        PROTOCOLS.add(name)(
            Protocol(
                name,
                description,
                divide,
                lambda data: data.n_users,
                default_folds=5,
                grouped=True,
                needs_time=needs_time,
                without_time=without_time,
            )
        )
        return order

    return register


def every_user(
    name: str,
    description: str,
    *,
    drawn: Callable[[Interactions], bool] = lambda data: True,
    needs_time: bool = False,
    without_time: str = "",
) -> Callable[[Held], Held]:
    """Register a protocol that evaluates all users in each fold.

    The decorated function returns which pairs are held out. `drawn` says whether they are drawn, so
    that a repetition gives others.
    """

    def register(held: Held) -> Held:
        def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
            everyone = np.ones(data.n_users, dtype=bool)
            for _ in range(folds):
                yield _fold(data, held(data, rng), everyone)

        PROTOCOLS.add(name)(
            Protocol(
                name,
                description,
                divide,
                lambda data: MOST_REPETITIONS if drawn(data) else 1,
                default_folds=1,
                grouped=False,
                needs_time=needs_time,
                without_time=without_time,
            )
        )
        return held

    return register


@groups_of_users("half-profile", "half of each profile of a group, at random")
def half_profile(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Order each profile at random."""
    return _draws(data, rng)


@groups_of_users(
    "half-profile-time", "the later half of each profile of a group",
    needs_time=True, without_time="half-profile",
)  # fmt: skip
def half_profile_time(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Order each profile by time."""
    return np.asarray(data.time)


@groups_of_users("half-profile-file", "the half of each profile of a group that stands last in the file")
def half_profile_file(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Leave each profile in the order of the rows."""
    return np.arange(len(data.users), dtype=np.float64)


@every_user("leave-one-out", "each user's last item", drawn=lambda data: data.time is None)
def leave_one_out(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out the last item of each user who has two, a random one without times."""
    place, lengths = _positions(data, _draws(data, rng) if data.time is None else data.time)
    return (place == lengths[data.users] - 1) & (lengths[data.users] > 1)


@every_user("holdout", "a fifth of each user's items, at random")
def holdout(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out a random fifth of each profile."""
    place, lengths = _positions(data, _draws(data, rng))
    return place >= lengths[data.users] - lengths[data.users] // 5


@every_user(
    "temporal", "the last fifth of all interactions",
    drawn=lambda data: False, needs_time=True, without_time="holdout",
)  # fmt: skip
def temporal(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out what happened last."""
    order = np.lexsort((data.items, data.users, np.asarray(data.time)))
    held = np.zeros(len(order), dtype=bool)
    held[order[len(order) - len(order) // 5 :]] = True
    return held


def _positions(data: Interactions, key: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """Return each pair's place within its user's profile in the order of key, and profile lengths.

    Pairs of equal key are ordered by item index, so that rows may come in any order.
    """
    order = np.lexsort((data.items, key, data.users))
    lengths = np.bincount(data.users, minlength=data.n_users)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - starts[data.users[order]]
    return place, lengths


def _draws(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one random number per pair, assigned in the order of (user, item)."""
    draws = np.empty(len(data.users))
    draws[np.lexsort((data.items, data.users))] = rng.random(len(data.users))
    return draws


def _fold(data: Interactions, held: NDArray[np.bool_], group: NDArray[np.bool_]) -> Fold:
    test = data.submatrix(np.flatnonzero(held))
    train = data.submatrix(np.flatnonzero(~held))
    has_test = np.diff(test.indptr) > 0
    return Fold(train, test, np.flatnonzero(has_test), int((group & ~has_test).sum()))
