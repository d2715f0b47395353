"""Factorization machines and their relatives as scikit-learn estimators."""

from recsys.fm.encode import PairEncoder
from recsys.fm.models import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "PairEncoder",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
]
