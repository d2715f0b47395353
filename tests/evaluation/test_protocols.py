"""What an evaluation in time shows a model, measures, and says about it."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, list_rankers, make_ranker
from recsys.data import PROTOCOLS, Interactions, find_protocol, split
from recsys.evaluation import evaluate
from recsys.rankers.registry import RANKERS
from tests.contract.test_rankers import FAST
from tests.reference import metrics as reference
from tests.strategies import interactions

IN_TIME = ["half-profile-time", "leave-one-out", "next-2", "next-5", "rolling", "temporal"]
DRAWN = ("auto", "slist")  # what is hidden, or in which order likes of one time are, by lot
METRICS = ("hit@1", "hit@3", "ndcg@3", "mrr@3", "ndcg@10", "mrr@10")


class Tied:
    """Two scores for ten items: every list is full of ties."""

    def fit(self, user_items, show_progress=True, callback=None):
        self.items = user_items.shape[1]

    def scores(self, users, rows):
        odd = (np.arange(self.items)[None, :] + np.asarray(users)[:, None]) % 3 == 0
        return odd.astype(np.float32)


class Recorder(Tied):
    """A model that is no ranker of ours, asks for times, and keeps what it is given."""

    uses = frozenset({"times"})
    seen: list = []  # shared: an evaluation fits copies

    def fit(self, user_items, show_progress=True, callback=None, times=None):
        super().fit(user_items)
        self.seen.append((user_items.copy(), None if times is None else times.copy()))


def several(name, data):
    return 2 if find_protocol(name).grouped else None


@pytest.mark.thorough
@settings(max_examples=20, deadline=None)
@given(interactions(timed=True), st.integers(0, 3))
@pytest.mark.parametrize("name", IN_TIME)
def test_figures_are_the_means_over_all_orders_of_all_items_outside_the_past(name, data, seed):
    try:
        folds = list(split(data, name, folds=several(name, data), seed=seed))
        report = evaluate(
            data,
            [("tied", Tied())],
            protocol=name,
            metrics=METRICS,
            folds=several(name, data),
            seed=seed,
        )
    except InputError as error:
        assert re.search("no interactions before the first|no test items|folds must be", str(error))
        return
    found = report.values["tied"]
    model = Tied()
    model.items = data.n_items
    for asked in METRICS:
        metric, k = asked.split("@")
        expected = []
        for fold in folds:
            for user in fold.users:
                past, future = set(fold.train[user].indices), set(fold.test[user].indices)
                # no item is left out of a ranking but the past, even if nobody has it in training
                s = model.scores([user], None)[0]
                if metric == "hit":  # a closed form: the orders of ten items are too many
                    expected.append(hit(s, past, future, int(k)))
                elif metric == "mrr":
                    ranks = range(1, int(k) + 1)
                    chance = [hit(s, past, future, rank) for rank in ranks]
                    gained = np.diff([0.0, *chance])
                    expected.append(sum(g / rank for g, rank in zip(gained, ranks, strict=True)))
                else:
                    expected.append(ndcg(s, past, future, int(k)))
        np.testing.assert_allclose(found[asked], expected, atol=1e-12)


def places(s, past):
    """Per tie group, best first: its items, and the places it takes."""
    start = 0
    for level in (1.0, 0.0):
        group = [i for i in range(len(s)) if i not in past and s[i] == level]
        yield group, range(start, start + len(group))
        start += len(group)


def hit(s, past, future, k):
    """1 − the probability that every one of the first k, of tied items drawn one by one, misses."""
    miss = 1.0
    for group, taken in places(s, past):
        good = sum(i in future for i in group)
        for drawn in range(len([p for p in taken if p < k])):
            miss *= max(len(group) - good - drawn, 0) / (len(group) - drawn)
    return 1.0 - miss


def ndcg(s, past, future, k):
    gain = 0.0
    for group, taken in places(s, past):
        share = sum(i in future for i in group) / max(len(group), 1)
        gain += sum(share / np.log2(p + 2) for p in taken if p < k)
    return gain / sum(1 / np.log2(p + 2) for p in range(min(k, len(future))))


def test_the_closed_forms_are_means_over_all_orders():
    """Guards the test above."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        s, part = rng.integers(0, 2, 6).astype(float), rng.integers(0, 3, 6)
        past, future = set(np.flatnonzero(part == 0)), set(np.flatnonzero(part == 1))
        for k in (1, 2, 4, 10):
            if future:
                assert hit(s, past, future, k) == pytest.approx(
                    reference.value("hit", s, past, future, k)
                )
                assert ndcg(s, past, future, k) == pytest.approx(
                    reference.value("ndcg", s, past, future, k)
                )


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(interactions(timed=True))
@pytest.mark.parametrize(
    "name",
    [*sorted(set(PROTOCOLS) - {"published"}), "next-2"],
)
def test_no_time_of_a_test_item_reaches_a_model_and_none_where_items_are_drawn(name, data):
    Recorder.seen.clear()
    try:
        evaluate(data, [("spy", Recorder())], protocol=name, metrics=["hit"], folds=several(name, data))
    except InputError as error:
        assert re.search("no interactions before the first|no test items|folds must be", str(error))
        return
    folds = list(split(data, name, folds=several(name, data)))
    assert len(Recorder.seen) == len(folds)
    finite = data.time[np.isfinite(data.time)]
    start = 0.0 if len(finite) and finite.min() > 0 else (finite.min() if len(finite) else 0.0) - 1
    for fold, (train, times) in zip(folds[::-1], Recorder.seen[::-1], strict=False):
        assert (train != fold.train).nnz == 0
        if name not in IN_TIME and name != "next-10":
            assert times is None
            continue
        assert times.shape == train.shape
        for user, item, time in zip(data.users, data.items, data.time, strict=True):
            learned = train[user, item] and np.isfinite(time)
            assert times[user, item] == (time - start if learned else 0)
        assert times.multiply(fold.test).nnz == 0


