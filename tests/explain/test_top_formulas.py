"""The formulas that weigh most in a user's scores: against all of them, and every number in the sentences."""

import re
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, NotFittedError, load_dataset, make_ranker
from recsys.explain import top_formulas
from recsys.explain.rules.subset_search import top_sets, top_unions, whole_weights
from tests.reference import formulas as reference
from tests.reference.rankers import kernel_of_items
from tests.strategies import liked_matrices

# Rankers, with the least and the most people of their formulas, and whether one of them is enough.
RANKERS = {
    "cf-komd linear": ("cf-komd", {}, 1, 1, False),
    "cf-komd mean": ("cf-komd", {"kernel": "mc", "degree": 2, "q": "mean"}, 2, 2, False),
    "cf-komd mc": ("cf-komd", {"kernel": "mc", "degree": 2}, 2, 2, False),
    "cf-komd mc of 3": ("cf-komd", {"kernel": "mc", "degree": 3, "regularization": 0.0}, 3, 3, False),
    "cf-komd mc-sum": ("cf-komd", {"kernel": "mc-sum", "degree": 3, "regularization": 2.0}, 1, 3, False),
    "cf-komd unrated": ("cf-komd", {"kernel": "mc", "degree": 2, "unrated": "mean"}, 2, 2, False),
    "cf-komd md": ("cf-komd", {"kernel": "md", "degree": 2}, 2, 2, True),
    "cf-komd md of 3": ("cf-komd", {"kernel": "md", "degree": 3, "q": "mean"}, 3, 3, True),
    "cf-komd md of 1": ("cf-komd", {"kernel": "md", "degree": 1}, 1, 1, False),
    "ecf-omd": ("ecf-omd", {}, 1, 1, False),
    "cf-omd": ("cf-omd", {}, 1, 1, False),
}
ALL = 10**6


def fitted(name, likes):
    kind, params, *shape = RANKERS[name]
    return make_ranker(kind, **params).fit(likes, show_progress=False), *shape


@pytest.fixture(scope="module")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="module")
def model(data):
    ranker = make_ranker("cf-komd", kernel="mc", degree=2)
    return ranker.fit(data.matrix, show_progress=False)


# ---- the weights


