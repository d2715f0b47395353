"""Selection of interactions: the path with warm starts, its refits, and the stability of the choice.

The rows are divided as a study divides them: on the first part everything is fitted, on the second
points of the path are compared, on the third the points that are chosen are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError, counted
from recsys.fm.path import ABSOLUTE, COUPLED, quiet, regularization_path
from recsys.fm.path_points import CHOICES, Combination, RegularizationPath
from recsys.fm.problem import Problem
from recsys.fm.refit import product_columns
from recsys.fm.stability import several_starts, stability_selection
from recsys.fm.study import AUC, Predict, StudyRun
from recsys.fm.study_settings import StudySettings, make_estimator
from recsys.utils.progress import listening, within
from recsys.utils.validation import check_integer

__all__ = ["SELECTABLE", "Chosen", "Measured", "Selection", "SelectionPoint", "select"]

Progress = Callable[[str, float, int], None]
SELECTABLE = (*COUPLED, *ABSOLUTE)  # penalties that leave interactions out exactly
FULL_STRENGTHS = (1e-4, 1e-3, 1e-2)  # β of the machine that leaves nothing out
LISTED = 200  # interactions of a point, the largest
SHARES = {"path": 6.0, "full": 1.0, "halves": 8.0, "starts": 2.0}  # of the time, roughly
CRITERIA = {
    "held_out": "best before the refit",
    "refit": "best after the refit",
    "ebic": "least EBIC",
}


@dataclass(frozen=True)
class Chosen:
    """An interaction of a point: its weight in the penalised model and in the refitted one.

    `rows` are those of the fit that have all its features. `halves` and `starts` are the shares of the
    random halves, and of the random starts, that select it; None where none were made.
    """

    features: Combination
    names: tuple[str, ...]
    weight: float
    refitted: float | None
    rows: int
    halves: float | None
    starts: float | None

    @property
    def text(self) -> str:
        """The names, as a product."""
        return " × ".join(self.names)


@dataclass(frozen=True)
class SelectionPoint:
    """A point of the path: the selected interactions, and the metric before and after the refit.

    `refitted` and `ebic` are None where there are too many interactions to fit again. `chosen` has the
    largest weights first, and no more than 200.
    """

    strength: float
    features: int
    interactions: int
    value: float
    refitted: float | None
    ebic: float | None
    chosen: tuple[Chosen, ...]


@dataclass(frozen=True)
class Measured:
    """A model on the validation rows and on the test rows."""

    model: str
    interactions: int
    choose: float
    measure: float


@dataclass(frozen=True)
class Selection:
    """The interactions that a path selects.

    Attributes
    ----------
    name, wanted : str
    settings : StudySettings
    metric : "AUC" or "RMSE"
    rows : (int, int, int)
        To fit, to choose, to measure.
    candidates : float
        Interactions that there are.
    low, high : float
        Bounds on the regularization strength at which the first one appears.
    points : tuple of SelectionPoint
        By falling regularization strength.
    linear, full : Measured
        The model without interactions; the factorization machine with all of them.
    best : dict of str to int
        Indices of the points that are best by "held_out" (before the refit), "refit" and "ebic".
    measured : tuple of Measured
        The linear model, the full machine, and these points before and after the refit; a point that is
        best by several criteria is named by the first.
    halves, starts : str or None
        Sentences on stability selection and on several starts, where they were asked for.
    stable : tuple of tuple of str
        The interactions that enough halves select.
    notes : tuple of str
        Of the problem.

    Examples
    --------
    >>> import pandas as pd
    >>> from recsys.fm import StudySettings, table_problem
    >>> rows = [(a, b, a == b) for a in "xy" for b in "xy"] * 20
    >>> problem = table_problem(pd.DataFrame(rows, columns=["a", "b", "same"]), "same")
    >>> found = select(problem, StudySettings(model="sparse-fm", epochs=20))
    >>> found.linear.measure < 0.6 < found.measured[-1].measure
    True
    """

    name: str
    wanted: str
    settings: StudySettings
    metric: str
    rows: tuple[int, int, int]
    candidates: float
    low: float
    high: float
    points: tuple[SelectionPoint, ...]
    linear: Measured
    full: Measured
    best: dict[str, int]
    measured: tuple[Measured, ...]
    halves: str | None
    starts: str | None
    stable: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as lists and numbers."""
        return asdict(self)

    @property
    def marks(self) -> dict[int, str]:
        """The criteria by which each of the best points is best."""
        out: dict[int, str] = {}
        for by, place in self.best.items():
            out[place] = f"{out[place]}, {CRITERIA[by]}" if place in out else CRITERIA[by]
        return out

    @property
    def taken(self) -> int:
        """The index of the point that is shown first: best after the refit, else before it."""
        return self.best.get("refit", self.best["held_out"])

    def table(self, place: int) -> tuple[dict[str, type], list[tuple[Any, ...]]]:
        """Return a point's interactions as the columns and rows of a file."""
        columns: dict[str, type] = {
            "interaction": str, "weight": float, "refitted": float, "rows": int, "halves": float,
            "starts": float,
        }  # fmt: skip
        return columns, [
            (one.text, one.weight, one.refitted, one.rows, one.halves, one.starts)
            for one in self.points[place].chosen
        ]

    def sentences(self) -> list[str]:
        """Return in sentences which interactions were selected, and how stable the choice is."""
        point = self.points[self.taken]
        lines = [
            f"Nothing is selected from regularization strength {self.high:.3g} on, whatever the start"
            + (
                f"; below {self.low:.3g} a model with an interaction is better than any without."
                if self.low > 0.0
                else "."
            ),
            f"At {point.strength:.3g}, {CRITERIA['refit' if 'refit' in self.best else 'held_out']} by "
            f"the validation loss, {counted(point.interactions, 'interaction')} of "
            f"{self.candidates:,.0f} {'is' if point.interactions == 1 else 'are'} selected: "
            f"{self.metric} {point.value:.4g}"
            + ("" if point.refitted is None else f", refitted {point.refitted:.4g}")
            + f"; without interactions {self.linear.choose:.4g}, leaving none out "
            f"{self.full.choose:.4g}.",
        ]
        if "ebic" in self.best:
            own = self.points[self.best["ebic"]]
            lines.append(
                f"The extended BIC selects {counted(own.interactions, 'interaction')}, at "
                f"{own.strength:.3g}. It counts each as one degree of freedom, a heuristic here."
            )
        lines += [one for one in (self.halves, self.starts) if one is not None]
        if self.halves is not None:
            stable = "; ".join(" × ".join(names) for names in self.stable)
            lines.append(f"Stable: {stable}." if stable else "No interaction is stable.")
        return lines


