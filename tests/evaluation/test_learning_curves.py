"""Learning curves: the same users on the same items, after fits on less."""

from dataclasses import replace

import numpy as np
import pytest

from recsys import EASE, InputError
from recsys.data import split
from recsys.evaluation import evaluate, learning_curve
from recsys.evaluation import metrics as M


class Keeps:
    """Keeps what it is fitted on, and scores by counts."""

    seen = []

    def fit(self, user_items):
        Keeps.seen.append(user_items)
        self.counts = np.asarray(user_items.sum(axis=0)).ravel()

    def scores(self, userid, user_items):
        return np.tile(self.counts, (len(userid), 1))


def test_the_whole_share_is_the_evaluation(planted):
    names = ["auc", "ndcg@5", "coverage@5", "calibration@5"]
    for of in ("users", "interactions"):
        curve = learning_curve(
            planted, {"e": EASE()}, shares=(1.0,), of=of, metrics=names, folds=3, seed=5
        )
        report = evaluate(planted, {"e": EASE()}, metrics=names, folds=3, seed=5)
        for row, wanted in zip(curve.rows, report.frame().to_dict("records"), strict=True):
            for key in ("model", "metric", "mean", "low", "high", "users"):
                assert row[key] == wanted[key] or np.isnan(row[key]) and np.isnan(wanted[key])


@pytest.mark.parametrize("of", ["users", "interactions"])
def test_shares_are_nested_and_of_the_size_asked_for(planted, of):
    Keeps.seen = []
    shares = (0.6, 0.2, 1.0)
    learning_curve(planted, Keeps(), shares=shares, of=of, metrics="auc", folds=2)
    folds = list(split(planted, folds=2))
    seen = {share: Keeps.seen[2 * k : 2 * k + 2] for k, share in enumerate(sorted(shares))}
    for number, fold in enumerate(folds):
        small, middle, whole = (seen[share][number] for share in sorted(shares))
        assert (whole != fold.train).nnz == 0
        assert (small.multiply(middle) != small).nnz == 0 and (middle.multiply(whole) != middle).nnz == 0
        if of == "interactions":
            assert small.nnz == round(0.2 * whole.nnz) and middle.nnz == round(0.6 * whole.nnz)
        else:
            assert (small[fold.users] != fold.train[fold.users]).nnz == 0
            others = np.setdiff1d(np.arange(planted.n_users), fold.users)
            kept = (np.diff(small.indptr) > 0)[others]
            assert kept.sum() == round(0.2 * len(others))


def test_what_a_user_had_is_no_candidate_though_the_model_was_not_told(planted):
    Keeps.seen = []
    curve = learning_curve(planted, Keeps(), shares=(0.3,), metrics="auc", folds=2)
    means = []
    for fold, seen in zip(split(planted, folds=2), Keeps.seen, strict=True):
        scores = np.tile(np.asarray(seen.sum(axis=0)).ravel(), (len(fold.users), 1)).astype(float)
        means.append(np.nanmean(M.auc(scores, fold.train[fold.users], fold.test[fold.users])))
    assert curve.rows[0]["mean"] == pytest.approx(np.mean(means))
    assert curve.rows[0]["interactions"] == np.mean([seen.nnz for seen in Keeps.seen])


def test_frames_and_figures(planted):
    curve = learning_curve(
        planted, ["ease", "popularity"], shares=(0.2, 0.6), metrics=["auc", "coverage@3"], only_folds=1
    )
    assert curve.frame().shape == (8, 8) and curve.frame()["share"].is_monotonic_increasing
    pytest.importorskip("matplotlib")
    figure = curve.plot()
    assert [p.get_title(loc="left") for p in figure.axes if p.get_visible()] == ["auc", "coverage@3"]
    assert figure._repr_png_()[:4] == b"\x89PNG"


def test_progress_ends_where_it_said(planted):
    told = []
    learning_curve(
        planted,
        Keeps(),
        shares=(0.5, 1),
        metrics="auc",
        folds=2,
        progress=lambda *step: told.append(step),
    )
    assert [done for _, done, _ in told] == [0, 1, 2, 3, 4] and {total for *_, total in told} == {4}
    assert told[0][0] == "Keeps, 0.5 of the interactions"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shares": ()}, "at least one"),
        ({"shares": (0.5, 0.5)}, "different numbers"),
        ({"shares": (0,)}, "shares must be"),
        ({"shares": (1.5,)}, "shares must be"),
        ({"shares": (1e-9,)}, "leaves no interaction"),
        ({"of": "items"}, "of must be one of interactions, users"),
        ({"of": "users", "protocol": "holdout"}, "evaluates every user"),
        ({"metrics": "ndgc"}, "did you mean 'ndcg'"),
        ({"models": "eaze"}, "did you mean 'ease'"),
    ],
)
def test_refusals(planted, options, text):
    with pytest.raises(InputError, match=text):
        learning_curve(planted, **({"models": Keeps()} | options))


def test_true_draws_a_bar_and_a_test_half_is_measured(planted, capsys):
    one = {"shares": (1.0,), "metrics": "auc", "folds": 2}
    plain = learning_curve(planted, {"e": EASE()}, **one)
    assert learning_curve(planted, {"e": EASE()}, **one, progress=True).rows == plain.rows
    fold = next(split(planted, "holdout"))
    held = np.asarray(fold.test[planted.users, planted.items]).ravel() > 0
    curve = learning_curve(replace(planted, held_out=held), {"e": EASE()}, shares=(1.0,), metrics="auc")
    report = evaluate(replace(planted, held_out=held), {"e": EASE()}, metrics="auc")
    assert curve.rows[0]["mean"] == report.frame()["mean"][0] and "published" in curve.title
