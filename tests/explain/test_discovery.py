"""Rules of many users: exact tails by enumeration, false discoveries where there is nothing to find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact, hypergeom

from recsys import InputError
from recsys.explain import (
    Attributes,
    discover,
    item_odds,
    likes_rule,
    q_values,
    ranker_rule,
    taste_rule,
)
from recsys.explain.rules.discovery import _mixed, tail
from tests.reference import rules as reference

NAMES = tuple("abcdefghijkl")


def catalogue(items, features=8, seed=0, share=0.3):
    X = (np.random.default_rng(seed).random((items, features)) < share).astype(np.uint8)
    return Attributes(X, NAMES[:features])


# ---- exact tails


@given(st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_the_tail_is_that_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    odds, covers = np.exp(rng.normal(scale=3.0, size=m)), rng.random(m) < 0.5
    drawn = int(rng.integers(0, m + 1))
    for hits in range(drawn + 2):
        assert tail(odds, covers, drawn, hits) == pytest.approx(
            reference.tail(odds, covers, drawn, hits), rel=1e-9, abs=1e-300
        )


@given(st.integers(2, 400), st.integers(0, 10_000), st.sampled_from([1e-6, 1.0, 1e7]))
@settings(max_examples=60, deadline=None)
def test_equal_odds_are_the_hypergeometric_distribution(m, seed, odds):
    rng = np.random.default_rng(seed)
    covers = rng.random(m) < rng.random()
    drawn = int(rng.integers(0, m + 1))
    hits = int(rng.integers(0, drawn + 1))
    expected = hypergeom.sf(hits - 1, m, int(covers.sum()), drawn)
    assert tail(np.full(m, odds), covers, drawn, hits) == pytest.approx(expected, rel=1e-7, abs=1e-290)


def test_far_tails_of_large_catalogues_keep_their_digits():
    covers = np.arange(20_000) < 500
    found = tail(np.full(20_000, 0.01), covers, 60, 40)
    expected = hypergeom.sf(39, 20_000, 500, 60)
    assert 0 < expected < 1e-40 and found == pytest.approx(expected, rel=1e-9)


# ---- many tests


@given(st.lists(st.sampled_from([0.0, 1e-4, 0.01, 0.02, 0.04, 0.2, 0.5, 1.0]), max_size=12))
@settings(max_examples=60, deadline=None)
def test_q_values_are_those_of_the_step_up_procedure(p):
    """Each level rejects just what Benjamini and Hochberg, or Yekutieli, reject step by step."""
    for dependence, factor in (("positive", 1.0), ("any", sum(1 / k for k in range(1, len(p) + 1)))):
        q = q_values(p, dependence)
        for level in (0.0031, 0.0517, 0.31):
            ranked = sorted(p)
            most = max(
                (k for k, value in enumerate(ranked, 1) if factor * len(p) * value <= k * level),
                default=0,
            )
            rejected = [value <= (ranked[most - 1] if most else -1.0) for value in p]
            assert (q <= level).tolist() == rejected
    if p:
        np.testing.assert_allclose(q_values(p, "positive"), false_discovery_control(p, method="bh"))
        np.testing.assert_allclose(q_values(p, "any"), false_discovery_control(p, method="by"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: q_values([0.5, np.nan]), "numbers in 0…1"),
        (lambda: q_values([[0.5]]), "numbers in 0…1"),
        (lambda: q_values([0.5], "none"), "dependence"),
        (lambda: discover([], 1.5), "level"),
        (lambda: q_values(["a"]), "numbers in 0…1"),
        (lambda: discover([1]), "pairs"),
        (lambda: discover([("u", 0.5)]), "pairs"),
        (lambda: likes_rule([0], catalogue(9), np.ones(8), np.ones(9)), "popularity has shape"),
        (lambda: likes_rule([0], catalogue(9), np.ones(9), np.ones(8)), "odds has shape"),
        (lambda: likes_rule([0], catalogue(9), ["a"] * 9, np.ones(9)), "popularity must be"),
        (lambda: likes_rule([0], catalogue(9), np.ones(9), -np.ones(9)), "0 or more"),
        (lambda: likes_rule([0], catalogue(9), np.ones(9), np.zeros(9)), "odds are 0 of an item"),
        (lambda: likes_rule([9], catalogue(9), np.ones(9), np.ones(9)), "not within 0…8"),
        (lambda: likes_rule([0], catalogue(9), np.ones(9), np.ones(9), held_out=0.0), "held_out"),
        (lambda: ranker_rule([1, 1], catalogue(9)), "twice"),
        (lambda: ranker_rule([1, 2], catalogue(9), top=0), "top"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


# ---- one rule


def test_a_rankers_rule_is_tested_on_the_half_it_has_not_seen():
    attributes = catalogue(300, 6)
    rng = np.random.default_rng(4)
    score = 2.0 * (attributes.X[:, 0] & attributes.X[:, 3]) + rng.normal(size=300)
    order = np.argsort(-score)[:290]
    found = ranker_rule(order, attributes, top=40, seed=7)
    mixed = _mixed(np.sort(order), 7)
    testing = mixed[145:]
    covers, first = found.rule.covers(attributes.X)[testing], np.isin(testing, order[:40])
    table = [[(covers == a) & (first == b) for b in (True, False)] for a in (True, False)]
    table = np.array(table).sum(axis=2)
    assert (found.hits, found.covered, found.tested, found.items) == (
        table[0, 0], table[0].sum(), table[:, 0].sum(), 145,
    )  # fmt: skip
    assert found.learned == 40 - found.tested and found.precision == table[0, 0] / table[0].sum()
    assert found.p_value == pytest.approx(fisher_exact(table, alternative="greater").pvalue)
    assert found.fidelity == pytest.approx((covers == first).mean()) and found.base == first.mean()


def test_nothing_in_the_testing_half_moves_the_rule():
    """Labels of the testing half are turned round: the rule, and the part it was learned from, stay."""
    attributes = catalogue(240, 6)
    order = np.random.default_rng(1).permutation(240)
    one = ranker_rule(order, attributes, top=60, seed=3)
    mixed = _mixed(np.arange(240), 3)
    place = np.argsort(order)
    first = np.flatnonzero((place < 60) & np.isin(np.arange(240), mixed[:120]))
    some = np.random.default_rng(2).permutation(np.setdiff1d(mixed[120:], order[:60]))
    top = np.r_[first, some[: 60 - len(first)]]
    two = ranker_rule(np.r_[top, np.setdiff1d(order, top)], attributes, top=60, seed=3)
    assert one.rule == two.rule and one.learned == two.learned
    liked = order[:40]
    mixed = _mixed(np.sort(liked), 5)
    popularity = np.full(240, 5.0)
    alone = taste_rule(np.sort(mixed[20:]), attributes, popularity, held_out=0.0, seed=5)
    found = likes_rule(liked, attributes, popularity, np.ones(240), seed=5)
    assert found.rule == alone.rule and found.learned == found.tested == 20


def test_a_taste_for_what_is_popular_is_no_taste():
    """Everybody likes drama: a profile of dramas says nothing; one of a rare kind does."""
    X = np.zeros((200, 3), np.uint8)
    X[:50, 0] = 1
    X[150:, 1] = 1
    X[::2, 2] = 1
    attributes = Attributes(X, ("drama", "noir", "even"))
    popularity = np.where(X[:, 0] == 1, 90.0, 5.0)
    odds = popularity / (100 - popularity)
    usual = likes_rule(np.arange(20), attributes, popularity, odds)
    rare = likes_rule(np.arange(150, 170), attributes, popularity, odds)
    assert str(usual.rule) == "drama" and usual.hits == usual.tested == 10 and usual.p_value > 0.1
    assert str(rare.rule) == "noir" and rare.p_value < 1e-6
    shown = discover([("a", usual), ("b", rare), ("c", None)])
    assert [(d.user, d.shown) for d in shown] == [("b", True), ("a", False)]


def test_what_cannot_be_tested_is_none():
    attributes = catalogue(100)
    assert likes_rule(np.arange(8), attributes, np.ones(100), np.ones(100)) is None
    assert likes_rule(np.arange(100), attributes, np.ones(100), np.ones(100)) is None
    assert likes_rule([], attributes, np.ones(100), np.ones(100)) is None
    assert ranker_rule(np.arange(100), attributes, top=6) is None
    assert ranker_rule(np.arange(30), attributes, top=30) is None
    assert ranker_rule(np.arange(30), Attributes(np.zeros((30, 0), np.uint8), ()), top=15) is None
    same = Attributes(np.ones((60, 1), np.uint8), ("a",))
    assert ranker_rule(np.arange(60), same, top=30) is None, "a rule that covers all says nothing"


# ---- the odds of people without a taste


@pytest.mark.thorough
@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_with_these_odds_everybody_and_every_item_has_as_many_likes_as_there_are(seed):
    rng = np.random.default_rng(seed)
    likes = rng.random((rng.integers(8, 30), rng.integers(8, 30))) < rng.uniform(0.2, 0.7)
    likes[:1] |= rng.random() < 0.3
    likes[:, -1:] |= rng.random() < 0.3
    odds = item_odds(likes.astype(rng.choice([np.float32, np.int8])))
    assert odds.max() == 1 and ((odds > 0) == likes.any(axis=0)).all()
    inside = likes[np.ix_(likes.any(axis=1), likes.any(axis=0))].astype(float)
    everything, everybody = inside.all(axis=1), inside.all(axis=0)
    inside[everything] -= 0.25 / inside.shape[1]
    inside[:, everybody] -= 0.25 / inside.shape[0]
    b, activity = odds[odds > 0], []
    for length in inside.sum(axis=1):  # the activity with which so many likes are expected
        low, high = -30.0, 30.0
        for _ in range(80):
            middle = (low + high) / 2
            c = np.exp(middle) * b
            low, high = (middle, high) if (c / (1 + c)).sum() < length else (low, middle)
        activity.append(np.exp(low))
    chance = np.outer(activity, b)
    np.testing.assert_allclose((chance / (1 + chance)).sum(axis=0), inside.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("likes", [np.zeros((3, 4)), np.ones((3, 4)), np.ones((1, 1)), np.tri(5)])
def test_odds_are_finite_whatever_the_likes(likes):
    odds = item_odds(likes)
    assert np.isfinite(odds).all() and ((odds > 0) == likes.any(axis=0)).all()


def test_active_people_make_nothing_a_taste():
    """Where activities differ much the share of people who like an item would not do for its odds."""
    rng, good, naive = np.random.default_rng(0), [], []
    covers = np.arange(200) < 20
    for _ in range(25):
        odds = np.exp(-3.0 + 2.5 * covers + rng.normal(0, 0.3, 200))
        likes = rasch(rng, odds, 200, spread=2.0)
        worth, counts = item_odds(likes.astype(np.float32)), likes.sum(axis=0)
        for u in np.flatnonzero(likes.sum(axis=1) >= 10)[:8]:
            mixed = rng.permutation(np.flatnonzero(likes[u]))
            half = len(mixed) // 2
            left = worth > 0
            left[mixed[half:]] = False
            hits = int(covers[mixed[:half]].sum())
            good.append(tail(worth[left], covers[left], half, hits))
            share = (counts + 0.5) / (200 - counts + 0.5)
            naive.append(tail(share[left], covers[left], half, hits))
    assert len(good) >= 150
    for level in (0.01, 0.05, 0.2):
        rejects_no_more_than(good, level)
    assert np.mean(np.array(naive) <= 0.05) > 0.15, "or this would test nothing"


# ---- where there is nothing to find


def rasch(rng, odds, users, spread=0.4):
    """Return for each user items liked at random, by activity times the items' odds."""
    activity = np.exp(rng.normal(-0.5, spread, users))
    chance = activity[:, None] * odds
    return rng.random((users, len(odds))) < chance / (1.0 + chance)


