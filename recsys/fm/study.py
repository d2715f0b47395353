"""A study of a problem by a factorization machine: interactions, selected features, metric values.

The rows are divided once: on the first part models are fitted, on the second a regularization strength
is chosen and the learning curve measured, on the third the chosen model is measured, once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError, counted
from recsys.fm.combinations import pairs_together, strongest
from recsys.fm.findings import Epoch, Grid, Interaction, Single, Step, Study
from recsys.fm.path import quiet
from recsys.fm.penalties import as_penalty
from recsys.fm.problem import LEAST_OF_CLASS, Problem
from recsys.fm.study_settings import ALL_SUBSETS, ALPHA, ORDERS, StudySettings, make_estimator
from recsys.utils.progress import listening, report, within

__all__ = ["Predict", "StudyRun", "metric_value", "study"]

TINY = 1e-6  # weights up to it, of log-odds or standard deviations, count as none
REFIT_EPOCHS = 10
SHARE = 0.2  # of the validation rows, and of the test rows
LEAST = 20  # rows
DRAWS = 500  # of the test rows, for the interval of a difference
IN_GRID = 16  # features of the heat map
MIDDLE = (0.05, 0.95)
AUC, RMSE = "AUC", "RMSE"

Progress = Callable[[str, float, int], None]
Predict = Callable[[Any], NDArray[np.float64]]


def study(problem: Problem, settings: StudySettings, progress: Progress | None = None) -> Study:
    """Fit, choose, measure, and read off.

    Parameters
    ----------
    problem : Problem
    settings : StudySettings
    progress : callable, optional
        Called as progress(text, done, total) at every epoch, beside `recsys.utils.progress`; what it
        raises ends the study.

    Raises
    ------
    InputError
        If settings contradict each other, or there are too few rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from recsys.fm import StudySettings, table_problem
    >>> rows = [(a, b, a == b) for a in "xy" for b in "xy"] * 20
    >>> problem = table_problem(pd.DataFrame(rows, columns=["a", "b", "same"]), "same")
    >>> study(problem, StudySettings(path=False)).used_pairs
    4
    """
    with listening(progress):
        return StudyRun(problem, settings.resolved()).run()


class StudyRun:
    """One study: its parts of the rows (`fit`, `choose`, `measure`), and how far it is.

    `z`, of the fit's rows, is 0 and 1, or numbers in standard deviations `unit` from `centre`.
    """

    def __init__(self, problem: Problem, settings: StudySettings) -> None:
        self.problem, self.settings = problem, settings
        self.classes = problem.classes is not None
        self.metric = AUC if self.classes else RMSE
        rng = np.random.default_rng(settings.seed)
        self.fit, self.choose, self.measure = _parts(problem, rng)
        self.X = problem.X[self.fit]
        # a number is fitted in standard deviations, so that one regularization strength means the same
        # for all
        target = problem.y[self.fit]
        self.centre, self.unit = (
            (0.0, 1.0) if self.classes else (float(target.mean()), float(target.std()))
        )
        if self.unit == 0.0:
            raise InputError(
                f"{problem.name}: {problem.target!r} is {target[0]:g} in all {len(target)} rows to fit; "
                "there is nothing to tell apart"
            )
        self.z = problem.y[self.fit] if self.classes else (target - self.centre) / self.unit
        self.i, self.j, self.both = pairs_together(self.X)
        given = () if settings.strength is None else (settings.strength,)
        fits = len({*given, *((settings.strengths or ()) if settings.path else ())})
        self.total = fits * settings.epochs + settings.refits * REFIT_EPOCHS
        self.done = 0

    def run(self) -> Study:
        """Fit, choose, measure, and read off."""
        settings = self.settings
        path, model, curve = self._fits()
        chosen = settings.strength is None
        strength = model.beta if as_penalty(str(settings.penalty)).vanishes else model.gamma
        settings = replace(settings, strength=strength)
        notes = list(self.problem.notes)
        if model.stopped_ == "max_iter":
            notes.append(
                f"the fit did not converge in {counted(settings.epochs, 'epoch')}: more may change "
                "the weights"
            )
        elif model.stopped_ == "stalled":
            notes.append(
                "the fit stalled above an empty model: raise the regularization strength, or scale "
                "numbers"
            )
        if settings.model == ALL_SUBSETS:
            notes.append(
                "one table holds features by themselves, pairs and all larger products, so that weights "
                "offset each other: compare rows, and read little into one alone"
            )
        if (settings.degree or 0) > max(ORDERS):
            notes.append(
                f"products of up to {settings.degree} are fitted; those of two and three are listed"
            )
        interactions, triples = self._interactions(model)
        interactions = self._refitted(model, interactions)
        seen = np.bincount(self.X.indices, minlength=self.X.shape[1])
        gain = self._gain(model)
        return Study(
            self.problem.name, self.problem.wanted, settings, chosen, settings.solver(), self.metric,
            (len(self.fit), len(self.choose), len(self.measure)), int((seen > 0).sum()),
            len(set(self.problem.fields)), len(self.i), *self._used(model), triples, interactions,
            self._singles(model, seen), self._grid(model, interactions), self._field_grid(model),
            path, tuple(curve), model.stopped_, *gain, tuple(notes),
        )  # fmt: skip

    # ---- fits

    def _fits(self) -> tuple[tuple[Step, ...], Any, list[Epoch]]:
        """Fit every regularization strength anew; return the path, the chosen model and its curve.

        No fit starts from the one before. From a strong penalty, which leaves 0, the gradient of a
        product is 0 and nothing would ever grow; from a weak one, a metric value would depend on where
        the path began.
        """
        settings = self.settings
        given = settings.strength
        strengths = (settings.strengths or ()) if settings.path else ()
        if given is not None:
            strengths = tuple(sorted({*strengths, given}))
        sign = 1.0 if self.metric == AUC else -1.0
        steps: list[Step] = []
        best: tuple[float, Any, list[Epoch]] = (-np.inf, None, [])
        for strength in strengths:
            model = make_estimator(settings, self.classes, strength).set_params(solver=settings.solver())
            curve: list[Epoch] = []
            text = f"regularization strength {strength:g}, {len(steps) + 1} of {len(strengths)}"
            self._fit(model, settings.epochs, text, curve)
            value = self.metric_of(self.predictor(model), self.choose)
            steps.append(Step(strength, *self._used(model), value))
            if strength == given or (given is None and sign * value >= best[0]):  # of equals the last
                best = (sign * value, model, curve)
        return tuple(steps) if settings.path else (), best[1], best[2]

    def _fit(self, model: Any, epochs: int, text: str, curve: list[Epoch] | None) -> None:
        """Fit on the rows to fit, and keep a curve where one is wanted."""
        if curve is not None:

            def record(epoch: int, objective: float) -> None:
                value = self.metric_of(self.predictor(model), self.choose)
                curve.append(Epoch(epoch, float(objective), value))
                report(f"epoch {epoch}, {self.metric} {value:.4g}", epoch, epochs)

            model.set_params(callback=record)
        model.set_params(max_iter=epochs)
        with within(text, self.done, self.total, epochs), quiet():  # `stopped_` says it
            model.fit(self.X, self.z)
        model.set_params(callback=None)
        self.done += epochs

    def _refitted(self, model: Any, found: tuple[Interaction, ...]) -> tuple[Interaction, ...]:
        """Return the interactions with the intervals of their weights over fits on rows drawn again."""
        refits = self.settings.refits
        if refits == 0 or not found:
            return found
        rng = np.random.default_rng((self.settings.seed, 1))
        mine = _members(self.problem.groups[self.fit])
        drawn = np.empty((refits, len(found)))
        X, z = self.X, self.z
        for k in range(refits):
            rows = np.concatenate([mine[g] for g in rng.integers(0, len(mine), len(mine))])
            if self.classes and len(np.unique(z[rows])) < 2:
                rows = np.arange(len(z))
            again = copy.copy(model).set_params(warm_start=True)
            again.history_ = []
            self.X, self.z = X[rows], z[rows]
            try:
                self._fit(again, REFIT_EPOCHS, f"refit {k + 1} of {refits}", None)
            finally:
                self.X, self.z = X, z
            tables = {order: _table(again, order) for order in ORDERS}
            drawn[k] = [
                self.unit * float(np.prod(tables[one.order][list(one.features)], axis=0).sum())
                for one in found
            ]
        low, high = np.quantile(drawn, MIDDLE, axis=0)
        return tuple(
            replace(one, low=float(a), high=float(b)) for one, a, b in zip(found, low, high, strict=True)
        )

    # ---- metric values

    def in_units(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores in the target's units; of classes as they are."""
        return scores if self.classes else scores * self.unit + self.centre

    def predictor(self, model: Any) -> Predict:
        """Return the method of a fitted estimator that scores rows."""
        predict: Predict = model.decision_function if self.classes else model.predict
        return predict

    def metric_of(self, predict: Predict, rows: NDArray[np.int64]) -> float:
        """Return the metric of a scoring function on some rows of the problem."""
        scores = self.in_units(np.asarray(predict(self.problem.X[rows])))
        return metric_value(self.metric, self.problem.y[rows], scores)

    def _gain(self, model: Any) -> tuple[float, float, float, float, float, float]:
        """Return metric values on the test rows: model, without products, base; then the gain."""
        rows = self.measure
        y = self.problem.y[rows]
        ours = self.in_units(np.asarray(self.predictor(model)(self.problem.X[rows])))
        theirs = self._without_products()
        values = [metric_value(self.metric, y, scores) for scores in (ours, theirs)]
        base = 0.5 if self.metric == AUC else metric_value(RMSE, y, np.full(len(y), self.centre))
        sign = 1.0 if self.metric == AUC else -1.0
        rng = np.random.default_rng((self.settings.seed, 2))
        mine = _members(self.problem.groups[rows])
        gains = []
        for _ in range(DRAWS):
            some = np.concatenate([mine[g] for g in rng.integers(0, len(mine), len(mine))])
            if self.classes and len(np.unique(y[some])) < 2:
                continue
            a, b = (metric_value(self.metric, y[some], scores[some]) for scores in (ours, theirs))
            gains.append(sign * (a - b))
        low, high = np.quantile(gains, (0.025, 0.975)) if gains else (-np.inf, np.inf)
        return values[0], values[1], base, sign * (values[0] - values[1]), float(low), float(high)

    def _without_products(self) -> NDArray[np.float64]:
        """Return the scores of a linear model of the same features and shrinkage."""
        from sklearn.linear_model import LogisticRegression, Ridge

        rows = self.problem.X[self.measure]
        n = len(self.fit)
        if self.classes:
            linear = LogisticRegression(C=1.0 / (ALPHA * n), max_iter=1000)
            with quiet():
                return np.asarray(linear.fit(self.X, self.z).decision_function(rows))
        found = Ridge(alpha=ALPHA * n).fit(self.X, self.z)
        return self.in_units(np.asarray(found.predict(rows)))

    # ---- what the model says

    def _pair_weights(self, model: Any) -> NDArray[np.float64]:
        """Return the weights of the pairs that rows of the fit have."""
        P = _table(model, 2)
        out = np.empty(len(self.i))
        for at in range(0, len(out), 100_000):
            part = slice(at, at + 100_000)
            out[part] = (P[self.i[part]] * P[self.j[part]]).sum(axis=1)
        return self.unit * out

    def _used(self, model: Any) -> tuple[int, int]:
        """Return how many features and pairs have a weight in a product."""
        pairs = np.abs(self._pair_weights(model)) > TINY * self.unit
        return int(_in_products(model).sum()), int(pairs.sum())

    def _interactions(self, model: Any) -> tuple[tuple[Interaction, ...], int | None]:
        names = self.problem.names
        found: list[Interaction] = []
        triples = None

        def tick() -> None:
            report("looking for combinations of three", self.done, self.total)

        for order in self.settings.orders:
            got = strongest(
                _table(model, order), self.X, order, self.settings.number, self.settings.min_rows,
                TINY, tick,
            )  # fmt: skip
            triples = got.weighted if order == 3 else triples
            found += [
                Interaction(
                    order, one.features, tuple(names[k] for k in one.features),
                    self.unit * one.weight, one.rows,
                )
                for one in got.best
            ]  # fmt: skip
        return tuple(found), triples

    def _singles(self, model: Any, seen: NDArray[np.int64]) -> tuple[Single, ...]:
        P = _table(model, 2)
        weights = self.unit * (P.sum(axis=1) if self.settings.model == ALL_SUBSETS else model.w_)
        used = _in_products(model)
        order = np.argsort(-np.abs(weights), kind="stable")
        return tuple(
            Single(
                self.problem.names[k], self.problem.fields[k], float(weights[k]), int(seen[k]),
                bool(used[k]),
            )
            for k in order
            if seen[k]
        )  # fmt: skip

    def _grid(self, model: Any, found: tuple[Interaction, ...]) -> Grid:
        """Return the weights between the features of the largest pairs."""
        shown = list(dict.fromkeys(k for one in found if one.order == 2 for k in one.features))
        place = {k: position for position, k in enumerate(shown[:IN_GRID])}
        names = [self.problem.names[k] for k in place]
        square: list[list[float | None]] = [[None] * len(names) for _ in names]
        for i, j, weight in zip(self.i, self.j, self._pair_weights(model), strict=True):
            if i in place and j in place:
                a, b = place[i], place[j]
                square[a][b] = square[b][a] = float(weight)
        return Grid(tuple(names), tuple(map(tuple, square)))

    def _field_grid(self, model: Any) -> Grid:
        """Return the largest weight, by size, between two columns."""
        names = list(dict.fromkeys(self.problem.fields))
        place = {name: k for k, name in enumerate(names)}
        column = np.array([place[name] for name in self.problem.fields])
        square: list[list[float | None]] = [[None] * len(names) for _ in names]
        weights = self._pair_weights(model)
        for k in np.argsort(np.abs(weights), kind="stable"):
            if self.both[k] >= self.settings.min_rows:
                a, b = column[self.i[k]], column[self.j[k]]
                square[a][b] = square[b][a] = float(weights[k])
        return Grid(tuple(names), tuple(map(tuple, square)))


