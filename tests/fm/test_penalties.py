"""What a penalty offers is true of it."""

import numpy as np
import pytest

from recsys.fm import penalties as chain
from recsys.fm.penalties import PENALTIES
from recsys.fm.solvers import refusal
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, POWER, PRODUCT, Form
from recsys.multilinear.losses import LOSSES

PAIRS = Form(ANOVA, 2, 1)
NAMES = list(PENALTIES)
UNKNOWN = 99


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(6, 3))


def completed(penalty, P):
    """What `prox` is of."""
    return penalty.value(PAIRS, P) + (0.5 * (P * P).sum() if penalty.half_squares else 0.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "omega"])
@pytest.mark.parametrize("strength", [0.05, 0.5])
def test_prox_is_the_minimum(name, strength):
    penalty, Q = PENALTIES[name], table()
    P = penalty.prox(Q.copy(), strength)

    def value(R):
        return 0.5 * ((R - Q) ** 2).sum() + strength * completed(penalty, R)

    rng = np.random.default_rng(1)
    for scale in (0.3, 1e-2, 1e-4):
        for _ in range(20):
            assert value(P) <= value(P + scale * rng.normal(size=P.shape)) + 1e-12


def test_the_approximate_prox_of_omega_lowers_what_it_approximates():
    penalty, Q = PENALTIES["omega"], table()
    P = penalty.prox(Q.copy(), 0.1)
    value = 0.5 * ((P - Q) ** 2).sum() + 0.1 * penalty.value(PAIRS, P)
    assert value < 0.1 * penalty.value(PAIRS, Q)


FORMS = [
    PAIRS,
    *(Form(ANOVA, order, 1) for order in (3, 4, 5)),
    Form(MIXED, 3, 1),
    Form(ALL_SUBSETS, 1, 1),
    Form(PRODUCT, 3, 3),
    Form(POWER, 3, 1),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_subgradient_is_the_gradient_where_there_is_one(name, form):
    penalty, P = PENALTIES[name], table()
    if penalty.refuses(form):
        pytest.skip("of pairs alone")
    slope = penalty.subgradient(P, form)
    for j, s in np.ndindex(P.shape):
        step = np.zeros_like(P)
        step[j, s] = 1e-6
        numeric = (penalty.value(form, P + step) - penalty.value(form, P - step)) / 2e-6
        assert slope[j, s] == pytest.approx(numeric, rel=1e-6, abs=1e-5)
    assert form != PAIRS or (penalty.subgradient(P) == slope).all()


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", ["l1", "ti", "l21", "cs", "l1-power", "l21-power"])
@pytest.mark.parametrize("seed", range(3))
def test_the_slope_between_the_sides_is_a_subgradient_at_zeros(name, form, seed):
    """No direction from a table with zeros falls faster than it says; |p| there has any slope in ±1."""
    penalty, P = PENALTIES[name], table(seed)
    P[1], P[2, 0], P[:, 2] = 0.0, 0.0, 0.0
    P[0] *= 1e6  # outweighs the rest, so that the others' polynomial is taken afresh
    slope = penalty.subgradient(P, form)
    assert np.isfinite(slope).all() and (slope[P == 0.0] == 0.0).all()
    rng, now = np.random.default_rng(seed), penalty.value(form, P)
    for _ in range(20):
        step = 1e-7 * rng.normal(size=P.shape) * np.maximum(np.abs(P), 1.0)
        if name in ("l21", "cs", "l21-power"):
            step[1] *= rng.integers(2)
        rise = penalty.value(form, P + step) - now
        assert rise >= (slope * step).sum() - 1e-5 * abs(rise) - 1e-9 * abs(now)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("name", ["l2", "l1", "ti"])
def test_the_chains_scalar_prox_is_the_minimum_along_an_entry(name, order):
    """With the factor that the running totals give, in a form of any order."""
    penalty, form, P = PENALTIES[name], Form(ANOVA, order, 1), table()
    sizes = np.abs(P[:, 0])
    totals, rest = chain.sums_of(ANOVA, sizes, order), np.empty(max(order, 2))
    factor = chain.factor_of_sums(ANOVA, totals, sizes, 2, rest) if name == "ti" else 1.0
    new = chain.prox_scalar(penalty.code, P[2, 0], 0.1 * factor)

    def value(entry):
        Q = P.copy()
        Q[2, 0] = entry
        return 0.5 * (entry - P[2, 0]) ** 2 + 0.1 * penalty.value(form, Q)

    assert all(value(new) <= value(new + step) + 1e-12 for step in (-0.1, -1e-3, 1e-3, 0.1))
    if name == "ti":
        chain.replace_in_sums(ANOVA, totals, sizes, 2, rest, abs(new))
        np.testing.assert_allclose(totals, chain.sums_of(ANOVA, sizes, order), rtol=1e-9)


def test_codes_are_unique():
    assert sorted(kind.code for kind in PENALTIES.values()) == list(range(8))


def test_refusals_say_what_is_the_matter():
    squared = LOSSES.get("squared")
    said = {
        ("fista", "ti", Form(ANOVA, 3, 1)): "",
        ("nmapgd", "omega", Form(ANOVA, 3, 1)): "penalty 'omega' beyond pairs of features",
        ("nmapgd", "omega", Form(PRODUCT, 2, 2)): "penalty 'omega' beyond pairs of features",
        ("psgd", "cs", Form(ALL_SUBSETS, 1, 1)): "",
        ("adagrad", "cs", PAIRS): "penalty 'cs'",
        ("cd", "l1-power", Form(ANOVA, 3, 1)): "penalty 'l1-power'",
        ("block", "l2", Form(PRODUCT, 2, 2)): "polynomial networks",
        ("cd", "cs", PAIRS): "penalty 'cs'",
        ("cd", "ti", Form(ANOVA, 5, 1)): "",
    }
    for (solver, penalty, form), text in said.items():
        assert refusal(solver, squared, PENALTIES[penalty], [form]) == text
    assert (
        refusal("cd", LOSSES.get("bpr"), PENALTIES["l2"], [PAIRS]) == "loss 'bpr', which compares rows"
    )
