import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.multilinear import LOSSES, newton_identities, symmetric_polynomials
from recsys.multilinear.losses import Loss, loss_names, loss_slope, loss_values
from tests.reference import fm as reference


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_newtons_identities_are_the_symmetric_polynomials(values, order):
    a = np.array(values)
    sums = [float((a**r).sum()) for r in range(1, order + 1)]
    expected = [reference.anova(a, np.ones(len(a)), t) for t in range(1, order + 1)]
    np.testing.assert_allclose(newton_identities(sums), expected, atol=1e-8)
    np.testing.assert_allclose(symmetric_polynomials(a, order), expected, atol=1e-8)
    arrays = [np.full((2, 3), s) for s in sums]  # arrays go the same way
    for found, value in zip(newton_identities(arrays), expected, strict=True):
        np.testing.assert_allclose(found, np.full((2, 3), value), atol=1e-8)


def test_losses_come_in_kinds():
    assert loss_names(numbers=True) == ("squared",)
    assert loss_names(classes=True, pairwise=False)[:3] == ("squared", "logistic", "squared_hinge")
    assert loss_names(pairwise=True)[:2] == ("bpr", "auc") == loss_names()[-2:]
    assert set(loss_names()) == set(LOSSES.names())
    for name in loss_names(numbers=False):
        assert LOSSES.get(name).for_classes and not LOSSES.get(name).for_numbers


def test_every_registered_loss_has_a_branch_and_a_registered_name_is_taken():
    for name in LOSSES.names():
        loss = LOSSES.get(name)
        assert loss.name == name and loss.curvature > 0
        assert np.isfinite([loss_values(loss.code, 0.3, 1.0), loss_slope(loss.code, 0.3, 1.0)]).all()
    with pytest.raises(ValueError, match="registered twice"):
        LOSSES.add("squared")(Loss("squared", 99, 1.0))
