from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data import PROTOCOLS, Fold, Interactions, find_protocol, split
from recsys.data.splits import protocol
from recsys.tuning import training_part
from tests.strategies import interactions


def make(pairs, times=True, seed=0):
    users = np.array([f"u{u}" for u, _ in pairs], dtype=object)
    items = np.array([f"i{i}" for _, i in pairs], dtype=object)
    time = np.random.default_rng(seed).permutation(len(pairs)).astype(float) if times else None
    return Interactions.from_ids(users, items, time=time)


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=8, max_size=40, unique=True)
IN_TIME = [name for name in PROTOCOLS if PROTOCOLS.get(name).times and name != "published"]


def test_which_protocols_predict_the_future():
    assert IN_TIME == [
        "half-profile-time",
        "leave-one-out",
        "next-10",
        "next-5",
        "rolling",
        "temporal",
    ]


@pytest.mark.thorough
@settings(max_examples=80, deadline=None)
@given(interactions(timed=True), st.integers(0, 3))
@pytest.mark.parametrize("name", [*IN_TIME, "next-1", "holdout:order=time"])
def test_no_user_has_anything_in_training_that_is_later_than_what_is_tested(name, data, seed):
    protocol = find_protocol(name)
    if protocol.grouped and data.n_users < 2:
        return
    try:
        folds = list(split(data, name, folds=2 if protocol.grouped else None, seed=seed))
    except InputError as error:
        assert "no interactions before the first window" in str(error)
        return
    when = {(u, i): t for u, i, t in zip(data.users, data.items, data.time, strict=True)}
    for fold in folds:
        assert fold.train.multiply(fold.test).nnz == 0
        for user in fold.users:
            before = [when[user, i] for i in fold.train[user].indices]
            after = [when[user, i] for i in fold.test[user].indices]
            assert before and after and max(before) <= min(after)
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
    assert counts[0] == 0 and counts.sum() == 300
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
    for data in (few, alike):
        with pytest.raises(InputError, match="too few, or too many of one time: use holdout"):
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
    "name", ["next-0", "next-", "next-k", "next-05", "next--1", "next-1.5", "next-٣"]
)
def test_next_takes_a_whole_number(name):
    with pytest.raises(InputError, match="unknown protocol") as caught:
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
    with pytest.raises(InputError, match="unknown protocol 'halves': known: half-profile, "):
        split(make([(0, 0)]), "halves")
    with pytest.raises(InputError, match="did you mean 'leave-one-out'"):
        split(make([(0, 0)]), "leave-last-out")
    for name in (5, None, ["half-profile"]):
        with pytest.raises(InputError, match="unknown protocol"):
            split(make([(0, 0)]), name)


def test_a_new_protocol_is_one_function(monkeypatch):
    monkeypatch.setattr(PROTOCOLS, "_entries", dict(PROTOCOLS._entries))

    @protocol("by-item", "late items", folds=2, most=4)
    def by_item(data, folds, rng, least=2):
        users = np.arange(data.n_users)
        for fold in range(folds):
            held = (data.items >= least) & (data.users % folds == fold)
            train, test = (data.submatrix(np.flatnonzero(rows)) for rows in (~held, held))
            yield Fold(train, test, users[users % folds == fold], 0)

    data = make([(u, i) for u in range(4) for i in range(4)])
    for fold in split(data, "by-item"):
        assert all(set(fold.test[u].indices) == {2, 3} for u in fold.users)
    (fold,) = split(data, "by-item:least=3", folds=1)
    assert set(fold.test.indices) == {3}


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
    + ["next-2", "holdout:order=time", "holdout:order=time,fraction=0.5", "temporal:fraction=0.4"],
)
def test_the_same_data_in_another_order_have_the_same_folds(protocol, timed):
    data = _tied_profiles()
    if find_protocol(protocol).times == "needed" and not timed:
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


def test_ties_in_time_are_drawn():
    """A file that lists popular items first must not have its rare ones tested."""
    data = Interactions.from_ids(
        np.repeat(np.arange(200), 4), np.tile(np.arange(4), 200), time=np.ones(800)
    )
    folds = list(split(data, "half-profile-time", seed=1))
    tested = np.sum([np.asarray(fold.test.sum(axis=0)).ravel() for fold in folds], axis=0)
    assert (np.abs(tested - 100) < 40).all()
    for fold, again in zip(folds, split(data, "half-profile-time", seed=1), strict=True):
        assert (fold.test != again.test).nnz == 0


@pytest.mark.parametrize(
    "name",
    [
        "half-profile:order=time",
        "half-profile-time:order=random",
        "holdout:items=last",
        "next-3:k=2",
        "leave-one-out:k=2",
        "published:fraction=0.2",
        "rolling:fraction=0.5",
        "holdout:fraction=1.5",
        "holdout:fraction=0",
        "holdout:order=late",
        "holdout:fraction",
    ],
)
def test_a_parameter_that_a_protocol_does_not_take_is_refused(name):
    with pytest.raises(InputError):
        find_protocol(name)


def test_a_matrix_is_divided_as_its_interactions():
    data = _tied_profiles()
    plain = Interactions(
        data.users, data.items, np.array(range(30), dtype=object), np.array(range(20), dtype=object)
    )
    for one, other in zip(split(plain.matrix, seed=3), split(plain, seed=3), strict=True):
        assert (one.train != other.train).nnz == 0 == (one.test != other.test).nnz


# ---- implicit's functions


@pytest.mark.parametrize("fraction", [0.2, 0.3, 0.45])
def test_train_test_split_is_that_of_implicit_cell_by_cell(fraction):
    evaluation = pytest.importorskip("implicit.evaluation")
    for seed in range(4):
        data = _shuffled(_tied_profiles(seed), seed + 5)
        train, test = evaluation.train_test_split(data.matrix, 1 - fraction, random_state=seed)
        in_order = replace(  # ids whose order as text is that of their first appearance
            data,
            user_ids=np.array([f"{k:03d}" for k in range(data.n_users)], dtype=object),
            item_ids=np.array([f"{k:03d}" for k in range(data.n_items)], dtype=object),
        )
        (fold,) = split(in_order, f"train-test-split:fraction={fraction}", seed=seed)
        assert (fold.train != train).nnz == (fold.test != test).nnz == 0 < test.nnz