def select(
    problem: Problem, settings: StudySettings, *, pairs: int = 0, starts: int = 0, strengths: int = 15,
    progress: Progress | None = None,
) -> Selection:  # fmt: skip
    """Follow the path of a sparse penalty, fit its points again, and say how sure the selection is.

    Parameters
    ----------
    problem : Problem
    settings : StudySettings
        With penalty "ti", "cs", "l1" or "l21"; its regularization strengths are not used.
    pairs : int ≥ 0
        Pairs of random halves for stability selection; 0 for none.
    starts : int ≥ 0
        Random starts at the chosen regularization strength; 0 for none.
    strengths : int ≥ 2
        Points of the path.
    progress : callable, optional
        As of `study`.

    Raises
    ------
    InputError
        If the penalty leaves nothing out exactly, a number is out of range, or there are too few rows.
    """
    check_integer("pairs", pairs, 0, 1000)
    check_integer("starts", starts, 0, 1000)
    check_integer("strengths", strengths, 2, 100)
    settings = settings.resolved()
    if settings.penalty not in SELECTABLE or settings.degree is None:
        raise InputError(
            "what is selected is followed for model sparse-fm (or fm, hofm) with penalty "
            f"{', '.join(SELECTABLE)}, not for {settings.model} with {settings.penalty}"
        )
    with listening(progress):
        return _Selecting(problem, settings, pairs, starts).run(strengths)


