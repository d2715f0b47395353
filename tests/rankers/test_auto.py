"""Auto: which candidates it takes, with which weights, and why the others are left out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import FitError, make_ranker
from recsys.datasets import load_dataset
from recsys.evaluation.metrics import parse_metric, ranking_values
from recsys.rankers import auto as auto_module
from recsys.rankers.auto import LEAST, Auto, HeldOut, candidate_specs, criterion, find_weights
from recsys.rankers.base import Data
from recsys.rankers.blend import break_ties, popularity_ranks
from recsys.utils.progress import listening
from tests.reference.held_out import figures
from tests.synthetic import planted_catalogue


def world(seed, users=12, items=60):
    """Rows of some users, what is hidden of them, and candidates' scores without ties."""
    rng = np.random.default_rng(seed)
    kind = rng.random((users, items))
    train, test = sp.csr_matrix((kind < 0.2) * 1.0), sp.csr_matrix((kind > 0.8) * 1.0)
    scores = {f"m{k}": rng.normal(size=(users, items)).astype(np.float32) for k in range(3)}
    scores["m0"] += 2 * test.toarray().astype(np.float32)
    return train, test, scores


def held_out(train, test, scores, seed=0, prior=None):
    return HeldOut(train, test, scores, seed, np.zeros(test.shape[1]) if prior is None else prior)


def exact(block, train, test):
    """Mean AUC and nDCG@10 by the metrics."""
    values = ranking_values([parse_metric(name) for name in ("auc", "ndcg@10")], block, train, test)
    return values[np.diff(test.indptr) > 0].mean(axis=0)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.03, 1.0, 3.0]))
def test_figures_among_all_items_are_those_of_the_metrics(seed, weight):
    train, test, scores = world(seed)
    held = held_out(train, test, scores)
    found = held.figures(held.scores["m0"], held.scores["m1"], [weight])[0]
    block = scores["m0"] + np.float32(weight) * scores["m1"]
    np.testing.assert_allclose(found, exact(block, train, test), atol=1e-6)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_figures_among_a_sample_are_those_of_the_slow_twin(seed):
    train, test, scores = world(seed, items=80)
    coarse = {name: np.round(block * 2) for name, block in scores.items()}  # with ties
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FIRST", 3), ("REST", 7)):
            patch.setattr(auto_module, name, value)
        held = held_out(train, test, coarse, seed)
    weights = [0.0, 0.5]
    found = held.figures(held.scores["m0"], held.scores["m2"], weights)
    for w, weight in enumerate(weights):
        total, values = held.scores["m0"] + np.float32(weight) * held.scores["m2"], []
        for u in range(len(held.positives)):
            begin, end = held.starts[u], held.starts[u + 1]
            middle = begin + held.positives[u]
            values.append(figures(total[begin:middle], total[middle:end], held.worth[middle:end]))
        np.testing.assert_allclose(found[w], np.mean(values, axis=0), atol=1e-6)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_equal_scores_are_in_the_order_of_the_prior(seed):
    train, test, scores = world(seed)
    coarse = {name: np.round(block) for name, block in scores.items()}
    ranks = popularity_ranks(np.asarray(train.sum(axis=0), dtype=np.float32).ravel())
    held = held_out(train, test, coarse, prior=ranks)
    found = held.figures(held.scores["m0"], held.scores["m1"], [1.0])[0]
    block = break_ties(coarse["m0"] + coarse["m1"], ranks)
    assert found[0] == pytest.approx(exact(block, train, test)[0], abs=1e-6)


def test_the_first_items_of_every_list_are_taken_one_by_one(monkeypatch):
    train, test, scores = world(3, items=80)
    for name, value in (("FIRST", 10), ("REST", 7)):
        monkeypatch.setattr(auto_module, name, value)
    held = held_out(train, test, scores)
    for name, block in scores.items():
        found = held.figures(held.scores[name], held.scores[name], [0.0])[0]
        assert found[1] == pytest.approx(exact(block, train, test)[1], abs=1e-6)


def test_the_sampled_auc_is_unbiased(monkeypatch):
    train, test, scores = world(5, items=80)
    for name, value in (("FIRST", 3), ("REST", 5)):
        monkeypatch.setattr(auto_module, name, value)
    drawn = [held_out(train, test, scores, seed) for seed in range(200)]
    found = np.array([one.figures(one.scores["m1"], one.scores["m1"], [0.0])[0, 0] for one in drawn])
    error = found.std() / np.sqrt(len(drawn))
    assert abs(found.mean() - exact(scores["m1"], train, test)[0]) < 4 * error and found.std() > 0


