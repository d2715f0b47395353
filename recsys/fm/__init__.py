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
from recsys.fm.quadratic import SparseLowRankQuadratic
from recsys.fm.recovery import planted_interactions, recovery

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "PairEncoder",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
    "SparseLowRankQuadratic",
    "planted_interactions",
    "recovery",
]
