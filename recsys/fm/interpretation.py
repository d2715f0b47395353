"""Interpretation of a fitted factorization machine: interactions, used features, sparsification."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from recsys.errors import FitError, InputError
from recsys.fm.penalties import as_penalty, penalties
from recsys.utils.validation import check_integer

BLOCK = 512


class Sparsified(NamedTuple):
    """The result of `sparsify`: `gamma`, the number of interactions, and every pair of both it tried."""

    gamma: float
    n_interactions: int
    trail: tuple[tuple[float, int], ...]


class Interpretation:
    """Methods that interpret a factorization machine; `_table_of` is the model's."""

    P_: Any
    component_weights_: Any
    fit_linear: bool
    gamma: float
    n_components: int
    penalty: str

    def _table_of(self, order: int) -> tuple[Any, Any]:
        raise NotImplementedError

    def _interactions(self) -> tuple[int, Any, Any]:
        """Return the order that `n_used_interactions_` counts, its P, and its columns' weights."""
        return 2, *self._table_of(2)

    def interaction_weight(self, features: Sequence[int]) -> float:
        """Return the weight of the product of these distinct features: Σ_s ±Π_j p_js.

        Raises
        ------
        InputError
            If the model has no term of that order.
        """
        chosen = [int(j) for j in features]
        if len(set(chosen)) != len(chosen):
            raise InputError(f"an interaction has distinct features, not {chosen}")
        P, weights = self._table_of(len(chosen))
        return float((weights * np.prod(P[chosen], axis=0)).sum())

    def top_interactions(
        self, n: int = 10, names: Sequence[str] | None = None
    ) -> list[tuple[tuple[Any, Any], float]]:
        """Return the pairs of features with the largest weights in magnitude.

        Parameters
        ----------
        n : int ≥ 1
        names : sequence of str, optional
            Names instead of numbers.

        Raises
        ------
        InputError
            If the model has no term of second order.
        """
        check_integer("n", n, 1)
        P, weights = self._table_of(2)
        used = np.flatnonzero((P != 0).any(axis=1))
        best: list[tuple[float, int, int]] = []
        for start in range(0, len(used), BLOCK):  # rows in blocks: never the whole matrix
            block = used[start : start + BLOCK]
            W = (P[block] * weights) @ P[used].T
            W[used[None, :] <= block[:, None]] = 0.0
            flat = np.argsort(-np.abs(W).ravel(), kind="stable")[:n]
            a, b = np.unravel_index(flat, W.shape)
            found = zip(W[a, b], block[a], used[b], strict=True)
            best += [(float(w), int(i), int(j)) for w, i, j in found if w != 0]
            best = sorted(best, key=lambda entry: (-abs(entry[0]), entry[1:]))[:n]
        label = (lambda j: j) if names is None else (lambda j: names[j])
        return [((label(i), label(j)), w) for w, i, j in best]

    @property
    def n_used_features_(self) -> int:
        """Features with a non-zero row in some P."""
        check_is_fitted(self)
        return int(np.any([(P != 0).any(axis=(0, 2)) for P in self.P_], axis=0).sum())

    @property
    def n_used_interactions_(self) -> int:
        """Pairs of features with a weight other than 0 in the term of second order.

        Where the model has none of second order (order m alone, `fit_lower=None`): sets of m features of
        which some component has all, so that their product has a weight.
        """
        order, P, weights = self._interactions()
        P = P[(P != 0).any(axis=1)]
        if order > 2:
            return _sets_together((P != 0) & (weights != 0), order)
        count = 0
        for start in range(0, len(P), BLOCK):
            W = (P[start : start + BLOCK] * weights) @ P.T
            count += int(np.count_nonzero(np.triu(W, start + 1)))
        return count

    def _selects(self) -> bool:
        if as_penalty(self.penalty).vanishes:
            names = [f"{penalty.name!r}" for penalty in penalties() if not penalty.vanishes]
            raise InputError(
                f"penalty {as_penalty(self.penalty).name!r} leaves no interaction out: use "
                f"{', '.join(names[:-1])} or {names[-1]}"
            )
        return True

    def _take_over(self, model: Any) -> None:
        """Become a clone of this one that was fitted: its `gamma`, and all that it learned."""
        self.gamma = model.gamma
        parameters = set(model.get_params())
        for name, value in vars(model).items():
            if name not in parameters:
                setattr(self, name, value)

    @available_if(_selects)
    def sparsify(
        self, X: ArrayLike, y: ArrayLike, n_interactions: int, low: float | None = None,
        high: float | None = None, max_steps: int = 30,
    ) -> Any:  # fmt: skip
        """Refit with the regularization strength that leaves n interactions, found by bisection.

        Parameters
        ----------
        X, y : as in fit
        n_interactions : int ≥ 1
        low, high : int, optional
            The counts that will do; by default 1% below to 3.5% above, the range of the source.
        max_steps : int ≥ 1

        Returns
        -------
        self
            Fitted, with the last `gamma`; `sparsified_` holds the values of `gamma` that were tried.

        Raises
        ------
        InputError
            If the penalty selects nothing (l2).
        FitError
            If no `gamma` ends in the range; the nearest counts are named.

        Notes
        -----
        Source: Atarashi et al. 2021, 8.3.
        """
        check_integer("n_interactions", n_interactions, 1)
        check_integer("max_steps", max_steps, 1)
        least = n_interactions * 0.99 if low is None else low
        most = n_interactions * 1.035 if high is None else high
        trail: list[tuple[float, int]] = []
        under = over = None  # values that leave too many, and too few
        gamma = self.gamma if self.gamma > 0 else 1e-6
        for _ in range(max_steps):
            model: Any = clone(self).set_params(gamma=gamma)  # type: ignore[type-var]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(X, y)
            count = model.n_used_interactions_
            trail.append((gamma, count))
            if least <= count <= most:
                self._take_over(model)
                self.sparsified_ = Sparsified(gamma, count, tuple(trail))
                for warning in caught:  # of the fit that is kept; those on the way do not matter
                    warnings.warn(warning.message, stacklevel=2)
                return self
            if count > most:
                under = gamma
            else:
                over = gamma
            if under is None or over is None:
                gamma = gamma * 10.0 if over is None else gamma / 10.0
            elif over / under < 1.0 + 1e-7:
                break
            else:
                gamma = float(np.sqrt(under * over))
        near = sorted(trail, key=lambda entry: abs(entry[1] - n_interactions))[:2]
        raise FitError(
            f"no gamma of penalty {self.penalty!r} leaves {least:g} to {most:g} interactions: "
            "nearest " + ", ".join(f"gamma={g:.4g} leaves {c}" for g, c in near)
        )


