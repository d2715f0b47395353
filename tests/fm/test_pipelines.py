"""Factorization machines in scikit-learn's pipelines and searches, on tables of categories."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from recsys.fm import FactorizationMachineClassifier, FactorizationMachineRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"u": rng.integers(0, 6, 300), "i": rng.integers(0, 5, 300), "age": rng.random(300)}
    )
    taste = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5))
    y = taste[X["u"], X["i"]] + 0.1 * rng.normal(size=300)
    return X.astype({"u": str, "i": str}), y


def pipeline(model):
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["u", "i"]), (StandardScaler(), ["age"])
    )
    return make_pipeline(columns, model)


def test_a_regressor_in_a_pipeline_is_searched(table):
    X, y = table
    model = pipeline(FactorizationMachineRegressor(n_components=2, max_iter=60, random_state=0))
    grid = {"factorizationmachineregressor__beta": [1e-3, 1e3]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"factorizationmachineregressor__beta": 1e-3}
    assert search.best_score_ > 0.9  # interactions are found, which strong shrinkage does not allow
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] > scores[1]
    assert search.predict(X.assign(u="stranger")).shape == (300,)


def test_a_classifier_in_a_pipeline_is_scored(table):
    X, y = table
    labels = np.where(y > np.median(y), "yes", "no")
    model = pipeline(FactorizationMachineClassifier(n_components=2, max_iter=60, random_state=0))
    assert cross_val_score(model, X, labels, cv=3, scoring="roc_auc").mean() > 0.9
    assert set(model.fit(X, labels).predict(X)) == {"yes", "no"}
