"""Protocols by their definitions, over lists of (user, item, time).

Each twin returns its folds as (train, test, users, train_only, cold): sets of pairs, a list, two counts.
Users and items are the ranks of their ids as text. Randomness is the same by construction: permutations and
numbers are drawn in the order of (user, item).
"""

import numpy as np

from tests.reference.registry import PROTOCOLS


def profiles(rows):
    """Each user's (item, time), in the order of the rows."""
    out = {}
    for user, item, time in rows:
        out.setdefault(user, []).append((item, time))
    return out


def numbers(rows, rng):
    """One random number a pair."""
    pairs = sorted((user, item) for user, item, _ in rows)
    return dict(zip(pairs, rng.random(len(pairs)), strict=True))


def fold(rows, held, meant):
    """What is held out is tested; users who are meant and have nothing to test only train."""
    train = {(u, i) for u, i, _ in rows if (u, i) not in held}
    users = sorted({u for u, _ in held})
    return train, held, users, len([u for u in meant if u not in users]), 0


def halves(key):
    def twin(rows, n_users, folds, rng):
        group = dict(zip(rng.permutation(n_users).tolist(), np.arange(n_users) % folds, strict=True))
        order = key(rows, rng)
        for number in range(folds):
            held = set()
            for user, profile in profiles(rows).items():
                items = sorted((item for item, _ in profile), key=lambda i, u=user: (order[u, i], i))
                if group[user] == number:
                    held |= {(user, item) for item in items[-(-len(items) // 2) :]}
            yield fold(rows, held, [u for u in range(n_users) if group[u] == number])

    return twin


PROTOCOLS.add("half-profile")(halves(numbers))


def in_time(rows, rng):
    drawn = numbers(rows, rng)
    return {(u, i): (t, drawn[u, i]) for u, i, t in rows}


PROTOCOLS.add("half-profile-time")(halves(in_time))
PROTOCOLS.add("half-profile-file")(
    halves(lambda rows, rng: {(u, i): n for n, (u, i, _) in enumerate(rows)})
)


@PROTOCOLS.add("holdout")
def holdout(rows, n_users, folds, rng):
    for _ in range(folds):
        drawn, held = numbers(rows, rng), set()
        for user, profile in profiles(rows).items():
            items = sorted((item for item, _ in profile), key=lambda i, u=user, d=drawn: d[u, i])
            held |= {(user, item) for item in items[len(items) - len(items) // 5 :]}
        yield fold(rows, held, range(n_users))


def last(k):
    def twin(rows, n_users, folds, rng):
        for _ in range(folds):
            yield fold(rows, of_last(rows, rng, k), range(n_users))

    return twin


def of_last(rows, rng, k):
    """Each user's last k items, of users who have more; in a drawn order where there are no times."""
    drawn, held = numbers(rows, rng), set()
    for user, profile in profiles(rows).items():
        if len(profile) > k:
            late = [(time or 0.0, drawn[user, item], item) for item, time in profile]
            held |= {(user, item) for _, _, item in sorted(late)[-k:]}
    return held


def fraction(rows, rng, share):
    """The nearest integer to a share of each profile, half to even, as Python's round does."""
    drawn, held = numbers(rows, rng), set()
    for user, profile in profiles(rows).items():
        items = sorted((item for item, _ in profile), key=lambda i: drawn[user, i])
        held |= {(user, item) for item in items[len(items) - round(share * len(items)) :]}
    return held


def last_fraction(rows, rng, number):
    """Of each profile the newest items: so many as `number` says for its length."""
    drawn, held = numbers(rows, rng), set()
    for user, profile in profiles(rows).items():
        in_order = [item for _, _, item in sorted((t, drawn[user, i], i) for i, t in profile)]
        held |= {(user, item) for item in in_order[len(in_order) - number(len(in_order)) :]}
    return held


def with_cold(rows, held, meant):
    """A fold in which users may have everything held out: they are counted, and not tested."""
    train, test, users, train_only, _ = fold(rows, held, meant)
    warm = {u for u, _ in train}
    return train, test, [u for u in users if u in warm], train_only, len(set(users) - warm)


@PROTOCOLS.add("holdout:fraction=0.5")
def halves_by_round(rows, n_users, folds, rng):
    for _ in range(folds):
        yield with_cold(rows, fraction(rows, rng, 0.5), range(n_users))


def each(share):
    """Each interaction on its own."""

    def twin(rows, n_users, folds, rng):
        for _ in range(folds):
            held = {pair for pair, number in numbers(rows, rng).items() if number >= 1 - share}
            yield with_cold(rows, held, range(n_users))

    return twin


PROTOCOLS.add("train-test-split")(each(0.2))
PROTOCOLS.add("train-test-split:fraction=0.5")(each(0.5))


@PROTOCOLS.add("holdout:order=time")
def newest_fifth(rows, n_users, folds, rng):
    yield with_cold(rows, last_fraction(rows, rng, lambda n: n // 5), range(n_users))


@PROTOCOLS.add("holdout:order=time,fraction=0.5")
def newest_half(rows, n_users, folds, rng):
    yield with_cold(rows, last_fraction(rows, rng, lambda n: round(0.5 * n)), range(n_users))


@PROTOCOLS.add("published")
def published(rows, n_users, folds, rng, held_out):
    train = {(u, i) for (u, i, _), held in zip(rows, held_out, strict=True) if not held}
    test = {(u, i) for (u, i, _), held in zip(rows, held_out, strict=True) if held}
    known, asked = {u for u, _ in train}, {u for u, _ in test}
    yield train, test, sorted(known & asked), len(known - asked), len(asked - known)


PROTOCOLS.add("leave-one-out")(last(1))
PROTOCOLS.add("next-5")(last(5))
PROTOCOLS.add("next-10")(last(10))
PROTOCOLS.add("next-2")(last(2))


def parts(places):
    def twin(rows, n_users, folds, rng):
        times = sorted(time for _, _, time in rows)
        starts = sorted(
            {times[place] for place in places(len(times), folds) if place < len(times)} - {times[0]}
        )
        for number, start in enumerate(starts):
            train = {(u, i) for u, i, t in rows if t < start}
            test = {(u, i) for u, i, t in rows if t >= start}
            if number + 1 < len(starts):
                test -= {(u, i) for u, i, t in rows if t >= starts[number + 1]}
            known, later = {u for u, _ in train}, {u for u, _ in test}
            yield train, test, sorted(known & later), len(known - later), len(later - known)

    return twin


PROTOCOLS.add("temporal")(parts(lambda n, folds: [n - n // 5]))
PROTOCOLS.add("temporal:fraction=0.4")(parts(lambda n, folds: [n - round(0.4 * n)]))
PROTOCOLS.add("rolling")(
    parts(lambda n, folds: [n - window * (n // 10) for window in range(1, folds + 1)])
)
