"""Protocols: how interactions are divided into what a model sees and what it must predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.interactions import Interactions
from recsys.errors import InputError
from recsys.utils.validation import check_choice, check_integer

PROTOCOLS = (
    "half-profile", "half-profile-time", "half-profile-file", "leave-one-out", "holdout", "temporal",
)  # fmt: skip
DEFAULT_FOLDS = {"half-profile": 5, "half-profile-time": 5, "half-profile-file": 5}


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
    """

    train: sp.csr_matrix
    test: sp.csr_matrix
    users: NDArray[np.int64]
    train_only: int


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
        temporal: the last 20% of all interactions.
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
    """
    check_choice("protocol", protocol, PROTOCOLS)
    check_integer("seed", seed, 0)
    folds = check_integer("folds", DEFAULT_FOLDS.get(protocol, 1) if folds is None else folds, 1)
    if protocol in ("half-profile-time", "temporal") and data.time is None:
        raise InputError(
            f"protocol {protocol} needs times and {data.name} has none: name them with --time-col, "
            f"or use {'half-profile' if protocol == 'half-profile-time' else 'holdout'}"
        )
    rng = np.random.default_rng(seed)
    if protocol in DEFAULT_FOLDS:
        if not 2 <= folds <= data.n_users:
            raise InputError(f"folds must be from 2 to the number of users, {data.n_users}; not {folds}")
        return _half_profiles(data, protocol, folds, rng)
    fixed = protocol == "temporal" or (protocol == "leave-one-out" and data.time is not None)
    if folds > 1 and (fixed or folds > 100):
        most = 1 if fixed else 100
        raise InputError(f"folds must be from 1 to {most} for {protocol} on {data.name}; not {folds}")
    return _whole_profiles(data, protocol, folds, rng)


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


def _half_profiles(
    data: Interactions, protocol: str, folds: int, rng: np.random.Generator
) -> Iterator[Fold]:
    group = np.empty(data.n_users, dtype=np.int64)
    group[rng.permutation(data.n_users)] = np.arange(data.n_users) % folds
    if protocol == "half-profile-file":
        key = np.arange(len(data.users), dtype=np.float64)
    elif protocol == "half-profile-time" and data.time is not None:
        key = data.time
    else:
        key = _draws(data, rng)
    place, lengths = _positions(data, key)
    second = place >= (lengths[data.users] + 1) // 2
    for fold in range(folds):
        held = (group[data.users] == fold) & second
        yield _fold(data, held, group == fold)


def _whole_profiles(
    data: Interactions, protocol: str, folds: int, rng: np.random.Generator
) -> Iterator[Fold]:
    everyone = np.ones(data.n_users, dtype=bool)
    for _ in range(folds):
        if protocol == "temporal":
            order = np.lexsort((data.items, data.users, np.asarray(data.time)))
            held = np.zeros(len(order), dtype=bool)
            held[order[len(order) - len(order) // 5 :]] = True
        elif protocol == "leave-one-out":
            place, lengths = _positions(data, _draws(data, rng) if data.time is None else data.time)
            held = (place == lengths[data.users] - 1) & (lengths[data.users] > 1)
        else:
            place, lengths = _positions(data, _draws(data, rng))
            held = place >= lengths[data.users] - lengths[data.users] // 5
        yield _fold(data, held, everyone)


def _fold(data: Interactions, held: NDArray[np.bool_], group: NDArray[np.bool_]) -> Fold:
    test = data.submatrix(np.flatnonzero(held))
    train = data.submatrix(np.flatnonzero(~held))
    has_test = np.diff(test.indptr) > 0
    return Fold(train, test, np.flatnonzero(has_test), int((group & ~has_test).sum()))
