"""Random feature maps for itemset kernels, as scikit-learn transformers.

⟨Z(x), Z(y)⟩ has the kernel as its expectation: a linear model on Z approximates a kernel machine.
Sources: Atarashi, Maji and Oyama 2019; Atarashi's thesis, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.multilinear import newton_identities
from recsys.random_features._bases import (
    DISTRIBUTIONS,
    dense_map,
    draw,
    draw_sparse,
    sign_map,
    sparse_map,
)
from recsys.utils.estimators import SparseRowsMixin, checked_rows
from recsys.utils.validation import check_choice, check_integer, check_real

SAMPLINGS = {  # of each kernel
    "anova": ("dense", "sparse", "subsampled", "circulant"),
    "all-subsets": ("dense",),
    "polynomial": ("dense", "sparse", "subsampled", "sketch"),
}
SPARSE_ROWS = 1000  # that are projected at once
BATCH = 1 << 21  # entries of the dense rows that a circulant map has at once


class _Map(SparseRowsMixin, TransformerMixin, BaseEstimator):
    """Base of the maps."""

    n_components: int
    random_state: Any

    def fit(self, X: ArrayLike, y: Any = None) -> Any:
        """Draw the bases for as many features as X has."""
        self._check_parameters()
        rows = self._rows(X, reset=True)
        self._draw(rows.shape[1], np.random.default_rng(self.random_state))
        return self

    def transform(self, X: ArrayLike) -> Any:
        """Return the random features of each row, (rows, n_components)."""
        check_is_fitted(self)
        return self._map(self._rows(X, reset=False))

    def _rows(self, X: ArrayLike, reset: bool) -> sp.csr_matrix:
        checked: Any = checked_rows(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return sp.csr_matrix(checked, copy=True)  # writable, as compiled code takes it

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def _map(self, rows: sp.csr_matrix) -> Any:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class RandomKernelMap(_Map):
    """Random features of ANOVA, all-subsets and polynomial kernels, with E⟨Z(x), Z(y)⟩ = K(x, y).

    With random vectors ω whose entries have mean 0 and variance 1, Z_s(x) = K(ω_s, x)/√D for the ANOVA
    kernel and for all subsets; for the polynomial kernel Z_s(x) is a product of projections ⟨ω, x⟩.

    Parameters
    ----------
    kernel : "anova", "all-subsets" or "polynomial"
        The all-subsets kernel is the sum of the ANOVA kernels of every order; the polynomial kernel is
        (⟨x, y⟩ + coef)^degree.
    degree : int ≥ 1
        Order m of the ANOVA kernel, or degree of the polynomial; ignored for all subsets.
    n_components : int ≥ 1
        D.
    distribution : "rademacher", "gaussian", "uniform" or "laplace"
        Distribution of dense entries; the first one has the smallest variance. Other samplings use
        signs.
    sampling : str
        Sampling of the random vectors:

        - "dense": all entries are random.
        - "sparse" (not for all subsets): an entry is 0 with probability `sparsity`, else ±1/√(1 − p).
          Sparse rows give sparse features. (Features of all subsets are never 0.)
        - "subsampled" (not for all subsets): each vector uses a random subset of `subset` features.
          Sparse rows give sparse features. They are divided by the root of the probability C(d−m,
          k−m)/C(d, k) that a set of m features is in the subset; those of the polynomial, with `degree`
          subsets per component, are multiplied by (d/k)^(degree/2).
        - "circulant" (ANOVA): blocks diag(σ)·circ(ω) of d vectors each, in O(D log d) by FFT.
        - "sketch" (polynomial): the tensor sketch, by scikit-learn.
    sparsity : float in 0…1, below 1
        Probability p of a zero, for "sparse".
    subset : int ≥ 1, and ≥ degree for the ANOVA kernel
        Number k of features of a vector, for "subsampled".
    coef : float ≥ 0
        Constant added to ⟨x, y⟩, for the dense and the sketched polynomial.
    random_state : int, Generator or None

    Attributes
    ----------
    bases_ : (features, n_components) float64 or CSR
        The random vectors. The dense polynomial has (degree, features, n_components), the sparse and
        subsampled polynomial a list of `degree` CSR matrices. A circulant map has `omega_` and `sign_`,
        (blocks, features) float64, instead; a sketch has none.

    Notes
    -----
    Sources: Atarashi, Maji and Oyama 2019; Atarashi's thesis, Algorithms 9, 10 and 12 (line 6 of which
    prints subsets of n features instead of k), (4.26), (4.36) and Lemma 4.14; the dense polynomial: Kar
    and Karnick 2012, where component s multiplies a random number of projections.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> Z = RandomKernelMap(n_components=20000).fit_transform(X)
    >>> (Z @ Z.T).round()  # the ANOVA kernel: [[3, 1], [1, 1]]
    array([[3., 1.],
           [1., 1.]])
    """

    kernel: str = "anova"
    degree: int = 2
    n_components: int = 100
    distribution: str = "rademacher"
    sampling: str = "dense"
    sparsity: float = 0.9
    subset: int = 10
    coef: float = 0.0
    random_state: Any = 0

    def _check_parameters(self) -> None:
        check_choice("kernel", self.kernel, tuple(SAMPLINGS))
        check_choice(f"sampling of kernel {self.kernel}", self.sampling, SAMPLINGS[self.kernel])
        check_integer("degree", self.degree, 1, 30)
        check_integer("n_components", self.n_components, 1)
        check_choice("distribution", self.distribution, DISTRIBUTIONS)
        if self.sampling != "dense" and self.distribution != "rademacher":
            raise InputError(f"sampling {self.sampling} needs distribution rademacher")
        check_real("sparsity", self.sparsity, 0.0, 1.0, open_high=True)
        if self.sampling == "subsampled":
            check_integer("subset", self.subset, 1 if self._polynomial else self.degree)
        if check_real("coef", self.coef, 0.0) > 0.0 and not (
            self._polynomial and self.sampling in ("dense", "sketch")
        ):
            raise InputError("coef is for kernel polynomial with sampling dense or sketch")

    @property
    def _polynomial(self) -> bool:
        return self.kernel == "polynomial"

    # ---- bases

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        getattr(self, f"_draw_{self.sampling}")(features, rng)

    def _draw_dense(self, features: int, rng: np.random.Generator) -> None:
        D, m = self.n_components, self.degree
        if not self._polynomial:
            self.bases_: Any = draw(rng, self.distribution, (features, D))
            return
        weight = np.array([comb(m, n) * float(self.coef) ** (m - n) for n in range(m + 1)])
        share = weight / weight.sum()
        self.orders_ = rng.choice(m + 1, D, p=share)
        self.scales_ = np.sqrt(weight[self.orders_] / share[self.orders_])
        self.bases_ = draw(rng, self.distribution, (m, features, D))

    def _draw_sparse(self, features: int, rng: np.random.Generator) -> None:
        tables = [
            draw_sparse(rng, features, self.n_components, self.sparsity)
            for _ in range(self.degree if self._polynomial else 1)
        ]
        self.bases_, self.scale_ = tables if self._polynomial else tables[0], 1.0

    def _draw_subsampled(self, features: int, rng: np.random.Generator) -> None:
        k, D, m = min(self.subset, features), self.n_components, self.degree
        tables = []
        for _ in range(m if self._polynomial else 1):
            where = np.concatenate([rng.choice(features, k, replace=False) for _ in range(D)])
            values = draw(rng, "rademacher", (len(where),))
            tables.append(sp.csr_matrix((values, (where, np.repeat(np.arange(D), k))), (features, D)))
        if self._polynomial:
            self.bases_, self.scale_ = tables, (features / k) ** (0.5 * m)
        else:
            self.bases_ = tables[0]
            shares = [(features - i) / (k - i) for i in range(min(m, features))]
            self.scale_ = float(np.sqrt(np.prod(shares)))

    def _draw_circulant(self, features: int, rng: np.random.Generator) -> None:
        shape = (-(-self.n_components // features), features)
        self.omega_ = draw(rng, "rademacher", shape)
        self.sign_ = draw(rng, "rademacher", shape)

    def _draw_sketch(self, features: int, rng: np.random.Generator) -> None:
        self.sketch_ = PolynomialCountSketch(
            degree=self.degree,
            n_components=self.n_components,
            coef0=self.coef,
            random_state=int(rng.integers(2**31)),
        ).fit(np.zeros((1, features)))

    # ---- features

    def _map(self, rows: sp.csr_matrix) -> Any:
        scale = 1.0 / np.sqrt(self.n_components)
        if self.sampling == "sketch":
            return self.sketch_.transform(rows)
        if self.sampling == "circulant":
            return scale * self._circulant(rows)
        if self.sampling in ("sparse", "subsampled"):
            scale *= self.scale_
            if not self._polynomial:
                return sparse_map(rows, self.bases_, self.degree, scale)
            # some rows at a time: a projection has far more entries than the product of two
            starts = range(0, rows.shape[0], SPARSE_ROWS)
            parts = [self._product(rows[start : start + SPARSE_ROWS]) for start in starts]
            return scale * sp.vstack(parts, format="csr")
        if self._polynomial:
            out = np.tile(scale * self.scales_, (rows.shape[0], 1))
            for t, bases in enumerate(self.bases_):
                out *= np.where(self.orders_ > t, rows @ bases, 1.0)
            return out
        if self.kernel == "all-subsets":
            return dense_map(rows, self.bases_, 0, scale)
        features = sign_map if self.distribution == "rademacher" else dense_map
        return features(rows, self.bases_, self.degree, scale)

    def _product(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        projections = (rows @ bases for bases in self.bases_)
        return sp.csr_matrix(reduce(lambda one, other: one.multiply(other), projections))

    def _circulant(self, rows: sp.csr_matrix) -> NDArray[np.float64]:
        """Return power sums by FFT, and the kernel by Newton's identities, some dense rows at a time."""
        d, out = rows.shape[1], np.empty((rows.shape[0], self.n_components))
        step = max(1, BATCH // d)
        for start in range(0, rows.shape[0], step):
            dense = rows[start : start + step].toarray()
            spectra = [np.fft.rfft(dense**t, axis=1) for t in range(1, self.degree + 1)]
            for b, (omega, sign) in enumerate(zip(self.omega_, self.sign_, strict=True)):
                sums = [
                    np.fft.irfft(spectrum * np.fft.rfft(omega**t), n=d, axis=1)
                    for t, spectrum in enumerate(spectra, 1)
                ]
                width = min(d, self.n_components - b * d)
                found = newton_identities(sums)[-1] * sign**self.degree
                out[start : start + step, b * d : b * d + width] = found[:, :width]
        return out


# ---- names of the papers; `options` are those of `RandomKernelMap`


def SparseRandomKernelMap(degree: int = 2, n_components: int = 100, **options: Any) -> RandomKernelMap:
    """Return the `RandomKernelMap` of the ANOVA kernel with sampling "sparse" (sparse RK)."""
    return RandomKernelMap("anova", degree, n_components, sampling="sparse", **options)


def SubsampledRandomKernelMap(
    degree: int = 2, n_components: int = 100, **options: Any
) -> RandomKernelMap:
    """Return the `RandomKernelMap` of the ANOVA kernel with sampling "subsampled" (subsampled RK)."""
    return RandomKernelMap("anova", degree, n_components, sampling="subsampled", **options)


def SignedCirculantMap(degree: int = 2, n_components: int = 100, **options: Any) -> RandomKernelMap:
    """Return the `RandomKernelMap` of the ANOVA kernel with sampling "circulant" (SCRK)."""
    return RandomKernelMap("anova", degree, n_components, sampling="circulant", **options)


def RandomMaclaurin(degree: int = 2, n_components: int = 100, **options: Any) -> RandomKernelMap:
    """Return the `RandomKernelMap` of the polynomial kernel with sampling "dense" (RM)."""
    return RandomKernelMap("polynomial", degree, n_components, **options)


def TensorSketch(degree: int = 2, n_components: int = 100, **options: Any) -> RandomKernelMap:
    """Return the `RandomKernelMap` of the polynomial kernel with sampling "sketch"."""
    return RandomKernelMap("polynomial", degree, n_components, sampling="sketch", **options)
