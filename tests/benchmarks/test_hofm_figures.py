import csv

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.lab import common, hofm_figure_1, hofm_figure_5


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A figure of one graph of twenty rows, two solvers and three epochs."""
    for module in (common, hofm_figure_1):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    rng = np.random.default_rng(0)
    X, y = sp.csr_matrix((rng.random((20, 6)) < 0.5).astype(float)), (rng.random(20) < 0.5).astype(float)
    monkeypatch.setattr(hofm_figure_1, "task", lambda name: (X, y))
    monkeypatch.setattr(hofm_figure_1, "FIGURES", {"figure": ("graph", {2: 0.1}, 0.1)})
    monkeypatch.setattr(hofm_figure_1, "EPOCHS", {"cd": 3, "adagrad": 3})
    return tmp_path / "figure.csv", X, y


def test_curves_are_made_once_from_one_start(small):
    path, *_ = small
    hofm_figure_1.compare("figure")
    whole = path.read_bytes()
    rows = list(csv.DictReader(whole.decode().splitlines()))
    assert {(row["solver"], row["rate"]) for row in rows} == {
        ("cd", ""), *(("adagrad", f"{rate:g}") for rate in hofm_figure_1.RATES),
    }  # fmt: skip
    assert len({row["objective"] for row in rows if row["epoch"] == "0"}) == 1
    kept = [row for row in rows if row["rate"] != "0.01"]
    common.write_csv("figure", hofm_figure_1.COLUMNS, [list(row.values()) for row in kept])
    hofm_figure_1.compare("figure")
    again = list(csv.DictReader(path.read_text().splitlines()))
    assert again[: len(kept)] == kept
    made = [row["objective"] for row in again[len(kept) :]]
    assert made == [row["objective"] for row in rows if row["rate"] == "0.01"]


def test_the_objective_is_of_one_order_on_columns_of_ones(small):
    """½ mean (y − ŷ)² + β/2 |P|² of A^3 on two columns of ones, recomputed from P."""
    _, X, y = small
    model = hofm_figure_1.estimator("cd", 3, 2, beta=0.1)
    model.fit(X, y)
    Z, P = np.hstack([X.toarray(), np.ones((20, 2))]), model.P_[0][0]
    one, two, three = ((Z**t) @ (P**t) for t in (1, 2, 3))
    shown = ((one**3 - 3 * one * two + 2 * three) / 6).sum(axis=1) + model.intercept_
    expected = 0.5 * np.mean((y - shown) ** 2) + 0.05 * (P**2).sum()
    assert model.history_[-1]["objective"] == pytest.approx(expected, rel=1e-9)


def test_what_diverges_ends_without_a_figure(small):
    _, X, y = small
    with np.errstate(all="ignore"):
        points = hofm_figure_1.course(
            X, y, solver="adagrad", degree=4, max_iter=3, beta=0.1, learning_rate=1e200
        )
    assert np.isnan(points[-1][2]) and all(np.isfinite(point[2]) for point in points[:-1])


def test_the_rows_that_choose_are_not_those_tested():
    columns = hofm_figure_5.COLUMNS
    fits = [("FM", "0.1", 0.9, 0.7, 3, 1.0), ("FM", "0.01", 0.8, 0.9, 4, 2.0), ("PN", "0.1", 1, 1, 1, 1)]
    rows = [dict(zip(columns, map(str, fit), strict=True)) for fit in fits]
    assert hofm_figure_5.summary(rows) == [
        ("FM", "0.01", "0.8", "0.9", "4", "2.0", 2), ("PN", "0.1", "1", "1", "1", "1", 1)
    ]  # fmt: skip
