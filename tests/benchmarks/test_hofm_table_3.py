"""The scores of Table 3 of HOFM by the ends' tables are the models' own predictions."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.lab import hofm_table_3
from benchmarks.lab.hofm_table_3 import PRINTED, Pairs, Rows, missing, models
from recsys.fm import FactorizationMachineRegressor


@pytest.mark.parametrize("label", ["simplex 2", "simplex 3", "network 2", "network 5", "all-subsets"])
@pytest.mark.parametrize("one_kind", [True, False])
def test_scores_of_pairs_are_the_predictions_of_their_rows(label, one_kind):
    rng = np.random.default_rng(0)
    A, B = (sp.random_array((9, d), density=0.6, rng=rng).tocsr() for d in (5, 4))
    B = None if one_kind else B
    pairs = np.array([(i, j) for i in range(9) for j in range(9)])
    if label.startswith("simplex"):  # of the gaps' experiment: the table's are fitted by pairs
        shape = {"degree": int(label[-1]), "fit_lower": "simplex", "fit_linear": False}
        make = partial(Rows, FactorizationMachineRegressor, **shape)
    else:
        make = models("movielens")[label]
    model = make(beta=1e-3, max_iter=3, n_components=3).fit(A, B, pairs, rng.choice([-1.0, 1.0], 81))
    assert isinstance(model, Rows) and model.epochs <= 3 and isinstance(model.converged, bool)
    right = A if one_kind else B
    rows = sp.hstack([A[pairs[:, 0]], right[pairs[:, 1]]], format="csr")
    np.testing.assert_allclose(
        model.decision_function(A, B, pairs), model.model.predict(rows), atol=1e-12
    )


def test_every_row_of_the_paper_is_made_and_none_twice(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.lab.common.RESULTS", tmp_path)
    monkeypatch.setattr(hofm_table_3, "RESULTS", tmp_path)
    for name, printed in PRINTED.items():
        assert set(models(name)) == set(printed) and len(printed) == 18
        assert missing(name) == list(models(name))
    (tmp_path / "hofm_table_3_nips.csv").write_text("data,model\nnips,HOFM 3\nnips,bilinear\n")
    assert set(PRINTED["nips"]) - set(missing("nips")) == {"HOFM 3", "bilinear"}


def test_a_fit_says_how_it_ended():
    rng = np.random.default_rng(0)
    A = rng.random((12, 4))
    pairs = np.array([(i, j) for i in range(12) for j in range(i)])
    y = np.sign(A[pairs[:, 0], 0] - A[pairs[:, 1], 1])
    make = models("movielens")["HOFM 2"]
    cut, ended = (make(beta=1e-2, tol=tol, max_iter=4).fit(A, None, pairs, y) for tol in (0.0, 0.9))
    assert isinstance(cut, Pairs)
    assert (cut.epochs, cut.converged) == (4, False)
    assert ended.epochs < 4 and ended.converged


def test_the_search_does_not_end_on_the_noise_of_its_top(monkeypatch):
    """At the largest β nothing is left of P, and its AUC may still be above the first ones that learn."""
    found = dict.fromkeys(hofm_table_3.BETAS, 0.6) | {
        10.0: 0.65,
        1.0: 0.62,
        1e-3: 0.9,
        1e-4: 0.85,
        1e-5: 0.8,
    }
    monkeypatch.setattr(hofm_table_3, "auc", lambda beta, graph, inner: found[beta])
    tried = hofm_table_3.choose(lambda beta, random_state: beta, None, None)
    assert max(tried, key=tried.get) == 1e-3 and min(tried) == 1e-5
    found |= {10.0: 0.6, 1.0: 0.66, 0.1: 0.56, 1e-2: 0.65, 1e-3: 0.75, 1e-4: 0.8, 1e-5: 0.7, 1e-6: 0.7}
    assert max(hofm_table_3.choose(lambda beta, random_state: beta, None, None).values()) == 0.8