def metric_value(metric: str, y: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """Return the area under the ROC curve, or the root of the mean squared error."""
    if metric == AUC:
        from scipy.stats import rankdata

        ranks, positive = rankdata(scores), y > 0
        n = int(positive.sum())
        area = (ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(y) - n))
        return float(area)
    return float(np.sqrt(np.mean((y - scores) ** 2)))


def _parts(
    problem: Problem, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to fit, to choose and to measure: of each class the same shares."""
    size = len(problem.y)
    if problem.classes is None:
        if size < LEAST:
            raise InputError(
                f"{problem.name}: {counted(size, 'row')}; at least {LEAST} are needed to fit, to choose "
                "and to measure"
            )
        strata = [np.arange(size)]
    else:
        strata = [np.flatnonzero(problem.y == value) for value in (0.0, 1.0)]
        for members, label in zip(strata, problem.classes, strict=True):
            if len(members) < LEAST_OF_CLASS:
                raise InputError(
                    f"{problem.name}: class {label[:40]!r} of {problem.target!r} has "
                    f"{counted(len(members), 'row')}; at least {LEAST_OF_CLASS} are needed"
                )
    parts: list[list[NDArray[np.int64]]] = [[], [], []]
    for members in strata:
        mixed = rng.permutation(members)
        held = max(1, round(SHARE * len(mixed)))
        for part, rows in zip(
            parts, (mixed[2 * held :], mixed[:held], mixed[held : 2 * held]), strict=True
        ):
            part.append(rows)
    fit, choose, measure = (np.sort(np.concatenate(part)) for part in parts)
    return fit, choose, measure


def _members(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rows of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def _table(model: Any, order: int) -> NDArray[np.float64]:
    """Return the P of an order's products, (features, components), of one table for all if there is."""
    place = min(order - 2, len(model.P_) - 1)
    return np.asarray(model.P_[place][0])


def _in_products(model: Any) -> NDArray[np.bool_]:
    """Return which features are in a product with a weight: a table's order may need others."""
    found: list[NDArray[np.bool_]] = []
    for place, (P,) in enumerate(model.P_):
        sizes = np.abs(P)
        top = np.sort(sizes, axis=0)[::-1][: place + 2]
        if len(top) < place + 2:
            continue
        # of the largest others: where a feature is among them itself, the next one is used instead
        others = np.where(
            sizes >= top[-2], top.prod(axis=0) / np.where(sizes > 0, sizes, 1.0), top[:-1].prod(axis=0)
        )
        found.append((sizes * others > TINY).any(axis=1))
    return np.any(found, axis=0) if found else np.zeros(model.P_[0].shape[1], dtype=bool)
