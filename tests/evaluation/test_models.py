"""What can be evaluated, and what it is called."""

import warnings

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import EASE, Blend, InputError, Interactions, Popularity, make_ranker
from recsys.evaluation import evaluate
from recsys.evaluation.models import named_models


class Counts:
    """The least that can be evaluated: `fit` of a matrix alone, and `scores`."""

    def __init__(self, power=2):
        self.power, self._kept = power, None

    def fit(self, likes):
        self.counts_ = np.asarray(likes.sum(axis=0)).ravel() ** self.power

    def scores(self, userid, user_items):
        return np.tile(self.counts_, (len(userid), 1))


def test_every_kind_of_model_in_one_call(planted):
    models = ["popularity", EASE(50.0), ("mine", Counts()), Counts(3), {"a": "ease", "b": EASE()}]
    report = recsys.evaluate(planted, models, folds=2, metrics="auc")
    labels = ["popularity", "ease:regularization=50.0", "mine", "Counts", "a", "b"]
    assert [r.model for r in report.results] == labels
    figures = {r.model: r.metrics["auc"].mean for r in report.results}
    assert figures["mine"] == figures["Counts"] == pytest.approx(figures["popularity"])
    assert figures["a"] == figures["b"] != figures["ease:regularization=50.0"]
    params = {r.model: r.params for r in report.results}
    assert params["mine"] == {"power": 2} and params["a"]["regularization"] == EASE().regularization


def test_one_model_a_mapping_and_a_tuple_of_models_are_taken(planted):
    for models, label in (
        ("ease", "ease"),
        (EASE(), "ease"),
        ({"x": "ease"}, "x"),
        ([("x", EASE())], "x"),
    ):
        report = recsys.evaluate(planted, models, folds=2, metrics=["auc"])
        assert [r.model for r in report.results] == [label]
    names = [r.model for r in recsys.evaluate(planted, iter(["popularity"]), folds=2).results]
    assert names == ["popularity"]


