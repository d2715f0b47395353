"""What every ranker promises, checked for each of them; a class skips only what it says it cannot do."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, NotFittedError, list_rankers, load_ranker, make_ranker
from recsys.kernels import LinearKernel, list_kernels
from recsys.kernels.base import KERNELS as kernels
from recsys.utils.topn import LOWEST
from tests.lists import assert_close, assert_same_lists

FAST = {
    "bpr": {"iterations": 20},
    "lmf": {"iterations": 5, "factors": 4},
    "als": {"factors": 8},
    "random-features": {"n_components": 16},
}
FAST |= {
    name: {"factors": 3, "iterations": 2}
    for name in ("fm", "sparse-fm", "hofm", "bilinear", "pairnet", "all-subsets")
}
FAST |= {name: {"factors": 3, "hidden": 4, "iterations": 2} for name in ("pair-dnn", "honfm")}
# All neighbours: which of equally near ones are kept depends on how items are numbered.
FAST |= {name: {"top_k": 100} for name in ("cosine", "tfidf", "bm25", "user-knn")}
FAST |= {"auto": {"users": 12, "rounds": 2}}
# What is quick to compile is in `make test`; `make test-all` has all rankers and kernels.
QUICK = (
    "popularity",
    "ease",
    "msdw",
    "slim",
    "slist",
    "cosine",
    "bm25",
    "user-knn",
    "content",
    "als",
    "bpr",
    "cf-komd",
    "ecf-omd",
    "fm",
)
CASES = [
    pytest.param((name, FAST.get(name, {})), marks=() if name in QUICK else pytest.mark.thorough)
    for name in list_rankers()
]
# Other kernels are another way of the same ranker: for them bits, files, explanations and threads are
# looked at, not once more what the base class checks.
NAMES = {kernels.get(name): name for name in list_kernels()}  # of two names of one kernel, one
KERNELS = [("cf-komd", {"kernel": name}) for kind, name in NAMES.items() if kind is not LinearKernel]
KERNELS.append(("cf-komd", {"kernel": "md", "degree": 3, "unrated": "mean", "q": "mean"}))
KERNELS = [pytest.param(case, marks=pytest.mark.thorough) for case in KERNELS]


def identifier(case):
    return case[1].get("kernel", case[0])


def made(request):
    name, params = request.param
    return make_ranker(name, **params)


@pytest.fixture(params=CASES, ids=identifier)
def ranker(request):
    return made(request)


@pytest.fixture
def fitted(ranker, liked):
    return ranker.fit(liked, show_progress=False)


@pytest.fixture(params=[*CASES, *KERNELS], ids=identifier)
def any_ranker(request):
    return made(request)


@pytest.fixture
def any_fitted(any_ranker, liked):
    return any_ranker.fit(liked, show_progress=False)


def needs(ranker, capability):
    if capability not in ranker.capabilities:
        pytest.skip(f"{ranker.name} does not offer {capability}")


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def state(ranker):
    return digest(*(v for k, v in sorted(vars(ranker).items()) if isinstance(v, np.ndarray)))


@pytest.mark.thorough
def test_single_calls_batches_and_permuted_batches_agree(any_fitted, liked):
    users = np.arange(liked.shape[0])
    ids, scores = any_fitted.recommend(users, liked, N=7)
    every = any_fitted.scores(users, liked)
    order = np.random.default_rng(0).permutation(users)
    shuffled, shuffled_scores = any_fitted.recommend(order, liked[order], N=7)
    assert_same_lists((shuffled, shuffled_scores), (ids[order], scores[order]))
    for user in (0, 3, 7, 59):
        one, value = any_fitted.recommend(int(user), liked[user], N=7)
        kept = ids[user] >= 0
        assert_same_lists((one, value), (ids[user][kept], scores[user][kept]))
        assert_close(any_fitted.scores(int(user), liked[user])[0], every[user])
        assert_close(value, every[user][one])


def test_lists_are_ordered_without_repeats_or_liked_items(fitted, liked):
    users = np.arange(liked.shape[0])
    found = fitted.recommend(users, liked, N=10)
    assert found.ids.dtype == np.int32 and found.scores.dtype == np.float32
    for user in users:
        kept = found.ids[user][found.ids[user] >= 0]
        assert len(set(kept)) == len(kept)
        assert not set(kept) & set(liked[user].indices)
        assert (np.diff(found.scores[user]) <= 0).all()
        assert (found.scores[user][found.ids[user] < 0] == LOWEST).all()
    assert np.isfinite(found.scores).all()


def test_equal_scores_go_by_item_index(fitted, liked):
    users = np.arange(liked.shape[0])
    ids, scores = fitted.recommend(users, liked, N=40, filter_already_liked_items=False)
    tied = np.diff(scores, axis=1) == 0
    assert (np.diff(ids, axis=1)[tied] > 0).all()


def test_a_user_who_likes_everything_gets_nothing_and_padding_in_a_batch(fitted, liked):
    full = sp.csr_matrix(np.ones((1, liked.shape[1]), np.float32))
    ids, scores = fitted.recommend(7, full)
    assert len(ids) == len(scores) == 0
    ids, scores = fitted.recommend([7], full)
    assert ids.shape == (1, 10) and (ids == -1).all() and (scores == LOWEST).all()


def test_an_empty_row_falls_back_to_popularity_and_says_so(fitted, liked):
    found = fitted.recommend([0, 3], liked[[0, 3]], N=5)
    assert found.fallback.tolist() == [True, False]
    top = np.argsort(-liked.sum(axis=0).A1, kind="stable")[:5]
    np.testing.assert_array_equal(found.ids[0], top)
    assert fitted.recommend(0, liked[0]).fallback is True


def test_filters(fitted, liked):
    plain = fitted.recommend(3, liked[3], N=100)[0]
    assert len(plain) == liked.shape[1] - liked[3].nnz
    without = fitted.recommend(3, liked[3], N=100, filter_items=[plain[0], plain[0], plain[2]])[0]
    np.testing.assert_array_equal(without, np.delete(plain, [0, 2]))
    only = fitted.recommend(3, liked[3], N=100, items=plain[[4, 1, 1]])[0]
    np.testing.assert_array_equal(only, plain[[1, 4]])
    np.testing.assert_array_equal(fitted.recommend(3, liked[3], N=100, filter_items=[])[0], plain)
    assert len(fitted.recommend(3, liked[3], items=[])[0]) == 0
    assert len(fitted.recommend(3, liked[3], filter_items=np.arange(40))[0]) == 0
    assert len(fitted.recommend(3, liked[3], N=10**9, filter_already_liked_items=False)[0]) == 40


def test_a_wrong_N_is_refused(fitted, liked):
    for N in (0, -1, 1.5, "3", None, True):
        with pytest.raises(InputError, match="N must be an integer"):
            fitted.recommend(3, liked[3], N=N)


def test_a_wrong_user_is_refused(fitted, liked):
    for userid in (-1, 60, "a", 1.5, np.nan, 2**40, [3, 60], [[3]], None):
        rows = liked[[3] * max(1, np.size(userid))]
        with pytest.raises(InputError, match="userid"):
            fitted.recommend(userid, rows)


def test_no_users_give_an_empty_batch(fitted, liked):
    ids, scores = fitted.recommend(np.array([], dtype=int), liked[:0], N=4)
    assert ids.shape == scores.shape == (0, 4)


def test_wrong_rows_are_refused(fitted, liked):
    with pytest.raises(InputError, match="40 items"):
        fitted.recommend(3, liked[3, :39])
    with pytest.raises(InputError, match="transposed"):
        fitted.recommend(np.arange(40), liked.T.tocsr())
    with pytest.raises(InputError, match="rows for"):
        fitted.recommend([3, 4], liked[3])
    bad = liked[3].copy()
    bad.data[0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        fitted.recommend(3, bad)
    with pytest.raises(InputError, match="items 40 is not within 0…39"):
        fitted.recommend(3, liked[3], items=[40])
    with pytest.raises(InputError, match="not both"):
        fitted.recommend(3, liked[3], items=[1], filter_items=[2])


def test_asking_before_fit_is_refused(ranker, liked, tmp_path):
    for call in (
        lambda: ranker.recommend(0, liked[0]),
        lambda: ranker.scores(0, liked[0]),
        lambda: ranker.explain(0, liked[0], 1),
        lambda: ranker.similar_items(0),
        lambda: ranker.save(tmp_path / "x"),
    ):
        with pytest.raises(NotFittedError, match="fit"):
            call()
    assert not list(tmp_path.iterdir())


def test_nothing_given_is_changed(ranker, liked):
    before = digest(liked.data, liked.indices, liked.indptr)
    globally = np.random.get_state()[1].copy()
    ranker.fit(liked, show_progress=False)
    model = state(ranker)
    ranker.recommend(np.arange(60), liked)
    ranker.scores(3, liked[3])
    assert digest(liked.data, liked.indices, liked.indptr) == before
    assert state(ranker) == model
    np.testing.assert_array_equal(np.random.get_state()[1], globally)


FORMATS = {
    "int8": lambda m: m.astype(np.int8),
    "bool": lambda m: m.astype(bool),
    "float64": lambda m: m.astype(np.float64),
    "coo": lambda m: m.tocoo(),
    "csc": lambda m: m.tocsc(),
    "array": lambda m: m.toarray(),
    "csr_array": sp.csr_array,
    "float16": lambda m: m.toarray().astype(np.float16),
}


@pytest.mark.thorough
def test_every_format_gives_the_same_scores(ranker, liked):
    expected = ranker.fit(liked, show_progress=False).scores(3, liked[3])
    for kind, form in FORMATS.items():
        again = make_ranker(ranker.name, **ranker.get_params()).fit(form(liked), show_progress=False)
        assert_close(again.scores(3, liked[3]), expected, kind)


def disordered(m):
    """The same matrix with unsorted, repeated and explicitly zero or negative entries."""
    rows = np.repeat(np.arange(m.shape[0]), np.diff(m.indptr))
    zero = np.argwhere(m.toarray() == 0)[:5]
    r = np.concatenate([rows, zero[:, 0]])
    c = np.concatenate([m.indices, zero[:, 1]])
    v = np.concatenate([m.data, [0, -1, 0, -2, 0]])
    order = np.lexsort((-c, r))
    indptr = np.searchsorted(r[order], np.arange(m.shape[0] + 1))
    return sp.csr_matrix((v[order].astype(np.float32), c[order], indptr), m.shape)


def test_unsorted_indices_zeros_and_negatives_mean_the_same(ranker, liked):
    expected = ranker.fit(liked, show_progress=False).scores(3, liked[3])
    messy = disordered(liked)
    assert not messy.has_sorted_indices
    again = make_ranker(ranker.name, **ranker.get_params()).fit(messy, show_progress=False)
    assert_close(again.scores(3, messy[3]), expected)


def broken(kind):
    m = sp.csr_matrix(np.ones((3, 4), np.float32))
    if kind == "index":
        m.indices[1] = 100
    elif kind == "negative":
        m.indices[1] = -1
    elif kind == "falling":
        m.indptr[1] = 9
    elif kind == "long":
        m.indptr[-1] = 99
    return m


def test_broken_index_arrays_are_refused(ranker):
    for kind in ("index", "negative", "falling", "long"):
        with pytest.raises(InputError, match="broken index arrays"):
            ranker.fit(broken(kind), show_progress=False)


UNFIT = [
    np.zeros((0, 0)),
    np.zeros((3, 0)),
    np.zeros((3, 4)),
    -np.ones((2, 2)),
    np.full((2, 2), np.nan),
    np.full((2, 2), np.inf),
    np.ones((2, 2), complex),
    np.array([["a"]]),
    np.array([[None]]),
    None,
    "ratings.csv",
    np.ones(3),
    np.ones((2, 2, 2)),
]


def test_what_cannot_be_fitted_is_refused(ranker):
    for given in UNFIT:
        with pytest.raises(InputError, match="user_items"):
            ranker.fit(given, show_progress=False)


TINY = {
    "one by one": [[1]],
    "one user": [[1, 0, 1]],
    "one item": [[1], [1], [0]],
    "all liked": np.ones((3, 4)),
    "one item liked by all": [[1, 0], [1, 0], [1, 0]],
    "one pair": [[0, 0], [0, 1]],
    "equal rows": np.tile([1, 1, 0], (5, 1)),
}


@pytest.mark.thorough
def test_tiny_matrices_fit_with_finite_scores_or_say_why(any_ranker):
    for dense in TINY.values():
        R = sp.csr_matrix(np.array(dense, dtype=np.float32))
        try:
            any_ranker.fit(R, show_progress=False)
        except InputError as error:
            # mC of degree 2 over one user has no feature: the message names the parameter.
            assert re.match(r"(degree|arity|c|d) must be", str(error))
            continue
        scores = any_ranker.scores(np.arange(R.shape[0]), R)
        assert np.isfinite(scores).all()
        any_ranker.recommend(0, R[0])


def test_folding_in_a_row(fitted, liked):
    if "fold-in" not in fitted.capabilities:
        with pytest.raises(InputError, match="recalculate_user"):
            fitted.recommend(0, liked[3], recalculate_user=True)
        return
    ids, scores = fitted.recommend(10**6, liked[3], N=40, recalculate_user=True)
    assert np.isfinite(scores).all() and len(ids) == 40 - liked[3].nnz
    if not hasattr(fitted, "user_factors_"):  # these score the row that is passed
        assert_close(scores, fitted.recommend(3, liked[3], N=40)[1])


def test_explanations_sum_to_the_score(any_fitted, liked):
    needs(any_fitted, "explain")
    for user, item in ((3, 1), (7, 5), (20, 39), (3, int(liked[3].indices[0]))):
        why = any_fitted.explain(user, liked[user], item, N=40)
        score = float(any_fitted.scores(user, liked[user])[0, item])
        total = why.bias + sum(value for _, value in why.contributions)
        assert total == pytest.approx(why.score, rel=1e-9, abs=1e-12)
        assert why.score == pytest.approx(score, rel=1e-6, abs=1e-6)
        assert {i for i, _ in why.contributions} == set(liked[user].indices)
        few = any_fitted.explain(user, liked[user], item, N=2)
        assert few.contributions == why.contributions[:2]
    empty = any_fitted.explain(0, liked[0], 1)
    assert empty.contributions == [] and empty.bias == empty.score
    for wrong in (-1, 40, "a"):
        with pytest.raises(InputError, match="itemid"):
            any_fitted.explain(3, liked[3], wrong)


def test_capabilities_not_offered_are_refused_in_a_sentence(fitted, liked):
    if "explain" not in fitted.capabilities:
        with pytest.raises(InputError, match="has no explain"):
            fitted.explain(3, liked[3], 1)
    if "similar-users" not in fitted.capabilities:
        with pytest.raises(InputError, match="has no similar-users"):
            fitted.similar_users(1)


def test_similar_items(fitted):
    needs(fitted, "similar-items")
    ids, scores = fitted.similar_items([1, 2], N=5)
    assert ids.shape == scores.shape == (2, 5) and (np.diff(scores) <= 0).all()
    one, value = fitted.similar_items(2, N=5)
    assert_same_lists((one, value), (ids[1], scores[1]))
    assert fitted.similar_items(2, N=5, filter_items=[int(one[0])])[0][0] == one[1]
    for wrong in (-1, 40, "x"):
        with pytest.raises(InputError, match="itemid"):
            fitted.similar_items(wrong)
    with pytest.raises(InputError, match="recalculate"):
        fitted.similar_items(1, recalculate_item=True)


def test_similar_users(fitted):
    needs(fitted, "similar-users")
    ids, scores = fitted.similar_users(3, N=60)
    assert scores[list(ids).index(3)] == pytest.approx(1, abs=1e-5) and len(ids) == 60
    assert 3 not in fitted.similar_users(3, N=60, filter_users=[3])[0]


def calls(fitted, liked):
    """Return one call of each sort a ranker offers, single and batch, as functions."""
    some = np.array([3, 20, 7, 41])
    out = [
        lambda: fitted.recommend(3, liked[3], N=5),
        lambda: fitted.recommend(some, liked[some], N=8),
        lambda: fitted.scores(some, liked[some]),
        lambda: fitted.recommend(11, liked[11], N=4, filter_items=[1, 2, 3]),
    ]
    if "fold-in" in fitted.capabilities:
        out.append(lambda: fitted.recommend(0, liked[5], N=6, recalculate_user=True))
    if "explain" in fitted.capabilities:
        out.append(lambda: np.array(fitted.explain(4, liked[4], 9).contributions))
    if "similar-items" in fitted.capabilities:
        out.append(lambda: fitted.similar_items(6, N=7))
    return out


@pytest.mark.thorough
def test_eight_threads_sharing_one_ranker_get_the_answers_that_one_gets(any_fitted, liked):
    work = calls(any_fitted, liked)
    wanted = [call() for call in work]

    def some(seed):
        order = np.random.default_rng(seed).integers(len(work), size=30)
        return [(k, work[k]()) for k in order]

    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(some, range(8)):
            for k, answer in answers:
                if isinstance(answer, tuple):
                    assert_same_lists(answer, wanted[k])
                else:
                    assert_close(answer, wanted[k])


def test_saving_and_loading_keep_the_scores(any_fitted, liked, tmp_path):
    path = tmp_path / "model"
    any_fitted.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    again = load_ranker(path)
    assert type(again) is type(any_fitted) and again.get_params() == any_fitted.get_params()
    users = np.arange(60)
    assert_close(again.scores(users, liked), any_fitted.scores(users, liked))
    assert type(any_fitted).load(path).name == any_fitted.name
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first


def test_fitting_again_gives_the_same(any_ranker, liked):
    first = any_ranker.fit(liked, show_progress=False).scores(np.arange(60), liked)
    second = make_ranker(any_ranker.name, **any_ranker.get_params()).fit(liked, show_progress=False)
    assert_close(second.scores(np.arange(60), liked), first)


def test_one_thread_and_two_agree(any_ranker, liked):
    from recsys._jit import max_threads, processors

    results = []
    for threads in (1, processors()):
        max_threads.set(threads)
        model = make_ranker(any_ranker.name, **any_ranker.get_params()).fit(liked, show_progress=False)
        results.append(model.scores(np.arange(60), liked))
    assert_close(*results)


def test_relabelling_items_permutes_the_scores(ranker, liked):
    if hasattr(ranker, "random_state"):
        pytest.skip("starts from random factors per item")
    shuffle = np.random.default_rng(0).permutation(liked.shape[1])
    plain = ranker.fit(liked, show_progress=False).scores(np.arange(60), liked)
    moved = sp.csr_matrix(liked[:, shuffle])
    other = make_ranker(ranker.name, **ranker.get_params()).fit(moved, show_progress=False)
    np.testing.assert_allclose(
        other.scores(np.arange(60), moved), plain[:, shuffle], rtol=1e-4, atol=2e-5 * np.abs(plain).max()
    )


NUMBERS = {
    "regularization": [-5, np.nan, np.inf, "big", None],
    "factors": [0, -1, 1.5, "8"],
    "negative_regularization": [-1, np.nan],
    "alpha": [-1, np.nan, 1e400],
    "degree": [0, -1, 1.5, "two"],
    "iterations": [0, 2.5],
    "learning_rate": [0, -1],
    "l1": [-1],
    "l2": [-1, np.nan],
    "tol": [0],
    "locality": [0, -2],
    "random_state": [-1, 0.5],
    "num_threads": [-1],
    "neg_prop": [0],
}


def test_parameters_out_of_range_are_refused_by_name(ranker):
    for key, values in NUMBERS.items():
        if key not in ranker.get_params() or (
            key == "degree" and ranker.get_params().get("kernel") not in ("mc", "md")
        ):
            continue
        for value in values:
            with pytest.raises(InputError, match=key):
                make_ranker(ranker.name, **(ranker.get_params() | {key: value}))


def test_an_unknown_parameter_gets_a_suggestion(ranker):
    with pytest.raises(InputError, match="regularisaton|takes none|no parameter"):
        make_ranker(ranker.name, regularisaton=1)


@pytest.mark.parametrize("name", list_rankers())
def test_a_misspelt_parameter_is_compared_with_the_rankers_own(name):
    """Also where a ranker hands on what it does not know, as cf-komd does to its kernel."""
    for own in make_ranker(name).get_params():
        if len(own) > 5:
            wrong = own[:3] + own[4:]
            with pytest.raises(
                InputError, match=f"'{name}' has no parameter '{wrong}': did you mean '{own}'"
            ):
                make_ranker(name, **{wrong: 1})


def test_what_neither_the_ranker_nor_its_kernel_takes_is_refused():
    with pytest.raises(InputError, match="did you mean 'regularization'"):
        make_ranker("cf-komd", regularisation=3)
    with pytest.raises(InputError, match="'cf-komd' has no parameter 'xyz': known: degree, kernel, "):
        make_ranker("cf-komd", xyz=3)
    with pytest.raises(InputError, match="degree must be"):  # the kernel's own complaint stays
        make_ranker("cf-komd", kernel="md", degree=0)
