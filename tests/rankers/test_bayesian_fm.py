"""`bayesian-fm`: its scores are means over the draws of the estimator, and intervals are quantiles of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, make_ranker
from recsys.fm import BayesianFactorizationMachineClassifier


@pytest.fixture
def drawn(monkeypatch):
    """The estimators that are fitted, each with its rows."""
    fitted = []
    fit = BayesianFactorizationMachineClassifier.fit

    def kept(self, X, y):
        fitted.append(self)
        return fit(self, X, y)

    monkeypatch.setattr(BayesianFactorizationMachineClassifier, "fit", kept)
    return fitted


def test_scores_are_means_over_draws_and_intervals_their_quantiles(liked, drawn):
    model = make_ranker("bayesian-fm", factors=2, iterations=7, draws=5).fit(liked, show_progress=False)
    (machine,) = drawn
    assert machine.draws_.shape[0] == 5 and len(machine.history_) == 7
    n = liked.shape[1]
    for user in (3, 7):
        row = liked[[user]]
        history = row.toarray() / np.sqrt(max(row.nnz, 1))
        rows = sp.csr_matrix(np.hstack([np.repeat(history, n, axis=0), np.eye(n)]))
        each = machine._of_draws(rows)  # (draws, items): without a constant
        scores = model.scores([user], row)[0]
        assert np.allclose(scores, each.mean(axis=0), atol=1e-4)
        for level in (0.5, 0.9):
            found = model.score_interval(user, row, np.arange(n), level)
            tails = np.quantile(each, [(1 - level) / 2, (1 + level) / 2], axis=0).T
            assert np.allclose(found, tails, atol=1e-4) and (found[:, 0] <= found[:, 1]).all()
    again = model.score_interval(0, liked[[7]], [1, 2], recalculate_user=True)
    assert np.allclose(again, model.score_interval(7, liked[[7]], [1, 2]))


def test_everything_liked_is_popularity():
    R = sp.csr_matrix(np.ones((4, 6), dtype=np.float32))
    model = make_ranker("bayesian-fm", iterations=2, draws=1).fit(R, show_progress=False)
    assert model.score_interval(0, R[[0]], [0, 3]).tolist() == [[4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parametrize(
    ("params", "told"), [({"draws": 41}, "draws"), ({"draws": 0}, "draws"), ({"factors": 0}, "factors")]
)
def test_parameters_out_of_range_are_refused(params, told, liked):
    with pytest.raises(InputError, match=told):
        make_ranker("bayesian-fm", **params).fit(liked, show_progress=False)
