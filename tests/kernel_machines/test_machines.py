import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from recsys import InputError
from recsys.kernel_machines import GRAM, KOMD, RMKL, AverageMKL, EasyMKL
from recsys.kernel_machines.mkl import combined, forms
from recsys.kernels import make_kernel, margin, radius
from tests.reference import machines as reference

MKL = [AverageMKL, EasyMKL, RMKL, GRAM]


def real(X, Z):
    """A kernel of real rows, for checks that feed real numbers."""
    X, Z = (x.toarray() if hasattr(x, "toarray") else np.asarray(x, dtype=float) for x in (X, Z))
    return np.exp(-0.5 * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


ESTIMATORS = {
    "KOMD real": KOMD(kernel=real),
    "KOMD": KOMD(),
    "KOMD precomputed": KOMD(kernel="precomputed"),
    "GRAM mC": GRAM(max_iter=5),
    **{kind.__name__: kind(kernels=[real, "linear"]) for kind in MKL},
}


@pytest.mark.filterwarnings("ignore:.*takes values above 0 as 1")
@pytest.mark.thorough
@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learns_checks(name):
    failed = [
        f"{row['check_name']}: {row['exception']!r}"
        for row in check_estimator(ESTIMATORS[name], on_fail=None, on_skip=None)
        if row["status"] == "failed"
    ]
    assert not failed, "\n".join(failed)


def task(seed=0, rows=120, n=12):
    """A monotone DNF over random binary rows."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, n)) < 0.5).astype(int)
    y = ((X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3] & X[:, 4])).astype(int)
    return X, y


def test_komd_at_zero_is_the_hard_margin_svm():
    X, y = task()
    K = make_kernel("mdnf-sum", d=2, c=3)(X, normalize=True)
    ours = KOMD(regularization=0.0, kernel="precomputed", tol=1e-10).fit(K, y)
    theirs = SVC(C=1e10, kernel="precomputed", tol=1e-8).fit(K, y)
    f, g = ours.decision_function(K), theirs.decision_function(K)
    scale = g @ f / (f @ f)
    assert scale > 0
    np.testing.assert_allclose(scale * f, g, atol=2e-4 * np.abs(g).max())
    assert ours.margin_ == pytest.approx(margin(K, y), abs=1e-6)
    assert scale == pytest.approx(2 / ours.margin_**2, rel=1e-3)


def test_komd_at_one_compares_centroids():
    X, y = task()
    K = make_kernel("linear")(X)
    f = KOMD(regularization=1.0, kernel="precomputed").fit(K, y).decision_function(K)
    p, n = X[y == 1].mean(axis=0), X[y == 0].mean(axis=0)
    np.testing.assert_allclose(f, (X - (p + n) / 2) @ (p - n), atol=1e-9)


@pytest.mark.parametrize("regularization", [0.01, 0.5, 0.9])
def test_komd_between_is_the_optimum_of_its_program(regularization):
    X, y = task()
    K = make_kernel("mc")(X, normalize=True)
    model = KOMD(regularization=regularization, kernel="mc").fit(X, y)
    signed = model.dual_

    def objective(v):
        return (1 - regularization) * v @ K @ v + regularization * v @ v

    rng, best = np.random.default_rng(0), objective(signed)
    for _ in range(200):
        other = rng.dirichlet(np.ones((y == 1).sum())), rng.dirichlet(np.ones((y == 0).sum()))
        point = np.empty(len(y))
        point[y == 1], point[y == 0] = other[0], -other[1]
        for t in (0.001, 0.1, 1.0):
            assert objective((1 - t) * signed + t * point) >= best - 1e-9
    assert model.gap_ < 1e-7


@pytest.mark.parametrize("kind", MKL)
def test_combinations(kind):
    X, y = task()
    model = kind().fit(X, y)
    assert model.weights_.sum() == pytest.approx(1) and (model.weights_ >= 0).all()
    grams = [make_kernel("mc", degree=d)(X, normalize=True) for d in range(1, len(model.weights_))]
    K = sum(w * G for w, G in zip(model.weights_, [*grams, np.eye(len(X))], strict=True))
    assert model.margin_ == pytest.approx(margin(K, y), abs=1e-5)
    assert model.radius_ == pytest.approx(radius(K), abs=1e-5)
    assert model.ratio_ == pytest.approx(model.radius_**2 / model.margin_**2 / len(X), rel=1e-6)
    given = kind(kernels="precomputed").fit(grams, y)
    np.testing.assert_allclose(given.weights_, model.weights_, atol=1e-9)
    new, _ = task(1, 40)
    cross = [make_kernel("mc", degree=d)(new, X, normalize=True) for d in range(1, len(model.weights_))]
    np.testing.assert_allclose(given.decision_function(cross), model.decision_function(new), atol=1e-9)
    assert roc_auc_score(task(1, 40)[1], model.decision_function(new)) > 0.9


def test_gram_descends_to_a_ratio_below_the_others():
    X, y = task(3)
    model = GRAM(tol=1e-6).fit(X, y)
    assert (np.diff(model.ratios_) < 0).all() and model.stopped_ in ("tolerance", "step")
    assert model.ratio_ == pytest.approx(model.ratios_[-1], rel=1e-6)
    for other in (AverageMKL(), EasyMKL(), RMKL()):
        assert model.ratio_ <= other.fit(X, y).ratio_ * (1 + 1e-6)
    assert GRAM(max_iter=1).fit(X, y).stopped_ == "max_iter"


def test_gram_finds_the_best_of_two_kernels_by_a_scan():
    X, y = task(5, 60)
    K1, K2 = (make_kernel("mc", degree=d)(X, normalize=True) for d in (1, 3))
    model = GRAM(kernels="precomputed", identity=False, tol=1e-10).fit([K1, K2], y)
    scan = [
        radius(t * K1 + (1 - t) * K2) ** 2 / max(margin(t * K1 + (1 - t) * K2, y), 1e-9) ** 2 / 60
        for t in np.linspace(0, 1, 101)
    ]
    assert model.ratio_ <= min(scan) * (1 + 1e-4)


def small(seed, rows=16):
    """A task and four kernels of unlike radii: two of unit diagonal, one larger, one smaller."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, 8)) < 0.5).astype(int)
    X[:2] = [[1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]]
    y = ((X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3])).astype(int)
    linear, pairs, triples = (make_kernel("mc", degree=d)(X, normalize=True) for d in (1, 2, 3))
    return [linear, 1.5 * pairs, triples, 0.7 * np.eye(rows)], y


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_easymkl_has_its_lambda_against_the_sum(seed, lam):
    grams, y = small(seed)
    model = EasyMKL(kernels="precomputed", identity=False, regularization=lam).fit(grams, y)
    np.testing.assert_allclose(model.weights_, reference.easy_weights(grams, y, lam), atol=2e-5)


