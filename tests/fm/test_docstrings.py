"""The parameters in the docstrings of fm, links and what they share."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import clone

import recsys.fm
import recsys.links
import recsys.multilinear
from recsys.fm.penalties import penalties
from recsys.utils.docstrings import documented, documented_names

PACKAGES = (recsys.fm, recsys.links, recsys.multilinear)
CLASSES = sorted(
    {
        vars(package)[name]
        for package in PACKAGES
        for name in package.__all__
        if isinstance(vars(package)[name], type)
    },
    key=lambda cls: cls.__name__,
)
ESTIMATORS = [
    cls
    for cls in CLASSES
    if dataclasses.is_dataclass(cls) and hasattr(cls, "get_params") and cls.__name__ != "LinkPredictor"
]


@pytest.mark.parametrize("cls", [*CLASSES, *penalties()], ids=lambda cls: cls.__name__)
def test_every_public_class_has_an_example(cls):
    if cls.__name__ == "LinkPredictor":
        pytest.skip("abstract")
    assert ">>> " in cls.__doc__, cls


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_parameter_is_described_in_the_class_itself(cls):
    fields = {field.name for field in dataclasses.fields(cls)}
    assert documented_names(cls) == fields == set(cls().get_params())
    assert "recsys.fm._" not in cls.__doc__ and "those of" not in cls.__doc__


def test_a_parameter_that_nobody_describes_is_refused():
    with pytest.raises(TypeError, match=r"do not describe \['degree'\]"):

        @documented
        @dataclasses.dataclass
        class Model:
            """A model.

            Parameters
            ----------
            rank : int
            """

            rank: int = 1
            degree: int = 2


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_estimators_can_be_cloned(cls):
    name = next(name for name in ("max_iter", "epochs", "n_draws") if hasattr(cls(), name))
    model = cls(**{name: 3})
    twin = clone(model)
    assert type(twin) is cls and twin is not model
    assert twin.get_params() == model.get_params() and getattr(twin, name) == 3
    assert repr(twin) == f"{cls.__name__}({name}=3)"


@pytest.mark.thorough
def test_a_clone_of_what_was_fitted_is_not_fitted():
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = recsys.fm.FactorizationMachineRegressor(max_iter=1, tol=0.0).fit(X, X[:, 0])
    assert not hasattr(clone(model), "P_")
