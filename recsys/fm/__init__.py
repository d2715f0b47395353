"""Factorization machines and their relatives as scikit-learn estimators."""

from recsys.fm.bayesian import (
    BayesianFactorizationMachineClassifier,
    BayesianFactorizationMachineRegressor,
)
from recsys.fm.custom import CustomLoss, SeparablePenalty
from recsys.fm.encoder import PairEncoder
from recsys.fm.estimators import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)
from recsys.fm.findings import Study
from recsys.fm.path import regularization_path
from recsys.fm.path_points import PathPoint, RegularizationPath, StrengthBracket
from recsys.fm.problem import Problem, pairs_problem, table_problem
from recsys.fm.selection import Selection, select
from recsys.fm.simulation import PlantedInteractions, Recovery, planted_interactions, recovery
from recsys.fm.stability import Stability, Starts, several_starts, stability_selection
from recsys.fm.study import study
from recsys.fm.study_settings import StudySettings

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "BayesianFactorizationMachineClassifier",
    "BayesianFactorizationMachineRegressor",
    "CustomLoss",
    "FactorizationMachineClassifier",
    "FactorizationMachineRegressor",
    "PairEncoder",
    "PathPoint",
    "PlantedInteractions",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
    "Problem",
    "Recovery",
    "RegularizationPath",
    "Selection",
    "SeparablePenalty",
    "Stability",
    "Starts",
    "StrengthBracket",
    "Study",
    "StudySettings",
    "pairs_problem",
    "planted_interactions",
    "recovery",
    "regularization_path",
    "select",
    "several_starts",
    "stability_selection",
    "study",
    "table_problem",
]
