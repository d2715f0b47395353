import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data import Interactions, split


def make(pairs, times=True, seed=0):
    users = np.array([f"u{u}" for u, _ in pairs], dtype=object)
    items = np.array([f"i{i}" for _, i in pairs], dtype=object)
    time = np.random.default_rng(seed).permutation(len(pairs)).astype(float) if times else None
    return Interactions.from_ids(users, items, time=time)


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=8, max_size=40, unique=True)


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


@settings(max_examples=60, deadline=None)
@given(PAIRS)
@pytest.mark.parametrize("protocol", ["leave-one-out", "holdout", "temporal"])
def test_whole_profiles(protocol, pairs):
    data = make(pairs)
    (fold,) = split(data, protocol)
    assert (fold.train + fold.test != data.matrix).nnz == 0
    assert fold.train.multiply(fold.test).nnz == 0
    lengths, held = np.diff(data.matrix.indptr), np.diff(fold.test.indptr)
    np.testing.assert_array_equal(fold.users, np.flatnonzero(held))
    if protocol == "leave-one-out":
        np.testing.assert_array_equal(held, lengths > 1)
        for user in fold.users:
            mine = data.users == user
            assert fold.test[user].indices[0] == data.items[mine][np.argmax(data.time[mine])]
    elif protocol == "holdout":
        np.testing.assert_array_equal(held, lengths // 5)
    else:
        assert held.sum() == len(pairs) // 5
        cut = np.sort(data.time)[len(pairs) - len(pairs) // 5 :]
        late = np.isin(data.time, cut)
        np.testing.assert_array_equal(fold.test.toarray()[data.users[late], data.items[late]], 1)


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


@pytest.mark.parametrize("protocol", ["half-profile-time", "temporal"])
def test_time_protocols_need_times(protocol):
    with pytest.raises(InputError, match="needs times.*--time-col"):
        split(make([(0, 0), (1, 1)], times=False), protocol)


@pytest.mark.parametrize("protocol", ["half-profile", "holdout", "temporal"])
@pytest.mark.parametrize("folds", [0, -1, 10**6, 1.5])
def test_wrong_numbers_of_folds(protocol, folds):
    with pytest.raises(InputError, match="folds must be"):
        split(make([(0, 0), (1, 1), (2, 1)]), protocol, folds=folds)


def test_unknown_protocol():
    with pytest.raises(InputError, match="protocol must be one of half-profile, "):
        split(make([(0, 0)]), "halves")


def test_a_new_protocol_is_one_decorated_function(monkeypatch):
    from recsys.data import PROTOCOLS
    from recsys.data.splits import every_user, groups_of_users

    monkeypatch.setattr(PROTOCOLS, "_entries", dict(PROTOCOLS._entries))

    @groups_of_users("by-item", "in the order of the items", needs_time=True, without_time="holdout")
    def by_item(data, rng):
        return data.items.astype(float)

    @every_user("first-item", "who likes item 0", drawn=lambda data: False)
    def first_item(data, rng):
        return data.items == 0

    pairs = [(u, i) for u in range(4) for i in range(4)]
    for fold in split(make(pairs), "by-item", folds=2):
        assert all(set(fold.test[u].indices) == {2, 3} for u in fold.users)
    (fold,) = split(make(pairs, times=False), "first-item")
    assert set(fold.test.indices) == {0} and len(fold.users) == 4
    with pytest.raises(InputError, match="by-item needs times .* or use holdout"):
        split(make(pairs, times=False), "by-item", folds=2)
    with pytest.raises(InputError, match="folds must be from 1 to 1 for first-item"):
        split(make(pairs), "first-item", folds=2)
