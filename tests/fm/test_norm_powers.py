"""The penalties of terms above order 2: their operators, and the solvers that take them."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recsys.fm import AllSubsetsRegressor, FactorizationMachineRegressor
from recsys.fm.penalties import PENALTIES
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, PRODUCT, Form
from tests.fm.test_fm import task
from tests.reference import prox as reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

VALUES = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0, -1.0, 2.0]))


def operator(name, P, strength, order):
    """Return argmin ½‖Q − P‖² + strength·Ω(Q), the penalty without its 1/m!."""
    return PENALTIES[name].prox(P, strength * math.factorial(order), Form(ANOVA, order, 1))


STRENGTHS = st.one_of(st.floats(1e-3, 5), st.sampled_from([1e-12, 1e9]))


@pytest.mark.thorough
@given(st.lists(VALUES, min_size=1, max_size=12), STRENGTHS, st.integers(1, 6))
@settings(max_examples=150, deadline=None)
@example([1.0] * 9, 1e9, 3)
@example([0.0, 0.0], 1.0, 3)
@example([1.0, 1e-200, 0.0], 0.1, 4)
def test_the_operator_of_a_power_is_that_of_halving(values, strength, order):
    q = np.array(values)
    p = operator("l1-power", q[:, None], strength, order)[:, 0]
    top = max(np.abs(q).max(), 1e-300)
    slow = reference.power_l1(np.abs(q), np.full(len(q), strength * order), order)
    if strength * order < np.inf:
        np.testing.assert_allclose(np.abs(p), slow, rtol=0, atol=4e-15 * top * len(q))
    assert (p * q >= 0).all() and (np.abs(p) <= np.abs(q)).all()
    assert (np.diff(np.abs(p)[np.argsort(np.abs(q), kind="stable")]) >= -1e-15 * top).all()


@given(
    st.lists(VALUES, min_size=1, max_size=8), st.floats(1e-3, 5), st.integers(3, 5), st.integers(0, 999)
)
@settings(max_examples=60, deadline=None)
def test_the_operator_of_a_power_is_the_minimum(values, strength, order, seed):
    Q = np.column_stack([values, np.array(values)[::-1] * 2])
    rng = np.random.default_rng(seed)
    for name, q, norm in (
        ("l1-power", Q[:, :1], lambda p: np.abs(p).sum()),
        ("l21-power", Q, lambda p: np.linalg.norm(p, axis=1).sum()),
    ):
        p = operator(name, q, strength, order)

        def value(p, q=q, norm=norm):
            return 0.5 * ((p - q) ** 2).sum() + strength * norm(p) ** order

        least = value(p)
        for scale in (0.3, 1e-2, 1e-4):
            for _ in range(10):
                assert least <= value(p + scale * rng.normal(size=p.shape)) + 1e-12 * max(1.0, least)
        assert least <= value((1 - 1e-4) * p) + 1e-12 and least <= value((1 + 1e-4) * p) + 1e-12


def test_the_square_is_the_known_one_and_the_first_power_the_threshold():
    rng = np.random.default_rng(0)
    for strength in (1e-3, 0.1, 7.0):
        Q = rng.normal(size=(30, 3))
        for power, square, first in (("l1-power", "ti", "l1"), ("l21-power", "cs", "l21")):
            known = PENALTIES[square].prox(Q, 2.0 * strength)
            np.testing.assert_allclose(operator(power, Q, strength, 2), known, atol=1e-14)
            threshold = PENALTIES[first].prox(Q, strength)
            np.testing.assert_allclose(operator(power, Q, strength, 1), threshold, atol=1e-14)


@pytest.mark.thorough
@given(st.lists(st.floats(0, 2), min_size=1, max_size=6), st.floats(1e-4, 0.1), st.integers(3, 4))
@settings(max_examples=40, deadline=None)
def test_the_operator_of_ti_above_order_2_is_the_minimum_where_there_is_one(values, strength, order):
    """Σ|p| ≤ 12 and strengths to 0.1 are not always convex: the best of three searches is not below."""
    sizes = np.array(values)
    P = PENALTIES["ti"].prox(sizes[:, None], strength, Form(ANOVA, order, 1))[:, 0]
    mine = reference.anova_objective(P, sizes, strength, order, 1.0)
    x, best = reference.anova_l1(sizes, strength, order)
    if strength * sizes.sum() ** (order - 2) < 0.5:  # convex: one minimum
        assert mine <= best + 1e-10
        np.testing.assert_allclose(P, x, atol=2e-5)
    for j in range(len(P)):  # else one that no single size improves
        for step in (-1e-3, 1e-3):
            near = P.copy()
            near[j] = max(near[j] + step, 0.0)
            assert mine <= reference.anova_objective(near, sizes, strength, order, 1.0) + 1e-12


@pytest.mark.parametrize(
    "form",
    [
        Form(ANOVA, 2, 1),
        Form(ANOVA, 3, 1),
        Form(ANOVA, 4, 1),
        Form(MIXED, 3, 1),
        Form(ALL_SUBSETS, 1, 1),
        Form(PRODUCT, 2, 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["ti", "cs", "l1-power", "l21-power"])
@pytest.mark.parametrize("strength", [0.02, 0.2])
def test_prox_is_the_minimum_in_any_form(name, form, strength):
    penalty, Q = PENALTIES[name], 0.5 * np.random.default_rng(0).normal(size=(6, 3))
    P = penalty.prox(Q.copy(), strength, form)

    def value(R):
        extra = 0.5 * (R * R).sum() if penalty.half_squares else 0.0
        return 0.5 * ((R - Q) ** 2).sum() + strength * (penalty.value(form, R) + extra)

    assert value(P) <= value(Q) and value(P) <= value(0.0 * Q) + 1e-12
    rng = np.random.default_rng(1)
    for scale in (0.1, 1e-2, 1e-4):
        for _ in range(20):
            assert value(P) <= value(P + scale * rng.normal(size=P.shape)) + 1e-12


def test_the_powers_bound_what_they_stand_for():
    P = np.random.default_rng(0).normal(size=(7, 2))
    for order in (2, 3, 4):
        form = Form(ANOVA, order, 1)
        for power, own in (("l1-power", "ti"), ("l21-power", "cs")):
            assert PENALTIES[power].value(form, P) >= PENALTIES[own].value(form, P)
    pairs = Form(ANOVA, 2, 1)
    gap = PENALTIES["l1-power"].value(pairs, P) - PENALTIES["ti"].value(pairs, P)
    assert gap == pytest.approx(0.5 * (P * P).sum())


@pytest.mark.parametrize("bound", ["ti", "cs", "l1-power", "l21-power"])
def test_squares_of_norms_bound_the_weights_of_interactions_and_norms_do_not(bound):
    """Theorems 1 and 2 of Atarashi et al. 2021; Ω* by its definition, over all pairs."""
    form = Form(ANOVA, 2, 1)
    for seed in range(20):
        P = np.random.default_rng(seed).normal(size=(6, 3))
        omega = sum(abs(P[i] @ P[j]) for i in range(6) for j in range(i))
        assert PENALTIES[bound].value(form, P) >= omega
        for name in ("l1", "l21"):
            norm = PENALTIES[name].value(form, P)
            for factor in (1e-3, 1.0, 1e3):  # whatever a norm is multiplied by, it is above and below
                for scale, above in (
                    (0.5 * factor * norm / omega, True),
                    (2.0 * factor * norm / omega, False),
                ):
                    scaled = factor * PENALTIES[name].value(form, scale * P)
                    assert (scaled > PENALTIES["omega"].value(form, scale * P)) == above


HIGHER = [
    (solver, penalty)
    for solver in ("fista", "nmapgd", "psgd")
    for penalty in ("ti", "cs", "l1-power", "l21-power")
]


@pytest.mark.thorough
@pytest.mark.parametrize(("solver", "penalty"), HIGHER)
def test_every_solver_selects_in_order_3(solver, penalty):
    """y is one product of three features: it is found, and most others are left out."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 6))
    y = 2.0 * X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
    # the power of a norm has the products of equal features too, whose value a strength must not exceed
    kw = dict(
        degree=3,
        fit_lower=None,
        n_components=2,
        gamma=0.01 if penalty.endswith("power") else 0.05,
        init_scale=0.5,
        max_iter=150,
        tol=1e-7,
        beta=1e-3,
        random_state=0,
    )
    stochastic = {"batch_size": 12, "learning_rate": 0.05} if solver == "psgd" else {}
    model = FactorizationMachineRegressor(solver=solver, penalty=penalty, **kw, **stochastic).fit(X, y)
    exact = FactorizationMachineRegressor(
        solver={"ti": "cd", "cs": "block"}.get(penalty, "fista"), penalty=penalty, **kw
    ).fit(X, y)
    ours, best = model.history_[-1]["objective"], exact.history_[-1]["objective"]
    assert ours <= best + 0.05 * (exact.history_[0]["objective"] - best), (ours, best)
    used = np.abs(model.P_[0][0]).sum(axis=1) > 0
    assert used[:3].all() and not used.all(), model.P_[0][0]


@pytest.mark.thorough
@pytest.mark.parametrize("penalty", ["ti", "cs"])
def test_all_subsets_are_served_by_whole_vectors_too(penalty):
    X, y = task(9, n=120)
    kw = dict(penalty=penalty, gamma=0.02, n_components=3, max_iter=150, tol=1e-8, init_scale=0.2)
    exact = AllSubsetsRegressor(solver="cd" if penalty == "ti" else "block", **kw).fit(X, y)
    model = AllSubsetsRegressor(solver="fista", **kw).fit(X, y)
    objective = [entry["objective"] for entry in model.history_]
    assert (np.diff(objective) <= 1e-10).all()
    best = exact.history_[-1]["objective"]
    assert objective[-1] <= best + 0.1 * (objective[0] - best)
