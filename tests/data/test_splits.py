from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data import PROTOCOLS, Interactions, find_protocol, split
from recsys.tuning import training_part
from tests.strategies import interactions


def make(pairs, times=True, seed=0):
    users = np.array([f"u{u}" for u, _ in pairs], dtype=object)
    items = np.array([f"i{i}" for _, i in pairs], dtype=object)
    time = np.random.default_rng(seed).permutation(len(pairs)).astype(float) if times else None
    return Interactions.from_ids(users, items, time=time)


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=8, max_size=40, unique=True)
IN_TIME = [name for name in PROTOCOLS if PROTOCOLS.get(name).needs_time or PROTOCOLS.get(name).uses_time]


def test_which_protocols_predict_the_future():
    assert IN_TIME == [
        "half-profile-time", "leave-one-out", "next-10", "next-5", "rolling", "temporal",
    ]  # fmt: skip


@pytest.mark.thorough
@settings(max_examples=80, deadline=None)
@given(interactions(timed=True), st.integers(0, 3))
@pytest.mark.parametrize("name", [*IN_TIME, "next-1", "next-2:kept=2:users=groups", "next-1:users=1"])
def test_no_user_has_anything_in_training_that_is_later_than_what_is_tested(name, data, seed):
    protocol = find_protocol(name)
    if protocol.grouped and data.n_users < 2:
        return
    try:
        folds = list(split(data, name, folds=2 if protocol.grouped else None, seed=seed))
    except InputError as error:
        assert "finds nothing before the first window" in str(error)
        return
    when = {(u, i): t for u, i, t in zip(data.users, data.items, data.time, strict=True)}
    for fold in folds:
        assert fold.train.multiply(fold.test).nnz == 0
        tied = 0
        for user in fold.users:
            before = [when[user, i] for i in fold.train[user].indices]
            after = [when[user, i] for i in fold.test[user].indices]
            assert before and after and max(before) <= min(after)
            tied += max(before) == min(after)
        assert fold.tied == tied
        if name in ("rolling", "temporal"):  # of nobody, and not at the same time
            starts = min(when[pair] for pair in zip(*fold.test.nonzero(), strict=True))
            assert max(when[pair] for pair in zip(*fold.train.nonzero(), strict=True)) < starts
            assert fold.train.nnz == sum(t < starts for t in when.values())


@settings(max_examples=60, deadline=None)
@given(interactions(timed=True), st.integers(0, 3))
def test_leave_one_out_is_next_1(data, seed):
    first, second = (next(split(data, name, seed=seed)) for name in ("leave-one-out", "next-1"))
    assert (first.test != second.test).nnz == 0 and (first.train != second.train).nnz == 0


@settings(max_examples=60, deadline=None)
@given(interactions(timed=True), st.integers(0, 3), st.sampled_from(["leave-one-out", "next-2"]))
def test_validation_finds_the_items_before_those_that_are_tested(data, seed, name):
    k = 1 if name == "leave-one-out" else 2
    outer = next(split(data, name, seed=seed))
    inner = next(split(training_part(data, name, seed), name, seed=seed))
    assert (inner.train + inner.test != outer.train).nnz == 0
    for user in range(data.n_users):
        mine = data.users == user
        times = np.sort(data.time[mine])
        held = [data.time[mine & (data.items == i)][0] for i in inner.test[user].indices]
        if len(times) > 2 * k:
            assert sorted(held) == times[-2 * k : -k].tolist()
        elif len(times) > k:  # what is left of the profile is too short, and trains
            assert not held


def test_the_window_of_validation_ends_where_the_first_test_begins():
    pairs = [(u, i) for u in range(20) for i in range(10)]
    data = make(pairs)
    for name, size in (("temporal", 32), ("rolling", 10)):
        outer = next(split(data, name))
        inner = next(split(training_part(data, name, 0), name, folds=1))
        when = np.full((20, 10), np.nan)
        when[data.users, data.items] = data.time
        assert inner.test.nnz == size
        assert when[inner.test.nonzero()].max() + 1 == when[outer.test.nonzero()].min()
        assert when[inner.train.nonzero()].max() + 1 == when[inner.test.nonzero()].min()


