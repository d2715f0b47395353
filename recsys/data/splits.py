"""Protocols: how interactions are divided into what a model sees and what it must predict.

A protocol is one function with a decorator. `groups_of_users` takes the order in which the items of
a profile are seen: its first half trains and the rest is tested, for one group of users after the
other. `every_user` takes which interactions are held out, `windows` from which time on each window
is, whose interactions are predicted from all before it. `published` takes the test half that the
data came with.

Where each user's last items are held out, items of equal time are in an order that the seed draws.
Their order in the data would not do: files list popular items first, so that the rarest of several
last items would be tested, and a model that reads tied items in the order of the matrix would have
learned which one that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.interactions import Interactions
from recsys.data.protocol import Fold, Protocol, halves
from recsys.errors import InputError, counted
from recsys.registry import Registry
from recsys.utils.validation import check_integer

PROTOCOLS: Registry[Protocol] = Registry("protocol")
VARIANTS: dict[str, Protocol] = {}  # with a parameter, by the whole name
MOST_REPETITIONS = 100
GROUPS = 5  # of users or interactions, where no number is given
TENTHS = 10  # of all interactions: how long a window of `rolling` is

DRAWN_TIES = "Items of equal time are in an order drawn with the seed, which decides for {users}."
PUBLISHED = "published"
DEFAULT = "half-profile"
BY_ROWS = "draws=rows"
NEXT = re.compile(r"next-([1-9][0-9]{0,8})")
TIES_LATER = "What happened at the very time at which training ends is tested."

Divide = Callable[[Interactions, int, np.random.Generator], Iterator[Fold]]
Order = Callable[[Interactions, np.random.Generator], NDArray[np.float64]]
Held = Callable[[Interactions, np.random.Generator], NDArray[np.bool_]]
Cuts = Callable[[NDArray[np.float64], int], NDArray[np.float64]]
Takes = Callable[[Protocol], bool]
Changed = Callable[[Protocol, str], Protocol]
FRACTION = r"fraction=(0?\.0*[1-9][0-9]{0,9})"


def find_protocol(name: str) -> Protocol:
    """Return a protocol by its name: one of `PROTOCOLS`, or next-K for any whole K of at least 1.

    Parameters may follow, each after a colon: `half-profile-time:ties=index`,
    `next-3:items=random:users=groups`, and `draws=rows` of any protocol (`split`).

    Raises
    ------
    InputError
        If there is none of this name; the message suggests the nearest one.

    Examples
    --------
    >>> find_protocol("next-3").description
    "each user's last 3 items"
    >>> find_protocol("holdout:users=groups").default_folds
    5
    """
    if not isinstance(name, str):
        return PROTOCOLS.get(name)  # which refuses it
    base, *parameters = name.split(":")
    if base not in tuple(PROTOCOLS) and not NEXT.fullmatch(base):
        if re.match(r"next\b", name):
            raise InputError(
                f"unknown protocol {name!r}: after next- an integer of at least 1 is needed, as in "
                "next-5"
            )
        return PROTOCOLS.get(name)  # which refuses it
    protocol = PROTOCOLS.get(base) if base in tuple(PROTOCOLS) else next_items(int(base[5:]))
    for text in parameters:
        protocol = _with_parameter(protocol, text)
    return protocol


def _with_parameter(protocol: Protocol, text: str) -> Protocol:
    """Return a protocol with one more parameter."""
    name = f"{protocol.name}:{text}"
    if text == BY_ROWS:
        return replace(protocol, name=name, divide=_by_rows(protocol.divide), held=None)
    if name in VARIANTS:
        return VARIANTS[name]
    start = f"{protocol.name}:"
    taken = [one.removeprefix(start) for one in VARIANTS if one.startswith(start)]
    for form, pattern, takes, make in PARAMETERS:
        if takes(protocol):
            if found := re.fullmatch(pattern, text):
                return replace(make(protocol, found[1]), name=name)
            taken.append(form)
    raise InputError(f"protocol {protocol.name} takes {' or '.join([*taken, BY_ROWS])}, not {text!r}")


def _by_rows(divide: Divide) -> Divide:
    """Return a protocol's division with draws that go by the first appearance of ids in the data."""

    def by_rows(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
        return divide(_numbered(data), folds, rng)

    return by_rows


def _numbered(data: Interactions) -> Interactions:
    """Return the interactions with ids whose order as text is that of their first appearance."""
    users, items = (ids_of_ranks(np.arange(n)) for n in (data.n_users, data.n_items))
    return replace(data, user_ids=users, item_ids=items, user_features=None, item_features=None)


def ids_of_ranks(ranks: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return ids whose order as text is that of the ranks, so that draws are those of the ranked ids."""
    return np.array([f"{rank:010d}" for rank in ranks.tolist()], dtype=object)


def ranks_of(ids: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return the rank of each id in the order of all ids as text, (ids,) from 0."""
    rank = np.empty(len(ids), dtype=np.int64)
    rank[np.argsort(np.array([str(one) for one in ids]), kind="stable")] = np.arange(len(ids))
    return rank


def protocol_for(protocol: str | None, test: Any, data: Interactions | None = None) -> str:
    """Return the protocol that is meant: a test half that is given, or of the data, is what is tested.

    >>> protocol_for(None, None), protocol_for(None, "test.csv")
    ('half-profile', 'published')
    """
    if test is None:
        own = data is not None and data.held_out is not None
        return protocol if protocol is not None else PUBLISHED if own else DEFAULT
    if protocol is not None and not (isinstance(protocol, str) and protocol == PUBLISHED):
        raise InputError(
            f"protocol {protocol!r} divides the data, and a test half says what is tested: leave one of "
            "them out"
        )
    return PUBLISHED


def split(
    data: Interactions, protocol: str = "half-profile", *, folds: int | None = None, seed: int = 0
) -> Iterator[Fold]:
    """Yield the folds of a protocol.

    Parameters
    ----------
    data : Interactions
    protocol : str
        A name of the first list below, with settings of the second one behind a colon:
        "holdout:fraction=0.3". `list(PROTOCOLS)` has all names.
    folds : int, optional
        Groups of the half-profile protocols, `users=groups` and crossfold-records, 5 when not given;
        crossfold-records tests the first of five where it is 1. Windows of rolling, 5 when not given and
        9 at most. Else repetitions with other draws, 1 when not given.
    seed : int ≥ 0
        The same seed gives the same folds, whatever the order of the input's rows
        (half-profile-file: the same groups of users). It orders items of equal time among each user's
        last, too.

    Raises
    ------
    InputError
        If there is no such protocol, it needs times that are absent or all equal, or `folds` does not
        fit.

    Notes
    -----
    Protocols and what they test:

    - half-profile: users are in `folds` groups; of each user of a group ⌈n/2⌉ random items train and the
      rest is tested (thesis, 10.4.2)
    - half-profile-time: the same, and the older items train
    - half-profile-file: the same, and the items that come first in the rows train, which says nothing
      about time (the thesis' Jester: jokes by their number)
    - leave-one-out: each user's last item, a random one without times
    - next-5, or any other number: the last 5 items of each user who has more
    - holdout: 20% of each user's items
    - train-test-split: each interaction with probability 0.2
    - crossfold-records: all interactions, in groups
    - temporal: the last 20% of all interactions, predicted from those before
    - rolling: the last tenths of all interactions, each predicted from those before it
    - published: the test half that came with the data (`held_out`)

    Settings:

    - validation=kept of leave-one-out is the protocol of most papers on sequences: no model is fitted on
      the item before each user's last, which is in the input when the last one is predicted
    - items=random of next-K and leave-one-out tests random items though there are times; items=last of
      holdout tests the newest ones
    - kept=2 tests only users who keep two items in training
    - fraction=0.3 of holdout, train-test-split and temporal tests that share
    - users=groups or users=100 of protocols that test all users tests groups or samples of users;
      records=100 of crossfold-records tests samples of interactions
    - ties=index of half-profile-time orders items of equal time as they first occur in the data, with
      draws=rows
    - draws=rows draws in the order in which ids first appear, as before version 0.2. Without it draws go
      by the ids as text: the same data with shuffled rows have the same folds

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
    folds = check_integer("folds", chosen.default_folds if folds is None else folds, 1)
    chosen.check(data, folds)
    return chosen.divide(data, folds, np.random.default_rng(seed))


def groups_of_users(
    name: str,
    description: str,
    *,
    needs_time: bool = False,
    draw_ties: bool = False,
    by_rows: bool = False,
    **known: Any,
) -> Callable[[Order], Order]:
    """Register a protocol that tests the second half of each profile, one group of users a fold.

    The decorated function returns one number a pair: a profile's items are seen in their order, those of
    equal numbers at random with `draw_ties`, else by index. With `by_rows`, draws go by the order in
    which ids first appear. A name with a colon is a variant of another protocol. The other arguments
    are those of `Protocol`.
    """

    def register(order: Order) -> Order:
        def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
            group = user_groups(data.n_users, folds, rng)[ranks_of(data.user_ids)]
            key = order(data, rng)
            then = _draws(data, rng) if draw_ties else None
            place, lengths = _positions(data, key, then)
            second = place >= (lengths[data.users] + 1) // 2
            for fold in range(folds):
                held = (group[data.users] == fold) & second
                yield _fold(data, held, group == fold, needs_time)

        protocol = Protocol(
            name, description, _by_rows(divide) if by_rows else divide, lambda data: data.n_users,
            default_folds=5, grouped=True, needs_time=needs_time, **known,
        )  # fmt: skip
        if ":" in name:
            VARIANTS[name] = protocol
        else:
            PROTOCOLS.add(name)(protocol)
        return order

    return register


def user_groups(users: int, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign users at random to `folds` groups of equal size (±1), one number a user, (users,)."""
    group = np.empty(users, dtype=np.int64)
    group[rng.permutation(users)] = np.arange(users) % folds
    return group


def every_user(
    name: str,
    description: str,
    *,
    drawn: Callable[[Interactions], bool] = lambda data: True,
    **known: Any,
) -> Callable[[Held], Held]:
    """Register a protocol that evaluates all users in each fold.

    The decorated function returns which pairs are held out. `drawn` says whether they are drawn, so
    that a repetition gives others. The other arguments are those of `Protocol`.
    """

    def register(held: Held) -> Held:
        PROTOCOLS.add(name)(_of_every_user(name, description, held, drawn=drawn, **known))
        return held

    return register


def _of_every_user(name: str, description: str, held: Held, *, drawn: Any, **known: Any) -> Protocol:
    """Return a protocol that evaluates all users in each fold; arguments as of `every_user`."""

    def most(data: Interactions) -> int:
        return MOST_REPETITIONS if drawn(data) else 1

    divide = _held_out(held, lambda data: protocol.predicts_future(data))
    protocol = Protocol(
        name, description, divide, most, default_folds=1, grouped=False, held=held, **known
    )
    return protocol


def _held_out(held: Held, in_time: Callable[[Interactions], bool], groups: Any = None) -> Divide:
    """Return the division that tests what is held out, of all users or of one group after the other.

    `groups` returns the fold that tests each user, of interactions, a number of folds and a generator.
    """

    def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
        tested = None if groups is None else groups(data, folds, rng)[ranks_of(data.user_ids)]
        for fold in range(folds):
            mine = np.ones(data.n_users, dtype=bool) if tested is None else tested == fold
            yield _fold(data, held(data, rng) & mine[data.users], mine, in_time(data))

    return divide


def windows(
    name: str, description: str, *, most_folds: int, without_time: str, **known: Any
) -> Callable[[Cuts], Cuts]:
    """Register a protocol that predicts windows of time, each from all that was before it.

    The decorated function returns from which times on there is a window, of all times in their
    order and a number of windows; each ends where the next begins. The other arguments are those of
    `Protocol`.
    """

    def register(cuts: Cuts) -> Cuts:
        PROTOCOLS.add(name)(
            Protocol(
                name, description, _in_windows(name, cuts, without_time), lambda data: most_folds,
                grouped=False, needs_time=True, without_time=without_time, **known,
            )
        )  # fmt: skip
        return cuts

    return register


def _in_windows(name: str, cuts: Cuts, without_time: str) -> Divide:
    """Return the division that predicts windows of time, each from all that was before it."""

    def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
        time = np.asarray(data.time)
        in_order = np.sort(time)
        starts = np.unique(cuts(in_order, folds))
        # Nothing is before the first time, and nothing can be predicted from nothing.
        starts = starts[starts > in_order[0]]
        if len(starts) == 0:
            raise InputError(
                f"protocol {name} finds nothing before the first window of {data.name}: its "
                f"{counted(len(time), 'interaction')} are too few or too many are of one time; "
                f"use {without_time}"
            )
        number = np.searchsorted(starts, time, side="right")  # of windows begun: 0 before the first
        return (_window(data, number <= w, number == w + 1) for w in range(len(starts)))

    return divide


@groups_of_users("half-profile", "half of each profile of a group, at random")
def half_profile(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Order each profile at random."""
    return _draws(data, rng)


OLDER_HALF = "Training holds the older half of each evaluated profile, and other users' profiles whole."


@groups_of_users(
    "half-profile-time", "the later half of each profile of a group", needs_time=True, draw_ties=True,
    without_time="half-profile", training=OLDER_HALF, ties=DRAWN_TIES,
)  # fmt: skip
@groups_of_users(
    "half-profile-time:ties=index", "the later half of each profile of a group",
    needs_time=True, by_rows=True, without_time="half-profile", training=OLDER_HALF,
    ties="Items of equal time are in the order in which they first occur in the data, which decides for "
    "{users}.",
)  # fmt: skip
def half_profile_time(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Order each profile by time."""
    return np.asarray(data.time)


@groups_of_users("half-profile-file", "the half of each profile of a group that stands last in the file")
def half_profile_file(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Leave each profile in the order of the rows."""
    return np.arange(len(data.users), dtype=np.float64)


@every_user(
    "leave-one-out", "each user's last item",
    drawn=lambda data: data.time is None, uses_time=True,
    training="Training holds all but each user's last item: the one before it, which other tables keep "
    "for validation, and what other users did later.",
    ties=DRAWN_TIES,
)  # fmt: skip
def leave_one_out(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out the last item of each user who has two, a random one without times."""
    return _last(data, rng, 1)


def _validation_kept(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Hold out what `leave_one_out` does, and do not fit the item before it, of three or more."""
    everyone = np.ones(data.n_users, dtype=bool)
    for _ in range(folds):
        place, lengths = _in_time(data, rng)
        left, length = lengths[data.users] - place, lengths[data.users]  # 1 for the last item
        held, kept = (left == 1) & (length > 1), (left == 2) & (length > 2)
        fold = _fold(data, held, everyone, data.time is not None)
        yield replace(fold, fitted=data.submatrix(np.flatnonzero(~held & ~kept)))


VARIANTS["leave-one-out:validation=kept"] = replace(
    PROTOCOLS.get("leave-one-out"),
    name="leave-one-out:validation=kept",
    description="each user's last item; the one before it is not fitted",
    divide=_validation_kept,
    held=None,
    training="Models are fitted on all but the last two items of each user; the item before the last is "
    "in the input, as in the tables of most papers on sequences.",
)


def next_items(k: int) -> Protocol:
    """Return the protocol that holds out the last k items of each user who has more than k."""
    return _of_every_user(
        f"next-{k}",
        f"each user's last {counted(k, 'item')}",
        lambda data, rng: _last(data, rng, k),
        drawn=lambda data: data.time is None,
        uses_time=True,
        training=f"Training holds all but the last {counted(k, 'item')} of each user who has more, and "
        "what other users did later.",
        ties=DRAWN_TIES,
    )


for _k in (5, 10):
    PROTOCOLS.add(f"next-{_k}")(next_items(_k))


@every_user("holdout", "a fifth of each user's items, at random")
def holdout(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out a random fifth of each profile."""
    place, lengths = _positions(data, _draws(data, rng))
    return place >= lengths[data.users] - lengths[data.users] // 5


def _newest(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out the last fifth of each profile."""
    place, lengths = _in_time(data, rng)
    return place >= lengths[data.users] - lengths[data.users] // 5


VARIANTS["holdout:items=last"] = _of_every_user(
    "holdout:items=last",
    "the last fifth of each user's items",
    _newest,
    drawn=lambda data: False,
    needs_time=True,
    without_time="holdout",
    training="Training holds each user's older items, and what other users did later.",
    ties=DRAWN_TIES,
)


@every_user("train-test-split", "each interaction with probability 0.2")
def train_test_split(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hold out each interaction on its own, as the function of this name of implicit."""
    return _draws(data, rng) >= 0.8


def _crossfold_records(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Test one group of interactions after the other; where there is one fold, the first of five."""
    groups = folds if folds > 1 else GROUPS
    group = np.empty(len(data.users), dtype=np.int64)
    group[np.argsort(_draws(data, rng))] = np.arange(len(group)) % groups
    for fold in range(folds):
        yield _fold(data, group == fold, np.ones(data.n_users, dtype=bool), False)


PROTOCOLS.add("crossfold-records")(
    Protocol(
        "crossfold-records", "one group of all interactions after the other, at random",
        _crossfold_records, lambda data: min(MOST_REPETITIONS, len(data.users)), default_folds=GROUPS,
        grouped=False,
    )
)  # fmt: skip


def _groups(protocol: Protocol, value: str) -> Protocol:
    """Test one group of users after the other."""

    def groups(data: Interactions, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return user_groups(data.n_users, folds, rng)

    return replace(
        protocol, divide=_held_out(_of(protocol), protocol.predicts_future, groups),
        description=f"{protocol.description}, of a group of users",
        most_folds=lambda data: data.n_users, default_folds=GROUPS, grouped=True, held=None,
    )  # fmt: skip


def _samples(protocol: Protocol, value: str) -> Protocol:
    """Test samples of so many users, of which no two share a user."""
    size = int(value)

    def samples(data: Interactions, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        sample = np.empty(data.n_users, dtype=np.int64)
        sample[rng.permutation(data.n_users)] = np.arange(data.n_users) // size
        return sample

    def most(data: Interactions) -> int:
        if size > data.n_users:
            raise InputError(f"users={size} is more than the {data.n_users} users of {data.name}")
        return data.n_users // size

    return replace(
        protocol, divide=_held_out(_of(protocol), protocol.predicts_future, samples), most_folds=most,
        description=f"{protocol.description}, of {counted(size, 'user')} at random", held=None,
    )  # fmt: skip


def _random_items(protocol: Protocol, value: str) -> Protocol:
    """Hold out as many items as the protocol does, at random instead of the last in time."""
    last = _of(protocol)

    def held(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
        return last(replace(data, time=None), rng)

    what = protocol.description.removeprefix("each user's last ")
    described = f"{'one ' if what == 'item' else ''}{what} of each user, at random"
    return _of_every_user(protocol.name, described, held, drawn=lambda data: True)


def _kept(protocol: Protocol, value: str) -> Protocol:
    """Test only users who keep so many items in training."""
    every = _of(protocol)

    def held(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
        found = every(data, rng)
        kept = np.bincount(data.users, ~found, minlength=data.n_users) >= int(value)
        return found & kept[data.users]

    return replace(
        protocol, divide=_held_out(held, protocol.predicts_future), held=held,
        description=f"{protocol.description}, of users who keep {value} or more",
    )  # fmt: skip


def _fraction(protocol: Protocol, value: str) -> Protocol:
    """Hold out another fraction than a fifth: of each profile the nearest integer, half to even."""
    fraction = float(value)
    newest = protocol.needs_time

    def held(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
        place, lengths = _in_time(data, rng) if newest else _positions(data, _draws(data, rng))
        return place >= (lengths - np.rint(lengths * fraction))[data.users]

    told = f"{fraction!r} of each user's items"
    told = f"the last {told}" if newest else f"{told}, at random"
    divide = _held_out(held, protocol.predicts_future)
    return replace(protocol, description=told, divide=divide, held=held)


def _probability(protocol: Protocol, value: str) -> Protocol:
    """Hold out each interaction with another probability than 0.2."""

    def held(data: Interactions, rng: np.random.Generator) -> NDArray[np.bool_]:
        return _draws(data, rng) >= 1.0 - float(value)

    return replace(
        protocol, description=f"each interaction with probability {float(value)!r}",
        divide=_held_out(held, protocol.predicts_future), held=held,
    )  # fmt: skip


def _last_fraction(protocol: Protocol, value: str) -> Protocol:
    """Test another fraction of all interactions than the last fifth, the nearest integer of them."""

    def cuts(times: NDArray[np.float64], folds: int) -> NDArray[np.float64]:
        return times[len(times) - round(len(times) * float(value)) :][:1]

    return replace(
        protocol, description=f"the last {float(value)!r} of all interactions",
        divide=_in_windows(f"{protocol.name}:fraction={value}", cuts, protocol.without_time),
        training=f"Training holds what was before the last {float(value)!r} of all interactions, and "
        "nothing later.",
    )  # fmt: skip


def _records(protocol: Protocol, value: str) -> Protocol:
    """Test samples of so many interactions, of which no two share one."""
    size = int(value)

    def divide(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
        sample = np.empty(len(data.users), dtype=np.int64)
        sample[np.argsort(_draws(data, rng))] = np.arange(len(data.users)) // size
        for fold in range(folds):
            yield _fold(data, sample == fold, np.ones(data.n_users, dtype=bool), False)

    def most(data: Interactions) -> int:
        if size > len(data.users):
            raise InputError(
                f"records={size} is more than the {len(data.users)} interactions of {data.name}"
            )
        return len(data.users) // size

    return replace(
        protocol, description=f"{counted(size, 'interaction')} at random", divide=divide,
        most_folds=most, default_folds=1,
    )  # fmt: skip


def _of(protocol: Protocol) -> Held:
    assert protocol.held is not None
    return protocol.held


def _called(*names: str) -> Takes:
    return lambda protocol: protocol.name in names


def _tests_everyone(protocol: Protocol) -> bool:
    return protocol.held is not None


def _takes_last(protocol: Protocol) -> bool:
    return protocol.held is not None and protocol.uses_time


# Parameters with a form for messages: the pattern, which protocols take it, and the protocol with it.
PARAMETERS: tuple[tuple[str, str, Takes, Changed], ...] = (
    ("items=random", r"items=(random)", _takes_last, _random_items),
    ("fraction=0.3", FRACTION, _called("holdout", "holdout:items=last"), _fraction),
    ("fraction=0.3", FRACTION, _called("train-test-split"), _probability),
    ("fraction=0.3", FRACTION, _called("temporal"), _last_fraction),
    ("records=100", r"records=([1-9][0-9]{0,8})", _called("crossfold-records"), _records),
    ("kept=2", r"kept=([1-9][0-9]{0,8})", _tests_everyone, _kept),
    ("users=groups", r"users=(groups)", _tests_everyone, _groups),
    ("users=100", r"users=([1-9][0-9]{0,8})", _tests_everyone, _samples),
)


@windows(
    "temporal", "the last fifth of all interactions",
    default_folds=1, most_folds=1, without_time="holdout",
    training="Training holds what was before the last fifth of all interactions, and nothing later.",
    ties=TIES_LATER,
)  # fmt: skip
def temporal(times: NDArray[np.float64], folds: int) -> NDArray[np.float64]:
    """Begin at the last fifth."""
    return times[len(times) - len(times) // 5 :][:1]


@windows(
    "rolling", "the last tenths of all interactions, one after the other",
    default_folds=5, most_folds=TENTHS - 1, without_time="holdout",
    training="Each window is a tenth of all interactions; training holds all that was before it, and "
    "nothing later.",
    ties=TIES_LATER,
)  # fmt: skip
def rolling(times: NDArray[np.float64], folds: int) -> NDArray[np.float64]:
    """Begin at each of the last tenths: as many interactions a window, however busy its days were."""
    tenth = len(times) // TENTHS
    return times[[len(times) - window * tenth for window in range(1, folds + 1) if tenth]]


def _published(data: Interactions, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Give the test half that came with the data; nothing is drawn."""
    held, trains, tested = halves(data)
    tied = _tied(data, held, trains, tested) if PROTOCOLS.get(PUBLISHED).predicts_future(data) else 0
    yield replace(_window(data, trains, held), tied=tied)


PROTOCOLS.add(PUBLISHED)(
    Protocol(
        PUBLISHED, "the test half that was published with the data, or given", _published,
        lambda data: 1, default_folds=1, grouped=False, comes_with_data=True,
        training="All interactions outside the test half train.",
        ties="Who has items of the same time in both halves is tested as given: {users}.",
    )
)  # fmt: skip


def _last(data: Interactions, rng: np.random.Generator, k: int) -> NDArray[np.bool_]:
    """Return which pairs are their user's last k, of users with more; in a drawn order without times."""
    place, lengths = _in_time(data, rng)
    left = lengths[data.users] - k
    return (place >= left) & (left > 0)


def _in_time(data: Interactions, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Return `_positions` in time, equal times in a drawn order; in a drawn order without times."""
    draws = _draws(data, rng)
    return _positions(data, draws if data.time is None else data.time, draws)


def _positions(
    data: Interactions, key: NDArray[np.float64], then: NDArray[np.float64] | None = None
) -> tuple[NDArray, NDArray]:
    """Return each pair's rank within its user's profile in the order of key, and profile lengths.

    Pairs of equal key are ordered by `then`, or by item index, so that rows may come in any order.
    """
    order = np.lexsort((data.items if then is None else then, key, data.users))
    lengths = np.bincount(data.users, minlength=data.n_users)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - starts[data.users[order]]
    return place, lengths


def _draws(data: Interactions, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one random number per pair, assigned in the order of the ids as text: user, then item."""
    users, items = ranks_of(data.user_ids)[data.users], ranks_of(data.item_ids)[data.items]
    draws = np.empty(len(data.users))
    draws[np.lexsort((items, users))] = rng.random(len(data.users))
    return draws


def _fold(data: Interactions, held: NDArray[np.bool_], group: NDArray[np.bool_], in_time: bool) -> Fold:
    fold = _window(data, ~held, held, group)
    return replace(fold, tied=_tied(data, held)) if in_time else fold


def _window(
    data: Interactions, before: NDArray[np.bool_], inside: NDArray[np.bool_], group: Any = None
) -> Fold:
    """Return a fold that tests `group`, all users who have something in training when not given."""
    test = data.submatrix(np.flatnonzero(inside))
    train = data.submatrix(np.flatnonzero(before))
    known, has_test = np.diff(train.indptr) > 0, np.diff(test.indptr) > 0
    meant = known if group is None else group
    return Fold(
        train, test, np.flatnonzero(known & has_test), int((meant & ~has_test).sum()),
        int((~known & has_test).sum()),
    )  # fmt: skip


def _tied(data: Interactions, held: NDArray[np.bool_], trains: Any = None, tested: Any = None) -> int:
    """Return how many users have items of one time on both sides; `tested`: times in the test half."""
    trains = ~held if trains is None else trains
    times = np.asarray(data.time)
    both = np.concatenate([(times if tested is None else tested)[held], times[trains]])
    when = np.unique(both, return_inverse=True)[1].ravel()
    users = np.concatenate([data.users[held], data.users[trains]]).astype(np.int64)
    key, tests = users * (int(when.max()) + 1) + when, int(held.sum())
    return len(np.unique(users[:tests][np.isin(key[:tests], key[tests:])]))
