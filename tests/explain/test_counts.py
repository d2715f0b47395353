"""Every number in a sentence is counted again here, by going through sets."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, binomtest

from recsys import InputError, make_ranker
from recsys.datasets import load_dataset
from recsys.errors import DatasetError
from recsys.explain import (
    because,
    following,
    item_attributes,
    item_rule,
    lower_bound,
    reasons,
    taste_rule,
    text,
    what_if,
)
from recsys.explain.contributions import Reasons
from recsys.explain.counterfactuals import Change, WhatIf
from recsys.explain.rules.item_attributes import Attributes
from recsys.utils.topn import all_but
from tests.reference import counts as ref

PEOPLE = re.compile(
    r"Of the ([\d,]+) other (?:person|people) who liked ([a-j, ]+(?: and [a-j]+)?), ([\d,]+) likes? this too; "
    r"of the ([\d,]+) others?, ([\d,]+) (?:do|does) \((none|all|about 1 in ([\d,]+)|about (\d) in 10)\)\."
    r"(?: (\d+) is a small number\.)?"
)
TASTE = re.compile(
    r"([\d,]+) of the ([\d,]+) items? you liked follows? it, and ([\d,]+) of all ([\d,]+) \(([^)]+)\)\. "
    r"It leaves ([\d,]+) of the ([\d,]+) items? that could be recommended\."
)
TESTED = re.compile(r"Learned without ([\d,]+) of these ([\d,]+), of which ([\d,]+) follows? it\.")
HERE = re.compile(
    r"([\d,]+) of the ([\d,]+) in this list follows? it(?: \(marked \*\))?; of the ([\d,]+) other items that "
    r"could be recommended, ([\d,]+)\."
)
FIRST = re.compile(
    r"Of the ([\d,]+) items? that could be recommended and follows? it, this model has ([\d,]+) among its "
    r"first ([\d,]+); by chance it would be ([\d.]+)\."
)


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
        assert numbers(found.group(1, 3, 4, 5)) == [support, hits, others, others_hits], told
        assert set(re.split(r" and |, ", found.group(2))) == {titles[k] for k in rule.items}
        if found.group(7):
            assert numbers([found.group(7)]) == [round(others / others_hits)]
        assert (rule.support, rule.precision, rule.base) == (
            support,
            hits / support,
            others_hits / others,
        )
        assert set(rule.items) <= sets[user] - {item} and support >= 10
        low = binomtest(hits, support, alternative="greater").proportion_ci(0.95, method="exact").low
        assert rule.low == pytest.approx(low, abs=1e-9) and low > others_hits / others
        # What holds with 95% confidence: the counts of the half that did not choose the rule.
        drawn = np.random.default_rng(0).random(len(sets))
        apart = [mine if drawn[k] >= 0.5 else set() for k, mine in enumerate(sets)]
        tested, follow = ref.witnesses(apart, rule.items, item, user)[:2]
        assert (rule.tested, rule.tested_hits) == (tested, follow)
        sure = binomtest(follow, tested, alternative="greater").proportion_ci(0.95, method="exact").low
        assert rule.tested_low == pytest.approx(sure, abs=1e-9)
        share = int(100 * sure)
        assert text.tested(rule, "people").endswith(
            f"the other half, {follow} {'follows' if follow == 1 else 'follow'} it: with 95% confidence "
            f"it holds for at least {share}% of such people."
        )
        assert (found.group(9) is not None) == (support < 20)
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
        counted = [len(inside & mine), len(mine), len(inside), R.shape[1]]
        assert numbers(told.group(1, 2, 3, 4, 6, 7)) == [*counted, len(inside & open_to), len(open_to)]
        aside = np.random.default_rng(user).permutation(sorted(mine))[: round(0.3 * len(mine))]
        assert (rule.tested, rule.tested_hits) == (len(aside), len(inside & set(aside.tolist())))
        assert inside & open_to, "a rule that leaves nothing is shown"
        assert numbers(TESTED.fullmatch(lines[1]).groups()) == [rule.tested, len(mine), rule.tested_hits]
        low = binomtest(len(inside & mine), len(mine), alternative="greater").proportion_ci(0.95).low
        assert low > len(inside - mine) / (R.shape[1] - len(mine))
        taken = all_but(R.shape[1], free)
        ranked, _ = model.recommend(user, R[user], N=R.shape[1], filter_items=taken)
        assert set(ranked.tolist()) == open_to
        how = following(rule.rule, attributes, ranked, ranked[:10])
        here, first = (
            pattern.fullmatch(line)
            for pattern, line in zip((HERE, FIRST), text.follows(how, "*"), strict=True)
        )
        listed = set(ranked[:10].tolist())
        assert how.follows == tuple(k in inside for k in ranked[:10])
        assert numbers(here.groups()) == [
            len(listed & inside), len(listed), len(open_to - listed), len((open_to - listed) & inside),
        ]  # fmt: skip
        r = len(inside & open_to)
        top = set(ranked[:r].tolist())
        assert numbers(first.group(1, 2, 3)) == [r, len(top & inside), r]
        agree = sum((k in inside) == (k in top) for k in open_to) / len(open_to)
        assert how.agreement == pytest.approx(agree, abs=1e-12)


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
        assert found.misfit is None, "EASE is additive"
        for change in found.tried[:3]:
            left = np.array(sorted(sets[user] - {change.without}))
            less = sp.csr_matrix((np.ones(len(left)), left, [0, len(left)]), (1, R.shape[1]))
            then = model.scores(user, less)[0]
            assert change.rank == ref.place(then, item, sets[user])[0]
            assert change.score == pytest.approx(float(then[item]), abs=1e-6)
        ranks = [change.rank for change in found.tried]
        assert ranks == sorted(ranks, reverse=True)
        lines = text.changed(titles, found)
        assert lines[0] == f"Rank now: {found.rank:,} of {found.of:,}."
        if ranks and len(found.tried) == len(sets[user] - {item}) == len(sets[user]):
            said = lines[1].startswith("Without any one of") and "stays among the first 10" in lines[1]
            assert said == (max(ranks) <= 10)


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
    assert text.rule_sentence(letters(6), few).endswith("7 is a small number.")


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


def test_fidelity_is_to_the_list_and_not_to_a_machine():
    attributes = Attributes(np.array([[1], [1], [0], [0], [0], [1]], np.uint8), ("g",))
    rule = taste_rule_of((0,))
    same = following(rule, attributes, np.array([5, 0, 1, 2, 3]), np.array([5, 0]))
    assert same.follows == (True, True) and same.agreed == same.covered == 3 and same.agreement == 1.0
    against = following(rule, attributes, np.array([2, 3, 4, 0, 1]), np.array([2, 3]))
    assert against.follows == (False, False) and against.agreed == 0
    assert against.agreement == pytest.approx(1 / 5) and against.chance == pytest.approx(4 / 5)
    with pytest.raises(InputError, match="listed must hold items of ranked"):
        following(rule, attributes, np.array([1, 2]), np.array([3]))


def taste_rule_of(clause):
    from recsys.explain import Rule

    return Rule((clause,), ("g",))


def test_models_that_are_not_additive_are_said_to_be():
    R = data("sample").matrix
    titles = letters(R.shape[1])
    model = make_ranker("cf-komd", kernel="mc", degree=2).fit(R, show_progress=False)
    told = 0
    for user in range(0, 40, 4):
        ids, _ = model.recommend(user, R[user], N=1)
        found = what_if(model, user, R[user], int(ids[0]))
        shares = dict(reasons(model, user, R[user], int(ids[0]), N=R[user].nnz).items)
        falls = {c.without: found.score - c.score for c in found.tried}
        off = max(abs(falls[k] - shares[k]) for k in falls)
        assert (found.misfit is not None) == (off > 0.02 * max(map(abs, shares.values())))
        if found.misfit is not None:
            told += 1
            k, share, fall = found.misfit
            assert (share, fall) == (shares[k], falls[k])
            assert "is not additive" in text.changed(titles, found)[-1]
    assert told


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


def test_what_leaving_out_does_is_said_in_words():
    titles = letters(9)

    def lines(place, ranks, liked=None):
        tried = tuple(Change(k, 0.5, rank) for k, rank in enumerate(ranks))
        return text.changed(titles, WhatIf(8, 1.0, place, 30, tried, liked or len(ranks), None))

    assert lines(2, [9, 3, 2])[1] == "Without any one of the 3 liked items it stays among the first 10."
    assert lines(2, [12, 3])[1].startswith("Without 1 of the 2 liked items taken alone, it is outside")
    assert lines(20, [22, 18])[1].endswith("it stays outside the first 10.")
    assert "2 liked items that matter most, of 50" in lines(1, [3, 1], 50)[1]
    assert lines(3, []) == ["Rank now: 3 of 30."]


def test_words_for_ratings_and_few():
    titles = np.array(["A", "B"], dtype=object)
    found = Reasons("exact", 1.0, 0.0, [(0, 0.6), (1, 0.4)])
    assert because(titles, found, ratings={0: "4 of 5"}) == "Because you liked A [4 of 5] and B."
    assert because(titles, found, word="rated") == "Because you rated A and B."
    nothing = Reasons("exact", -1.0, 0.0, [(0, -1.0)])
    assert because(titles, nothing) == "Nothing you liked speaks for it."
    assert because(titles, Reasons("popularity", 1.0, 1.0, [], unit="users")) == "1 person likes it."
    assert text.one_in(0, 9) == "none" and text.one_in(9, 9) == "all"
    assert text.one_in(2, 11) == "about 1 in 6" and text.one_in(99, 100) == "about 9 in 10"
    with pytest.raises(InputError, match="word must be one of"):
        because(titles, found, word="watched")


def test_a_blend_is_opened():
    R = data("sample").matrix
    assert text.parts(make_ranker("ease").fit(R, show_progress=False)) == ""
    blend = make_ranker("blend", models="ease+msdw", weights="3+1").fit(R, show_progress=False)
    assert text.parts(blend) == "blend adds up 2 models, with these weights: ease (3.00); msdw (1.00)."


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
            wrong += rule.tested_low > (share if 0 in rule.items else base)
    assert shown > 50 and wrong <= binom.ppf(0.999, draws, 0.05)