@pytest.mark.thorough
@pytest.mark.parametrize("name", RANKERS)
@given(liked_matrices(min_users=3, max_users=6, max_items=7), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_weight_times_feature_over_all_formulas_is_the_rankers_score(name, likes, seed):
    model, least, most, either = fitted(name, likes)
    X = likes.toarray() > 0
    stranger = sp.csr_matrix(np.random.default_rng(seed).random((1, X.shape[1])) < 0.5, dtype=np.float32)
    K = kernel_of_items(X.astype(float), model.kernel_)
    ordinary = {k: getattr(model, k) for k in ("gram_", "row_sums_", "offsets_")}
    for user, row in [(0, likes[0]), (1, likes[1]), (0, stranger)]:
        if row.nnz == 0:
            continue
        # The ranker's own scoring on a matrix of float64, whose float32 leaves seven digits to compare; the
        # weights of the user's program are those that it found on float32.
        vars(model).update(ordinary)
        vars(model).pop("_solve", None)
        solved = model._solve(row, None)
        model._solve = lambda rows, times, solved=solved: solved
        vars(model).update(gram_=K, row_sums_=K.sum(axis=1), offsets_=None)
        signed = model.signed_weights(row)[0]
        every = reference.formulas(range(X.shape[0]), least, most)
        weights = reference.weights(X, signed, least, most, either)
        sums = reference.scores(X, signed, least, most, either)
        for item in range(X.shape[1]):
            told = model.explain(user, row, item).score
            found = top_formulas(model, likes, user, row, item=item, N=ALL)
            adding = {some: weights[some] for some in every if reference.holds(some, X, item, either)}
            assert found.holds == len(adding)
            if not X[:, item].any() and getattr(model, "unrated", None) == "mean":
                assert found.score == found.base == pytest.approx(told, abs=1e-6)
                continue
            assert sums[item] == pytest.approx(told, abs=1e-10)
            assert found.score == pytest.approx(told, abs=1e-10)
            # What is listed are those of positive weight; the others make up the rest.
            length = reference.norm(X, item, every, either)
            rest = sum(w / length for w in adding.values() if w <= 1e-15)
            listed = sum(one.adds for one in found.found)
            assert found.base + listed + rest == pytest.approx(told, abs=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["cf-komd mc", "cf-komd mc-sum", "cf-komd linear", "cf-komd md", "cf-omd"]
)
def test_scores_as_they_are_computed_are_those_of_the_weights_in_float32(name, data):
    model, *_ = fitted(name, data.matrix)
    for user in (0, 7):
        row = data.matrix[user]
        scores = model.scores(user, row)[0]
        for item in (0, 11, 200):
            found = top_formulas(model, data.matrix, user, row, item=item, N=1)
            assert found.score == pytest.approx(scores[item], abs=1e-6)


def test_what_centring_takes_from_the_scores_is_what_no_formula_adds(data):
    likes, row = data.matrix, data.matrix[3]
    model = make_ranker("cf-komd", kernel="md", degree=20).fit(likes, show_progress=False)
    assert model.offsets_ is not None
    for item in (0, 11, 200):
        found = top_formulas(model, likes, 3, row, item=item, N=2, budget=100_000)
        assert found.base and found.score == pytest.approx(model.explain(3, row, item).score, abs=1e-6)
        K = kernel_of_items((likes.toarray() > 0).astype(float), model.kernel_)
        assert found.score - found.base == pytest.approx(
            model.signed_weights(row)[0] @ K[:, item], abs=1e-10
        )


def test_signed_weights_are_those_of_likes_and_of_what_stands_against_them(liked):
    model = make_ranker("cf-komd").fit(liked, show_progress=False)
    signed = model.signed_weights(liked)
    alpha = model.weights(liked)[0].toarray()
    for u, row in enumerate(liked.toarray() > 0):
        assert np.array_equal(signed[u][row], alpha[u][row])
        if row.any():
            assert np.allclose(signed[u][~row], -1 / (~row).sum(), rtol=1e-15)
        else:
            assert not signed[u].any()
    assert signed[1].sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("params", [{"kernel": "md", "degree": 50}, {"kernel": "tanimoto", "q": "mean"}])
def test_signed_weights_of_any_kernel_give_scores_back_but_for_one_number_a_row(params, liked):
    model = make_ranker("cf-komd", unrated="kernel", **params).fit(liked, show_progress=False)
    K = kernel_of_items((liked.toarray() > 0).astype(float), model.kernel_)
    off = model.signed_weights(liked) @ K - model.scores(np.arange(60), liked)
    some = np.diff(liked.indptr) > 0
    seen = np.asarray(liked.sum(axis=0)).ravel() > 0
    assert np.ptp(off[some][:, seen], axis=1).max() < 1e-6


# ---- the search


@pytest.mark.thorough
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 2), st.integers(1, 7), st.integers(1, 2)
)
@settings(max_examples=400, deadline=None)
def test_the_search_finds_the_first_of_all_sets_and_ties_in_their_order(
    seed, least, more, number, support
):
    rng = np.random.default_rng(seed)
    X = rng.random((rng.integers(1, 9), rng.integers(1, 8))) < rng.choice([0.3, 0.6, 0.9, 1.0])
    values = rng.integers(-3, 5, len(X))  # few values: many ties
    marked = (values > 0) | (rng.random(len(X)) < 0.3)
    wanted, every = reference.top(X, values, marked, least, least + more, number, support)
    arguments = sp.csr_matrix(X), values.astype(np.int64), marked, least, least + more, number, support
    found = top_sets(*arguments, ALL)
    got = list(zip(found.sets, found.weights.tolist(), found.support.tolist(), strict=True))
    assert got == wanted and not found.stopped
    assert found.bound == (wanted[-1][1] if every >= number else 0)
    part = top_sets(*arguments, int(rng.integers(0, 60)))
    whole, _ = reference.top(X, values, marked, least, least + more, ALL, support)
    assert part.bound >= max((w for some, w, _ in whole if some not in part.sets), default=0)
    assert {(s, w) for s, w in zip(part.sets, part.weights.tolist(), strict=True)} <= {
        (some, w) for some, w, _ in whole
    }
    if not part.stopped:
        assert part.sets == found.sets