def in_time():
    """The rankers that read times, with parameters under which they do."""
    for name in list_rankers():
        kind = RANKERS.get(name)
        if "times" in kind.capabilities:
            yield (
                name,
                FAST.get(name, {}) | ({"recency": 0.7} if "recency" in kind().get_params() else {}),
            )


@pytest.mark.thorough
@pytest.mark.parametrize("protocol", ["next-3", "temporal"])
@pytest.mark.parametrize(("name", "params"), list(in_time()))
def test_figures_do_not_depend_on_when_test_items_happened(name, params, protocol, planted):
    """All are moved behind everything else, into another order: the same are tested."""
    rng = np.random.default_rng(3)
    data = replace(planted, time=rng.permutation(len(planted.users)) + 5.0)
    folds = several(protocol, data)
    fold = next(split(data, protocol, folds=folds))
    held = np.asarray(fold.test[data.users, data.items]).ravel() > 0
    time = data.time.copy()
    time[held] = time.max() + 1 + rng.permutation(int(held.sum())) ** 2.0
    moved = replace(data, time=time)
    again = next(split(moved, protocol, folds=folds))
    assert (again.test != fold.test).nnz == 0 and len(fold.users) > 5
    first, second = (
        evaluate(
            some,
            [(name, make_ranker(name, **params))],
            protocol=protocol,
            folds=folds,
            only_folds=1,
            metrics=["auc", "ndcg@10", "mrr@3"],
        ).values.to_numpy()
        for some in (data, moved)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("name", "params"), [case for case in in_time() if case[0] not in DRAWN])
def test_likes_of_one_time_have_no_order(name, params, planted):
    """Items are numbered as they first occur in a file: a model must not read an order out of that.

    Whatever the items' numbers, scores are the same.
    """
    rng = np.random.default_rng(4)
    time = rng.integers(1, 4, len(planted.users)).astype(float)
    T = sp.csr_matrix((time, (planted.users, planted.items)), planted.matrix.shape)
    R, numbers = planted.matrix, rng.permutation(planted.n_items)
    users = np.arange(planted.n_users)
    scores = make_ranker(name, **params).fit(R, show_progress=False, times=T).scores(users, R)
    other = make_ranker(name, **params).fit(R[:, numbers], show_progress=False, times=T[:, numbers])
    found = other.scores(users, R[:, numbers])
    np.testing.assert_allclose(found, scores[:, numbers], rtol=1e-3, atol=1e-4 * np.abs(scores).max())


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["ridge", "cosine"])
def test_lots_between_likes_of_one_time_favour_no_number(form):
    """Of 800 people who like two of six things at once, and something else before, either comes first."""
    rng = np.random.default_rng(5)
    R, T = np.zeros((800, 7)), np.zeros((800, 7))
    for user in range(800):
        pair = rng.choice(6, 2, replace=False)
        R[user, [*pair, 6]], T[user, [*pair, 6]] = 1, (2, 2, 1)
    model = make_ranker("slist", form=form, decay="exp1").fit(R, show_progress=False, times=T)
    W = model.weights_.toarray() if sp.issparse(model.weights_) else model.weights_
    up, down = W[:6, :6][np.triu_indices(6, 1)].mean(), W[:6, :6][np.tril_indices(6, -1)].mean()
    assert up > 0 and down > 0 and abs(up - down) < 0.25 * (up + down) / 2


@pytest.mark.parametrize("name", ["leave-one-out", "next-5"])
def test_where_items_are_drawn_for_want_of_times_a_model_gets_none(name, planted):
    Recorder.seen.clear()
    report = evaluate(replace(planted, time=None), [("spy", Recorder())], protocol=name, metrics=["hit"])
    assert all(times is None for _, times in Recorder.seen) and Recorder.seen
    assert "There are no times: what is tested is drawn at random." in report.notes


@pytest.mark.parametrize("name", ["half-profile", "half-profile-file", "holdout"])
def test_protocols_that_have_nothing_to_do_with_time_tell_no_conventions(name, planted):
    report = evaluate(planted, [("tied", Tied())], protocol=name, metrics=["hit"])
    assert not any("raining" in note or "times" in note for note in report.notes)


def test_what_is_left_out_is_counted():
    data = Interactions.from_ids(list("aaaabbbbccdd"), list("012301230145"), time=np.arange(12.0) % 11)
    report = evaluate(data, [("tied", Tied())], protocol="rolling", folds=2, metrics=["hit"])
    folds = list(split(data, "rolling", folds=2))
    alone, cold = sum(fold.train_only for fold in folds), sum(fold.cold for fold in folds)
    assert f"Left out, users with nothing to predict: {alone}." in report.notes
    said = f"Left out, users with something to predict and nothing in training: {cold}."
    assert (said in report.notes) == (cold > 0)
    tests = sum(fold.test[fold.users].nnz for fold in folds)
    assert any(f"of {tests} test items" in note for note in report.notes)
    lonely = Interactions.from_ids(list("aaaabbbbcc"), list("0123012301"), time=np.arange(10.0))
    with pytest.raises(InputError, match="protocol temporal: no user with a test interaction"):
        evaluate(lonely, [("tied", Tied())], protocol="temporal", metrics=["hit"])
    short = Interactions.from_ids(list("abc"), list("012"), time=np.arange(3.0))
    with pytest.raises(InputError, match="protocol leave-one-out: every profile is too short"):
        evaluate(short, [("tied", Tied())], protocol="leave-one-out", metrics=["hit"])
