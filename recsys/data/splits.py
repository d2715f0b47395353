"""Protocols: splits of interactions into training and test rows.

A protocol is a function of the interactions, a number of folds and a random generator, with keyword
arguments, that yields folds. Draws depend on ids as text and not on the order of rows. Items of equal
time are ordered at random, because files list popular items first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.interactions import Interactions
from recsys.errors import InputError
from recsys.registry import Registry, check_parameters, parse_spec
from recsys.utils.validation import check_choice, check_integer, check_real

DEFAULT, PUBLISHED = "half-profile", "published"
MOST_REPETITIONS = 100
NEXT = re.compile(r"next-([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Fold:
    """A split of the interactions into training and test rows."""

    train: sp.csr_matrix  #: (users, items) float32
    test: sp.csr_matrix  #: (users, items) float32
    users: NDArray[np.int64]  #: whose test rows are predicted from their training rows
    train_only: int  #: selected users without a test interaction
    cold: int = 0  #: users with test interactions, but without training interactions


@dataclass(frozen=True)
class Protocol:
    """A method of splitting interactions."""

    name: str
    description: str
    divide: Callable[..., Iterator[Fold]]  #: of interactions, a number of folds and a random generator
    folds: int = 1  #: by default: groups of users, windows of time, or repetitions
    most: int = 1  #: folds; the number of users if `grouped`, and 1 if times determine the split
    grouped: bool = False  #: whether folds are groups of users; needs at least two
    times: str = ""  #: "needed", or "used" if there are any
    note: str = ""  #: on the training data, for reports

    def predicts_future(self, data: Interactions) -> bool:
        """Return whether test interactions are later than training ones, so models may use times."""
        if self.name != PUBLISHED:
            return data.time is not None and bool(self.times)
        if data.time is None or data.held_out is None:
            return False
        first, last = np.full(data.n_users, np.inf), np.full(data.n_users, -np.inf)
        np.minimum.at(first, data.users[data.held_out], data.time[data.held_out])
        np.maximum.at(last, data.users[~data.held_out], data.time[~data.held_out])
        return bool((last <= first).all())

    def validation(self, data: Interactions) -> str:
        """Return the protocol that splits the training rows again to choose parameters."""
        if self.name != PUBLISHED:
            return self.name
        return "leave-one-out" if self.predicts_future(data) else "holdout"

    def most_folds(self, data: Interactions) -> int:
        """Return how many folds there may be."""
        if self.grouped:
            return data.n_users
        return 1 if self.times == "used" and data.time is not None else self.most

    def check(self, data: Interactions, folds: int) -> None:
        """Refuse interactions without required times or test half, and invalid numbers of folds."""
        if self.name == PUBLISHED and data.held_out is None:
            raise InputError(
                f"{data.name} has no test half: pass --test FILE (test= of evaluate), or "
                "use protocol holdout"
            )
        if self.times == "needed" and data.time is None:
            raise InputError(
                f"protocol {self.name} needs times and {data.name} has none: name them with --time-col, "
                "or use half-profile or holdout"
            )
        least, most = 2 if self.grouped else 1, self.most_folds(data)
        if not least <= folds <= most:
            allowed = f"from {least} to {most}" if most > least else f"{least}"
            raise InputError(f"folds must be {allowed} for {self.name} on {data.name}; not {folds}")


PROTOCOLS: Registry[Protocol] = Registry("protocol")


def protocol(name: str, description: str, **known: Any) -> Callable[[Any], Any]:
    """Register a function as a protocol; `known` are other attributes of `Protocol`."""

    def register(divide: Any) -> Any:
        PROTOCOLS.add(name)(Protocol(name, description, divide, **known))
        return divide

    return register


def find_protocol(name: str) -> Protocol:
    """Return a protocol by its name: one of `PROTOCOLS`, or next-K for any whole K of at least 1.

    Parameters may follow as `holdout:fraction=0.3,order=time`.
    """
    if not isinstance(name, str):
        return PROTOCOLS.get(name)  # which refuses it
    base, params = parse_spec(name)
    match = NEXT.fullmatch(base)
    found = PROTOCOLS.get(base) if match is None else next_items(int(match[1]))
    check_parameters(f"protocol {base}", params, [*signature(found.divide).parameters][3:])
    if "fraction" in params:
        params["fraction"] = check_real("fraction", params["fraction"], 0.0, 1.0, open_low=True)
    found = replace(found, name=name, divide=partial(found.divide, **params))
    if check_choice("order", params.get("order", "random"), ("random", "time")) == "random":
        return found
    note = "Training holds each user's older items, and what others did later."
    return replace(found, most=1, times="needed", note=note)


def protocol_for(protocol: str | None, test: Any, data: Interactions | None = None) -> str:
    """Return the protocol: "published" with a test half, else the chosen or default one."""
    if test is None and protocol is not None:
        return protocol
    if not (protocol is None or (isinstance(protocol, str) and protocol == PUBLISHED)):
        raise InputError(
            f"protocol {protocol!r} cannot be combined with a test half: pass only one of them"
        )
    has_test = test is not None or (data is not None and data.held_out is not None)
    return PUBLISHED if has_test else DEFAULT


def interactions_of(data: Any) -> Interactions:
    """Return interactions as they are; else those of a (users, items) matrix, a table or a file."""
    if isinstance(data, Interactions):
        return data
    return (Interactions.from_matrix if sp.issparse(data) else Interactions.from_frame)(data)


def split(
    data: Any, protocol: str = DEFAULT, *, folds: int | None = None, seed: int = 0
) -> Iterator[Fold]:
    """Yield the folds of a protocol.

    Parameters
    ----------
    data : Interactions, (users, items) matrix, table or path
    protocol : str
        - half-profile: users are in `folds` groups; for each user of a group ⌈n/2⌉ random items are for
          training and the rest for testing (thesis, 10.4.2)
        - half-profile-time: the same with the older items for training
        - half-profile-file: the same with the first rows for training (Jester in the thesis)
        - leave-one-out: each user's last item, a random one without times
        - next-5, or any other number: the last 5 items of each user who has more
        - holdout: a fifth of each user's items; "holdout:fraction=0.3"; "holdout:order=time": the newest
        - train-test-split: each interaction with probability 0.2; "train-test-split:fraction=0.1"
        - temporal: the last fifth of all interactions; "temporal:fraction=0.3"
        - rolling: the last tenths of all interactions, each predicted from the earlier ones
        - published: the fixed test half of the data (`held_out`)
    folds : int, optional
        Groups of users for half-profile, 5 by default; windows for rolling, 5 by default and at most 9;
        random repetitions for other protocols, 1 by default.
    seed : int ≥ 0
        The same seed gives the same folds for any order of the rows; with half-profile-file, the same
        groups of users.

    Examples
    --------
    >>> from recsys.data import split
    >>> from recsys.datasets import load_dataset
    >>> fold = next(split(load_dataset("sample"), "leave-one-out"))
    >>> fold.train.shape, fold.test.nnz
    ((400, 300), 400)
    """
    chosen = find_protocol(protocol)
    check_integer("seed", seed, 0)
    data = interactions_of(data)
    folds = check_integer("folds", chosen.folds if folds is None else folds, 1)
    chosen.check(data, folds)
    return chosen.divide(data, folds, np.random.default_rng(seed))


def folds_of(
    data: Interactions, protocol: str, folds: int | None, seed: int, only: int | None = None
) -> list[Fold]:
    """Return the first `only` folds, with binary tests; refused where no user has an item to predict."""
    found = list(islice(split(data, protocol, folds=folds, seed=seed), only))
    for fold in found:
        fold.test.data[:] = 1.0  # models may learn from weights
    if not any(len(fold.users) for fold in found):
        cold = any(fold.cold for fold in found)
        none = "no user with a test interaction has a training interaction"
        why = none if cold else "every profile is too short"
        raise InputError(f"{data.name}: no test items under protocol {protocol}: {why}")
    return found


# ---- protocols


def half_profile(order: str) -> Callable[..., Iterator[Fold]]:
    """Test the second half of each profile, of one group of users after the other."""

    def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
        group = user_groups(data.n_users, folds, rng)[ranks_of(data.user_ids)]
        if order == "file":
            place, lengths = _positions(data, np.arange(len(data.users)))
        else:
            place, lengths = _ordered(data, rng, in_time=order == "time")
        second = place >= (lengths[data.users] + 1) // 2
        for fold in range(folds):
            yield _fold(data, (group[data.users] == fold) & second, users=group == fold)

    return divide


protocol("half-profile", "half of the items of each held-out user, at random", folds=5, grouped=True)(
    half_profile("random")
)
protocol(
    "half-profile-time",
    "the later half of the items of each held-out user",
    folds=5,
    grouped=True,
    times="needed",
    note="Training holds the older half of each evaluated profile, and other users' profiles whole.",
)(half_profile("time"))
protocol(
    "half-profile-file",
    "the half of the items of each held-out user that is last in the file",
    folds=5,
    grouped=True,
)(half_profile("file"))


def last(k: int) -> Callable[..., Iterator[Fold]]:
    """Test the last k items of each user who has more; random ones without times."""

    def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
        for _ in range(folds):
            place, lengths = _ordered(data, rng)
            left = lengths[data.users] - k
            held = (place >= left) & (left > 0)
            yield _fold(data, held, users=np.ones(data.n_users, dtype=bool))

    return divide


def next_items(k: int) -> Protocol:
    """Return the protocol next-k."""
    described = f"the last {k} items of each user who has more"
    note = f"Training holds all but {described}, and what others did later."
    return Protocol(f"next-{k}", described, last(k), 1, MOST_REPETITIONS, times="used", note=note)


PROTOCOLS.add("next-5")(next_items(5))
PROTOCOLS.add("next-10")(next_items(10))
protocol(
    "leave-one-out",
    "each user's last item",
    most=MOST_REPETITIONS,
    times="used",
    note="Training holds all but each user's last item: the one before it, which other tables keep for "
    "validation, and what others did later.",
)(last(1))


@protocol("holdout", "a fifth of each user's items, at random", most=MOST_REPETITIONS)
def holdout(
    data: Interactions,
    folds: int,
    rng: np.random.Generator,
    fraction: float | None = None,
    order: str = "random",
) -> Iterator[Fold]:
    """Test a fraction of each profile, to the nearest integer; a fifth, rounded down, by default."""
    for _ in range(folds):
        place, lengths = _ordered(data, rng, in_time=order == "time")
        tested = lengths // 5 if fraction is None else np.rint(lengths * fraction)
        held = place >= (lengths - tested)[data.users]
        yield _fold(data, held, users=np.ones(data.n_users, dtype=bool))


@protocol("train-test-split", "each interaction with probability 0.2", most=MOST_REPETITIONS)
def train_test_split(
    data: Interactions, folds: int, rng: np.random.Generator, fraction: float = 0.2
) -> Iterator[Fold]:
    """Test each interaction with the same probability, as the function of this name of implicit."""
    for _ in range(folds):
        held = _draws(data, rng) >= 1.0 - fraction
        yield _fold(data, held, users=np.ones(data.n_users, dtype=bool))


@protocol(
    "temporal",
    "the last fifth of all interactions",
    times="needed",
    note="Training holds what was before the tested window; what happened at its start is tested.",
)
def temporal(
    data: Interactions, folds: int, rng: np.random.Generator, fraction: float | None = None
) -> Iterator[Fold]:
    """Test the last fraction of all interactions, a fifth by default."""
    rows = len(data.users)
    return _windows(data, "temporal", [rows // 5 if fraction is None else round(rows * fraction)])


@protocol(
    "rolling",
    "the last tenths of all interactions, one after the other",
    folds=5,
    most=9,
    times="needed",
    note="Each window is a tenth of all interactions; training holds what was before it.",
)
def rolling(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Test the last tenths: as many interactions a window, however busy its days were."""
    tenth = len(data.users) // 10
    return _windows(data, "rolling", [window * tenth for window in range(1, folds + 1)])