@pytest.mark.thorough
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 7), st.integers(1, 2))
@settings(max_examples=400, deadline=None)
def test_the_search_finds_the_first_of_all_unions(seed, size, number, support):
    rng = np.random.default_rng(seed)
    X = rng.random((rng.integers(1, 9), rng.integers(1, 8))) < rng.choice([0.2, 0.4, 0.7])
    values = rng.integers(-3, 5, len(X))
    marked = (values > 0) | (rng.random(len(X)) < 0.3)
    touching = rng.random(X.shape[1]) < rng.choice([0.4, 1.0])
    wanted, every = reference.top(X, values, marked, size, size, number, support, touching)
    arguments = sp.csr_matrix(X), values.astype(np.int64), marked, touching, size, number, support
    found = top_unions(*arguments, ALL)
    got = list(zip(found.sets, found.weights.tolist(), found.support.tolist(), strict=True))
    assert got == wanted and not found.stopped
    assert found.bound == (wanted[-1][1] if every >= number else 0)
    part = top_unions(*arguments, int(rng.integers(0, 80)))
    whole, _ = reference.top(X, values, marked, size, size, ALL, support, touching)
    assert part.bound >= max((w for some, w, _ in whole if some not in part.sets), default=0)
    if not part.stopped:
        assert part.sets == found.sets


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "cf-komd mc",
        "cf-komd mc of 3",
        "cf-komd mc-sum",
        "cf-komd linear",
        "cf-komd md",
        "cf-komd md of 3",
    ],
)
@given(
    liked_matrices(min_users=3, max_users=7, max_items=7),
    st.integers(1, 6),
    st.integers(1, 2),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_the_top_formulas_are_those_of_all(name, likes, number, support, drawn):
    model, least, most, either = fitted(name, likes)
    X = likes.toarray() > 0
    user = drawn.draw(st.integers(0, len(X) - 1))
    row, mine = likes[user], X[user]
    if row.nnz == 0:
        return
    item = drawn.draw(st.none() | st.integers(0, X.shape[1] - 1))
    exclude = drawn.draw(st.sampled_from([None, user]))
    found = top_formulas(
        model, likes, user, row, N=number, min_support=support, item=item, exclude=exclude
    )
    signed = model.signed_weights(row)[0]
    all_of_them = reference.weights(X, signed, least, most, either)
    small, open_to = 1e-12, {}
    for some, weight in all_of_them.items():
        held = sum(bool(mine[k]) and reference.holds(some, X, k, either) for k in range(len(mine)))
        here = item is None or reference.holds(some, X, item, either)
        if exclude not in some and here and held >= support and weight > small:
            open_to[some] = weight, held
    wanted = sorted((w for w, _ in open_to.values()), reverse=True)[:number]
    # Rounding may list a weight of 0 as one of 1e-17; no real one is missed.
    real = [one for one in found.found if one.weight > small]
    assert [one.weight for one in real] == pytest.approx(wanted, abs=small)
    for one in real:
        assert one.weight == pytest.approx(open_to[one.users][0], abs=small)
        assert one.support == open_to[one.users][1]
        held = [k for k in range(len(mine)) if reference.holds(one.users, X, k, either)]
        assert one.others == sum(not mine[k] for k in held)
        if item is not None:
            every = reference.formulas(range(len(X)), least, most)
            assert one.adds == pytest.approx(
                one.weight / reference.norm(X, item, every, either), abs=small
            )
    assert found.exact and found.gap == 0 and len({one.users for one in found.found}) == len(found.found)
    unlisted = [w for some, (w, _) in open_to.items() if some not in {one.users for one in found.found}]
    assert found.bound >= max(unlisted, default=0) - small
    assert found.own == (
        exclude is not None and not either
    )  # the user's row is the one that was fitted on


def test_whole_weights_keep_their_digits_and_sum_the_same_in_any_order():
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-300, 1e200):
        some = rng.normal(size=300) * scale
        whole, power = whole_weights(some)
        assert abs(whole).sum() < 2**62
        assert np.allclose(
            np.ldexp(whole.astype(float), -power), some, rtol=0, atol=4.4e-19 * abs(some).sum()
        )
    assert whole_weights(np.zeros(3))[0].tolist() == [0, 0, 0]


