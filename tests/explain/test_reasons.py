import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, load_dataset, make_ranker
from recsys.data.statistics import power_law, profile
from recsys.errors import listing
from recsys.explain import (
    Attributes,
    because,
    item_attributes,
    item_rule,
    reasons,
    reasons_for_lists,
    taste_rule,
    what_if,
)
from recsys.reranking import mmr
from tests.synthetic import planted_catalogue


@pytest.fixture(scope="module")
def planted():
    return planted_catalogue(120, 80, seed=4)


@pytest.mark.parametrize("name", ["cf-komd", "ecf-omd", "ease", "slim", "msdw"])
def test_shares_sum_to_the_score_of_linear_models(planted, name):
    R = planted.interactions.matrix
    model = make_ranker(name).fit(R, show_progress=False)
    for user in range(0, 120, 7):
        row = R[user]
        scores = model.scores(user, row)[0]
        for item in (0, 5, int(np.argmax(scores))):
            found = reasons(model, user, row, item, N=row.nnz)
            assert found.kind == "exact"
            assert found.score == pytest.approx(float(scores[item]), abs=1e-5)
            assert sum(v for _, v in found.items) + found.bias == pytest.approx(found.score, abs=1e-5)


def test_factor_models_point_to_the_nearest_liked_items(planted):
    R = planted.interactions.matrix
    model = make_ranker("als", factors=8).fit(R, show_progress=False)
    found = reasons(model, 3, R[3], 0)
    assert found.kind == "nearest" and {k for k, _ in found.items} <= set(R[3].indices)
    values = [v for _, v in found.items]
    assert values == sorted(values, reverse=True)
    assert because(planted.interactions.titles, found).startswith("Similar to what you liked:")


def test_an_empty_profile_and_popularity_say_so(planted):
    R = planted.interactions.matrix
    empty = sp.csr_matrix((1, R.shape[1]), dtype=np.float32)
    for name in ("ease", "popularity"):
        model = make_ranker(name).fit(R, show_progress=False)
        row = empty if name == "ease" else R[0]
        told = because(planted.interactions.titles, reasons(model, 0, row, 2))
        assert told == f"{int(R[:, [2]].sum())} people like it."


def test_sentences_list_names():
    assert (
        listing(["a"]) == "a"
        and listing(["a", "b"]) == "a and b"
        and listing(["a", "b", "c"]) == "a, b and c"
    )


def test_changes_are_what_rescoring_without_the_item_gives(planted):
    R = planted.interactions.matrix
    model = make_ranker("ease").fit(R, show_progress=False)
    row = R[2]
    ids, _ = model.recommend(2, row, N=1)
    found = what_if(model, 2, row, int(ids[0]), 12).changes[:3]
    assert [c.rank for c in found] == sorted((c.rank for c in found), reverse=True)
    for change in found:
        left = np.setdiff1d(row.indices, [change.without])
        less = sp.csr_matrix((np.ones(len(left)), left, [0, len(left)]), row.shape)
        # The item left out is not liked then, but it is no rival: it is what the question is about.
        order, scores = model.recommend(
            0, less, N=R.shape[1], recalculate_user=True, filter_items=[change.without]
        )
        assert list(order).index(ids[0]) + 1 == change.rank
        assert scores[list(order).index(ids[0])] == pytest.approx(change.score, abs=1e-6)


def test_item_rules_are_counted_over_everybody():
    rng = np.random.default_rng(0)
    R = (rng.random((400, 12)) < 0.3).astype(np.float32)
    R[:, 5] = np.where((R[:, 0] > 0) & (R[:, 1] > 0), rng.random(400) < 0.95, rng.random(400) < 0.1)
    found = item_rule(sp.csr_matrix(R), np.array([0, 1, 2, 3]), 5)
    assert found is not None and found.items == (0, 1) and found.precision > 0.8 > 0.3 > found.base
    holds = (R[:, 0] > 0) & (R[:, 1] > 0)
    assert found.support == holds.sum() and found.precision == pytest.approx(R[holds, 5].mean())
    assert found.base == pytest.approx(R[~holds, 5].mean())
    assert item_rule(sp.csr_matrix(R), np.array([], dtype=int), 5) is None
    assert item_rule(sp.csr_matrix(R), np.array([5]), 5) is None


def test_item_rules_are_silent_on_noise():
    rng = np.random.default_rng(1)
    silent = 0
    for seed in range(20):
        R = sp.csr_matrix((rng.random((60, 6)) < 0.2).astype(np.float32))
        silent += item_rule(R, np.array([0, 1]), 5, seed=seed) is None
    assert silent >= 18  # 5% of the halves that did not choose are wrong by chance


