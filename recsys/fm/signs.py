"""The signs of the components, chosen by trial at the start of a fit.

Under an even order no p_s makes a component negative: its sign is a parameter. In a homogeneous term
(A^m, ⟨p, x⟩^m) it is the only one, for p_s takes up the size of any weight. From one sign to the other a
descent would have to pass a component of nothing, and it ends before that: so both are tried, component
by component.

Source: Blondel et al. 2016 (ICML) and Atarashi et al. 2019, (5), have a weight λ_s for each component;
the trial is own work.
"""

from __future__ import annotations

from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties.l2 import L2
from recsys.fm.solvers.base import Options
from recsys.fm.solvers.coordinate import CoordinateDescent
from recsys.multilinear.forms import ANOVA, POWER, PRODUCT, Form
from recsys.multilinear.linear import bias_step, linear_epoch

__all__ = ["choose_signs", "sign_matters"]

PASSES = 5  # over one component, for each sign
FIRST = 2  # over the bias and the linear weights, which come before the components


def sign_matters(form: Form) -> bool:
    """Return whether a component of the other sign is needed: no other parameters replace it."""
    if form.kind in (ANOVA, POWER):
        return form.order % 2 == 0
    return form.kind != PRODUCT  # a factor of it may change its sign


def choose_signs(objective: Objective) -> None:
    """Fit each component alone to what those before it left, with both signs, and keep the better.

    The model's `weights` become −1 and 1 where the sign matters; P, the bias and the linear weights are
    left as the trials ended. They are under the squared norms alone, whatever the penalty, and under the
    loss of single rows.
    """
    model, by = objective.model, objective.regularization
    shrinkage = Regularization(L2(), by.alpha, by.beta, 0.0)
    objective.refresh()
    for n, (form, P) in enumerate(zip(model.forms, model.tables(), strict=True)):
        if not sign_matters(form):
            continue
        one = Model.zeros([form], model.features, 1, False)
        one.theta[:] = model.theta[n, : one.theta.shape[1]]
        part = Objective(
            one, objective.X, objective.y, objective.loss, shrinkage, False, objective.rng,
            objective.threads, row_weights=objective.row_weights,
        )  # fmt: skip
        part.pred = objective.pred
        solver = CoordinateDescent(part, Options(1.0, 1, objective.threads))
        for _ in range(FIRST):
            if objective.intercept:
                model.z[0] = part.compiled(bias_step)(part.target, float(model.z[0]))
            if model.linear:
                part.compiled(linear_epoch)(solver.order, solver.columns, part.target, model.w, by.alpha)
        table = one.tables()[0][:, :, 0]
        for s in range(model.components):
            start = P[:, :, s].copy()
            table[:] = start
            one.weights[0, 0] = 1.0
            value = one.predict(objective.X, threads=objective.threads)
            without = part.pred - model.weights[n, s] * value
            found = []
            for sign in (1.0, -1.0):
                table[:], one.weights[0, 0] = start, sign
                part.pred = without + sign * value
                for _ in range(PASSES):
                    solver._term(0)
                reached = part.data_loss(part.pred) + part.ridge(one.z)
                found.append((float(reached), sign, table.copy(), part.pred))
            _, model.weights[n, s], P[:, :, s], part.pred = min(found, key=lambda trial: trial[0])
        objective.pred = part.pred
    objective.refresh()