def test_a_search_that_ends_early_says_how_much_it_may_miss(model, data):
    row = data.matrix[0]
    whole = top_formulas(model, data.matrix, 0, row, N=5, exclude=0)
    assert whole.exact and whole.bound == whole.found[-1].weight
    gaps = []
    for budget in (0, 20_000, 60_000, 200_000, 10**8):
        part = top_formulas(model, data.matrix, 0, row, N=5, exclude=0, budget=budget)
        last = part.found[-1].weight if len(part.found) == 5 else 0.0
        assert part.gap == part.bound - last and part.exact == (part.gap == 0)
        best = whole.found[0].weight if not part.found else max(
            (one.weight for one in whole.found if one not in part.found), default=0.0
        )  # fmt: skip
        assert part.bound >= best
        gaps.append(part.gap)
    assert gaps == sorted(gaps, reverse=True) and gaps[0] > 0 == gaps[-1] and not part.gap


# ---- the edges


def test_edges():
    ones = sp.csr_matrix(np.ones((1, 1), np.float32))
    model = make_ranker("cf-komd").fit(ones, show_progress=False)
    found = top_formulas(model, ones, 0, ones)  # one item, one user, who likes everything
    assert [(one.users, one.weight, one.support, one.others) for one in found.found] == [
        ((0,), 1.0, 1, 0)
    ]
    alone = top_formulas(model, ones, 0, ones, exclude=0)
    assert alone.found == () and alone.exact and alone.bound == alone.gap == 0 and alone.users == 0
    assert alone.sentences("me")[1:] == [
        "All people among 0 people were searched: none has a positive weight.",
        "What me is part of is left out: it adds nothing to the score of what me does not like yet.",
    ]
    # No item has as many people as a formula needs: each is a feature of its own.
    likes = sp.csr_matrix(np.eye(4, dtype=np.float32))
    model = make_ranker("cf-komd", kernel="mc", degree=3).fit(likes, show_progress=False)
    found = top_formulas(model, likes, 0, likes[0], item=0)
    assert found.found == () and found.holds == 0 and found.exact
    assert found.score == found.base == 1.0
    assert "of 1 that none of them adds" not in found.sentences("me")[1]
    assert "and 1 that none of them adds." in found.sentences("me")[1]


def test_equal_weights_come_in_the_order_of_their_people():
    likes = sp.csr_matrix(np.array([[1, 1, 0, 0]] * 4 + [[0, 0, 1, 1]], dtype=np.float32))
    model = make_ranker("cf-komd", kernel="mc", degree=2).fit(likes, show_progress=False)
    found = top_formulas(model, likes, 0, likes[0], N=4)
    assert [one.users for one in found.found] == [(0, 1), (0, 2), (0, 3), (1, 2)]
    assert len({one.weight for one in found.found}) == 1