def test_easymkl_tells_the_sum_from_the_mean_and_the_weights_from_their_reciprocals():
    """Guards the test above: its tolerance is far below what either mistake would change."""
    X, y = task(0, 40)
    grams = [make_kernel("mc", degree=d)(X, normalize=True) for d in range(1, 7)] + [np.eye(len(y))]
    right = reference.easy_weights(grams, y, 0.5)
    mean = reference.easy_weights([K / len(grams) for K in grams], y, 0.5)
    assert np.abs(mean - right).max() > 0.01
    assert np.abs((1 / right) / (1 / right).sum() - right).max() > 0.01
    model = EasyMKL(regularization=0.5, kernels="precomputed", identity=False).fit(grams, y)
    np.testing.assert_allclose(model.weights_, right, atol=2e-5)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 10.0]))
@example(942, 10.0)  # steps of exactly twice the right length went to and fro over the minimum
def test_rmkl_minimises_the_printed_program(seed, C):
    grams, y = small(seed)
    model = RMKL(kernels="precomputed", identity=False, C=C, tol=1e-6).fit(grams, y)
    least = reference.best_soft_margin_value(grams, y, C)
    assert model.stopped_ == "tolerance" and model.gap_ <= 1e-6
    assert model.objectives_[-1] == pytest.approx(least, rel=1e-5)
    assert reference.soft_margin_value(grams, y, C, model.weights_) == pytest.approx(least, rel=1e-5)
    equal = np.full(len(grams), 1 / len(grams))
    assert model.objectives_[0] == pytest.approx(
        reference.soft_margin_value(grams, y, C, equal), rel=1e-5
    )
    assert (np.diff(model.objectives_) < 0).all()


def test_rmkls_radii_matter():
    """Guards the test above: with all radii 1 the program has another minimum."""
    X, y = task(7, 40)
    grams = [make_kernel("mc", degree=d)(X, normalize=True) for d in (1, 2, 3)]
    # A constant adds to the diagonal and nothing to the radius.
    grams[0] = grams[0] + 2.0
    model = RMKL(kernels="precomputed", identity=False, tol=1e-6).fit(grams, y)
    least = reference.best_soft_margin_value(grams, y, 1.0)
    assert model.objectives_[-1] == pytest.approx(least, rel=1e-5)
    of_ones = reference.best_soft_margin_value(grams, y, 1.0, [1.0] * len(grams))
    assert abs(of_ones - least) > 0.01 * least


def test_rmkl_trusts_slack_more_the_smaller_c():
    X, y = task(2, 60)
    values = [RMKL(C=C).fit(X, y).objectives_[-1] for C in (0.1, 1.0, 10.0)]
    assert values == sorted(values)


