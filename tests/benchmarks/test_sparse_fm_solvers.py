import csv

import numpy as np
import pytest

from benchmarks.lab import common, sparse_fm_solvers
from recsys.fm import planted_interactions


@pytest.fixture
def results(tmp_path, monkeypatch):
    for module in (common, sparse_fm_solvers):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    return tmp_path


@pytest.mark.thorough
def test_a_course_is_timed_without_what_is_measured_and_ends_in_time():
    data = planted_interactions(60, 1, 4, 2, seed=0)
    plain = sparse_fm_solvers.course(data.X, data.y, 1e9, penalty="ti", gamma=0.01)
    assert [p[0] for p in plain][:10] == list(range(1, 10)) + [plain[9][0]]
    assert all(b[1] >= a[1] for a, b in zip(plain, plain[1:], strict=False))
    measured = sparse_fm_solvers.course(
        data.X,
        data.y,
        1e9,
        lambda model: float(np.sort(np.random.rand(10**5))[0]),
        penalty="ti",
        gamma=0.01,
    )
    assert measured[-1][0] == plain[-1][0] and measured[-1][2] != plain[-1][2]
    assert len(sparse_fm_solvers.course(data.X, data.y, -1.0, penalty="ti")) == 1


def test_the_best_rate_is_shown_and_what_diverged_is_not(results):
    rows = [("d", "ti", "PCD", 1, "0", 0, e, float(e), 5.0 - e) for e in range(1, 4)]
    rows += [("d", "ti", "PSGD", 1, rate, 0, e, e / 2, end + 1 / e) for rate, end in (("1", np.nan), ("0.1", 3.0), ("0.01", 4.0)) for e in (1, 2)]  # fmt: skip
    rows += [("d", "ti", "MB-PSGD", 8, "1", 0, 0, 0.0, np.nan)]
    common.write_csv("sparse_fm_solvers_courses", sparse_fm_solvers.COURSES, rows)
    sparse_fm_solvers.tables("sparse_fm_solvers")
    found = list(csv.DictReader((results / "sparse_fm_solvers.csv").read_text().splitlines()))
    assert [(r["method"], r["rate"], r["objective"], r["seconds_to_1_percent"]) for r in found] == [
        ("PCD", "", "2", "3"), ("PSGD", "0.1", "3.5", ""),
    ]  # fmt: skip
    assert float(found[1]["above_best"]) == pytest.approx(0.75)
    sparse_fm_solvers.draw("sparse_fm_solvers")
    assert (results / "sparse_fm_solvers.png").stat().st_size > 1000


def test_an_interrupted_run_goes_on(results, monkeypatch):
    made = []
    monkeypatch.setattr(sparse_fm_solvers, "course", lambda *a, **k: made.append(k) or [(1, 0.1, 2.0)])
    monkeypatch.setattr(sparse_fm_solvers, "compile_all", lambda X, y: None)
    monkeypatch.setattr(sparse_fm_solvers, "SEEDS", 3)
    for _ in range(2):
        sparse_fm_solvers.solvers(["feature selection 500"], 1.0)
    first = (3 + 3 * 3 + 2) + (4 + 3 * 3 + 2)  # with a rate: three of them
    assert len(made) == first + 2 * (8 + 9) and {
        k["line_search"] for k in made if "line_search" in k
    } == {True}
