"""Factorization machines and their relatives as scikit-learn estimators."""

from recsys.fm.bayesian import (
    BayesianFactorizationMachineClassifier,
    BayesianFactorizationMachineRegressor,
)
from recsys.fm.estimators import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)
from recsys.fm.selection import PathPoint, interactions, regularization_path
from recsys.fm.tables import PairEncoder, liked_pairs, table_rows

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "BayesianFactorizationMachineClassifier",
    "BayesianFactorizationMachineRegressor",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "PairEncoder",
    "PathPoint",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
    "interactions",
    "liked_pairs",
    "regularization_path",
    "table_rows",
]
