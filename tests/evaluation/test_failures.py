"""A model that fails beside others is left out with its reason; one alone raises its own error."""

import json

import numpy as np
import pytest

from recsys import FitError, InputError, make_ranker
from recsys.cli import call
from recsys.evaluation import evaluate
from recsys.tuning import tune
from tests.synthetic import planted_catalogue

DATA = planted_catalogue(40, 20, mean_length=8, seed=2).interactions


class Failing:
    """A model that fails in one fold, when it is fitted or asked."""

    def __init__(self, error, fold=0, when="fit"):
        self.error, self.fold, self.when = error, fold, when

    def fit(self, user_items):
        Failing.fits += 1
        if self.when == "fit" and Failing.fits > self.fold:
            raise self.error
        self.shape = user_items.shape

    def scores(self, users, rows):
        if self.when == "scores":
            raise self.error
        return np.zeros(rows.shape, np.float32)


ERRORS = [
    np.linalg.LinAlgError("SVD did not converge"),
    MemoryError(),
    FitError("raise\nregularization"),
    InputError("a degree above what there is"),
    AssertionError(),
]


def report(*models, **options):
    Failing.fits = 0
    return evaluate(DATA, dict(models), folds=2, metrics=["auc", "coverage@5"], **options)


@pytest.mark.thorough
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("fold, when", [(0, "fit"), (1, "fit"), (0, "scores")])
def test_the_rest_of_a_comparison_stands(error, fold, when):
    pair = [("popularity", make_ranker("popularity")), ("ease", make_ranker("ease"))]
    expected = report(*pair)
    found = report(pair[0], ("bad", Failing(error, fold, when)), pair[1])
    assert list(found.failed) == ["bad"] and expected.failed == {}
    reason = found.failed["bad"]
    assert reason and "\n" not in reason
    assert found.sentences()[0] == f"bad could not be evaluated: {reason}"
    assert found.comparisons == expected.comparisons
    for one, other in zip(found.results, expected.results, strict=True):
        assert (one.model, one.metrics) == (other.model, other.metrics)
    told = found.as_dict()
    assert told["failed"] == {"bad": reason} and json.dumps(told)
    assert "bad could not be evaluated" in found._repr_html_()


def test_of_a_model_that_failed_no_other_fold_is_fitted():
    report(("popularity", make_ranker("popularity")), ("bad", Failing(MemoryError())))
    assert Failing.fits == 1


def test_where_all_fail_one_error_lists_them():
    models = [("a", Failing(ERRORS[0])), ("b", Failing(MemoryError()))]
    with pytest.raises(FitError, match="a: LinAlgError: SVD did not converge; b: out of memory"):
        report(*models)
    with pytest.raises(InputError, match="a: no; b: neither"):
        report(("a", Failing(InputError("no"))), ("b", Failing(InputError("neither"))))


def test_a_model_alone_raises_its_own_error():
    with pytest.raises(np.linalg.LinAlgError):
        report(("bad", Failing(ERRORS[0])))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, TimeoutError])
def test_what_stops_an_evaluation_is_no_failure_of_a_model(stop):
    def told(step, done, total):
        if "ease, fold 2" in step:
            raise stop

    models = [("ease", make_ranker("ease")), ("popularity", make_ranker("popularity"))]
    with pytest.raises(stop):
        report(*models, progress=told)


@pytest.mark.slow
def test_workers_leave_a_model_out_alike():
    models = {
        "popularity": make_ranker("popularity"),
        "cf-komd": make_ranker("cf-komd", kernel="mc", degree=500),
    }
    here = evaluate(DATA, models, folds=2, metrics=["auc"])
    there = evaluate(DATA, models, folds=2, metrics=["auc"], n_jobs=2)
    assert here.failed == there.failed and list(here.failed) == ["cf-komd"]


def test_the_command_prints_what_failed_and_goes_on(capsys, tmp_path, monkeypatch):
    ease = type(make_ranker("ease"))

    def fit(self, *args, **kwargs):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(ease, "fit", fit)
    told = tmp_path / "report.json"
    command = ["evaluate", "--dataset", "sample", "--folds", "2", "--metric", "auc", "--json", str(told)]
    assert call([*command, "--model", "popularity", "--model", "ease"]) == 0
    said = capsys.readouterr().out
    assert "ease could not be evaluated: LinAlgError: SVD did not converge" in " ".join(said.split())
    assert json.loads(told.read_text())["failed"] == {"ease": "LinAlgError: SVD did not converge"}
    assert call([*command, "--model", "ease", "--model", "ease:regularization=5"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "no model could be evaluated: ease: LinAlgError: SVD did not converge; ease:regul" in said


# ---- trials


def test_a_trial_that_fails_does_not_end_a_search(monkeypatch):
    ease = type(make_ranker("ease"))
    usual, fits = ease.fit, []

    def fit(self, *args, **kwargs):
        fits.append(self.regularization)
        if len(set(fits)) == 2:
            raise np.linalg.LinAlgError("it did not converge")
        return usual(self, *args, **kwargs)

    monkeypatch.setattr(ease, "fit", fit)
    found = tune(DATA, "ease", trials=4)
    assert len(found.trials) == 3 and np.isfinite(found.value)


def test_where_every_trial_fails_the_error_tells_why(monkeypatch):
    def fit(self, *args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(type(make_ranker("ease")), "fit", fit)
    with pytest.raises(FitError, match="no trial of ease could be evaluated on .*: out of memory"):
        tune(DATA, "ease", trials=2)


def test_a_search_that_is_stopped_stops():
    def told(step, done, total):
        if "trial 2" in step:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        tune(DATA, "ease", trials=3, progress=told)
