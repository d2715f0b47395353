"""Stability of selected interactions: over random halves of the rows, and over several starts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from recsys.errors import InputError, counted
from recsys.fm.path import NothingToSelect, PathRows, quiet, regularization_path
from recsys.fm.path_points import Combination
from recsys.fm.refit import product_columns
from recsys.utils.progress import within
from recsys.utils.validation import check_integer, check_real

__all__ = ["Stability", "Starts", "several_starts", "stability_selection"]

STEPS = 12  # points of a half's path at most
NEAR = 0.01  # by which a start may end above the path's objective and still be near it
LOWEST = 0.02  # of the greatest `gamma`, where a half's path ends


@dataclass(frozen=True)
class Stability:
    """Frequencies with which interactions are among the strongest of a random half of the rows.

    Attributes
    ----------
    q : int
        Interactions taken of each half at most.
    n_halves : int
        Two a pair.
    threshold : float in (½, 1]
    candidates : float
        Interactions that there are.
    bound : float
        On the expected number of unlikely interactions among the selected; see `sentence`.
    mean_taken : float
        Interactions taken of a half, on average.
    frequencies : dict of tuple of int to float
        Share of the halves, the most frequent first; those that none took are left out.

    Examples
    --------
    >>> Stability(2, 4, 0.75, 10.0, 0.8, 1.5, {(0, 1): 1.0, (0, 2): 0.5}).selected
    ((0, 1),)
    """

    q: int
    n_halves: int
    threshold: float
    candidates: float
    bound: float
    mean_taken: float
    frequencies: dict[Combination, float]

    @property
    def selected(self) -> tuple[Combination, ...]:
        """The interactions taken by at least the threshold's share of the halves."""
        return tuple(one for one, share in self.frequencies.items() if share >= self.threshold)

    @property
    def sentence(self) -> str:
        """The bound in a sentence, with its assumptions."""
        if not self.selected:
            return (
                f"None of {counted(round(self.candidates), 'interaction')} is taken by "
                f"{100 * self.threshold:g}% of the {self.n_halves:,} halves."
            )
        return (
            f"Of {counted(len(self.selected), 'interaction')} that {100 * self.threshold:g}% of the "
            f"halves or more take, at most {self.bound:.3g} are expected to be ones that a fit on a "
            f"random half of the rows takes with probability {self.q / self.candidates:.3g} or less, "
            "the chance of an interaction drawn at random (Shah & Samworth 2013, Theorem 1). That holds "
            "for any way of choosing if the rows are independent and of one distribution; that "
            "interactions without effect are such ones is an assumption."
        )


@dataclass(frozen=True)
class Starts:
    """Agreement of fits with one `gamma` from several random starts and column orders.

    Attributes
    ----------
    objectives : tuple of float
    counts : tuple of int
        Interactions of each.
    frequencies : dict of tuple of int to float
        Share of the starts that select an interaction, the most frequent first.
    path_objective : float, optional
        Objective of the model of a path at this `gamma`, beside which the starts are seen.

    Examples
    --------
    >>> Starts((0.5, 0.6), (2, 1), {(0, 1): 1.0, (0, 2): 0.5}).always
    ((0, 1),)
    """

    objectives: tuple[float, ...]
    counts: tuple[int, ...]
    frequencies: dict[Combination, float]
    path_objective: float | None = None

    @property
    def always(self) -> tuple[Combination, ...]:
        """The interactions that every start selects."""
        return tuple(one for one, share in self.frequencies.items() if share == 1.0)

    @property
    def sentence(self) -> str:
        """The dependence of a selection on the random start."""
        few, many = min(self.counts), max(self.counts)
        counts = counted(many, "interaction") if few == many else f"{few:,} to {many:,} interactions"
        select = "selects" if len(self.objectives) == 1 else "select"
        text = f"{counted(len(self.objectives), 'start')} {select} {counts}"
        if self.frequencies:
            text += (
                f"; {len(self.always):,} of the {len(self.frequencies):,} that any selects are in all"
            )
        text += f". Objectives lie between {min(self.objectives):.6g} and {max(self.objectives):.6g}."
        if self.path_objective is None:
            return text
        near = sum(one <= (1.0 + NEAR) * self.path_objective for one in self.objectives)
        text += (
            f" The path's model has {self.path_objective:.6g}; {near:,} of the starts end at most "
            f"{NEAR:.0%} above it."
        )
        worse = " The others ended in worse optima, and say little about the path's model."
        return text + (worse if near < len(self.objectives) else "")


