import numpy as np
import pytest
import sklearn.exceptions
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from recsys import InputError
from recsys.links import (
    HONFM,
    LINKS,
    ConcatDNN,
    FactorizedBilinear,
    LowRankBilinear,
    PairDNN,
    PairFactorizationMachine,
    PairNet,
    PairSVM,
    link_metrics,
    make_link_predictor,
    sample_negatives,
    split_objects,
    split_pairs,
)
from tests.links.contract import BAD, check_contract, check_refusal, name_of, world
from tests.reference import links as reference

SHALLOW = [
    FactorizedBilinear(n_components=3, max_iter=30),
    LowRankBilinear(n_components=3, max_iter=30),
    PairNet(n_components=3, max_iter=30),
    PairNet(degree=3, n_components=3, max_iter=30),
    PairNet(degree=4, n_components=2, max_iter=30, beta=1e-3),
    PairFactorizationMachine(n_components=3, max_iter=30),
    PairSVM(),
]


@pytest.mark.thorough
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("model", SHALLOW, ids=name_of)
def test_the_contract(model, one):
    check_contract(model, one)


@pytest.mark.parametrize(("change", "message"), BAD)
@pytest.mark.parametrize("model", SHALLOW, ids=name_of)
def test_bad_input(model, change, message):
    check_refusal(model, change, message)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PairNet(degree=1), "degree"),
        (PairNet(n_components=0), "n_components"),
        (PairNet(loss="hinge"), "loss"),
        (PairNet(symmetric=True), "pass B=None"),
        (PairSVM(C=0), "C"),
        (PairSVM(symmetric=True), "pass B=None"),
        (FactorizedBilinear(beta=-1), "beta"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(*world())


def test_before_fit_and_other_features():
    A, B, pairs, y = world()
    with pytest.raises(sklearn.exceptions.NotFittedError, match="not fitted"):
        PairNet().predict(A, B, pairs)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(PairNet())
    model = PairNet(n_components=1, max_iter=2).fit(A, B, pairs, y)
    with pytest.raises(InputError, match="features; fit had 6 and 5"):
        model.predict(A[:, :3], B, pairs)


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("one", [False, True])
def test_predictions_are_those_of_the_definition(degree, one):
    A, B, pairs, y = world(1, one, n=80)
    net = PairNet(degree=degree, n_components=2, max_iter=4, beta=1e-3).fit(A, B, pairs, y)
    terms = [(t.left, t.right, t.weights, t.degree) for t in net.terms_]
    expected = reference.predict(terms, net.intercept_, A, A if B is None else B, pairs, one)
    np.testing.assert_allclose(net.decision_function(A, B, pairs), expected, atol=1e-8)
    machine = PairFactorizationMachine(degree=degree, n_components=2, max_iter=4, symmetric=one).fit(
        A, B, pairs, y
    )
    terms = [(t.left, t.right, t.weights, t.degree) for t in machine.terms_]
    expected = reference.predict(terms, machine.intercept_, A, A if B is None else B, pairs, one, True)
    np.testing.assert_allclose(machine.decision_function(A, B, pairs), expected, atol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("one", [False, True])
def test_the_objective_never_rises(loss, degree, one):
    A, B, pairs, y = world(2, one)
    net = PairNet(
        degree=degree, loss=loss, n_components=3, max_iter=25, tol=0.0, beta=1e-3, init_scale=0.4
    ).fit(A, B, pairs, y)
    objective = np.array([entry["objective"] for entry in net.history_])
    assert (np.diff(objective) <= 1e-10).all() and objective[-1] < objective[0]


@pytest.mark.thorough
def test_strong_regularisation_drops_whole_components_of_even_order():
    A, B, pairs, y = world(3)
    net = PairNet(degree=4, n_components=4, beta=0.05, max_iter=60, init_scale=0.5).fit(A, B, pairs, y)
    assert (net.terms_[2].weights == 0).any() and (net.terms_[0].weights == 1).all()


@pytest.mark.parametrize("one", [False, True])
def test_the_pair_svm_is_the_svm_on_the_kronecker_features(one):
    A, B, pairs, y = world(5, one, n=120)
    model = PairSVM(C=0.5, tol=1e-10).fit(A, B, pairs, y)
    other = A if B is None else B
    wide = np.einsum("pi,pj->pij", A[pairs[:, 0]], other[pairs[:, 1]])
    if one:
        wide = 0.5 * (wide + wide.transpose(0, 2, 1))  # ½(x + xᵀ) has the symmetrised kernel
    wide = wide.reshape(len(pairs), -1)
    peer = LinearSVC(C=0.5, loss="squared_hinge", dual=False, tol=1e-10, max_iter=100_000).fit(wide, y)
    ours = model.decision_function(A, B, pairs)
    np.testing.assert_allclose(ours, peer.decision_function(wide), atol=1e-3)


def test_gram_matrices_that_do_not_fit_are_refused(monkeypatch):
    from recsys.utils import resources

    A, B, pairs, y = world(5)
    model = PairSVM().fit(A, B, pairs, y)
    monkeypatch.setattr(resources, "free_memory", lambda: 1000)
    for call in (lambda: PairSVM().fit(A, B, pairs, y), lambda: model.predict(A, B, pairs)):
        with pytest.raises(InputError, match=r"the Gram matrices of 30 × 30 and 25 × 25 objects: needs"):
            call()


@pytest.mark.thorough
@pytest.mark.parametrize("one", [False, True])
def test_the_serial_path_changes_no_bit(one, monkeypatch):
    from recsys.utils import resources

    A, B, pairs, y = world(4, one)
    alone = PairNet(degree=4, max_iter=4).fit(A, B, pairs, y)
    monkeypatch.setattr(resources, "WORTH", 0)
    two = PairNet(degree=4, max_iter=4).fit(A, B, pairs, y)
    for a, b in zip(alone.terms_, two.terms_, strict=True):
        np.testing.assert_array_equal(a.left, b.left)
        np.testing.assert_array_equal(a.weights, b.weights)


def test_negatives_are_distinct_and_unlinked():
    links = np.array([[0, 1], [2, 3], [1, 4]])
    drawn = sample_negatives(links, 5, None, 7, seed=1)
    keys = {tuple(pair) for pair in drawn}
    assert len(keys) == 7 and not keys & {(0, 1), (2, 3), (1, 4)} and all(i < j for i, j in keys)
    with pytest.raises(
        InputError,
        match="8 pairs without a link are needed, but only 7 exist: lower",
    ):
        sample_negatives(links, 5, None, 8)
    assert len(sample_negatives(links, 5, 6, 27)) == 27


def test_splits_keep_the_halves_apart():
    rng = np.random.default_rng(0)
    links = np.unique(np.sort(rng.integers(0, 40, (150, 2)), axis=1), axis=0)
    links = links[links[:, 0] != links[:, 1]]
    split = split_pairs(links, 40, None, 0.4)
    keys = [{tuple(pair) for pair in part} for part in (split.train, split.test)]
    assert not keys[0] & keys[1]
    assert (split.train_labels == 0).sum() == (split.train_labels == 1).sum()
    whole = split_pairs(links, 40, None, 0.5, test_all=True)
    assert len(whole.train) + len(whole.test) == 40 * 39 // 2
    cold = split_objects(links, 40, None, 0.4)
    assert not set(cold.train.ravel()) & set(cold.test.ravel())
    two = split_objects(np.column_stack([rng.integers(0, 20, 90), rng.integers(0, 30, 90)]), 20, 30)
    assert not set(two.train[:, 0]) & set(two.test[:, 0]) and not set(two.train[:, 1]) & set(
        two.test[:, 1]
    )


NAMES = {
    "bilinear": FactorizedBilinear,
    "concat-dnn": ConcatDNN,
    "fm": PairFactorizationMachine,
    "honfm": HONFM,
    "low-rank-bilinear": LowRankBilinear,
    "pair-dnn": PairDNN,
    "pair-svm": PairSVM,
    "pairnet": PairNet,
}


def test_link_predictors_are_made_by_name():
    assert set(NAMES) <= set(LINKS.names()) and {name: LINKS.get(name) for name in NAMES} == NAMES
    model = make_link_predictor("pairnet", degree=3, beta=0.5)
    assert type(model) is PairNet and (model.degree, model.beta) == (3, 0.5)
    with pytest.raises(InputError, match="unknown link predictor 'pairnets': did you mean 'pairnet'"):
        make_link_predictor("pairnets")
    with pytest.raises(InputError, match="'pairnet' has no parameter 'degre': did you mean 'degree'"):
        make_link_predictor("pairnet", degre=3)
    with pytest.raises(InputError, match="degree must be an integer"):
        make_link_predictor("pairnet", degree=1)


def test_metrics():
    found = link_metrics([1, 1, 0, 0], [2.0, -1.0, 0.5, -3.0])
    assert found == (0.75, 0.5, 0.5, 0.5)
    assert np.isnan(link_metrics([1, 0], [-1.0, -2.0]).precision)
    with pytest.raises(InputError, match="links and pairs"):
        link_metrics([1, 1], [0.0, 1.0])


@pytest.mark.parametrize("one", [False, True])
def test_objects_known_by_ids_take_factors_of_those_with_the_same_neighbors(one):
    rng = np.random.default_rng(0)
    A = np.eye(12)
    B = None if one else np.eye(9)
    pairs = np.argwhere(np.triu(np.ones((12, 12)), 1)) if one else np.argwhere(np.ones((12, 9)))
    y = (rng.random(len(pairs)) < 0.4).astype(int)
    plain, smooth = (
        FactorizedBilinear(n_components=3, max_iter=5, smoothing=share).fit(A, B, pairs, y)
        for share in (0.0, 0.3)
    )
    M = np.zeros((12, 12 if one else 9))
    M[tuple(pairs[y == 1].T)] = 1
    if one:
        M += M.T
    N = M / np.sqrt(np.maximum(M.sum(axis=1), 1))[:, None] / np.sqrt(np.maximum(M.sum(axis=0), 1))
    for end, step in (("left", N @ N.T), ("right", N.T @ N)):
        U, found = getattr(plain.terms_[0], end), getattr(smooth.terms_[0], end)
        np.testing.assert_allclose(found, 0.7 * U + 0.3 * step @ U, rtol=1e-9, atol=1e-12)


def test_features_of_several_objects_are_not_smoothed():
    A, B, pairs, y = world()
    one, other = (
        FactorizedBilinear(n_components=3, max_iter=5, smoothing=share).fit(A, B, pairs, y)
        for share in (0.0, 0.9)
    )
    np.testing.assert_array_equal(one.terms_[0].left, other.terms_[0].left)
