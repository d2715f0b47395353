"""No public call changes what it is given, whatever its layout, and layouts do not change what it says."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import recsys.fm
import recsys.kernel_machines
import recsys.links
import recsys.random_features
from recsys import list_rankers, make_ranker
from recsys.evaluation import metrics
from recsys.evaluation.metrics import ListContext
from recsys.explain import learn_rule, search_rule
from recsys.kernels import item_gram, list_kernels, make_kernel, propositional
from recsys.links.base import LINKS
from tests.contract.test_rankers import FAST
from tests.lists import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:max_iter", "ignore:Maximum")
RNG = np.random.default_rng(5)
DENSE = (RNG.random((24, 9)) < 0.45).astype(np.float64)
DENSE[0], DENSE[1], DENSE[2, :2] = 1, 0, 1
LABELS = np.arange(24) % 2


def messy(dense):
    """CSR whose rows fall in their indices, and where every third entry is two halves."""
    indptr, indices, data = [0], [], []
    for row in dense:
        for j in np.flatnonzero(row)[::-1]:
            parts = [row[j] / 2] * 2 if j % 3 == 0 else [row[j]]
            indices += [j] * len(parts)
            data += parts
        indptr.append(len(indices))
    return sp.csr_matrix(
        (np.array(data), np.array(indices, np.int32), np.array(indptr, np.int32)), dense.shape
    )


def doubled_coo(dense):
    coo = sp.coo_matrix(dense)
    order = np.random.default_rng(0).permutation(2 * coo.nnz)
    data, i, j = np.tile(coo.data / 2, 2), np.tile(coo.row, 2), np.tile(coo.col, 2)
    return sp.coo_matrix((data[order], (i[order], j[order])), dense.shape)


def read_only(X):
    for array in parts(X):
        array.setflags(write=False)
    return X


def mapped(dense, folder):
    path = folder / "rows.npy"
    np.save(path, dense)
    return np.load(path, mmap_mode="r")


LAYOUTS = {
    "unsorted CSR with duplicates": lambda X, _: messy(X),
    "the same, read-only": lambda X, _: read_only(messy(X)),
    "CSR, read-only": lambda X, _: read_only(sp.csr_matrix(X)),
    "CSC": lambda X, _: messy(X.T.copy()).T,
    "COO with duplicates": lambda X, _: doubled_coo(X),
    "C order": lambda X, _: X.copy(),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "read-only": lambda X, _: read_only(X.copy()),
    "memory map": mapped,
}
KEY = (
    "unsorted CSR with duplicates",
    "CSR, read-only",
    "CSC",
    "Fortran order",
)


def parts(X):
    if not sp.issparse(X):
        return [X]
    names = ("data", "indptr", "indices", "row", "col")
    return [getattr(X, name) for name in names if isinstance(getattr(X, name, None), np.ndarray)]


def state(X):
    """What a caller sees of a matrix: its arrays, byte by byte, and their types."""
    return [(a.dtype.str, a.shape, a.flags.writeable, a.tobytes()) for a in parts(X)]


def unchanged(calls, X, *more):
    """Run the calls, and return what they say of X, once neither X nor anything else has changed."""
    before = [state(given) for given in (X, *more)]
    said = [call(X, *more) for call in calls]
    assert [state(given) for given in (X, *more)] == before
    return [one.toarray() if sp.issparse(one) else np.asarray(one) for one in said]


def machines():
    for module in (recsys.kernel_machines, recsys.fm, recsys.random_features):
        for name in module.__all__:
            make = getattr(module, name)
            if inspect.isclass(make) and hasattr(make, "fit") and hasattr(make, "get_params"):
                yield name, make
            elif inspect.isfunction(make) and name[0].isupper():  # a sampling of RandomKernelMap
                yield name, make


MACHINES = dict(machines())


def made(name):
    make = MACHINES[name]
    known = inspect.signature(make).parameters
    wanted = {
        "n_components": 3,
        "max_iter": 5,
        "random_state": 0,
        "subset": 4,
        "n_samples": 5,
        "burn_in": 2,
    }
    return make(**{key: value for key, value in wanted.items() if key in known})


def said_by(name):
    def call(X, y):
        if "SparseLowRank" in name and sp.issparse(X):
            X = X.toarray()  # it takes dense rows
        model = made(name).fit(X, y)
        for method in ("decision_function", "predict", "transform"):
            if hasattr(model, method):
                return getattr(model, method)(X)
        raise AssertionError(name)

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MACHINES))
def test_no_machine_or_map_changes_its_rows(name, tmp_path):
    call, y = said_by(name), LABELS.astype(float) if name.endswith("Regressor") else LABELS
    expected = unchanged([call], sp.csr_matrix(DENSE), y)[0]
    for layout in LAYOUTS:
        found = unchanged([call], LAYOUTS[layout](DENSE, tmp_path), y.copy())[0]
        np.testing.assert_allclose(found, expected, atol=1e-10, err_msg=layout)
    found = unchanged([call], DENSE.copy(), y.copy())[0]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_every_machine_and_map_is_walked():
    assert {"AverageMKL", "EasyMKL", "GRAM", "RMKL", "KOMD", "TensorSketch", "ItemsetMap"} <= set(
        MACHINES
    )
    assert len(MACHINES) >= 20


@pytest.mark.parametrize("name", [*list_kernels(), "a formula"])
def test_no_kernel_changes_its_rows(name, tmp_path):
    kernel = propositional.parse("(x0 & x1) | ~x2") if name == "a formula" else make_kernel(name)
    calls = [lambda X: kernel(X), lambda X: kernel(X, X, normalize=True)]
    expected = unchanged(calls, DENSE.copy())
    for layout, make in LAYOUTS.items():
        for found, one in zip(unchanged(calls, make(DENSE, tmp_path)), expected, strict=True):
            assert_close(found, one, layout)


def test_item_kernels_do_not_change_their_matrix(tmp_path):
    expected = unchanged([lambda X: item_gram(X, make_kernel("linear"))], sp.csr_matrix(DENSE))[0]
    for layout, make in LAYOUTS.items():
        found = unchanged([lambda X: item_gram(X, make_kernel("linear"))], make(DENSE, tmp_path))[0]
        assert_close(found, expected, layout)


def ranker_calls(name):
    fitted = []
    yield (
        lambda X: fitted.append(make_ranker(name, **FAST.get(name, {})).fit(X, show_progress=False)) or 0
    )
    yield lambda X: fitted[-1].scores(np.arange(X.shape[0]), X)
    yield lambda X: fitted[-1].recommend(np.arange(X.shape[0]), X, N=3).scores
    yield lambda X: fitted[-1].recommend(2, _row(X), N=3).scores
    cls = type(make_ranker(name))
    if "similar-items" in cls.capabilities:
        yield lambda X: fitted[-1].similar_items(3, N=2)[0]
    if "explain" in cls.capabilities:
        yield lambda X: fitted[-1].explain(2, _row(X), 5).score


def _row(X):
    return X.tocsr()[[2]] if sp.issparse(X) else np.asarray(X[[2]])


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_rankers())
def test_no_ranker_changes_its_matrix(name, tmp_path):
    for layout in KEY if name != "popularity" else LAYOUTS:
        unchanged(list(ranker_calls(name)), LAYOUTS[layout](DENSE, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", list_rankers())
def test_no_ranker_changes_its_matrix_in_any_layout(name, tmp_path):
    for make in LAYOUTS.values():
        unchanged(list(ranker_calls(name)), make(DENSE, tmp_path))


@pytest.mark.parametrize("name", sorted(LINKS))
def test_no_link_predictor_changes_its_features(name, tmp_path):
    pytest.importorskip("torch") if LINKS.get(name).__module__.endswith("neural") else None
    pairs = np.array([(i, j) for i in range(24) for j in range(3)])
    y = (pairs.sum(axis=1) % 2).astype(int)
    known = LINKS.get(name)().get_params()
    params = {"n_components": 2, "max_iter": 2, "epochs": 1, "hidden": 4, "layers": 1, "num_threads": 1}
    params = {key: value for key, value in params.items() if key in known}

    def call(X, pairs, y):
        return LINKS.get(name)(**params).fit(X, None, pairs, y).decision_function(X, None, pairs)

    expected = unchanged([call], sp.csr_matrix(DENSE), pairs, y)[0]
    for layout in LAYOUTS:
        found = unchanged([call], LAYOUTS[layout](DENSE, tmp_path), pairs.copy(), y.copy())[0]
        np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=layout)


@pytest.mark.slow
def test_no_metric_changes_scores_or_matrices(tmp_path):
    train, test = DENSE * (RNG.random(DENSE.shape) < 0.5), DENSE.copy()
    test[train > 0] = 0
    scores = RNG.normal(size=DENSE.shape)
    rankings = [
        getattr(metrics, name)
        for name in (
            "auc",
            "average_precision",
            "ndcg",
            "precision",
            "recall",
            "hit_rate",
            "mrr",
        )
    ]
    ids = np.argsort(-scores, axis=1)[:, :4]
    lists = [
        getattr(metrics, name)
        for name in (
            "average_popularity",
            "coverage",
            "gini",
            "novelty",
            "serendipity",
        )
    ]
    calls = [lambda S, A, B, ids, f=f: f(S, A, B) for f in rankings]
    calls += [lambda S, A, B, ids, f=f: f(ids, ListContext(A, B)) for f in lists]
    expected = unchanged(calls, scores, sp.csr_matrix(train), sp.csr_matrix(test), ids)
    for layout, make in LAYOUTS.items():
        for other in (np.asfortranarray(scores), read_only(scores.copy())):
            given = (other, make(train, tmp_path / "."), messy(test), ids)
            for found, one in zip(unchanged(calls, *given), expected, strict=True):
                assert_close(found, one, layout)


@pytest.mark.thorough
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_search_for_rules_changes_its_table(layout, tmp_path):
    signed = np.where(LABELS == 1, 1.0, -1.0) / 12
    calls = [
        lambda X, y, s: [learn_rule(X, y).search.weight],
        lambda X, y, s: [search_rule(X, s).weight],
    ]
    expected = unchanged(calls, DENSE.copy(), LABELS, signed)
    found = unchanged(calls, LAYOUTS[layout](DENSE, tmp_path), LABELS.copy(), signed)
    np.testing.assert_array_equal(found, expected)