@pytest.mark.thorough
@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_gram_finds_the_least_ratio_and_bounds_it(seed):
    grams, y = small(seed, 12)
    grams = [grams[1], grams[3]]
    model = GRAM(kernels="precomputed", identity=False).fit(grams, y)
    assert model.ratio_ == pytest.approx(reference.ratio(grams, y, model.weights_), rel=1e-5)
    least = reference.best_ratio(grams, y, starts=1)
    assert model.ratio_ <= least * (1 + 1e-3)
    assert model.ratio_ * (1 - model.gap_) <= least * (1 + 1e-6)


@pytest.mark.parametrize("kind", MKL)
def test_an_inseparable_combination_has_an_infinite_ratio(kind):
    X, y = np.array([[1, 1, 0]] * 6 + [[0, 1, 1]] * 6), np.array([0, 1] * 6)
    model = kind(identity=False).fit(X, y)
    assert model.ratio_ == np.inf and np.isfinite(model.weights_).all()
    if kind is GRAM:
        assert model.stopped_ == "step" and model.ratios_ == [np.inf]
    separated = kind().fit(X, y)
    assert np.isfinite(separated.ratio_)


def test_gram_without_normalisation():
    X, y = task(2)
    model = GRAM(normalize=False, kernels=["linear", "mc", "md"]).fit(X, y)
    assert (np.diff(model.ratios_) < 0).all()
    own = [make_kernel(n)(X) for n in ("linear", "mc", "md")] + [np.eye(len(X))]
    K = sum(w * G for w, G in zip(model.weights_, own, strict=True))
    assert model.radius_ == pytest.approx(radius(K), rel=1e-5)


def test_quadratic_forms_of_several_matrices():
    own = [np.full((5, 5), float(k)) for k in range(4)]
    grams = np.array(own)
    np.testing.assert_allclose(combined(np.array([0.1, 0.2, 0.0, 0.7]), grams), np.full((5, 5), 2.3))
    v = np.array([0.0, 0, 0, 1, 2])
    expected = [[factor**2 * v.sum() ** 2 * k for k in range(4)] for factor in (1.0, 2.0)]
    np.testing.assert_allclose(forms(grams, v, 2 * v), expected)


@pytest.mark.parametrize("kind", [KOMD, *MKL])
def test_refusals(kind):
    X, y = task()
    with pytest.raises(ValueError, match="two classes|binary"):
        kind().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="two classes|binary"):
        kind().fit(X, np.arange(len(X)) % 3)
    if kind is not KOMD:
        with pytest.raises(InputError, match="kernels is a list"):
            kind(kernels="linear").fit(X, y)
        with pytest.raises(InputError, match="unknown kernel 'mcc'"):
            kind(kernels=["mcc"]).fit(X, y)
        with pytest.raises(InputError, match="square matrices"):
            kind(kernels="precomputed").fit([np.ones((2, 3))], [0, 1])


@pytest.mark.parametrize(
    "model",
    [
        KOMD(regularization=2),
        KOMD(tol=0),
        EasyMKL(regularization=-1),
        GRAM(learning_rate=0),
        GRAM(tol=-1),
        GRAM(max_iter=0),
        RMKL(C=0),
        RMKL(tol=0),
    ],
    ids=repr,
)
def test_parameters_out_of_range(model):
    with pytest.raises(InputError, match="must be"):
        model.fit(*task())


OF_NUMBERS = {
    "linear": lambda A, B: A @ B.T,
    "hp": lambda A, B: (A @ B.T) ** 2,
    "polynomial": lambda A, B: (A @ B.T + 1.0) ** 2,
    "rbf": lambda A, B: np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2)),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_kernels_of_products_take_numbers_as_they_are(name):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(20, 3))
    y, params = X[:, 0] + X[:, 1] * X[:, 2] > 0, {"gamma": 0.5} if name == "rbf" else {}
    for normalize in (False, True):
        ours = KOMD(kernel=name, kernel_params=params, normalize=normalize).fit(X, y)
        theirs = KOMD(kernel=OF_NUMBERS[name], normalize=normalize).fit(X, y)
        expected = theirs.decision_function(new)
        np.testing.assert_allclose(ours.decision_function(new), expected, atol=1e-6)


def test_a_boolean_kernel_says_that_numbers_become_bits():
    X, y = np.array([[0.2, 0.0], [0.0, 0.7], [0.9, 0.0], [0.0, 0.4]]), [0, 1, 0, 1]
    with pytest.warns(UserWarning, match="takes values above 0 as 1 and others as 0"):
        numbers = KOMD(kernel="tanimoto").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bits = KOMD(kernel="tanimoto").fit(X > 0, y)
        KOMD(kernel="rbf").fit(X, y)
    np.testing.assert_allclose(numbers.dual_, bits.dual_)