def test_attributes_come_from_genres_years_and_categories(planted):
    found = item_attributes(planted.interactions)
    assert (
        "1990s" in found.names and "Drama" in found.names and not any("title" in n for n in found.names)
    )
    table = planted.interactions.item_features
    k = found.names.index("1990s")
    np.testing.assert_array_equal(found.X[:, k], (table["year"].astype(int) // 10 == 199).to_numpy())
    k = found.names.index("Drama")
    np.testing.assert_array_equal(found.X[:, k], ["Drama" in g.split("|") for g in table["genres"]])


def test_a_planted_taste_is_found_and_measured():
    rng = np.random.default_rng(3)
    X = (rng.random((300, 12)) < 0.3).astype(np.uint8)
    attributes = Attributes(X, tuple(f"g{k}" for k in range(12)))
    on = np.flatnonzero(X[:, 2] & X[:, 7])
    items = np.concatenate([on[3:], rng.choice(300, 5, replace=False)])  # something is left to recommend
    found = taste_rule(items, attributes, np.ones(300))
    assert found is not None and found.shown and str(found.rule) == "g2 ∧ g7"
    assert found.tested_hits > 0 and found.catalogue == len(on)
    again = taste_rule(items, attributes, np.ones(300))
    assert again == found


@pytest.mark.thorough
def test_no_taste_is_shown_for_a_profile_drawn_at_random():
    rng = np.random.default_rng(5)
    X = (rng.random((300, 12)) < 0.3).astype(np.uint8)
    attributes = Attributes(X, tuple(f"g{k}" for k in range(12)))
    shown = 0
    for seed in range(10):
        found = taste_rule(rng.choice(300, 60, replace=False), attributes, np.ones(300), seed=seed)
        shown += found is not None and found.shown
    assert shown <= 2


def test_a_taste_needs_something_to_tell():
    attributes = Attributes(np.ones((4, 2), np.uint8), ("a", "b"))
    assert taste_rule(np.array([0, 1]), attributes, np.ones(4)) is None
    with pytest.raises(InputError, match="popularity has shape"):
        taste_rule(np.arange(3), attributes, np.ones(3))
    with pytest.raises(InputError, match="items"):
        taste_rule(np.array([9]), attributes, np.ones(4))


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_mmr_is_the_greedy_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    scores = rng.random(n)
    S = rng.random((n, n))
    S = (S + S.T) / 2
    trade = float(rng.random())
    span = scores.max() - scores.min()
    rel = (scores - scores.min()) / (span if span else 1)
    taken = []
    for _ in range(n):
        value = {
            k: (1 - trade) * rel[k] - trade * (max(S[k][t] for t in taken) if taken else 0.0)
            for k in range(n)
            if k not in taken
        }
        taken.append(max(value, key=lambda k: (value[k], -k)))
    assert mmr(scores, S, n, trade).tolist() == taken
    assert mmr(scores, S, n, 0.0).tolist() == np.argsort(-scores, kind="stable").tolist()


def test_a_profile_of_the_data_counts_and_fits():
    R = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0]], dtype=np.float32))
    found = profile(R)
    assert found.density == 0.5 and found.users.tolist() == [2, 1] and found.items.tolist() == [2, 1, 0]
    # Items 0 and 1 share a user; the empty item counts on the diagonal, as the thesis has it.
    assert found.kernel_density == pytest.approx(5 / 9)
    p = 1 - (1 - 0.25) ** 2
    assert found.kernel_estimate == pytest.approx((3 + 6 * p) / 9)
    law = power_law(100.0 * np.arange(1, 200) ** -0.7)
    assert (
        law.exponent == pytest.approx(0.7)
        and law.scale == pytest.approx(100)
        and law.r_squared == pytest.approx(1)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ease", "cf-komd", "blend", "slist", "als", "popularity", "fm"])
def test_reasons_of_a_list_are_those_of_each_item(name):
    data = load_dataset("sample")
    ranker = make_ranker(name).fit(data.matrix, show_progress=False)
    ids = ranker.recommend(7, data.matrix[7], N=5).ids
    scores = ranker.scores(7, data.matrix[7], recalculate_user=True)[0, ids]
    [together] = reasons_for_lists(ranker, [7], data.matrix[7], [ids], 4, scores=[scores])
    for item, found in zip(ids.tolist(), together, strict=True):
        alone = reasons(ranker, 7, data.matrix[7], item, 4)
        assert (found.kind, found.unlisted, found.unit) == (alone.kind, alone.unlisted, alone.unit)
        assert [k for k, _ in found.items] == [k for k, _ in alone.items]
        shares = [
            [one.score, one.bias, one.others, *(s for _, s in one.items)] for one in (found, alone)
        ]
        assert shares[0] == pytest.approx(shares[1], rel=1e-6, abs=1e-9)
    nothing = data.matrix[7] * 0
    nothing.eliminate_zeros()
    assert reasons(ranker, 7, nothing, ids[0]).kind == "popularity"
    assert reasons_for_lists(ranker, [7], data.matrix[7], [[]], scores=[scores[:0]]) == [[]]
