"""Random feature maps for itemset kernels, as scikit-learn transformers.

⟨Z(x), Z(y)⟩ has the kernel as its expectation: a linear model on Z approximates a kernel machine.
Sources: Atarashi, Maji and Oyama 2019; Atarashi's thesis, chapter 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.utils.validation import check_is_fitted, validate_data

from recsys.errors import InputError
from recsys.multilinear import newton_identities
from recsys.random_features._bases import DISTRIBUTIONS, draw, draw_sparse, sparse_map
from recsys.random_features._products import kernel_map
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_choice, check_integer, check_real

KERNELS = ("anova", "all-subsets")
DENSE = "lower n_components, or use SparseRandomKernelMap or SubsampledRandomKernelMap"
BATCH = 1 << 21  # entries of the dense rows that a circulant map has at once


class _Map(TransformerMixin, BaseEstimator):
    """What the maps share."""

    kernel: str
    degree: int
    n_components: int
    distribution: str
    random_state: Any

    def fit(self, X: ArrayLike, y: Any = None) -> Any:
        """Draw the bases for as many features as X has.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._check_parameters()
        checked: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        self._draw(checked.shape[1], np.random.default_rng(self.random_state))
        return self

    def transform(self, X: ArrayLike) -> Any:
        """Return the random features of each row, (rows, n_components)."""
        check_is_fitted(self)
        checked: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = sp.csr_matrix(checked, copy=True)  # the caller's arrays stay as they are
        rows.sum_duplicates()
        return self._map(rows)

    def _check_bases(self, features: int, tables: float = 1) -> None:
        D = self.n_components
        what = f"the bases of {features} features and n_components={D}"
        check_fits(float(tables) * features * D, what, DENSE)

    def _check_sparse_bases(self, features: int, entries: float, tables: int) -> None:
        """Refuse `tables` sparse bases of so many entries a component where they are not free."""
        D = self.n_components
        what = f"the bases of {features} features and n_components={D}"
        # An entry is a value and an index; of a base that is drawn there are several copies at once, and
        # a component has an array of its own.
        check_fits(D * ((1.5 * tables + 5.1) * entries + 16.0), what, "lower n_components")

    def _check_output(self, rows: int) -> None:
        D = self.n_components
        what = f"the random features of {rows} rows and n_components={D}"
        check_fits(float(rows) * D, what, "transform fewer rows at a time, or lower n_components")

    def _check_parameters(self) -> None:
        if hasattr(self, "kernel"):
            check_choice("kernel", self.kernel, KERNELS)
        check_integer("degree", self.degree, 1, 30)
        check_integer("n_components", self.n_components, 1)
        if hasattr(self, "distribution"):
            check_choice("distribution", self.distribution, DISTRIBUTIONS)

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def _map(self, rows: sp.csr_matrix) -> Any:
        raise NotImplementedError

    @property
    def _order(self) -> int:
        return 0 if self.kernel == "all-subsets" else self.degree

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RandomKernelMap(_Map):
    """RK: Z_s(x) = K(ω_s, x)/√D with independent ω of mean 0 and variance 1.

    Sparse rows cost what their entries do. Of dense ones, products of matrices give the kernel, except
    where they would be less accurate: where a few entries outweigh the rest, and for all subsets where
    the bases are no signs or the entries are large.

    Parameters
    ----------
    kernel : "anova" or "all-subsets"
        All subsets are the ANOVA kernels of every order, summed.
    degree : int ≥ 1
        Order m of the ANOVA kernel.
    n_components : int ≥ 1
        D.
    distribution : "rademacher", "gaussian", "uniform" or "laplace"
        The first has the smallest variance.
    random_state : int, Generator or None

    Attributes
    ----------
    bases_ : (features, n_components) float64

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import RandomKernelMap
    >>> Z = RandomKernelMap(n_components=20000).fit_transform(X)
    >>> (Z @ Z.T).round()  # the ANOVA kernel: [[3, 1], [1, 1]]
    array([[3., 1.],
           [1., 1.]])
    """

    def __init__(
        self, kernel: str = "anova", degree: int = 2, n_components: int = 100,
        distribution: str = "rademacher", random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.degree = degree
        self.n_components = n_components
        self.distribution = distribution
        self.random_state = random_state

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        self._check_bases(
            features, 2 if self.distribution == "rademacher" else 1
        )  # drawn as whole numbers
        self.bases_ = draw(rng, self.distribution, (features, self.n_components))

    def _map(self, rows: sp.csr_matrix) -> NDArray[np.float64]:
        self._check_output(rows.shape[0])
        return kernel_map(rows, self.bases_, self._order, 1.0 / np.sqrt(self.n_components))


class SignedCirculantMap(_Map):
    """SCRK: RK for the ANOVA kernel whose bases are signed circulant, in O(D log d) by FFT.

    Blocks diag(σ)·circ(ω) of d bases each; power sums of a row by FFT, the kernel by Newton's
    identities.

    Parameters
    ----------
    degree : int ≥ 1
        Order m of the ANOVA kernel.
    n_components : int ≥ 1
        D.
    random_state : int, Generator or None
        Entries are Rademacher.

    Attributes
    ----------
    omega_, sign_ : (blocks, features) float64

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import SignedCirculantMap
    >>> Z = SignedCirculantMap(n_components=20000).fit_transform(X)
    >>> (Z @ Z.T).round()  # the ANOVA kernel: [[3, 1], [1, 1]]
    array([[3., 1.],
           [1., 1.]])
    """

    def __init__(self, degree: int = 2, n_components: int = 100, random_state: Any = 0) -> None:
        self.degree = degree
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        blocks = -(-self.n_components // features)
        what = f"the bases of {features} features and n_components={self.n_components}"
        # two tables, and the whole numbers that the second one is drawn as
        check_fits(3.0 * blocks * features, what, "lower n_components")
        self.omega_ = draw(rng, "rademacher", (blocks, features))
        self.sign_ = draw(rng, "rademacher", (blocks, features))

    def bases(self) -> NDArray[np.float64]:
        """Return the bases as a matrix, (features, n_components)."""
        d = self.omega_.shape[1]
        self._check_bases(d, 2)
        shift = (np.arange(d)[:, None] - np.arange(d)[None, :]) % d  # [output, feature]
        rows = [
            sign[:, None] * omega[shift] for omega, sign in zip(self.omega_, self.sign_, strict=True)
        ]
        return np.vstack(rows)[: self.n_components].T

    def _map(self, rows: sp.csr_matrix) -> NDArray[np.float64]:
        self._check_output(rows.shape[0])
        out = np.empty((rows.shape[0], self.n_components))
        step = max(1, BATCH // rows.shape[1])
        for start in range(0, rows.shape[0], step):  # dense rows, so a few at a time
            self._map_some(rows[start : start + step].toarray(), out[start : start + step])
        return out

    def _map_some(self, dense: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        d = dense.shape[1]
        spectra = [np.fft.rfft(dense**t, axis=1) for t in range(1, self.degree + 1)]
        for b, (omega, sign) in enumerate(zip(self.omega_, self.sign_, strict=True)):
            sums = [
                np.fft.irfft(spectrum * np.fft.rfft(omega**t), n=d, axis=1)
                for t, spectrum in enumerate(spectra, 1)
            ]
            width = min(d, self.n_components - b * d)
            out[:, b * d : b * d + width] = (newton_identities(sums)[-1] * sign**self.degree)[:, :width]
        out /= np.sqrt(self.n_components)


class SparseRandomKernelMap(_Map):
    """Sparse RK: RK for the ANOVA kernel with sparse Rademacher bases; sparse rows stay sparse.

    Parameters
    ----------
    degree : int ≥ 1
        Order m of the ANOVA kernel.
    n_components : int ≥ 1
        D.
    sparsity : float in 0…1, below 1
        Probability p of a zero in a base.
    random_state : int, Generator or None

    Attributes
    ----------
    bases_ : (features, n_components) CSR

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import SparseRandomKernelMap
    >>> Z = SparseRandomKernelMap(n_components=20000, sparsity=0.5).fit_transform(X)
    >>> (Z @ Z.T).toarray().round()  # the ANOVA kernel: [[3, 1], [1, 1]]
    array([[3., 1.],
           [1., 1.]])
    """

    def __init__(
        self, degree: int = 2, n_components: int = 100, sparsity: float = 0.9, random_state: Any = 0
    ) -> None:
        self.degree = degree
        self.n_components = n_components
        self.sparsity = sparsity
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if check_real("sparsity", self.sparsity, 0.0, 1.0) == 1.0:
            raise InputError("sparsity must be below 1: bases of zeros carry nothing")

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        self._check_sparse_bases(features, features * (1.0 - self.sparsity), 1)
        self.bases_ = draw_sparse(rng, features, self.n_components, self.sparsity)

    def _map(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        return sparse_map(rows, self.bases_, self.degree, 1.0 / np.sqrt(self.n_components))


class SubsampledRandomKernelMap(_Map):
    """Subsampled RK: each base looks at `subset` features only; sparse rows stay sparse.

    A set of m features lies in a random subset of k with probability C(d−m, k−m)/C(d, k), by
    whose root the feature is divided.

    Parameters
    ----------
    degree : int ≥ 1
        Order m of the ANOVA kernel.
    n_components : int ≥ 1
        D.
    subset : int ≥ degree
        Features a base looks at, k; capped at their number.
    random_state : int, Generator or None

    Attributes
    ----------
    bases_ : (features, n_components) CSR
    scale_ : float

    Notes
    -----
    Source: Atarashi's thesis, Algorithm 10 and (4.36).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import SubsampledRandomKernelMap
    >>> Z = SubsampledRandomKernelMap(n_components=20000, subset=3).fit_transform(X)
    >>> (Z @ Z.T).toarray().round()  # the ANOVA kernel: [[3, 1], [1, 1]]
    array([[3., 1.],
           [1., 1.]])
    """

    def __init__(
        self, degree: int = 2, n_components: int = 100, subset: int = 10, random_state: Any = 0
    ) -> None:
        self.degree = degree
        self.n_components = n_components
        self.subset = subset
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("subset", self.subset, self.degree)

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        k = min(self.subset, features)
        m = min(self.degree, features)
        self._check_sparse_bases(features, k, 1)
        where = np.concatenate(
            [rng.choice(features, k, replace=False) for _ in range(self.n_components)]
        )
        columns = np.repeat(np.arange(self.n_components), k)
        values = draw(rng, "rademacher", (len(where),))
        self.bases_ = sp.csr_matrix((values, (where, columns)), (features, self.n_components))
        self.scale_ = float(np.exp(0.5 * (_log_choose(features, k) - _log_choose(features - m, k - m))))

    def _map(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        scale = self.scale_ / np.sqrt(self.n_components)
        return sparse_map(rows, self.bases_, self.degree, scale)


class TensorSketch(_Map):
    """Tensor sketch of the polynomial kernel (⟨x, y⟩ + coef)^degree, by scikit-learn.

    Parameters
    ----------
    degree : int ≥ 1
        Of the polynomial.
    n_components : int ≥ 1
        D.
    coef : float ≥ 0
        Constant added to ⟨x, y⟩.
    random_state : int, Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import TensorSketch
    >>> Z = TensorSketch(n_components=512).fit_transform(X)
    >>> (Z @ Z.T).round()  # ⟨x, y⟩²: [[9, 4], [4, 4]]
    array([[9., 4.],
           [4., 4.]])
    """

    def __init__(
        self, degree: int = 2, n_components: int = 100, coef: float = 0.0, random_state: Any = 0
    ) -> None:
        self.degree = degree
        self.n_components = n_components
        self.coef = coef
        self.random_state = random_state

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        self.sketch_ = PolynomialCountSketch(
            degree=self.degree, n_components=self.n_components, coef0=self.coef,
            random_state=int(rng.integers(2**31)),
        ).fit(np.zeros((1, features)))  # fmt: skip

    def _map(self, rows: sp.csr_matrix) -> NDArray[np.float64]:
        return self.sketch_.transform(rows)


def redundant_feature_augmentation(X: ArrayLike, copies: int) -> Any:
    """Repeat every feature, scaled so that itemset kernels of the result come near those of multisets.

    With c copies of each x_j/√c the ANOVA kernel of order m weighs the multiset that has x_j m_j times
    by Π_j C(c, m_j)/c^m_j. That tends to Π_j 1/m_j!, the weights of ⟨x, y⟩^m/m!, as c grows, and is
    below them for every finite c (none at all where some m_j > c): a kernel of its own, and a biased
    estimate of the polynomial one. For multisets with weights of choice, exactly, use `ItemsetMap`.

    Parameters
    ----------
    X : (rows, features) array or sparse matrix
    copies : int ≥ 1

    Returns
    -------
    (rows, features · copies), dense or CSR as X

    Raises
    ------
    InputError
        If copies is not an integer of 1 or more.

    Notes
    -----
    Not the procedure of the same name in Atarashi's thesis, Algorithm 7, which repeats a feature
    unscaled, as often as its multisets have it, and lists itemsets with their weights: that is what
    `ItemsetMap` does with itemsets that name a feature several times.

    Examples
    --------
    >>> from recsys.random_features import redundant_feature_augmentation
    >>> redundant_feature_augmentation([[1.0, 2.0]], 4)
    array([[0.5, 1. , 0.5, 1. , 0.5, 1. , 0.5, 1. ]])
    """
    check_integer("copies", copies, 1)
    if sp.issparse(X):
        return sp.csr_matrix(sp.hstack([X] * copies, format="csr") / np.sqrt(copies))
    return np.tile(np.atleast_2d(np.asarray(X, dtype=np.float64)), (1, copies)) / np.sqrt(copies)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def __getattr__(name: str) -> Any:
    """Return what was defined here in 0.1.0, whose pickles name this module."""
    if name == "RandomMaclaurin":
        from recsys.random_features.maclaurin import RandomMaclaurin  # it imports this module

        return RandomMaclaurin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