def _sets_together(has: NDArray[np.bool_], size: int) -> int:
    """Return how many sets of `size` features have a component in common, as `has` says of each.

    Features that are alike are taken together; a first one leaves the components that it has.
    """
    has = has[has.any(axis=1)]
    if len(has) < size:
        return 0
    kinds, number = np.unique(has[:, has.any(axis=0)], axis=0, return_counts=True)
    if len(kinds) == 1 or size == 1:
        return comb(int(number.sum()), size)
    if size == 2:
        return _pairs_together(kinds.astype(np.float64), number)
    count = 0
    for i, kind in enumerate(kinds):
        later = np.repeat(kinds[i + 1 :], number[i + 1 :], axis=0) & kind
        for taken in range(1, min(size, int(number[i])) + 1):
            rest = _sets_together(later, size - taken) if taken < size else 1
            count += comb(int(number[i]), taken) * rest
    return count


def _pairs_together(kinds: NDArray[np.float64], number: NDArray[np.int64]) -> int:
    count = sum(comb(int(n), 2) for n in number)
    for start in range(0, len(kinds), BLOCK):
        met = np.triu(kinds[start : start + BLOCK] @ kinds.T > 0.0, start + 1)
        count += int(number[start : start + BLOCK] @ (met @ number))
    return count
