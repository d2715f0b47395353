import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, roc_auc_score

from recsys import InputError
from recsys.evaluation import metrics as M
from tests.reference import metrics as reference
from tests.reference import registry

FUNCTIONS = {
    "auc": lambda s, tr, te, k: M.auc(s, tr, te),
    "ndcg": M.ndcg,
    "map": lambda s, tr, te, k: M.average_precision(s, tr, te, k, "min"),
    "map-full": M.average_precision,
    "precision": M.precision,
    "recall": M.recall,
    "hit": M.hit_rate,
    "mrr": M.mrr,
}


def csr(sets, items):
    dense = np.zeros((len(sets), items), dtype=np.float32)
    for row, chosen in enumerate(sets):
        dense[row, list(chosen)] = 1
    return sp.csr_matrix(dense)


@st.composite
def cases(draw):
    items = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.integers(0, draw(st.integers(1, 4)), (3, items)).astype(np.float32)
    parts = rng.integers(0, 3, (3, items))  # train, test, neither
    return (
        scores,
        csr([np.flatnonzero(p == 0) for p in parts], items),
        csr([np.flatnonzero(p == 1) for p in parts], items),
        draw(st.integers(1, 9)),
    )


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(cases())
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_the_mean_over_all_orders(name, case):
    scores, train, test, k = case
    expected = [
        reference.value(name, scores[u], set(train[u].indices), set(test[u].indices), k)
        for u in range(3)
    ]
    np.testing.assert_allclose(FUNCTIONS[name](scores, train, test, k), expected, rtol=1e-12)


LIST_FUNCTIONS = {
    "novelty": M.novelty,
    "arp": M.average_popularity,
    "diversity": M.diversity,
    "serendipity": M.serendipity,
    "gini": M.gini,
    "coverage": M.coverage,
}


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(cases())
@pytest.mark.parametrize("name", LIST_FUNCTIONS)
def test_metrics_of_lists_equal_their_definitions(name, case):
    scores, train, test, k = case
    dense = [matrix.toarray().astype(float) for matrix in (train, test)]
    expected = registry.METRICS.get(name)(scores, *dense, k)
    ids = np.array([[*found, *[-1] * k][:k] for found in reference.lists(scores, dense[0], k)])
    found = LIST_FUNCTIONS[name](ids, M.ListContext(train, test))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_padding_is_no_part_of_a_list():
    """By hand: one hit among one item or two is 1 − its cosine with the user's two items, or half."""
    train = sp.csr_matrix([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    context = M.ListContext(train, sp.csr_matrix([[0, 0, 1, 0]] * 3), users=[0, 0])
    gain = 1.0 - (0.5 + 0.0) / 2
    found = M.serendipity([[2, -1, -1], [2, 3, -1]], context)
    np.testing.assert_allclose(found, [gain, gain / 2])


def test_gini_is_between_even_and_one_for_all():
    context = M.ListContext(sp.csr_matrix((3, 100)))
    assert M.gini(np.arange(100).reshape(10, 10), context) == 0
    assert M.gini(np.full((5, 1), 7), context) == pytest.approx(0.99)
    assert np.isnan(M.gini(np.full((5, 1), -1), context))


def test_many_users_are_measured_as_a_few_at_a_time(monkeypatch):
    from recsys.evaluation.metrics import lists

    scores, train, test = random_lists(np.random.default_rng(0), 40, 30, 5)
    context, ids = M.ListContext(train, test), np.argsort(-scores, axis=1)[:, :5]
    whole = [metric(ids, context) for metric in (M.diversity, M.serendipity)]
    monkeypatch.setattr(lists, "ROWS", 7)
    parts = [metric(ids, context) for metric in (M.diversity, M.serendipity)]
    np.testing.assert_allclose(parts, whole)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c: M.average_popularity([[0, 0], [1, 2]], c), "repeat an item"),
        (lambda c: M.novelty([[9]], c), "within −1…3"),
        (lambda c: M.novelty([[0.5]], c), "must be integers"),
        (lambda c: M.serendipity([[0], [1]], c), "needs test items"),
        (lambda c: M.novelty([[0]], M.ListContext(c.train, users=[0, 1])), "pass one list per user"),
    ],
)
def test_what_metrics_of_lists_refuse(call, text):
    with pytest.raises(InputError, match=text):
        call(M.ListContext(sp.csr_matrix(np.eye(2, 4))))


def random_lists(rng, users, items, levels):
    scores = rng.integers(0, levels, (users, items)).astype(np.float64)
    part = rng.random((users, items))
    train = sp.csr_matrix(part < 0.2, dtype=np.float32)
    test = sp.csr_matrix((part > 0.9) & (rng.random((users, 1)) < 0.95), dtype=np.float32)
    return scores, train, test


@pytest.mark.thorough
@pytest.mark.parametrize("levels", [5, 10**9])
def test_equals_scikit_learn(levels):
    scores, train, test = random_lists(np.random.default_rng(0), 300, 60, levels)
    ours, gain = M.auc(scores, train, test), M.ndcg(scores, train, test, 7)
    checked = 0
    for u in range(len(scores)):
        left = np.flatnonzero(train[u].toarray()[0] == 0)
        truth = test[u].toarray()[0][left]
        if 0 < truth.sum() < len(truth):
            assert ours[u] == pytest.approx(roc_auc_score(truth, scores[u, left]), rel=1e-12)
            assert gain[u] == pytest.approx(ndcg_score([truth], [scores[u, left]], k=7), rel=1e-12)
            checked += 1
        else:
            assert np.isnan(ours[u])
    assert checked > 270