def stability_selection(
    estimator: Any, X: ArrayLike, y: ArrayLike, *, n_pairs: int = 25, threshold: float = 0.75,
    expected: float = 1.0, q: int | None = None, seed: int = 0,
) -> Stability:  # fmt: skip
    """Select the interactions that random halves of the rows agree on.

    The rows are divided into halves `n_pairs` times. On each half, its columns in an order of its own,
    the regularization path is followed to the first `gamma` with q interactions or more; the q that
    contribute most (weight times root mean square of the product) are taken.

    Parameters
    ----------
    estimator : FactorizationMachineRegressor or FactorizationMachineClassifier
        As for `regularization_path`.
    X : (rows, features) array or sparse matrix
    y : (rows,)
    n_pairs : int ≥ 1
    threshold : float in (½, 1]
        Share of the halves from which on an interaction is selected.
    expected : float > 0
        The bound, from which q follows: the largest with q²/((2·threshold − 1)·p) no greater, of p
        candidates.
    q : int ≥ 1, optional
        In place of `expected`; the bound follows from it. No more than there are candidates.
    seed : int

    Raises
    ------
    InputError
        As `regularization_path`; if a number is out of range, or there are too few rows.

    Notes
    -----
    Source: Meinshausen & Bühlmann 2010; the complementary pairs and the bound: Shah & Samworth 2013,
    Theorem 1 with θ = q/p, which asks nothing of the procedure. Their sharper bounds, for distributions
    of shares that are unimodal or r-concave, are not used. Halves of two classes have the same share of
    each, where the theorem's are drawn plainly. More than q interactions are hardly found.
    Of solver "relational" the columns stay in their order, by which it finds the parts of a row.

    Examples
    --------
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions
    >>> data = planted_interactions(200, groups=1, per_group=3, noise_features=5)
    >>> model = FactorizationMachineRegressor(penalty="ti", beta=1e-5, solver="cd")
    >>> stability_selection(model, data.X, data.y, n_pairs=3).selected
    ((0, 1), (0, 2), (1, 2))
    """
    check_integer("n_pairs", n_pairs, 1)
    check_real("threshold", threshold, 0.5, 1.0, open_low=True)
    check_real("expected", expected, 0.0, open_low=True)
    check_integer("seed", seed, 0)
    rows = PathRows(estimator, X, y)
    total = float(sum(rows.candidates().values()))
    if total == 0.0:
        raise InputError("no row has two features: there is no interaction to select")
    room = 2.0 * threshold - 1.0
    if q is None:
        q = int(min(np.sqrt(expected * room * total), total))
        if q < 1:
            raise InputError(
                f"expected={expected:g} leaves no interaction to take of {total:,.0f}: raise it, or "
                "give q"
            )
    check_integer("q", q, 1, int(total))
    if len(rows.y) < 8:
        raise InputError(f"halves need 8 rows or more, and there are {len(rows.y)}")
    rng = np.random.default_rng(seed)
    chosen: Counter[Combination] = Counter()
    taken = 0
    for k in range(n_pairs):
        mixed = _balanced(rows, rng)
        half = len(mixed) // 2
        for part, members in enumerate((mixed[:half], mixed[half : 2 * half])):
            with within(f"half {2 * k + part + 1} of {2 * n_pairs}", 2 * k + part, 2 * n_pairs):
                found = _strongest(estimator, rows, np.sort(members), q, rng)
            chosen.update(found)
            taken += len(found)
    n_halves = 2 * n_pairs
    return Stability(
        q, n_halves, threshold, total, q * q / (room * total), taken / n_halves,
        _frequencies(chosen, n_halves),
    )  # fmt: skip


