"""Auto: which candidates it takes, with which weights, and why the others are left out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.evaluation.metrics import parse_metric, ranking_values
from recsys.rankers import _held_out
from recsys.rankers._held_out import HeldOut
from recsys.rankers._ties import break_ties, tie_order
from recsys.rankers._weight_search import LEAST, criterion, find_weights
from recsys.rankers.auto import Auto, tried
from tests.reference.held_out import figures


def world(seed, users=12, items=60):
    """Rows of some users, what is hidden of them, and candidates' scores without ties."""
    rng = np.random.default_rng(seed)
    kind = rng.random((users, items))
    train, test = sp.csr_matrix((kind < 0.2) * 1.0), sp.csr_matrix((kind > 0.8) * 1.0)
    scores = {f"m{k}": rng.normal(size=(users, items)).astype(np.float32) for k in range(3)}
    scores["m0"] += 2 * test.toarray().astype(np.float32)
    return train, test, scores


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.03, 1.0, 3.0]))
def test_places_among_all_items_are_those_of_the_metrics(seed, weight):
    train, test, scores = world(seed)
    held = HeldOut(train, test, scores, 0)
    found = held.figures(held.scores["m0"], held.scores["m1"], np.array([weight], dtype=np.float32))
    block = scores["m0"] + np.float32(weight) * scores["m1"]
    metrics = [parse_metric(name) for name in ("auc", "ndcg@10")]
    exact = ranking_values(metrics, block, train, test)[held.users]
    np.testing.assert_allclose(found[:, 0], exact, atol=1e-6)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_places_among_a_sample_are_those_of_the_slow_twin(seed):
    train, test, scores = world(seed, items=80)
    coarse = {name: np.round(block * 2) for name, block in scores.items()}  # with ties
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FIRST", 3), ("REST", 7), ("WHOLE", 20)):
            patch.setattr(_held_out, name, value)
        held = HeldOut(train, test, coarse, seed)
    weights = np.array([0.0, 0.5], dtype=np.float32)
    found = held.figures(held.scores["m0"], held.scores["m2"], weights)
    for u in range(len(held.positives)):
        begin, end = held.starts[u], held.starts[u + 1]
        middle = begin + held.positives[u]
        assert held.worth[middle:end].sum() == pytest.approx(
            80 - train[held.users[u]].nnz - held.positives[u]
        )
        for w, weight in enumerate(weights):
            total = held.scores["m0"] + weight * held.scores["m2"]
            np.testing.assert_allclose(
                found[u, w], figures(total[begin:middle], total[middle:end], held.worth[middle:end]), atol=1e-6
            )  # fmt: skip


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_equal_scores_are_in_the_order_of_the_prior(seed):
    train, test, scores = world(seed)
    coarse = {name: np.round(block) for name, block in scores.items()}
    order = tie_order(np.asarray(train.sum(axis=0), dtype=np.float32).ravel())
    held = HeldOut(train, test, coarse, 0, order.rank)
    found = held.figures(held.scores["m0"], held.scores["m1"], np.ones(1, dtype=np.float32))
    block = break_ties(coarse["m0"] + coarse["m1"], order)
    auc = ranking_values([parse_metric("auc")], block, train, test)[held.users]
    np.testing.assert_allclose(found[:, 0, :1], auc, atol=1e-6)


def test_the_first_items_of_every_list_are_taken_one_by_one():
    train, test, scores = world(3, items=80)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FIRST", 10), ("REST", 7), ("WHOLE", 20)):
            patch.setattr(_held_out, name, value)
        held = HeldOut(train, test, scores, 0)
    metrics = [parse_metric("ndcg@10")]
    for name, block in scores.items():
        found = held.figures(held.scores[name], held.scores[name], np.zeros(1, dtype=np.float32))
        exact = ranking_values(metrics, block, train, test)[held.users]
        np.testing.assert_allclose(found[:, 0, 1], exact[:, 0], atol=1e-6)


def test_the_sampled_auc_is_unbiased():
    train, test, scores = world(5, items=80)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FIRST", 3), ("REST", 5), ("WHOLE", 20)):
            patch.setattr(_held_out, name, value)
        drawn = [HeldOut(train, test, scores, seed) for seed in range(300)]
    zero = np.zeros(1, dtype=np.float32)
    found = np.array([one.figures(one.scores["m1"], one.scores["m1"], zero)[:, 0, 0] for one in drawn])
    exact = ranking_values([parse_metric("auc")], scores["m1"], train, test)[drawn[0].users, 0]
    error = found.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(found.mean(axis=0) - exact) < 4 * error + 1e-6).all() and found.std() > 0


def test_weights_rise_by_the_criterion_and_sum_to_one():
    rng = np.random.default_rng(1)
    train, test, _ = world(1, users=60)
    signal = test.toarray()
    scores = {
        name: (signal + noise * rng.normal(size=signal.shape)).astype(np.float32)
        for name, noise in (("good", 1.5), ("also", 1.5), ("noise", 100.0))
    }
    held = HeldOut(train, test, scores, 0)
    weights = find_weights(held, 12)
    assert sum(weights.values()) == pytest.approx(1) and {"good", "also"} <= set(weights)

    def value(chosen):
        total = sum(np.float32(w) * held.scores[name] for name, w in chosen.items())
        return criterion(held.figures(total, total, np.zeros(1, dtype=np.float32)).mean(axis=0))[0]

    best = value(weights)
    assert best > max(value({name: 1.0}) for name in scores) + LEAST
    for name in ("good", "also"):
        for factor in (0.5, 2.0):  # no weight alone can be changed for the better
            assert value(weights | {name: weights[name] * factor}) <= best + LEAST


def test_a_share_of_a_small_ndcg_counts_as_much_as_one_of_a_large_auc():
    before, sold = np.array([0.85, 0.054]), np.array([0.868, 0.0498])
    assert sold.sum() > before.sum() and criterion(sold) < criterion(before)
    assert np.isfinite(criterion(np.array([0.5, 0.0])))


def test_auto_says_why_each_candidate_is_left_out():
    liked = load_dataset("sample").matrix
    model = make_ranker("auto").fit(liked, show_progress=False)
    candidates = set(tried(liked.shape[1], liked.nnz))
    assert set(model.part_names_) | set(model.dropped_) == candidates
    assert not set(model.part_names_) & set(model.dropped_) and all(model.dropped_.values())
    again = make_ranker("auto").fit(liked, show_progress=False)
    assert again.part_names_ == model.part_names_
    np.testing.assert_array_equal(again.part_weights_, model.part_weights_)


def test_fewer_users_are_held_out_of_a_large_catalogue():
    rng = np.random.default_rng(0)
    liked = sp.random(3000, 60_000, density=5e-4, format="csr", random_state=rng)
    _, held = Auto(validation_fraction=0.9)._hidden(liked, None)
    assert len(held) == 400