def test_equals_trec_eval_on_strict_orders():
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, RR, P, R, Success, nDCG

    rng = np.random.default_rng(1)
    scores = np.array([rng.permutation(50) for _ in range(1000)]).astype(np.float32)
    _, train, test = random_lists(rng, 1000, 50, 2)
    qrels, run = [], []
    for u in range(1000):
        known = set(train[u].indices)
        qrels += [ir_measures.Qrel(str(u), str(j), 1) for j in test[u].indices]
        run += [
            ir_measures.ScoredDoc(str(u), str(j), float(scores[u, j]))
            for j in range(50)
            if j not in known
        ]
    pairs = {
        "ndcg": nDCG @ 10,
        "map-full": AP @ 10,
        "precision": P @ 10,
        "recall": R @ 10,
        "hit": Success @ 10,
        "mrr": RR @ 10,
    }
    ours = {name: FUNCTIONS[name](scores, train, test, 10) for name in pairs}
    by_measure = {measure: name for name, measure in pairs.items()}
    checked = 0
    for row in ir_measures.iter_calc(list(pairs.values()), qrels, run):
        name = by_measure[row.measure]
        assert ours[name][int(row.query_id)] == pytest.approx(row.value, abs=1e-9), name
        checked += 1
    assert checked > 5000


def test_a_constant_scorer_gets_what_chance_gets_whatever_the_order_of_items():
    rng = np.random.default_rng(0)
    _, train, test = random_lists(rng, 50, 30, 2)
    constant = np.zeros((50, 30), np.float32)
    has = np.diff(test.indptr) > 0
    np.testing.assert_allclose(M.auc(constant, train, test)[has], 0.5)
    shuffle = rng.permutation(30)
    for name, metric in FUNCTIONS.items():
        plain = metric(constant, train, test, 5)
        np.testing.assert_allclose(
            metric(constant, train[:, shuffle], test[:, shuffle], 5), plain, err_msg=name
        )


def test_ranked_ids_count_like_scores_with_everything_else_tied_below():
    ids = np.array([[2, 0, -1], [1, 3, 2]])
    scores = np.array([[2, 0, 3, 0, 0], [0, 3, 1, 2, 0]], dtype=np.float32)
    train, test = csr([[1], []], 5), csr([[0, 3], [2]], 5)
    for metric in FUNCTIONS.values():
        np.testing.assert_allclose(metric(ids, train, test, 3), metric(scores, train, test, 3))


def test_list_metrics():
    ids = np.array([[0, 1], [1, -1], [-1, -1], [2, 1]])
    train = np.zeros((8, 4))
    train[:4, 0] = train[:2, 1] = 1
    context = M.ListContext(sp.csr_matrix(train))
    assert M.coverage(ids, context) == reference.coverage([[0, 1], [1], [2, 1]], 4) == 0.75
    expected = [reference.novelty(row[row >= 0], np.array([4, 2, 0, 0]), 8) for row in ids]
    np.testing.assert_allclose(M.novelty(ids, context), expected)


def test_a_metric_of_lists_is_no_metric_of_rankings():
    empty = sp.csr_matrix((1, 2), dtype=np.float32)
    with pytest.raises(InputError, match="'coverage@10' is a metric of lists"):
        M.ranking_values([M.parse_metric("coverage")], np.zeros((1, 2)), empty, empty)


def test_one_thread_and_two_give_the_same_bits():
    from recsys._jit import max_threads, processors

    scores, train, test = random_lists(np.random.default_rng(5), 300, 40, 10**9)
    both = []
    for threads in (1, processors()):
        max_threads.set(threads)
        both.append(M.ndcg(scores, train, test, 10))
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize("text", ["ndgc", "ndgc@5"])
def test_a_misspelt_metric_gets_a_suggestion(text):
    with pytest.raises(InputError, match="did you mean 'ndcg'"):
        M.parse_metric(text)


@pytest.mark.parametrize("text", ["ndcg@0", "ndcg@-1", "ndcg@x", "ndcg@1.5", "ndcg@", "auc@10"])
def test_bad_cutoffs_are_refused(text):
    with pytest.raises(InputError, match="@"):
        M.parse_metric(text)


def test_parsing():
    assert [M.parse_metric(t)[2] for t in ("auc", "ndcg", "map-full@5")] == [
        "auc",
        "ndcg@10",
        "map-full@5",
    ]


@pytest.mark.parametrize(
    "ranking, text",
    [
        (np.array([[np.nan, 1.0]]), "NaN"),
        (np.array([[0, 0]]), "repeat"),
        (np.array([[0, 2]]), "within"),
        (np.array([[0.0, 1, 2]]), "one shape"),
        (np.array([["a", "b"]]), "must be integers"),
    ],
)
def test_bad_rankings_are_refused(ranking, text):
    empty = sp.csr_matrix((1, 2), dtype=np.float32)
    with pytest.raises(InputError, match=text):
        M.ndcg(ranking, empty, empty, 1)


def test_cold_items_have_no_cosine_with_others():
    train = sp.csr_matrix([[1.0, 1, 0, 0], [1, 0, 0, 0]])
    found = M.diversity([[0, 2], [2, 3], [0, 1]], M.ListContext(train, users=[0, 1, 1]))
    np.testing.assert_allclose(found, [1.0, 1.0, 1.0 - 0.5**0.5])
