import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.errors import InputError
from recsys.optim import simplex_qp
from recsys.optim.simplex_qp import TOLERANCE, WORK, solve_face, solve_simplex
from tests.reference import qp as reference


@st.composite
def programs(draw):
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rank = draw(st.integers(1, n + 2))
    factor = rng.normal(size=(n, rank)) * draw(st.sampled_from([0.1, 1.0]))
    if draw(st.booleans()) and n > 1:
        factor[-1] = factor[0]  # a duplicate makes K singular
    K = factor @ factor.T
    sign = np.ones(n)
    if draw(st.booleans()):
        sign[: n // 2] = -1
    ridge = np.full(n, draw(st.sampled_from([0.0, 0.01, 0.1, 10.0])))
    if draw(st.booleans()):
        ridge *= 10 ** rng.uniform(0, 2, size=n)
    return K, rng.normal(size=n), sign, ridge


@settings(max_examples=150, deadline=None)
@given(programs())
def test_reaches_the_optimum_and_certifies_it(program):
    K, q, sign, ridge = program
    weights, residual, _ = solve_simplex(K, q, sign=sign, ridge=ridge)
    assert (weights >= 0).all()
    for s in (1, -1):
        if (sign == s).any():
            assert weights[sign == s].sum() == pytest.approx(1)
    assert residual <= TOLERANCE
    assert reference.violation(K, q, sign, ridge, weights) == pytest.approx(residual, abs=1e-9)
    slow = reference.solve(K, q, sign, ridge)
    gap = reference.objective(K, q, sign, ridge, weights) - reference.objective(K, q, sign, ridge, slow)
    assert gap <= 2 * TOLERANCE


@settings(max_examples=100, deadline=None)
@given(programs())
def test_pairwise_steps_finish_what_one_face_leaves(program):
    K, q, sign, ridge = program
    ridge = np.maximum(ridge, 0.01)  # without one, a singular K takes as many steps as there may be
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simplex_qp, "MAX_FACES", 1)
        weights, residual, _ = solve_simplex(K, q, sign=sign, ridge=ridge)
    assert residual <= TOLERANCE
    assert reference.violation(K, q, sign, ridge, weights) == pytest.approx(residual, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(programs(), st.floats(0, 5))
def test_a_constant_added_to_the_kernel_changes_nothing(program, constant):
    K, q, _, ridge = program
    ridge = np.maximum(ridge, 0.01)
    plain = solve_simplex(K, q, ridge=ridge).weights
    shifted = solve_simplex(K + constant, q + constant, ridge=ridge).weights
    # Two solutions of residual r differ by at most r over the smallest curvature, the ridge.
    np.testing.assert_allclose(shifted, plain, atol=4 * TOLERANCE / 0.01)


def test_known_solutions():
    np.testing.assert_allclose(solve_simplex(np.eye(4)).weights, 0.25)
    np.testing.assert_allclose(solve_simplex(np.diag([1.0, 3.0])).weights, [0.75, 0.25], atol=1e-6)
    np.testing.assert_allclose(solve_simplex(np.zeros((3, 3)), [0, 1, 0]).weights, [0, 1, 0], atol=1e-9)
    assert solve_simplex([[2.0]], [5.0]).weights.tolist() == [1.0]


def test_radius_of_a_square_is_that_of_its_circle():
    X = np.array([[0, 0], [0, 2], [2, 0], [2, 2.0]])
    K = X @ X.T
    a = solve_simplex(K, np.diag(K) / 2).weights
    assert a @ np.diag(K) - a @ K @ a == pytest.approx(2.0, abs=1e-5)


@pytest.mark.parametrize("constant", [1.0, 0.0])
def test_rank_one_and_zero_kernels_stop(constant):
    solution = solve_simplex(np.full((50, 50), constant))
    assert solution.residual <= TOLERANCE and solution.weights.sum() == pytest.approx(1)


def test_ill_conditioned_kernels_are_solved_or_reported():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    K = (basis * np.logspace(0, -16, 40)) @ basis.T
    K = (K + K.T) / 2
    q, one = rng.normal(size=40), np.ones(40)
    weights, residual, _ = solve_simplex(K, q)
    assert residual == pytest.approx(reference.violation(K, q, one, 0 * one, weights), abs=1e-9)
    assert residual <= TOLERANCE


@settings(max_examples=60, deadline=None)
@given(programs())
def test_the_compiled_form_has_the_same_solution(program):
    K, q, _, ridge = program
    n, ridge = len(K), np.maximum(ridge, 0.01)
    a, g, face = np.full(n, 1.0 / n), np.empty(n), np.empty(n, dtype=np.uint32)
    residual = solve_face(K, n, q, ridge, a, g, face, np.empty((n, n)), np.empty((WORK, n)), TOLERANCE)
    one = np.ones(n)
    assert residual == pytest.approx(reference.violation(K, q, one, ridge, a), abs=1e-9)
    if residual <= TOLERANCE:
        np.testing.assert_allclose(a, solve_simplex(K, q, ridge=ridge).weights, atol=4e-4)


def test_ridges_may_differ():
    found = solve_simplex(np.zeros((3, 3)), ridge=[1.0, 2.0, 4.0])
    np.testing.assert_allclose(found.weights, np.array([4, 2, 1]) / 7, atol=1e-6)
    # Without preconditioning these, over six decades, would take hundreds of steps.
    factor = np.random.default_rng(0).random((300, 40))
    ridge = 0.1 * np.arange(1.0, 301.0) ** 2.5
    weights, residual, steps = solve_simplex(factor @ factor.T / 40, ridge=ridge)
    assert residual <= TOLERANCE and steps < 100
    one = np.ones(300)
    assert reference.violation(factor @ factor.T / 40, 0 * one, one, ridge, weights) <= 2 * TOLERANCE


@pytest.mark.parametrize(
    ("K", "options"),
    [
        (np.ones((2, 3)), {}),
        (np.empty((0, 0)), {}),
        (np.eye(2), {"q": [1.0]}),
        (np.eye(2), {"sign": [1.0]}),
        (np.eye(2), {"ridge": -1.0}),
    ],
)
def test_programs_of_other_shapes_and_negative_ridges_are_refused(K, options):
    with pytest.raises(InputError, match="K must be square"):
        solve_simplex(K, **options)