def test_weights_rise_by_the_criterion_and_sum_to_one():
    rng = np.random.default_rng(1)
    train, test, _ = world(1, users=60)
    signal = test.toarray()
    scores = {
        name: (signal + noise * rng.normal(size=signal.shape)).astype(np.float32)
        for name, noise in (("good", 1.5), ("also", 1.5), ("noise", 100.0))
    }
    held = held_out(train, test, scores)
    weights, told = find_weights(held, 12)
    assert sum(weights.values()) == pytest.approx(1) and {"good", "also"} <= set(weights)

    def value(chosen):
        total = sum(np.float32(w) * held.scores[name] for name, w in chosen.items())
        return criterion(held.figures(total, total, [0.0]))[0]

    best = value(weights)
    assert criterion(np.array(told["blend"])) == pytest.approx(best, abs=1e-4)
    assert best > max(value({name: 1.0}) for name in scores) + LEAST
    for name in ("good", "also"):
        for factor in (0.5, 2.0):  # no weight alone can be changed for the better
            assert value(weights | {name: weights[name] * factor}) <= best + LEAST


def test_a_share_of_a_small_ndcg_counts_as_much_as_one_of_a_large_auc():
    before, sold = np.array([0.85, 0.054]), np.array([0.868, 0.0498])
    assert sold.sum() > before.sum() and criterion(sold) < criterion(before)
    assert np.isfinite(criterion(np.array([0.5, 0.0])))


@pytest.mark.slow
def test_auto_says_why_each_candidate_is_left_out():
    liked = load_dataset("sample").matrix
    model = make_ranker("auto").fit(liked, show_progress=False)
    candidates = set(candidate_specs(liked.shape[1], liked.nnz))
    assert set(model.part_names_) | set(model.dropped_) == candidates
    assert not set(model.part_names_) & set(model.dropped_) and all(model.dropped_.values())
    again = make_ranker("auto").fit(liked, show_progress=False)
    assert again.part_names_ == model.part_names_
    np.testing.assert_array_equal(again.part_weights_, model.part_weights_)


def test_the_choice_is_told_with_the_runner_up():
    model = Auto()
    model.n_items_, model.part_names_ = 1, ["a", "b"]
    model.validation_ = {"a": [0.7, 0.09], "b": [0.9, 0.02], "c": [0.6, 0.01], "blend": [0.8, 0.10]}
    assert model.choice() == (
        "auto chose a blend of 2: nDCG@10 0.1000 and AUC 0.8000 on what it hid; the runner-up, a alone, "
        "has nDCG@10 0.0900 and AUC 0.7000."
    )
    model.part_names_, model.validation_ = ["a"], {"a": [0.7, 0.09], "blend": [0.7, 0.09]}
    assert model.choice() == "auto chose a: nDCG@10 0.0900 and AUC 0.7000 on what it hid."
    model.validation_ = {}
    assert model.choice() == "auto took a: no user has two interactions to validate on."


def test_fewer_users_are_held_out_of_a_large_catalogue():
    rng = np.random.default_rng(0)
    liked = sp.random(3000, 60_000, density=5e-4, format="csr", random_state=rng)
    _, held = Auto(validation_fraction=0.9)._hidden(Data(liked))
    assert len(held) == 400


# ---- candidates that fail

SMALL = planted_catalogue(50, 30, mean_length=9, seed=4).interactions.matrix
RAISED = [
    np.linalg.LinAlgError("SVD did not converge"),
    MemoryError(),
    ZeroDivisionError("division\nby zero"),
    FitError("it diverged: raise regularization"),
    IndexError(),
]


def small_auto(**params):
    return Auto(rounds=3, **params).fit(SMALL, show_progress=False)


