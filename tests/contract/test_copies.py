"""Whatever the package returns can be sent to another process and copied: engines and caches do both."""

import copy
import dataclasses
import pickle

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from recsys import make_ranker
from recsys.data import Interactions, split
from recsys.datasets import load_dataset
from recsys.datasets.categorical import load_table
from recsys.embeddings import embeddings
from recsys.evaluation import compare, evaluate
from recsys.explain import (
    item_attributes,
    item_rule,
    learn_rule,
    reasons,
    search_rule,
    signed_weights,
    taste_rule,
    what_if,
)
from recsys.fm import FactorizationMachineRegressor
from recsys.kernel_machines import GRAM, KOMD
from recsys.links import split_pairs
from recsys.rankers import fit_package
from recsys.rankers.base import Recommendations
from tests.synthetic import planted_catalogue

DATA = load_dataset("sample")
R = DATA.matrix
TASTE = (item_attributes(DATA), np.bincount(R.indices, minlength=R.shape[1]).astype(float))


def first(values):
    return next(value for value in values if value is not None)


def ranker():
    return make_ranker("ease").fit(R, show_progress=False)


def machine():
    table = load_table("monks-1")
    return table, KOMD(regularization=0.0, kernel="mdnf-sum", kernel_params={"d": 3, "c": 2}).fit(
        table.X, table.y
    )


def found_rule(search):
    table, fitted = machine()
    return search(table.X, signed_weights(fitted, len(table.y)), names=table.names)


def one_machine():
    model = FactorizationMachineRegressor(max_iter=2, tol=0.0)
    return model.fit(sp.csr_matrix(np.eye(6)), np.arange(6.0))


RETURNED = {
    "recommendations for one": lambda: ranker().recommend(3, R[3]),
    "recommendations for many": lambda: ranker().recommend([3, 4], R[[3, 4]]),
    "explanation": lambda: ranker().explain(3, R[3], 1),
    "ranker": ranker,
    "factors": lambda: make_ranker("als", factors=4, iterations=2).fit(R, show_progress=False),
    "package": lambda: fit_package(make_ranker("popularity"), DATA, show_progress=False),
    "interactions": lambda: DATA,
    "fold": lambda: next(iter(split(DATA, "half-profile"))),
    "planted catalogue": lambda: planted_catalogue(20, 15, mean_length=5, seed=1),
    "report": lambda: evaluate(DATA, {"p": make_ranker("popularity")}, folds=2, keep_lists=5),
    "comparison": lambda: compare(np.arange(20.0), np.arange(20.0)[::-1].copy()),
    "reasons": lambda: reasons(ranker(), 3, R[3], 1),
    "what if": lambda: what_if(ranker(), 3, R[3], 1),
    "item attributes": lambda: TASTE[0],
    "rule of other people": lambda: first(
        item_rule(R, R[u].indices, k) for u in range(50) for k in range(30)
    ),
    "rule searched": lambda: found_rule(search_rule),
    "rule learnt": lambda: learn_rule(*(lambda t: (t.X, t.y))(load_table("monks-1"))),
    "taste": lambda: first(taste_rule(R[u].indices, *TASTE) for u in range(60)),
    "table": lambda: load_table("monks-1"),
    "machine": lambda: machine()[1],
    "learnt kernel": lambda: GRAM().fit(*(lambda t: (t.X, t.y))(load_table("monks-1"))),
    "factorization machine": one_machine,
    "embeddings": lambda: embeddings(ranker(), R, factors=3),
    "pairs": lambda: split_pairs([(i, j) for i in range(30) for j in range(i) if (i + j) % 3 == 0], 30),
}


def by_joblib(value, tmp_path):
    joblib.dump(value, tmp_path / "it")
    return joblib.load(tmp_path / "it")


WAYS = {
    "copy": lambda v, _: copy.copy(v),
    "deepcopy": lambda v, _: copy.deepcopy(v),
    "cloudpickle": lambda v, _: pickle.loads(cloudpickle.dumps(v)),
    "joblib": by_joblib,
} | {
    f"pickle {p}": lambda v, _, p=p: pickle.loads(pickle.dumps(v, p))
    for p in range(pickle.HIGHEST_PROTOCOL + 1)
}


def same(one, other):
    """Whether two values are equal all the way down, to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return one.shape == other.shape and all(map(same, one.ravel(), other.ravel()))
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if sp.issparse(one):
        return one.shape == other.shape and (one != other).nnz == 0
    if isinstance(one, (pd.DataFrame, pd.Series)):
        return one.equals(other)
    if isinstance(one, Recommendations) and not same(one.fallback, other.fallback):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, np.random.RandomState):
        return same(one.get_state(legacy=False), other.get_state(legacy=False))
    if callable(one) and not hasattr(one, "__dict__"):
        return True
    if dataclasses.is_dataclass(one) or hasattr(one, "__dict__"):
        return same(vars(one), vars(other)) if hasattr(one, "__dict__") else one == other
    return one == other or (one != one and other != other)


@pytest.fixture(scope="module", params=RETURNED)
def returned(request):
    value = RETURNED[request.param]()
    assert value is not None
    return value


@pytest.mark.thorough
def test_what_is_returned_can_be_copied_and_sent(returned, tmp_path):
    for way, send in WAYS.items():
        again = send(returned, tmp_path)
        assert again is not returned and same(again, returned), way


def test_copies_of_recommendations_are_recommendations():
    for found in (ranker().recommend(3, R[3]), ranker().recommend([3, 4], R[[3, 4]])):
        again = copy.deepcopy(found)
        assert type(again) is Recommendations and len(again) == 2
        assert again.ids is not found.ids and np.array_equal(again.ids, found.ids)
        assert type(again.fallback) is type(found.fallback)
        assert np.array_equal(again.fallback, found.fallback)


def test_the_comparison_above_tells_values_apart():
    one = ranker().recommend(3, R[3])
    ids = one.ids.copy()
    assert same(one, Recommendations(ids, one.scores, False))
    assert not same(one, Recommendations(ids, one.scores, True))
    assert not same(one, tuple(one))
    ids[0] += 1
    assert not same(one, Recommendations(ids, one.scores, False))


def test_interactions_are_what_they_were():
    again = copy.deepcopy(DATA)
    assert isinstance(again, Interactions) and (again.matrix != R).nnz == 0
