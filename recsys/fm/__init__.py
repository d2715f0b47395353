"""Factorization machines and their relatives as scikit-learn estimators."""

from recsys.fm.encoder import PairEncoder
from recsys.fm.estimators import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)
from recsys.fm.quadratic import SparseLowRankQuadratic
from recsys.fm.simulation import PlantedInteractions, Recovery, planted_interactions, recovery

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "PairEncoder",
    "PlantedInteractions",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
    "Recovery",
    "SparseLowRankQuadratic",
    "planted_interactions",
    "recovery",
]
