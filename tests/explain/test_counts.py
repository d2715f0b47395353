"""Every number in a sentence is counted again here, by going through sets."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, binomtest

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.errors import DatasetError
from recsys.explain import (
    Attributes,
    ItemRule,
    Reasons,
    because,
    item_attributes,
    item_rule,
    lower_bound,
    reasons,
    taste_rule,
    text,
    what_if,
)
from tests.reference import counts as ref

PEOPLE = re.compile(
    r"(?:All|([\d,]+) of the) ([\d,]+) other users who liked ([a-j, ]+(?: and [a-j]+)?) also liked this; "
    r"(\d+|under 1|over 99)% of the remaining ([\d,]+) did\.( Small sample\.)?"
)
TASTE = re.compile(
    r"It covers ([\d,]+) of the ([\d,]+) items you liked and ([\d,]+) of all ([\d,]+); ([\d,]+) of these are "
    r"new to you\."
)
TESTED = re.compile(r"Of ([\d,]+) items set aside as a test it covers ([\d,]+)\.")


def numbers(found):
    return [int(part.replace(",", "")) for part in found if part is not None]


def data(name):
    try:
        found = load_dataset(name)
    except DatasetError as error:
        pytest.skip(str(error))
    return found if found.rating is None else found.rated(4)


def letters(m):
    """Return titles without digits, so that every digit of a sentence is a count."""
    return np.array(["".join("abcdefghij"[int(d)] for d in str(k)) for k in range(m)], dtype=object)


@pytest.fixture(scope="module", params=["sample", pytest.param("movielens", marks=pytest.mark.slow)])
def case(request):
    found = data(request.param)
    R = found.matrix
    rng = np.random.default_rng(16)
    pairs = list(zip(rng.integers(0, R.shape[0], 500), rng.integers(0, R.shape[1], 500), strict=True))
    model = make_ranker("ease").fit(R, show_progress=False)
    # Random items are rarely recommended: of every other pair the item is one that is.
    for k in range(0, 500, 2):
        user = pairs[k][0]
        ids, _ = model.recommend(int(user), R[user], N=20)
        pairs[k] = (user, rng.choice(ids))
    return found, R, ref.likes(R), pairs, model


@pytest.mark.thorough
def test_what_is_said_of_other_people_is_counted_right(case):
    _, R, sets, pairs, _ = case
    titles = letters(R.shape[1])
    shown = 0
    for user, item in pairs:
        rule = item_rule(R, R[user].indices, int(item), exclude=int(user))
        if rule is None:
            continue
        shown += 1
        told = text.rule_sentence(titles, rule)
        found = PEOPLE.fullmatch(told)
        assert found is not None, told
        support, hits, others, others_hits = ref.witnesses(sets, rule.items, item, user)
        assert numbers(found.group(2, 5)) == [support, others], told
        assert numbers([found.group(1) or found.group(2)]) == [hits], told
        assert set(re.split(r" and |, ", found.group(3))) == {titles[k] for k in rule.items}
        if found.group(4).isdecimal():
            assert found.group(4) == f"{100 * others_hits / others:.0f}"
        assert (rule.support, rule.precision, rule.base) == (
            support,
            hits / support,
            others_hits / others,
        )
        assert set(rule.items) <= sets[user] - {item} and support >= 10
        low = binomtest(hits, support, alternative="greater").proportion_ci(0.95, method="exact").low
        assert rule.low == pytest.approx(low, abs=1e-9) and low > others_hits / others
        drawn = np.random.default_rng(0).random(len(sets))
        apart = [mine if drawn[k] >= 0.5 else set() for k, mine in enumerate(sets)]
        tested, follow, rest, rest_hits = ref.witnesses(apart, rule.items, item, user)
        assert (rule.tested, rule.tested_hits) == (tested, follow)
        sure = binomtest(follow, tested, alternative="greater").proportion_ci(0.95, method="exact").low
        assert lower_bound(rule.tested_hits, rule.tested) == pytest.approx(sure, abs=1e-9)
        assert (found.group(6) is not None) == (support < 20)
    assert shown >= 50, "the pairs show too few rules to test anything"


@pytest.fixture(scope="module")
def tastes(case):
    found, R, sets, pairs, model = case
    attributes = item_attributes(found)
    popularity = np.bincount(R.indices, minlength=R.shape[1]).astype(np.float64)
    users = sorted({int(user) for user, _ in pairs})[:60]
    out = []
    for user in users:
        free = np.arange(1, R.shape[1], 2) if user % 2 else None  # as a filter would leave
        rule = taste_rule(R[user].indices, attributes, popularity, candidates=free, seed=user)
        if rule is not None and rule.shown:
            out.append((user, free, rule))
    return attributes, out


@pytest.mark.thorough
def test_what_is_said_of_a_taste_is_counted_right(case, tastes):
    _, R, sets, _, model = case
    attributes, found = tastes
    assert len(found) >= 15
    for user, free, rule in found:
        mine = sets[user]
        inside = {k for k in range(R.shape[1]) if ref.covers(rule.rule.clauses, attributes.X[k])}
        open_to = set(range(R.shape[1]) if free is None else map(int, free)) - mine
        lines = text.taste(rule)
        told = TASTE.fullmatch(lines[0])
        assert told is not None, lines[0]
        counted = [len(inside & mine), len(mine), len(inside), R.shape[1], len(inside & open_to)]
        assert numbers(told.groups()) == counted and rule.candidates == len(open_to)
        aside = np.random.default_rng(user).permutation(sorted(mine))[: round(0.3 * len(mine))]
        assert (rule.tested, rule.tested_hits) == (len(aside), len(inside & set(aside.tolist())))
        assert inside & open_to, "a rule that leaves nothing is shown"
        assert numbers(TESTED.fullmatch(lines[1]).groups()) == [rule.tested, rule.tested_hits]
        low = binomtest(len(inside & mine), len(mine), alternative="greater").proportion_ci(0.95).low
        assert low > len(inside - mine) / (R.shape[1] - len(mine))


def test_places_are_those_of_the_list(case):
    _, R, sets, pairs, model = case
    titles = letters(R.shape[1])
    for user, item in pairs[:: 5 if R.shape[1] < 1000 else 25]:
        user, item = int(user), int(item)
        if len(sets[user]) < 2:
            continue
        found = what_if(model, user, R[user], item)
        scores = model.scores(user, R[user])[0]
        assert (found.rank, found.of) == ref.place(scores, item, sets[user])
        for change in found.changes[:3]:
            left = np.array(sorted(sets[user] - {change.without}))
            less = sp.csr_matrix((np.ones(len(left)), left, [0, len(left)]), (1, R.shape[1]))
            then = model.scores(user, less)[0]
            assert change.rank == ref.place(then, item, sets[user])[0]
            assert change.score == pytest.approx(float(then[item]), abs=1e-6)
        ranks = [change.rank for change in found.changes]
        assert ranks == sorted(ranks, reverse=True)
        lines = text.changed(titles, found)
        assert lines[0] == f"Rank now: {found.rank:,} of {found.of:,}."
        if ranks:
            out = sum(rank > 10 for rank in ranks)
            assert f"has rank {ranks[0]:,}." in lines[1]
            assert lines[1].endswith(f"in {out} case{'' if out == 1 else 's'}.")


def test_popularity_is_told_as_a_number_of_people(case):
    _, R, sets, pairs, _ = case
    model = make_ranker("popularity").fit(R, show_progress=False)
    titles = letters(R.shape[1])
    for user, item in pairs[:60]:
        told = because(titles, reasons(model, int(user), R[user], int(item)))
        number = sum(item in mine for mine in sets)
        assert told == f"{number:,} {'person likes' if number == 1 else 'people like'} it."


def test_a_conjunction_of_one_witness_is_no_rule():
    """The measuring half had one witness, and the sentence said '1 people, 100%'."""
    rng = np.random.default_rng(3)
    R = (rng.random((300, 6)) < 0.25).astype(np.float32)
    both = rng.choice(300, 7, replace=False)
    R[both] = [1, 1, 0, 0, 0, 1]
    R[:, 1] = np.isin(np.arange(300), both)  # seven people hold item 1, and all of them like item 5
    M = sp.csr_matrix(R)
    assert item_rule(M, np.array([1]), 5) is None
    few = item_rule(M, np.array([1]), 5, min_support=5)
    assert few is not None and few.support == 7
    assert text.rule_sentence(letters(6), few).endswith("Small sample.")


def test_the_person_asked_for_is_no_witness_and_stored_zeros_are_no_likes():
    rng = np.random.default_rng(4)
    R = (rng.random((200, 4)) < 0.4).astype(np.float32)
    R[:, 3] = np.where(R[:, 0] > 0, rng.random(200) < 0.9, rng.random(200) < 0.1)
    R[17] = [1, 1, 0, 1]
    plain = sp.csr_matrix(R)
    stored = sp.csr_matrix(np.ones_like(R))
    stored.data[:] = R.ravel()
    for M in (plain, stored):
        found = item_rule(M, np.array([0, 1]), 3, exclude=17)
        expected = ref.witnesses(ref.likes(plain), found.items, 3, 17)
        assert (found.support, found.hits, found.others, found.others_hits) == expected
        assert found.support + found.others == 199


@pytest.mark.parametrize(("hits", "of"), [(0, 4), (1, 1), (3, 5), (5, 5), (11, 13), (400, 900)])
def test_the_lower_bound_is_the_exact_one(hits, of):
    exact = binomtest(hits, of, alternative="greater").proportion_ci(0.95, method="exact").low
    assert lower_bound(hits, of) == pytest.approx(exact, abs=1e-9)


def test_a_taste_whose_items_are_all_taken_is_not_shown():
    """It said 'of the unseen items it covers 100.0%', and every one was in the profile."""
    rng = np.random.default_rng(8)
    X = np.zeros((300, 6), np.uint8)
    X[:17, 0] = 1
    X[:, 1:] = rng.random((300, 5)) < 0.4
    attributes = Attributes(X, tuple(f"g{k}" for k in range(6)))
    profile = np.r_[np.arange(17), rng.choice(np.arange(17, 300), 4, replace=False)]
    found = taste_rule(profile, attributes, np.ones(300))
    assert found is None or not (found.shown and found.rule.clauses == ((0,),))
    free = np.r_[np.arange(17), np.arange(200, 300)]
    wide = np.r_[np.arange(12), 250]
    shown = taste_rule(wide, attributes, np.ones(300), candidates=free)
    assert shown.shown and shown.rule.clauses == ((0,),) and shown.unseen == 5
    blocked = taste_rule(wide, attributes, np.ones(300), candidates=np.arange(200, 300))
    assert not (blocked.shown and blocked.rule.clauses == ((0,),))


def test_shares_base_and_others_add_up():
    R = data("sample").matrix
    for name in ("ease", "cf-komd", "msdw", "bilinear"):
        model = make_ranker(name).fit(R, show_progress=False)
        found = reasons(model, 5, R[5], 7, N=4)
        whole = reasons(model, 5, R[5], 7, N=R[5].nnz)
        assert found.unlisted == R[5].nnz - 4 and whole.unlisted == 0 and whole.others == 0
        assert found.base == pytest.approx(whole.bias, abs=1e-9)
        assert found.others == pytest.approx(sum(v for _, v in whole.items[4:]), abs=1e-9)
        listed = sum(v for _, v in found.items)
        assert listed + found.others + found.base == pytest.approx(found.score, abs=1e-5)


def test_words_for_ratings_and_few():
    titles = np.array(["A", "B"], dtype=object)
    found = Reasons("exact", 1.0, 0.0, [(0, 0.6), (1, 0.4)])
    assert because(titles, found, ratings={0: "4 of 5"}) == "Because you liked A [4 of 5] and B."
    assert because(titles, found, word="rated") == "Because you rated A and B."
    nothing = Reasons("exact", -1.0, 0.0, [(0, -1.0)])
    assert because(titles, nothing) == "Nothing you liked speaks for it."
    assert because(titles, Reasons("popularity", 1.0, 1.0, [], unit="users")) == "1 person likes it."
    rule = ItemRule((0, 1), 25, 25, 1.0, 100, 53, 0.53, 0.9)
    assert text.rule_sentence(titles, rule) == (
        "All 25 other users who liked A and B also liked this; 53% of the remaining 100 did."
    )


def test_a_blend_is_opened():
    R = data("sample").matrix
    assert text.parts(make_ranker("ease").fit(R, show_progress=False)) == ""
    blend = make_ranker("blend", models="ease+msdw", weights="3+1").fit(R, show_progress=False)
    assert text.parts(blend) == "blend adds up 2 models: ease (3.00); msdw (1.00)."


@pytest.mark.thorough
@pytest.mark.parametrize(("share", "base"), [(0.6, 0.25), (0.8, 0.3)])
def test_the_bound_of_a_rule_that_was_chosen_among_many_holds(share, base):
    """Of 60 items one is a cause: the bound is above the true share in at most 5% of the draws."""
    rng, wrong, shown, draws = np.random.default_rng(1), 0, 0, 150
    for seed in range(draws):
        X = (rng.random((400, 61)) < 0.3).astype(np.float32)
        X[:, 60] = rng.random(400) < np.where(X[:, 0] > 0, share, base)
        rule = item_rule(sp.csr_matrix(X), np.arange(60), 60, seed=seed)
        if rule is not None:
            shown += 1
            wrong += lower_bound(rule.tested_hits, rule.tested) > (share if 0 in rule.items else base)
    assert shown > 50 and wrong <= binom.ppf(0.999, draws, 0.05)