REFUSED = {
    "literals": (
        "cf-komd",
        {"kernel": "c", "degree": 2},
        "the scores of cf-komd with kernel c are no sum",
    ),
    "tanimoto": ("cf-komd", {"kernel": "tanimoto"}, "kernel tanimoto"),
    "votes": ("cf-komd", {"votes": 1.0}, "with votes=1.0 items are not sets of users"),
    "ease": (
        "ease",
        {},
        "the scores of ease are no sum over sets of users of an item: fit cf-komd",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_such_weights_is_refused_in_one_line(case, liked):
    name, params, text = REFUSED[case]
    with pytest.raises(InputError, match=re.escape(text)) as refused:
        top_formulas(make_ranker(name, **params), liked, 1, liked[1])
    assert "\n" not in str(refused.value)


def test_what_is_given_is_checked(model, data, liked):
    likes, row = data.matrix, data.matrix[0]
    with pytest.raises(InputError, match="nothing is liked: cf-komd then ranks by popularity"):
        top_formulas(model, likes, 0, sp.csr_matrix(row.shape, dtype=np.float32))
    with pytest.raises(InputError, match="fitted on other interactions"):
        top_formulas(model, likes[1:], 0, row)
    fewer = likes.copy()
    fewer.data[0] = 0
    with pytest.raises(InputError, match="fitted on other interactions"):
        top_formulas(model, fewer, 0, row)
    for wrong in ({"N": 0}, {"min_support": 0}, {"budget": -1}, {"exclude": 400}, {"item": 300}):
        with pytest.raises((InputError, IndexError), match=next(iter(wrong))):
            top_formulas(model, likes, 0, row, **wrong)
    with pytest.raises(NotFittedError):
        top_formulas(make_ranker("cf-komd"), likes, 0, row)


@pytest.mark.thorough
def test_weights_beyond_float64_are_refused():
    likes = sp.csr_matrix(np.triu(np.ones((4000, 2), np.float32)) + 1.0)
    model = make_ranker("cf-komd", kernel="md", degree=2000).fit(likes, show_progress=False)
    with pytest.raises(InputError, match="md of degree 2000 leave the range of float64: take a lower"):
        top_formulas(model, likes, 0, likes[0])
    model.set_params(kernel="mc")
    with pytest.raises(InputError, match="mc of degree 2000 leave the range of float64: take a lower"):
        top_formulas(model, likes, 0, likes[0])


# ---- the words

SENTENCE = re.compile(
    r"(?P<weight>[+-][\d.e-]+): (?P<either>at least one of )?(?P<who>.+?) (?P<like>likes|both like|all like) (?P<total>[\d,]+) items?, "
    r"(?P<mine>\d+) of the (?P<liked>\d+) that u0001 likes and (?P<others>\d+) of the (?P<rest>\d+) others? "
    r"\((?P<share>.+?)\)\.(?P<few> \d+ is a small number\.)?(?P<adds> To the score it adds [+-][\d.e-]+\.)?$"
)


@pytest.mark.parametrize(
    "name", ["cf-komd linear", "cf-komd mc", "cf-komd mc of 3", "cf-komd mc-sum", "cf-komd md"]
)
@pytest.mark.parametrize("of_item", [False, True])
def test_each_number_of_a_sentence_is_counted(name, of_item, data):
    model, least, most, either = fitted(name, data.matrix)
    X, row = data.matrix.toarray() > 0, data.matrix[0]
    item = int(model.recommend(0, row, N=1).ids[0]) if of_item else None
    found = top_formulas(model, data.matrix, 0, row, N=8, item=item, exclude=0)
    ids, small = data.user_ids.tolist(), 0
    assert found.found
    for one in found.found:
        said = SENTENCE.match(found.sentence(one, "u0001", data.user_ids))
        assert said, found.sentence(one, "u0001", data.user_ids)
        who = [ids.index(name) for name in re.split(", | and ", said["who"])]
        assert tuple(who) == one.users and least <= len(who) <= most
        words = ("likes", "both like", "all like")[min(len(who), 3) - 1]
        assert said["like"] == ("likes" if either else words) and (said["either"] is not None) == either
        held = X[who].any(axis=0) if either else X[who].all(axis=0)
        assert int(said["total"]) == held.sum() and int(said["mine"]) == (held & X[0]).sum()
        assert int(said["others"]) == (held & ~X[0]).sum()
        assert int(said["liked"]) == X[0].sum() and int(said["rest"]) == (~X[0]).sum()
        assert (said["few"] is None) == (held.sum() >= 20)
        assert (said["adds"] is None) == (item is None)
        small += said["few"] is not None
        if item is not None:
            assert held[item]
    assert 0 < small or name != "cf-komd mc of 3"
    told = found.sentences("u0001", "Alien")
    searched = (np.ones(len(X), bool) if item is None or either else X[:, item]) & (
        np.arange(len(X)) > 0
    )
    assert f"among {searched.sum():,} people" in " ".join(told)
    if item is not None:
        likers = int(X[:, item].sum())
        many = sum(comb(likers, k) for k in range(least, most + 1))
        assert found.holds == (comb(400, 2) - comb(400 - likers, 2) if either else many)
        assert f"the sum over {found.holds:,} " in told[1] and f"{found.score:.4g}" in told[1]
    assert told[-1] == (
        "The weights are the model's. The counts are the data's, and the same beside any model."
    )


@pytest.mark.slow
def test_what_the_search_says_of_those_not_listed_is_so(data):
    """A search of pairs with support says nothing of those without: some of them weigh more."""
    row, X = data.matrix[0], data.matrix.toarray() > 0
    model = make_ranker("cf-komd", kernel="mc", degree=2).fit(data.matrix, show_progress=False)
    signed = model.signed_weights(row)[0]
    every = {
        users: (weight, int((X[list(users)].all(axis=0) & X[0]).sum()))
        for users, weight in reference.weights(X, signed, 2, 2, False).items()
        if 0 not in users
    }
    mine = int(X[0].sum())
    for support, N in ((1, 3), (10, 3), (15, 3), (15, 10**6), (mine + 1, 3)):
        found = top_formulas(model, data.matrix, 0, row, N=N, min_support=support, exclude=0)
        said = found.sentences("u0001")[1]
        listed = {one.users for one in found.found}
        among = "All pairs of people among 399 people"
        if support > 1:
            among += f" that hold for at least {support} of the {mine} items that u0001 likes"
        assert said.startswith(among + " were searched: ")
        rest = [w for users, (w, k) in every.items() if users not in listed and k >= support]
        if len(listed) == N:
            assert said.endswith(": no other weighs more than the last one.")
            assert max(rest) <= found.found[-1].weight * (1 + 1e-9)
        else:
            assert said.endswith(f": {'no other' if listed else 'none'} has a positive weight.")
            assert max(rest, default=0.0) <= 1e-12
    best = top_formulas(model, data.matrix, 0, row, N=100, min_support=15, exclude=0)
    less = [w for w, k in every.values() if k < 15]
    assert max(less) > best.found[-1].weight  # what made the sentence without its condition untrue
    part = top_formulas(model, data.matrix, 0, row, N=3, min_support=2, exclude=0, budget=20_000)
    text = part.sentences("u0001")[1]
    assert not part.exact and "were to be searched; the search ended early" in text
    assert f"up to {part.bound:.4g}" in text
    if part.found:
        assert f"{part.bound - part.found[-1].weight:.4g} more than the last one that is." in text


def test_what_an_excluded_user_is_part_of_adds_nothing_to_other_items(model, data):
    row, X = data.matrix[0], data.matrix.toarray() > 0
    with_user = top_formulas(model, data.matrix, 0, row, N=50)
    assert any(0 in one.users for one in with_user.found)
    assert all(one.others == 0 for one in with_user.found if 0 in one.users)
    left_out = top_formulas(model, data.matrix, 0, row, exclude=0)
    assert left_out.own and not any(0 in one.users for one in left_out.found)
    # Of a part of the likes that is not so, and nothing of the kind is said.
    part = sp.csr_matrix(np.where(np.cumsum(X[0]) > 5, X[0], 0)[None].astype(np.float32))
    found = top_formulas(model, data.matrix, 0, part, exclude=0)
    assert not found.own and "What u1 is part of is left out." in found.sentences("u1")