@protocol(
    PUBLISHED,
    "the published test half of the data, or the table of --test",
    times="used",
    note="All interactions outside the test half train.",
)
def published(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Test the test half of the data."""
    yield _fold(data, np.asarray(data.held_out))


# ---- parts of them


def user_groups(users: int, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign users at random to `folds` groups of equal size (±1), one number a user, (users,)."""
    group = np.empty(users, dtype=np.int64)
    group[rng.permutation(users)] = np.arange(users) % folds
    return group


def ranks_of(ids: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return the rank of each id in the order of all ids as text, (ids,) from 0."""
    return np.argsort(np.argsort(np.array(list(map(str, ids))), kind="stable"))


def _draws(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one random number per pair, assigned in the order of the ids as text: user, then item."""
    users, items = ranks_of(data.user_ids)[data.users], ranks_of(data.item_ids)[data.items]
    draws = np.empty(len(data.users))
    draws[np.lexsort((items, users))] = rng.random(len(data.users))
    return draws


def _ordered(
    data: Interactions, rng: np.random.Generator, in_time: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `_positions` in time, equal times in a drawn order; else, or without times, drawn ones."""
    draws = _draws(data, rng)
    return _positions(data, data.time if in_time and data.time is not None else draws, draws)


def _positions(
    data: Interactions, key: NDArray[Any], then: NDArray[Any] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each pair's rank within its user's profile by key and `then`, and profile lengths."""
    order = np.lexsort((key if then is None else then, key, data.users))
    lengths = np.bincount(data.users, minlength=data.n_users)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - (np.cumsum(lengths) - lengths)[data.users[order]]
    return place, lengths


def _windows(data: Interactions, name: str, tested: list[int]) -> Iterator[Fold]:
    """Yield a fold for each window of time, which ends where the next begins.

    `tested` are the numbers of interactions from the beginnings of the windows to the end of all.
    """
    times = np.sort(np.asarray(data.time))
    starts = np.unique([times[len(times) - rows] for rows in tested if rows])
    starts = starts[starts > times[0]]  # nothing can be predicted from nothing
    if len(starts) == 0:
        raise InputError(
            f"protocol {name}: no interactions before the first window of {data.name}; "
            "there are too few, or too many of one time: use holdout"
        )
    number = np.searchsorted(starts, np.asarray(data.time), side="right")  # 0 before the first window
    return (_fold(data, number == w + 1, number <= w) for w in range(len(starts)))


def _fold(
    data: Interactions,
    tested: NDArray[np.bool_],
    trains: NDArray[np.bool_] | None = None,
    users: NDArray[np.bool_] | None = None,
) -> Fold:
    """Return a fold of what is tested, and of what trains: by default all else.

    `users` are those who can be tested, by default all who have something in training.
    """
    test = data.submatrix(np.flatnonzero(tested))
    train = data.submatrix(np.flatnonzero(~tested if trains is None else trains))
    known, has_test = np.diff(train.indptr) > 0, np.diff(test.indptr) > 0
    only = (known if users is None else users) & ~has_test
    evaluated, cold = np.flatnonzero(known & has_test), int((~known & has_test).sum())
    return Fold(train, test, evaluated, int(only.sum()), cold)