def test_items_of_one_time_are_each_tested_as_often_whatever_their_place_in_the_file():
    users, items = np.divmod(np.arange(300 * 4), 4)
    time = np.tile([1.0, 2.0, 2.0, 2.0], 300)
    data = Interactions.from_ids(users, items, time=time)
    (fold,) = split(data, "leave-one-out", seed=1)
    counts = np.asarray(fold.test.sum(axis=0)).ravel()
    assert counts[0] == 0 and counts.sum() == 300 and fold.tied == 300
    assert (np.abs(counts[1:] - 100) < 4 * np.sqrt(300 * 2 / 9)).all()
    (other,) = split(data, "leave-one-out", seed=2)
    assert (fold.test != other.test).nnz > 0


def test_windows_of_rolling_follow_each_other():
    data = make([(u, i) for u in range(20) for i in range(10)])
    folds = list(split(data, "rolling"))
    when = np.full((20, 10), np.nan)
    when[data.users, data.items] = data.time
    assert [fold.test.nnz for fold in folds] == [20] * 5
    assert [fold.train.nnz for fold in folds] == [100, 120, 140, 160, 180]
    assert sorted(np.concatenate([when[fold.test.nonzero()] for fold in folds])) == list(range(100, 200))
    assert len(list(split(data, "rolling", folds=9))) == 9
    with pytest.raises(InputError, match="folds must be from 1 to 9 for rolling"):
        split(data, "rolling", folds=10)


@pytest.mark.parametrize("name", ["rolling", "temporal"])
def test_windows_that_nothing_is_before_are_refused(name):
    pairs = [(u, i) for u in range(4) for i in range(4)]
    few = make(pairs[:3])
    alike = Interactions.from_ids(*np.array(pairs).T, time=np.ones(16))
    for data, told in ((few, "its 3 interactions"), (alike, "its 16 interactions")):
        with pytest.raises(InputError, match=f"{told} are too few or too many are of one time; use hol"):
            split(data, name)
    half = Interactions.from_ids(*np.array(pairs).T, time=np.repeat([1.0, 2.0], 8))
    (fold,) = split(
        half, name
    )  # what is tied with the first of a window is in it; windows in one are one
    assert fold.train.nnz == fold.test.nnz == 8


def test_users_without_a_past_are_counted_and_left_out():
    data = Interactions.from_ids(list("aaaabbbbcc"), list("0123012301"), time=np.arange(10.0))
    (fold,) = split(data, "temporal")
    assert fold.users.tolist() == [] and (fold.cold, fold.train_only) == (1, 2)


@pytest.mark.parametrize(
    "name", ["next-0", "next-", "next", "next-k", "next-05", "next--1", "next-1.5", "next-٣"]
)
def test_next_takes_a_whole_number(name):
    with pytest.raises(InputError, match="at least 1 is needed, as in next-5") as caught:
        split(make([(0, 0), (0, 1)]), name)
    assert "\n" not in str(caught.value)


