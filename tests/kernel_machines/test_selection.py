import numpy as np
import pytest
from sklearn.svm import LinearSVC

from recsys.kernel_machines import KOMD, radius_margin_ratio
from recsys.kernels import make_kernel, margin, radius


def task(seed=0, rows=90):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, 10)) < 0.5).astype(int)
    return X, (X[:, 0] & X[:, 1] | X[:, 2] & X[:, 3]).astype(int)


def test_the_ratio_is_radius_over_margin():
    X, y = task()
    K = make_kernel("mc", degree=2)(X + 0, normalize=True)
    assert radius_margin_ratio(K, y) == pytest.approx(
        radius(K) ** 2 / margin(K, y) ** 2 / len(y), rel=1e-5
    )


def test_an_inseparable_kernel_is_infinite_until_the_identity_joins():
    X, y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]]), np.array([0, 1, 0, 1])
    K = make_kernel("linear")(X)
    assert radius_margin_ratio(K, y) == np.inf
    assert np.isfinite(radius_margin_ratio(K, y, identity=0.1))


def test_the_identity_has_the_size_of_the_kernel():
    X, y = task(seed=1)
    K = make_kernel("linear")(X)
    size = np.mean(np.diag(K))
    joined = 0.8 * K + 0.2 * size * np.eye(len(y))
    found = radius_margin_ratio(K, y, identity=0.2)
    assert found == pytest.approx(radius_margin_ratio(joined, y), rel=1e-5)
    assert found == pytest.approx(radius_margin_ratio(50.0 * K, y, identity=0.2), rel=1e-5)


@pytest.mark.parametrize("cost", [0.1, 1.0, 30.0])
def test_the_soft_margin_is_the_squared_hinge_svm(cost):
    X, y = task(seed=2)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.1, 1 - y, y)
    K = X @ X.T.astype(float)
    ours = KOMD(regularization=1.0 / (1.0 + cost), kernel="precomputed").fit(K, y)
    # LinearSVC's dual has 1/(2C) on the diagonal, and its intercept is a penalised feature: with a
    # large scale the penalty on it vanishes.
    theirs = LinearSVC(
        C=cost / 2, loss="squared_hinge", intercept_scaling=1000, tol=1e-8, max_iter=10**6
    ).fit(X, y)
    f, g = ours.decision_function(K), theirs.decision_function(X)
    f, g = f - f.mean(), g - g.mean()  # the intercepts differ by the ridge's part
    scale = f @ g / (f @ f)
    np.testing.assert_allclose(scale * f, g, atol=2e-3 * np.abs(g).max())