def test_a_model_of_implicit_is_measured_as_ours_with_the_same_factors(planted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit asks for one BLAS thread
        from implicit.als import AlternatingLeastSquares
        from implicit.nearest_neighbours import CosineRecommender

        options = {"factors": 4, "iterations": 3, "random_state": 0, "regularization": 0.1}
        theirs = AlternatingLeastSquares(**options)
        report = recsys.evaluate(
            planted,
            [theirs, CosineRecommender(K=5), make_ranker("als", **options)],
            folds=2,
            metrics=["auc", "ndcg@10"],
        )
    first, second, third = report.results
    assert [r.model for r in report.results][:2] == ["AlternatingLeastSquares", "CosineRecommender"]
    assert first.params["factors"] == 4 and second.params["K"] == 5
    for name in ("auc", "ndcg@10"):
        assert first.metrics[name].mean == pytest.approx(third.metrics[name].mean, abs=1e-3)
        assert 0 < second.metrics[name].mean < 1


def test_labels_of_rankers_say_what_is_not_the_default():
    models = [
        make_ranker("cf-komd", kernel="mc", degree=2),
        make_ranker("cf-komd", kernel="mdnf", d=2, c=2),
        Blend([EASE(), Popularity()]),
        Popularity(),
    ]
    labels = [one.label for one in named_models(models)]
    assert labels == ["cf-komd:kernel=mc,degree=2", "cf-komd:kernel=mdnf,d=2,c=2", "blend", "popularity"]
    (blend,) = [one for one in named_models(models) if one.label == "blend"]
    assert isinstance(blend.params["models"], list) and all(
        isinstance(p, str) for p in blend.params["models"]
    )


@pytest.mark.parametrize(
    ("models", "text"),
    [
        ([], "at least one model"),
        ({}, "at least one model"),
        ([EASE(), EASE()], "two models have the label 'ease': set labels"),
        ([("x", EASE()), ("x", Popularity())], "two models have the label 'x'"),
        ([("x", {}, EASE())], "cannot be evaluated"),
        ([(1, EASE())], "label must be text that is not empty, not '1'"),
        ([{1: EASE()}], "label must be text that is not empty, not '1'"),
        ({" ": EASE()}, "label must be text that is not empty"),
        ([EASE], "EASE is a class: pass an object, as in EASE\\(\\)"),
        ([3], "'3' cannot be evaluated: a model has fit"),
        (3, "'3' cannot be evaluated"),
        (["eaze"], "did you mean 'ease'"),
        (["ease:regularisation=1"], "did you mean 'regularization'"),
    ],
)
def test_what_is_no_model_is_refused(planted, models, text):
    with pytest.raises(InputError, match=text):
        recsys.evaluate(planted, models)


def test_a_recommender_and_a_table_are_taken_by_the_front_door(planted):
    table = pd.DataFrame(
        {"user": planted.user_ids[planted.users], "item": planted.item_ids[planted.items]}
    )
    models = [
        recsys.Recommender("ease"),
        recsys.Recommender(EASE(5.0)),
        {"c": recsys.Recommender("ease")},
    ]
    found = recsys.evaluate(table, models, folds=2, metrics="auc")
    wanted = recsys.evaluate(planted, "ease", folds=2, metrics="auc")
    assert [r.model for r in found.results] == ["ease", "ease:regularization=5.0", "c"]
    assert found.results[0].metrics["auc"].mean == found.results[2].metrics["auc"].mean
    assert found.results[0].metrics["auc"].mean == pytest.approx(
        wanted.results[0].metrics["auc"].mean, abs=1e-6
    )


def test_a_matrix_is_evaluated_as_its_interactions(planted):
    plain = Interactions(
        planted.users, planted.items, *(np.array(range(n), dtype=object) for n in planted.matrix.shape)
    )
    for protocol in ("half-profile", "holdout"):
        one, other = (evaluate(d, EASE(), protocol=protocol, folds=2) for d in (plain, plain.matrix))
        assert one.results[0].metrics == other.results[0].metrics


class Wrong(Counts):
    def __init__(self, found):
        super().__init__()
        self.found = found

    def scores(self, userid, user_items):
        return self.found


class Listed:
    def __init__(self, ids, scores):
        self.ids, self.best = ids, scores

    def fit(self, likes):
        pass

    def recommend(self, userid, user_items, N=10, filter_already_liked_items=True):
        return np.tile(self.ids, (len(userid), 1)), np.tile(self.best, (len(userid), 1))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            Wrong(np.zeros((2, 3))),
            r"Wrong.scores must return numbers of shape \(30, 40\), not \(2, 3\) float64",
        ),
        (Wrong(np.array([["a"]])), "must return numbers"),
        (Wrong(np.full((30, 40), np.nan)), "NaN or infinity"),
        (Listed(np.array([1.5]), np.ones(1)), "recommend must return ids and scores"),
        (Listed(np.array([1, 2]), np.ones(1)), "recommend must return ids and scores"),
        (Listed(np.array([40]), np.ones(1)), "returned item 40 of 40"),
    ],
)
def test_what_answers_wrongly_is_named(planted, model, text):
    with pytest.raises(InputError, match=text):
        evaluate(planted, model, folds=2)


@pytest.mark.parametrize("metric", ["auc", "arp@5", "coverage@5"])
def test_scores_that_are_no_numbers_are_refused_whatever_is_measured(planted, metric):
    with pytest.raises(InputError, match="NaN or infinity"):
        evaluate(planted, Wrong(np.full((30, 40), np.nan)), folds=2, metrics=metric)


def test_items_that_are_not_listed_tie_below_those_that_are(planted):
    short = Listed(np.array([3, 7, -1]), np.array([2.0, 1.0, 0.0]))
    whole = np.zeros(40)
    whole[[3, 7]] = 2, 1

    class Whole(Counts):
        def scores(self, userid, user_items):
            return np.tile(whole, (len(userid), 1))

    report = evaluate(planted, [short, Whole()], folds=2)
    for name in report.definitions:
        np.testing.assert_allclose(report.values["Listed", name], report.values["Whole", name])


def test_integers_are_scores_too(planted):
    class Whole(Counts):
        def scores(self, userid, user_items):
            return super().scores(userid, user_items).astype(np.int64)

    one, other = evaluate(planted, [Counts(), Whole()], folds=2).results
    assert one.metrics["auc"] == other.metrics["auc"]