@pytest.fixture(scope="module")
def without():
    """What auto finds where a candidate is not there at all, by its specification."""
    usual = candidate_specs(SMALL.shape[1], SMALL.nnz)

    def found(spec, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(
                auto_module, "candidate_specs", lambda *args: [one for one in usual if one != spec]
            )
            return small_auto()

    return found


def failing(monkeypatch, spec, error):
    """Let one candidate raise, wherever it is fitted."""
    usual = auto_module._fitted

    def fitted(one, *args, **kwargs):
        if one == spec:
            raise error
        return usual(one, *args, **kwargs)

    monkeypatch.setattr(auto_module, "_fitted", fitted)


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(candidate_specs(SMALL.shape[1], SMALL.nnz))))
def test_a_candidate_that_raises_changes_nothing_but_the_list_of_the_dropped(
    number, monkeypatch, without
):
    spec, error = candidate_specs(SMALL.shape[1], SMALL.nnz)[number], RAISED[number % len(RAISED)]
    expected = without(spec, monkeypatch)
    failing(monkeypatch, spec, error)
    found = small_auto()
    reason = found.dropped_.pop(spec)
    assert reason.startswith("it could not be fitted: ") and "\n" not in reason and reason[-2:] != ": "
    assert found.dropped_ == expected.dropped_ and found.validation_ == expected.validation_
    assert found.part_names_ == expected.part_names_
    np.testing.assert_array_equal(found.part_weights_, expected.part_weights_)
    users = np.arange(SMALL.shape[0])
    np.testing.assert_array_equal(found.scores(users, SMALL), expected.scores(users, SMALL))


def test_a_budget_ends_the_trying_and_keeps_parts_as_they_were_fitted():
    found = small_auto(budget=1e-6)
    assert (
        len(found.validation_) == 2 and len(found.part_names_) == 1
    )  # the first candidate, and the blend
    assert "there was no time left to try it" in found.dropped_.values()
    assert found.parts_[0].popularity_.sum() < SMALL.nnz  # without what was hidden
    full = small_auto(budget=600.0)
    np.testing.assert_array_equal(full.part_weights_, small_auto().part_weights_)


@pytest.mark.parametrize("budget", [None, 60.0])
def test_where_every_candidate_fails_one_error_lists_them(budget, monkeypatch):
    def fitted(spec, *args, **kwargs):
        raise np.linalg.LinAlgError(f"{spec} did not converge")

    monkeypatch.setattr(auto_module, "_fitted", fitted)
    with pytest.raises(FitError, match="no candidate of auto could be fitted") as caught:
        small_auto(budget=budget)
    told = str(caught.value)  # of a long message the middle is left out
    named = [
        spec for spec in candidate_specs(SMALL.shape[1], SMALL.nnz) if f"{spec} did not converge" in told
    ]
    assert len(named) >= 3 and len(told) <= 1000 and told.endswith(" did not converge")


@pytest.mark.parametrize("what", ["raises", "is not finite"])
def test_a_candidate_without_scores_is_dropped(what, monkeypatch):
    ease = type(make_ranker("ease"))
    usual = ease.scores

    def scores(self, *args, **kwargs):
        if what == "raises":
            raise RuntimeError("no scores")
        return np.full_like(usual(self, *args, **kwargs), np.nan)

    monkeypatch.setattr(ease, "scores", scores)
    found = small_auto()
    dropped = [why for spec, why in found.dropped_.items() if spec.partition(":")[0] == "ease"]
    assert dropped and all(why.startswith("it could not be fitted: ") for why in dropped)


def test_a_part_that_fails_on_all_profiles_is_replaced_by_the_others(monkeypatch):
    expected = small_auto()
    assert len(expected.part_names_) > 1
    spec = expected.part_names_[0]
    usual = auto_module._fitted

    def fitted(one, data):
        if one == spec and data.liked.nnz == SMALL.nnz:
            raise MemoryError
        return usual(one, data)

    monkeypatch.setattr(auto_module, "_fitted", fitted)
    found = small_auto()
    assert found.part_names_ == [name for name in expected.part_names_ if name != spec]
    assert found.dropped_[spec] == "on all profiles it could not be fitted: out of memory"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, TimeoutError])
def test_what_stops_the_work_is_no_failure_of_a_candidate(stop, monkeypatch):
    """An interruption passes, and so does what a listener to the progress raises."""

    def told(step, done, total):
        if "ease" in step:
            raise stop

    with pytest.raises(stop), listening(told):
        small_auto()


def test_likes_of_one_item_each_fall_back_too(monkeypatch):
    failing(monkeypatch, "cf-komd", RAISED[0])
    found = Auto().fit(sp.eye(6, format="csr", dtype=np.float32), show_progress=False)
    assert found.part_names_ == ["popularity"] and "LinAlgError" in found.dropped_["cf-komd"]
