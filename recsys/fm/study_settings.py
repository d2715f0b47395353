"""Settings of a study: model, degree, penalty and regularization strength, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from recsys.errors import InputError
from recsys.fm.estimators import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
)
from recsys.fm.penalties import as_penalty, penalties
from recsys.fm.solvers import refusal, solver_names
from recsys.multilinear.losses import LOSSES
from recsys.utils.validation import check_choice, check_integer, check_real

__all__ = [
    "ALL_SUBSETS", "ALPHA", "FM", "HOFM", "MODELS", "ORDERS", "SPARSE_FM", "StudySettings",
    "make_estimator", "strength_parameters",
]  # fmt: skip

FM, HOFM, ALL_SUBSETS, SPARSE_FM = MODELS = ("fm", "hofm", "all-subsets", "sparse-fm")
ORDERS = (2, 3)  # whose interactions are listed
ALPHA = 1e-4  # of the linear weights
SPARSE_BETA = 1e-5  # of the factors where a penalty selects
SELECTING = (1e-6, 1e-5, 3.2e-5, 1e-4, 3.2e-4, 1e-3, 3.2e-3, 1e-2, 3.2e-2)
SHRINKING = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
GIVEN = 1e-4  # regularization strength where none is given or chosen
TOL = 1e-5
MOST_STRENGTHS = 100  # of a path: each is a fit of all epochs


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """Settings of a study.

    Parameters
    ----------
    model : "fm", "hofm", "all-subsets" or "sparse-fm"
        Products of two features; of up to `degree`; of all features; of two, or `degree`, under a
        penalty that leaves products out.
    degree : int, optional
        2 for "fm", 3 to 5 for "hofm" (3 by default), 2 to 5 for "sparse-fm" (2). Interactions of two and
        three are listed.
    penalty : str, optional
        "l2", or one that selects; "ti" by default for "sparse-fm", else "l2".
    strength : float > 0, optional
        Regularization strength of the penalty: β of "l2", γ of the others. By default the one of the
        path with the best metric value on the validation rows.
    strengths : sequence of float > 0, optional
        Regularization strengths of the path; 100 at most.
    path : bool
        Whether to fit the path; without, the regularization strength is 1e-4 where none is given.
    factors, epochs : int ≥ 1
    refits : int ≥ 0
        Fits on rows drawn again, for the intervals of the weights.
    number : int ≥ 1
        Interactions listed of each order.
    min_rows : int ≥ 1
        Rows that must have all features of an interaction.
    seed : int ≥ 0

    Examples
    --------
    >>> StudySettings(model="sparse-fm").resolved().penalty
    'ti'
    """

    model: str = FM
    degree: int | None = None
    penalty: str | None = None
    strength: float | None = None
    strengths: tuple[float, ...] | None = None
    path: bool = True
    factors: int = 8
    epochs: int = 50
    refits: int = 0
    number: int = 20
    min_rows: int = 5
    seed: int = 0

    def resolved(self) -> StudySettings:
        """Return the settings with defaults for those that are not given.

        Raises
        ------
        InputError
            If something is out of range, or does not go with the model.
        """
        check_choice("model", self.model, MODELS)
        for name in ("factors", "epochs", "number", "min_rows"):
            check_integer(name, getattr(self, name), 1, 10_000)
        check_integer("refits", self.refits, 0, 1000)
        check_integer("seed", self.seed, 0, 2**31 - 1)
        penalty = self.penalty or ("ti" if self.model == SPARSE_FM else "l2")
        check_choice("penalty", penalty, tuple(known.name for known in penalties()))
        if self.model == SPARSE_FM and as_penalty(penalty).vanishes:
            raise InputError(f"penalty {penalty!r} leaves no product out: take model 'fm' with it")
        if self.model == ALL_SUBSETS:
            if self.degree is not None:
                raise InputError("all-subsets has products of any degree: leave the degree out")
            degree = None
        else:
            low, high = {FM: (2, 2), HOFM: (3, 5), SPARSE_FM: (2, 5)}[self.model]
            degree = low if self.degree is None else self.degree
            if self.model == FM and degree != 2:
                raise InputError(f"fm has degree 2, not {degree!r}: take model 'hofm' for more")
            check_integer("degree", degree, low, high)
        if self.strength is not None:
            check_real("strength", self.strength, 0.0, open_low=True)
        usual = SHRINKING if as_penalty(penalty).vanishes else SELECTING
        strengths = (
            usual if self.strengths is None else tuple(sorted({float(s) for s in self.strengths}))
        )
        for one in strengths:
            check_real("each of the strengths", one, 0.0, open_low=True)
        if self.path and not strengths:
            raise InputError("strengths holds none: give some, or leave it out")
        if len(strengths) > MOST_STRENGTHS:
            raise InputError(
                f"strengths holds {len(strengths):,}, and each is a fit: give {MOST_STRENGTHS} at most"
            )
        strength = self.strength if self.path or self.strength is not None else GIVEN
        done = replace(self, penalty=penalty, degree=degree, strength=strength, strengths=strengths)
        done.solver()
        return done

    def solver(self) -> str:
        """Return the solver, the first that serves the penalty; of settings that are resolved."""
        estimator = make_estimator(self, True, self.strengths[0] if self.strengths else GIVEN)
        loss, penalty = LOSSES.get("logistic"), as_penalty(str(self.penalty))
        able = [one for one in solver_names() if not refusal(one, loss, penalty, estimator._forms())]
        if not able:
            raise InputError(
                f"penalty {self.penalty!r} is for products of two features: take degree 2, or another "
                "penalty"
            )
        return able[0]

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders whose interactions are listed."""
        return tuple(order for order in ORDERS if self.degree is None or order <= self.degree)


def strength_parameters(settings: StudySettings, strength: float) -> dict[str, float]:
    """Return the estimator's parameters for a regularization strength."""
    if as_penalty(str(settings.penalty)).vanishes:
        return {"beta": strength}
    return {"beta": SPARSE_BETA, "gamma": strength}


def make_estimator(settings: StudySettings, classes: bool, strength: float) -> Any:
    """Return the estimator, not fitted."""
    common: dict[str, Any] = {
        "n_components": settings.factors, "penalty": settings.penalty, "alpha": ALPHA, "tol": TOL,
        "random_state": settings.seed, **strength_parameters(settings, strength),
    }  # fmt: skip
    if settings.model == ALL_SUBSETS:
        return (AllSubsetsClassifier if classes else AllSubsetsRegressor)(**common)
    kind = FactorizationMachineClassifier if classes else FactorizationMachineRegressor
    return kind(degree=settings.degree or 2, **common)
