"""What rankers are given beside the matrix: item features and times."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from recsys import InputError, make_ranker
from recsys.data import Interactions
from recsys.data.features import SideInformation, features_of, time_matrix
from recsys.evaluation import evaluate
from recsys.rankers import fit_package
from recsys.rankers.base import Data
from recsys.utils.sparse import masked


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 30, (400, 2)), axis=0)
    table = pd.DataFrame(
        {
            "title": [f"t{i}" for i in range(30)],
            "url": [f"u{i}" for i in range(30)],
            "year": np.arange(1970, 2000),
            "genres": ["a|b" if i % 2 else "c" for i in range(30)],
        },
        index=[str(i) for i in range(30)],
    )
    users, items = pairs[:, 0].astype(str).astype(object), pairs[:, 1].astype(str).astype(object)
    found = Interactions.from_ids(users, items, time=rng.random(len(pairs)))
    return found.with_features(items=table)


def test_titles_and_names_are_no_features(data):
    F = features_of(data.item_features)
    assert F.shape == (data.n_items, 8 + 3)  # years in eighths, three genres
    ranker = make_ranker("fm", factors=2, iterations=1)
    ranker.fit(data.matrix, False, **SideInformation(data).of(ranker))
    assert ranker.item_features_.shape == F.shape
    assert SideInformation(data).of(make_ranker("als")) == {} == SideInformation(data).of(object())


def test_times_are_for_parameters_that_make_something_of_them(data):
    known = SideInformation(data)
    for name in ("ease", "slim", "msdw", "ecf-omd"):
        assert known.of(make_ranker(name)) == {}
        assert list(known.of(make_ranker(name, recency=0.5))) == ["times"]
    assert known.of(make_ranker("ecf-omd", recency=0.5, regularization=0.0)) == {}
    for name, params in (("slist", {}), ("blend", {})):
        assert list(known.of(make_ranker(name, **params))) == ["times"]
    assert "times" in known.of(make_ranker("auto"))  # and features of items, where there are any


def test_times_are_themselves_and_the_oldest_unknown(data):
    T = time_matrix(data)
    assert T.nnz == len(data.users)
    np.testing.assert_array_equal(np.asarray(T[data.users, data.items]).ravel(), data.time)
    time = data.time.copy()
    time[3] = -np.inf
    T = time_matrix(replace(data, time=time))
    assert T.nnz == len(data.users) and T[data.users[3], data.items[3]] == 0 and (T.data == 0).sum() == 1


@pytest.mark.parametrize("least", [-5.0, 0.0])
def test_times_that_are_not_above_0_are_counted_from_the_oldest(data, least):
    moved = replace(data, time=data.time - data.time.min() + least)
    T = time_matrix(moved)
    assert T.nnz == len(data.users) and T.data.min() == 1
    # Not their places in the order of all, which would tell a model of the others' times, of test items too.
    found = np.asarray(T[data.users, data.items]).ravel()
    np.testing.assert_allclose(found, moved.time - least + 1)
    moved.time[3] = -np.inf
    assert time_matrix(moved)[data.users[3], data.items[3]] == 0


def test_auto_hides_the_later_half_where_times_count(data):
    auto = make_ranker("auto", validation_fraction=0.9, users=30)
    liked = data.matrix
    T = SideInformation(data, "half-profile-time").times
    hide, held = auto._hidden(Data(liked, T))
    left, hidden = masked(liked, ~hide), masked(liked, hide)[held]
    assert (T != time_matrix(data)).nnz == 0
    assert len(held) > 5
    last, users = auto.set_params(hide="last")._hidden(Data(liked, T))
    assert last.sum() == len(users) == len(held)
    for user, row in zip(users, masked(liked, last)[users], strict=True):
        assert T[user, row.indices[0]] == T[user].max()
    for row, user in zip(hidden, held, strict=True):
        kept = left[user].indices
        assert T[user, row.indices].min() > T[user, kept].max()
        assert abs(len(kept) - row.nnz) <= 1
    assert SideInformation(data, "half-profile").times is None
    with pytest.raises(
        InputError, match=r"times are of shape \(30, 30\) for interactions of shape \(7, 7\)"
    ):
        auto.fit(sp.csr_matrix(np.eye(7)), times=T)
    with pytest.raises(
        InputError, match=r"times are of shape \(30, 30\) for interactions of shape \(30, 7\)"
    ):
        auto.fit(liked[:, :7], times=T)
    with pytest.raises(InputError, match="negative"):
        auto.fit(liked, times=-T)


def test_features_and_times_go_through_an_evaluation(data):
    models = [
        (name, make_ranker(name, **params))
        for name, params in (("auto", {"rounds": 1}), ("pairnet", {"factors": 2, "iterations": 2}))
    ]
    report = evaluate(data, models, protocol="half-profile-time", folds=2)
    assert all(np.isfinite(r.metrics["auc"].mean) for r in report.results)


def test_what_is_fitted_for_use_has_the_features(data, tmp_path):
    package = fit_package(make_ranker("bilinear", factors=2, iterations=2), data, show_progress=False)
    assert package.ranker.item_features_.shape[0] == data.n_items


def test_what_no_model_uses_is_not_made(data, monkeypatch):
    made = []
    for name in ("features_of", "time_matrix"):
        monkeypatch.setattr(f"recsys.data.features.{name}", lambda given, name=name: made.append(name))
    evaluate(data, make_ranker("als"), protocol="half-profile-time", folds=2)
    assert made == []
    evaluate(data, make_ranker("slist"), protocol="half-profile-time", folds=2)
    assert made == ["time_matrix"]