def test_next_takes_any_whole_number():
    data = make([(u, i) for u in range(6) for i in range(2 + u)], times=False)
    for k in (1, 3, 7, 123456789):
        (fold,) = split(data, f"next-{k}")
        assert np.diff(fold.test.indptr).tolist() == [k if 2 + u > k else 0 for u in range(6)]
    assert len(list(split(data, "next-3", folds=4))) == 4  # without times they are drawn
    with pytest.raises(InputError, match="folds must be 1 for next-3"):
        split(make([(0, 0), (0, 1)]), "next-3", folds=2)


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(PAIRS, st.integers(0, 5))
@pytest.mark.parametrize("order", ["", "-time", "-file"])
def test_half_profiles(order, pairs, seed):
    data = make(pairs)
    if data.n_users < 2:
        return
    folds = list(split(data, "half-profile" + order, folds=2, seed=seed))
    key = data.time if order == "-time" else np.arange(len(data.users))
    everything = data.matrix
    tested = np.concatenate([fold.users for fold in folds])
    assert len(set(tested)) == len(tested)
    lengths = np.diff(everything.indptr)
    assert set(tested) == set(np.flatnonzero(lengths > 1))
    assert sum(fold.train_only for fold in folds) == (lengths == 1).sum()
    for fold in folds:
        assert (fold.train + fold.test != everything).nnz == 0  # disjoint, and together everything
        assert fold.train.multiply(fold.test).nnz == 0
        for user in range(data.n_users):
            n = lengths[user]
            held = fold.test[user].nnz
            assert held == (n - -(-n // 2) if user in fold.users else 0)
            if order and held:
                place = {i: t for u, i, t in zip(data.users, data.items, key, strict=True) if u == user}
                assert max(place[i] for i in fold.train[user].indices) < min(
                    place[i] for i in fold.test[user].indices
                )


def test_a_seed_gives_the_same_folds_and_another_gives_others():
    data = make([(u, i) for u in range(12) for i in range(10)])
    first, again, other = (list(split(data, seed=s)) for s in (1, 1, 2))
    assert all((a.test != b.test).nnz == 0 for a, b in zip(first, again, strict=True))
    assert any((a.test != b.test).nnz for a, b in zip(first, other, strict=True))


def test_the_order_of_rows_does_not_matter_to_the_folds():
    pairs = [(u, i) for u in range(8) for i in range(10)]
    data = make(pairs, times=False)
    order = np.concatenate(
        [
            np.arange(0, 80, 10),
            np.arange(1, 10),
            np.setdiff1d(np.arange(80), [*range(0, 80, 10), *range(1, 10)])[::-1],
        ]
    )
    other = make([pairs[k] for k in order], times=False)
    assert list(other.user_ids) == list(data.user_ids) and list(other.item_ids) == list(data.item_ids)
    for a, b in zip(split(data, seed=4), split(other, seed=4), strict=True):
        assert (a.test != b.test).nnz == 0


@pytest.mark.parametrize("protocol", ["half-profile-time", "temporal", "rolling"])
def test_time_protocols_need_times(protocol):
    with pytest.raises(InputError, match="needs times.*--time-col"):
        split(make([(0, 0), (1, 1)], times=False), protocol)


@pytest.mark.parametrize("protocol", ["half-profile", "holdout", "temporal"])
@pytest.mark.parametrize("folds", [0, -1, 10**6, 1.5])
def test_wrong_numbers_of_folds(protocol, folds):
    with pytest.raises(InputError, match="folds must be"):
        split(make([(0, 0), (1, 1), (2, 1)]), protocol, folds=folds)


def test_unknown_protocol():
    with pytest.raises(
        InputError, match="unknown protocol 'halves': known: crossfold-records, half-profile, "
    ):
        split(make([(0, 0)]), "halves")
    with pytest.raises(InputError, match="did you mean 'leave-one-out'"):
        split(make([(0, 0)]), "leave-last-out")
    for name in (5, None, ["half-profile"]):
        with pytest.raises(InputError, match="unknown protocol"):
            split(make([(0, 0)]), name)


def test_a_new_protocol_is_one_decorated_function(monkeypatch):
    from recsys.data.splits import every_user, groups_of_users, windows

    monkeypatch.setattr(PROTOCOLS, "_entries", dict(PROTOCOLS._entries))

    @groups_of_users("by-item", "in the order of the items", needs_time=True, without_time="holdout")
    def by_item(data, rng):
        return data.items.astype(float)

    @every_user("first-item", "who likes item 0", drawn=lambda data: False)
    def first_item(data, rng):
        return data.items == 0

    @windows("last-half", "the later half", default_folds=1, most_folds=1, without_time="holdout")
    def last_half(times, folds):
        return times[[len(times) // 2]]

    pairs = [(u, i) for u in range(4) for i in range(4)]
    (fold,) = split(make(pairs), "last-half")
    assert fold.train.nnz == fold.test.nnz == 8
    for fold in split(make(pairs), "by-item", folds=2):
        assert all(set(fold.test[u].indices) == {2, 3} for u in fold.users)
    (fold,) = split(make(pairs, times=False), "first-item")
    assert set(fold.test.indices) == {0} and len(fold.users) == 4
    with pytest.raises(InputError, match="by-item needs times .* or use holdout"):
        split(make(pairs, times=False), "by-item", folds=2)
    with pytest.raises(InputError, match="folds must be 1 for first-item"):
        split(make(pairs), "first-item", folds=2)


# ---- parameters of protocols


def _tied_profiles(seed=0):
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((30, 20)) < 0.5)
    users, items = [f"u{k}" for k in users], [f"i{k}" for k in items]
    return Interactions.from_ids(users, items, time=rng.integers(0, 3, len(users)).astype(float))


def _pairs(data, fold):
    """The tested pairs of a fold, by ids, and whose lists are measured."""
    train, test = fold.train.tocoo(), fold.test.tocoo()
    users, items = data.user_ids, data.item_ids
    parts = [{(users[u], items[i]) for u, i in zip(R.row, R.col, strict=True)} for R in (train, test)]
    return *parts, set(users[fold.users])


def _shuffled(data, seed):
    order = np.random.default_rng(seed).permutation(len(data.users))
    users, items = data.users[order], data.items[order]
    return Interactions.from_ids(data.user_ids[users], data.item_ids[items], time=data.time[order])


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(
    "protocol",
    sorted(set(PROTOCOLS) - {"published", "half-profile-file"})
    + ["next-2", "next-2:items=random:kept=2", "holdout:fraction=0.5:users=groups", "next-2:users=7",
       "holdout:items=last", "holdout:items=last:fraction=0.5", "temporal:fraction=0.4", "crossfold-records:records=3"],
)  # fmt: skip
def test_the_same_data_in_another_order_have_the_same_folds(protocol, timed):
    data = _tied_profiles()
    if find_protocol(protocol).needs_time and not timed:
        return
    for seed in range(3):
        others = _shuffled(data, seed + 10)
        if not timed:
            data, others = replace(data, time=None), replace(others, time=None)
        first, second = (
            [_pairs(one, fold) for fold in split(one, protocol, seed=seed)] for one in (data, others)
        )
        assert first == second
        if not timed:
            data = _tied_profiles()


@pytest.mark.parametrize(
    "protocol", ["half-profile", "half-profile-file", "holdout", "half-profile-time", "leave-one-out"]
)
def test_drawn_by_rows_ids_do_not_matter(protocol):
    data = _shuffled(_tied_profiles(), 3)
    in_order = replace(  # ids whose order as text is that of their first appearance
        data,
        user_ids=np.array([f"{k:03d}" for k in range(data.n_users)], dtype=object),
        item_ids=np.array([f"{k:03d}" for k in range(data.n_items)], dtype=object),
    )
    by_rows, usual = (
        list(split(one, name, seed=2))
        for one, name in ((data, f"{protocol}:draws=rows"), (in_order, protocol))
    )
    for one, other in zip(by_rows, usual, strict=True):
        assert (one.test != other.test).nnz == (one.train != other.train).nnz == 0
        assert one.users.tolist() == other.users.tolist() and one.tied == other.tied
    others = list(split(data, protocol, seed=2))
    assert any((one.test != other.test).nnz for one, other in zip(by_rows, others, strict=True))


def test_ties_in_time_are_drawn_and_the_old_order_has_a_name():
    """A file that lists popular items first must not have its rare ones tested."""
    data = Interactions.from_ids(
        np.repeat(np.arange(200), 4), np.tile(np.arange(4), 200), time=np.ones(800)
    )
    tested = [
        np.sum([np.asarray(fold.test.sum(axis=0)).ravel() for fold in split(data, name, seed=1)], axis=0)
        for name in ("half-profile-time", "half-profile-time:ties=index")
    ]
    assert tested[1].tolist() == [0, 0, 200, 200]
    assert (np.abs(tested[0] - 100) < 40).all()
    again = [(fold.test, fold.tied) for fold in split(data, "half-profile-time", seed=1)]
    for (test, tied), fold in zip(again, split(data, "half-profile-time", seed=1), strict=True):
        assert (test != fold.test).nnz == 0 and tied == fold.tied == 40
    distinct = replace(data, time=np.arange(800.0))
    for one, other in zip(
        split(distinct, "half-profile-time:draws=rows"),
        split(distinct, "half-profile-time:ties=index"),
        strict=True,
    ):
        assert (one.test != other.test).nnz == 0


@pytest.mark.parametrize(
    "name",
    ["half-profile:ties=index", "holdout:", "half-profile-time:ties=random", "holdout:items=random", "next-3:kept=0",
     "next-3:users=0", "next-3:users=groups:kept=2", "next-3:fraction=0.5", "holdout:fraction=1.5", "holdout:fraction=0",
     "holdout:fraction=.0", "published:users=groups", "leave-one-out:validation=kept:users=5", "rolling:users=5",
     "crossfold-records:users=5", "crossfold-records:records=0", "rolling:fraction=0.5", "temporal:fraction=1",
     "temporal:records=5", "holdout:items=last:items=random", "next-3:users=groups:users=5", "holdout:fraction=0.5:items=random"],
)  # fmt: skip
def test_a_parameter_that_a_protocol_does_not_take_is_refused(name):
    with pytest.raises(InputError, match="takes .*draws=rows, not "):
        find_protocol(name)


def test_a_message_names_the_parameters_that_a_protocol_takes():
    with pytest.raises(InputError) as caught:
        find_protocol("leave-one-out:kept=x")
    assert str(caught.value) == (
        "protocol leave-one-out takes validation=kept or items=random or kept=2 or users=groups or users=100 "
        "or draws=rows, not 'kept=x'"
    )
    with pytest.raises(InputError, match="users=9 is more than the 2 users of"):
        split(make([(0, 0), (1, 1)]), "next-1:users=9")
    with pytest.raises(InputError, match="records=9 is more than the 2 interactions of"):
        split(make([(0, 0), (1, 1)]), "crossfold-records:records=9")
    with pytest.raises(InputError, match="folds must be from 1 to 2 for next-1:users=3"):
        split(make([(u, 0) for u in range(7)]), "next-1:users=3", folds=3)


def test_descriptions_say_what_parameters_change():
    for name, told in (
        ("leave-one-out:items=random", "one item of each user, at random"),
        ("next-3:items=random:kept=2", "3 items of each user, at random, of users who keep 2 or more"),
        ("next-3:users=groups", "each user's last 3 items, of a group of users"),
        ("next-3:users=50", "each user's last 3 items, of 50 users at random"),
        ("holdout:fraction=0.25", "0.25 of each user's items, at random"),
        ("train-test-split:fraction=.1", "each interaction with probability 0.1"),
        ("holdout:items=last", "the last fifth of each user's items"),
        ("holdout:items=last:fraction=0.25", "the last 0.25 of each user's items"),
        ("temporal:fraction=0.1", "the last 0.1 of all interactions"),
        ("crossfold-records:records=50", "50 interactions at random"),
    ):
        assert (find_protocol(name).name, find_protocol(name).description) == (name, told)


@settings(max_examples=60, deadline=None)
@given(interactions(), st.integers(0, 3), st.integers(1, 5))
def test_samples_of_users_share_nobody_and_groups_have_everybody(data, seed, folds):
    samples = list(split(data, "next-1:users=1", folds=min(folds, data.n_users), seed=seed))
    tested = np.concatenate([fold.users for fold in samples])
    assert len(set(tested)) == len(tested) and all(len(fold.users) <= 1 for fold in samples)
    assert all(len(fold.users) + fold.train_only == 1 for fold in samples)
    if data.n_users > 1:
        groups = list(split(data, "next-1:users=groups", folds=min(folds + 1, data.n_users), seed=seed))
        sizes = [len(fold.users) + fold.train_only for fold in groups]
        assert sum(sizes) == data.n_users and max(sizes) - min(sizes) <= 1


@settings(max_examples=60, deadline=None)
@given(interactions(), st.integers(0, 3), st.integers(2, 9))
def test_each_interaction_is_tested_once_in_groups_of_interactions(data, seed, folds):
    folds = min(folds, len(data.users))
    found = list(split(data, "crossfold-records", folds=folds, seed=seed))
    assert (sum(fold.test for fold in found) != data.matrix).nnz == 0
    sizes = [fold.test.nnz for fold in found]
    assert max(sizes) - min(sizes) <= 1
    assert all((fold.train + fold.test != data.matrix).nnz == 0 for fold in found)


# ---- implicit's functions


@pytest.mark.parametrize("fraction", [0.2, 0.3, 0.45])
def test_train_test_split_is_that_of_implicit_cell_by_cell(fraction):
    evaluation = pytest.importorskip("implicit.evaluation")
    for seed in range(4):
        data = _shuffled(_tied_profiles(seed), seed + 5)
        train, test = evaluation.train_test_split(data.matrix, 1 - fraction, random_state=seed)
        name = "train-test-split" if fraction == 0.2 else f"train-test-split:fraction={fraction}"
        (fold,) = split(data, f"{name}:draws=rows", seed=seed)
        assert (fold.train != train).nnz == (fold.test != test).nnz == 0 < test.nnz


@pytest.mark.parametrize("k", [1, 3])
def test_leave_k_out_split_is_the_same_by_definition(k):
    """implicit draws the items from numpy's global generator, whatever its random_state."""
    evaluation = pytest.importorskip("implicit.evaluation")
    users, items = np.nonzero(np.tri(12, 12, dtype=bool))
    data = Interactions.from_ids(users, items, time=np.arange(len(users), dtype=float))
    seen = [np.zeros((12, 12)), np.zeros((12, 12))]
    for seed in range(300):
        _, test = evaluation.leave_k_out_split(data.matrix, K=k)
        (fold,) = split(data, f"next-{k}:items=random:kept=2", seed=seed)
        assert np.array_equal(np.diff(test.indptr), np.diff(fold.test.indptr))
        assert np.diff(test.indptr).tolist() == [k if n > k + 1 else 0 for n in range(1, 13)]
        seen[0] += test.toarray() > 0
        seen[1] += fold.test.toarray()
    for counts in seen:  # every item of a user may be drawn
        assert ((counts > 0) == (data.matrix.toarray() * (np.arange(12) > k)[:, None] > 0)).all()