class _Selecting:
    def __init__(self, problem: Problem, settings: StudySettings, pairs: int, starts: int) -> None:
        self.problem, self.settings, self.pairs, self.starts = problem, settings, pairs, starts
        self.study = StudyRun(problem, settings)
        self.model = make_estimator(settings, self.study.classes, 1.0).set_params(
            solver=settings.solver(), max_iter=settings.epochs
        )
        wanted = {"path": True, "full": True, "halves": pairs > 0, "starts": starts > 0}
        self.shares = {name: SHARES[name] for name, part in wanted.items() if part}
        self.done = 0.0

    def part(self, name: str, text: str) -> Any:
        """Report a part of the work, of its share of all."""
        before, share = self.done, self.shares[name]
        self.done += share
        return within(text, before, int(sum(self.shares.values())), share)

    def run(self, strengths: int) -> Selection:
        study, problem = self.study, self.problem
        X, z = study.X, study.z
        with self.part("path", "path"):
            path = regularization_path(
                self.model, X, z, n_gammas=strengths, held_out=self._held(), ratio=0.01
            )
        with self.part("full", "leaving none out"):
            full = self._full()
        linear = self._measured("without interactions", 0, path.points[0].refitted.predict)  # type: ignore[union-attr]
        best = {by: place for by in CHOICES if (place := self._best(path, by)) is not None}
        measured = [linear, full]
        first: dict[int, str] = {}  # the name of a point, which may be best by several criteria
        for by, place in best.items():
            first.setdefault(place, by)
        for place, by in first.items():
            point = path.points[place]
            for again in (False, True)[: 1 + (point.refitted is not None)]:
                predict = partial(path.predict, place, refitted=again)
                measured.append(self._measured(
                    f"{CRITERIA[by]}{', refitted' if again else ''}", point.n_interactions, predict
                ))  # fmt: skip
        stable: tuple[tuple[str, ...], ...] = ()
        halves, shares = None, None
        if self.pairs:
            with self.part("halves", "stability"):
                found = stability_selection(
                    self.model, X, z, n_pairs=self.pairs, seed=self.settings.seed
                )
            halves, shares = found.sentence, found.frequencies
            stable = tuple(tuple(problem.names[j] for j in one) for one in found.selected)
        many = None
        if self.starts:
            point = path.points[best.get("refit", best["held_out"])]
            with self.part("starts", "several starts"):
                many = several_starts(
                    self.model.set_params(gamma=point.gamma), X, z, n_starts=self.starts,
                    seed=self.settings.seed,
                )  # fmt: skip
            many = replace(many, path_objective=point.objective)
        points = tuple(
            self._point(path, k, shares, None if many is None else many.frequencies)
            for k in range(len(path.points))
        )
        notes = problem.notes
        if len(points) - 1 in best.values():
            notes += ("the last model of the path is the best: a weaker penalty was not tried",)
        return Selection(
            problem.name, problem.wanted, replace(self.settings, strength=None), study.metric,
            (len(study.fit), len(study.choose), len(study.measure)), sum(path.candidates.values()),
            path.bracket.low, path.bracket.high, points, linear, full, best, tuple(measured), halves,
            None if many is None else many.sentence, stable, notes,
        )  # fmt: skip

    def _held(self) -> tuple[Any, NDArray[np.float64]]:
        study = self.study
        y = self.problem.y[study.choose]
        return self.problem.X[study.choose], y if study.classes else (y - study.centre) / study.unit

    def _measured(self, model: str, interactions: int, predict: Predict) -> Measured:
        study = self.study
        choose, measure = (study.metric_of(predict, rows) for rows in (study.choose, study.measure))
        return Measured(model, interactions, choose, measure)

    def _full(self) -> Measured:
        """Return the machine without a sparse penalty, its β chosen as the path's points are."""
        found = []
        plain = replace(self.settings, penalty="l2", model="hofm" if self.settings.degree != 2 else "fm")
        for k, beta in enumerate(FULL_STRENGTHS):
            with within(f"regularization strength {beta:g}", k, len(FULL_STRENGTHS)), quiet():
                model = (
                    make_estimator(plain, self.study.classes, beta)
                    .set_params(solver=plain.solver(), max_iter=self.settings.epochs)
                    .fit(self.study.X, self.study.z)
                )
            predict = self.study.predictor(model)
            found.append(self._measured("leaving none out", len(self.study.i), predict))
        return max(found, key=lambda one: one.choose if self.study.metric == AUC else -one.choose)

    def _best(self, path: RegularizationPath, by: str) -> int | None:
        try:
            return path.best(by)
        except InputError:
            return None

    def _point(
        self, path: RegularizationPath, place: int, halves: dict[Combination, float] | None,
        starts: dict[Combination, float] | None,
    ) -> SelectionPoint:  # fmt: skip
        point, study = path.points[place], self.study
        listed = point.support[:LISTED]
        rows = np.asarray((product_columns(study.X, listed) != 0).sum(axis=0)).ravel()
        again: dict[Combination, float] = {}
        if point.refitted is not None:
            again = dict(zip(point.refitted.interactions, point.refitted.weights, strict=True))
        chosen = tuple(
            Chosen(
                one, tuple(self.problem.names[j] for j in one), study.unit * point.weights[one],
                study.unit * float(again[one]) if one in again else None, int(count),
                None if halves is None else halves.get(one, 0.0),
                None if starts is None else starts.get(one, 0.0),
            )
            for one, count in zip(listed, rows, strict=True)
        )  # fmt: skip
        refitted = (
            None
            if point.refitted is None
            else study.metric_of(lambda X: path.predict(place, X, True), study.choose)
        )
        return SelectionPoint(
            point.gamma, point.n_features, point.n_interactions,
            study.metric_of(lambda X: path.predict(place, X), study.choose), refitted, point.ebic,
            chosen,
        )  # fmt: skip