def rejects_no_more_than(p, level, sure=3.3):
    """Assert that p-values are at most `level` no more often than that, but for `sure` standard errors."""
    share = np.mean(np.asarray(p) <= level)
    assert share <= level + sure * np.sqrt(level * (1 - level) / len(p)), (share, level)


@pytest.mark.thorough
def test_p_values_of_a_ranker_that_knows_no_attribute_are_no_smaller_than_chance():
    attributes = catalogue(80, 5)
    found = [
        ranker_rule(np.random.default_rng(10_000 + k).permutation(80), attributes, top=25, max_clauses=2, max_literals=2, seed=k)
        for k in range(250)
    ]  # fmt: skip
    p = [f.p_value for f in found if f is not None]
    assert len(p) > 200
    for level in (0.01, 0.05, 0.2, 0.5):
        rejects_no_more_than(p, level)
    assert min(p) < 0.1, "and they are no constant"


@pytest.mark.slow
def test_people_of_no_taste_make_few_discoveries_and_those_with_one_are_found():
    attributes = catalogue(150, 8)
    rng = np.random.default_rng(0)
    odds = np.exp(rng.normal(-1.6, 1.0, 150) + 0.8 * attributes.X[:, 0])  # "a" is popular with everybody
    any_at_all, p = 0, []
    for _ in range(8):
        likes = rasch(rng, odds, 30)
        counts = likes.sum(axis=0)
        worth = item_odds(likes.astype(np.float32))
        tests = [
            (u, likes_rule(np.flatnonzero(likes[u]), attributes, counts - likes[u], worth, seed=u))
            for u in range(30)
        ]
        p += [t.p_value for _, t in tests if t is not None]
        any_at_all += any(d.shown for d in discover(tests, 0.1, "positive"))
    assert len(p) > 150
    for level in (0.01, 0.05, 0.2):
        rejects_no_more_than(p, level)
    assert any_at_all <= 4, "a tenth of 8 is expected: more than 4 has a chance below one in 2,000"
    wanted = np.flatnonzero(attributes.X[:, 2])
    for u in range(10):
        likes[u] = False
        likes[u, rng.choice(wanted, min(24, len(wanted)), replace=False)] = True
    counts = likes.sum(axis=0)
    worth = item_odds(likes.astype(np.float32))
    tests = [
        (u, likes_rule(np.flatnonzero(likes[u]), attributes, counts - likes[u], worth, seed=u))
        for u in range(30)
    ]
    shown = [d.user for d in discover(tests, 0.1) if d.shown]
    assert len([u for u in shown if u < 10]) >= 8 and len([u for u in shown if u >= 10]) <= 2