def _frequencies(chosen: Counter[Combination], fits: int) -> dict[Combination, float]:
    """Return the share of the fits that chose each, the most frequent first."""
    shares = [(one, count / fits) for one, count in chosen.items()]
    return dict(sorted(shares, key=lambda entry: (-entry[1], entry[0])))


def _balanced(rows: PathRows, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows in a random order whose halves have about the same share of each class."""
    if not rows.is_classifier:
        return np.asarray(rng.permutation(len(rows.y)))
    up, down = (rng.permutation(np.flatnonzero(side)) for side in (rows.y > 0, rows.y <= 0))
    if min(len(up), len(down)) < 2:
        raise InputError("halves need two rows or more of each class")
    return np.concatenate([up[::2], down[::2], up[1::2], down[1::2]])


def _strongest(
    estimator: Any, rows: PathRows, members: NDArray[np.int64], q: int, rng: np.random.Generator
) -> list[Combination]:
    """Return the q interactions that contribute most at the first `gamma` with so many."""
    order = _columns(estimator, rows.X.shape[1], rng)
    X, y = rows.X[members][:, order], rows.labels[members]
    try:
        path = regularization_path(
            clone(estimator).set_params(random_state=int(rng.integers(2**31 - 1))), X, y,
            n_gammas=STEPS, ratio=LOWEST, refit=False, restarts=0, most=q - 1,
        )  # fmt: skip
    except NothingToSelect:  # these rows are explained without any
        return []
    weights = path.points[-1].weights
    found = list(weights)
    if len(found) > q:
        columns = product_columns(X, found)
        size = np.sqrt(np.asarray(columns.multiply(columns).mean(axis=0)).ravel())
        size *= np.abs([weights[one] for one in found])
        found = [found[k] for k in np.argsort(-size, kind="stable")[:q]]
    return [tuple(sorted(int(order[j]) for j in one)) for one in found]


def _columns(estimator: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return an order of the columns; as they are where the solver tells parts of a row by it."""
    return np.arange(size) if estimator.solver == "relational" else np.asarray(rng.permutation(size))


def several_starts(
    estimator: Any, X: ArrayLike, y: ArrayLike, *, n_starts: int = 10, seed: int = 0
) -> Starts:
    """Fit one `gamma` from several random starts, each with its own order of the columns.

    The problem is not convex: what is selected depends on where a fit begins. An interaction that most
    starts select does not depend on the start. Whether it has an effect, `stability_selection` says.

    Parameters
    ----------
    estimator : FactorizationMachineRegressor or FactorizationMachineClassifier
        With `gamma`; as for `regularization_path`.
    X : (rows, features) array or sparse matrix
    y : (rows,)
    n_starts : int ≥ 1
    seed : int

    Raises
    ------
    InputError
        As `regularization_path`.

    Examples
    --------
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions
    >>> data = planted_interactions(200, groups=1, per_group=3, noise_features=5)
    >>> model = FactorizationMachineRegressor(penalty="ti", beta=1e-5, gamma=0.1, solver="cd")
    >>> several_starts(model, data.X, data.y, n_starts=3).always
    ((0, 1), (0, 2), (1, 2))
    """
    check_integer("n_starts", n_starts, 1)
    check_integer("seed", seed, 0)
    rows = PathRows(estimator, X, y)
    rng = np.random.default_rng(seed)
    chosen: Counter[Combination] = Counter()
    objectives, counts = [], []
    for k in range(n_starts):
        order = _columns(estimator, rows.X.shape[1], rng)
        model = clone(estimator).set_params(random_state=int(rng.integers(2**31 - 1)), warm_start=False)
        with within(f"start {k + 1} of {n_starts}", k, n_starts), quiet():
            model.fit(rows.X[:, order], rows.labels)
        objectives.append(float(model.history_[-1]["objective"]))
        back = np.argsort(order)
        found = list(rows.weights_of([P[:, back] for P in model.P_]))
        counts.append(len(found))
        chosen.update(found)
    return Starts(tuple(objectives), tuple(counts), _frequencies(chosen, n_starts))
