import csv

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from benchmarks.lab import (
    common,
    links,
    random_feature_machines,
    sparse_fm_synthetic,
    sparse_fm_table_3,
    table_6,
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    for module in (common, sparse_fm_synthetic):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    return tmp_path


def test_the_tables_that_are_named_are_run(monkeypatch):
    monkeypatch.delenv("LAB_TABLES", raising=False)
    assert common.chosen(["a", "b", "c"]) == ["a", "b", "c"]
    monkeypatch.setenv("LAB_TABLES", "c,a")
    assert common.chosen(["a", "b", "c"]) == ["a", "c"]


@pytest.mark.parametrize("ones", [30, 50])
def test_matrices_by_the_ones_in_common_are_those_of_the_rows(ones):
    X = table_6.formula_task("mdnf", 2, 2, 0, ones).X[:40]
    assert (X.sum(axis=1) == ones).all()
    for kernel in ("linear", "rbf", "mdnf", "cnf"):
        _, made = common.family(kernel)[-1]
        np.testing.assert_allclose(table_6.by_common_ones(made, X), made(X, normalize=True), rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=20))
def test_the_cosine_takes_the_best_threshold_there_is(rows):
    """Rows of scores 0…5 as one-dimensional objects; ties cannot be parted."""
    scores, y = np.array([s for s, _ in rows], dtype=float), np.array([int(hit) for _, hit in rows])
    A = sp.csr_matrix(np.r_[scores, 1.0][:, None])
    pairs = np.column_stack([np.arange(len(rows)), np.full(len(rows), len(rows))])
    found = links.Cosine().fit(A, None, pairs, y).decision_function(A, None, pairs)
    best = max(np.mean((scores > t) == (y == 1)) for t in (-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5))
    assert np.mean((found > 0) == (y == 1)) == best


def test_the_synthetic_study_gives_the_same_figures_again_and_goes_on_where_it_stopped(
    results, monkeypatch
):
    monkeypatch.setattr(sparse_fm_synthetic, "SETTINGS", {"small": (2, 3, 4)})
    made = []
    real = sparse_fm_synthetic.make
    monkeypatch.setattr(sparse_fm_synthetic, "make", lambda *given: made.append(given) or real(*given))
    for name in ("first", "second"):
        for method, gamma in (("TI", 0.1), ("SLQR", 0.1), ("omega SubGD", 0.1)):
            sparse_fm_synthetic.Study(name, 5).tune("small", method, [(gamma, 0.01)], n=60)
    first, second = ((results / f"{name}.csv").read_bytes() for name in ("first", "second"))
    assert first == second and len(made) == 12 and {given[-1] for given in made} == {5}
    again = sparse_fm_synthetic.Study("first", 5).tune("small", "TI", [(0.1, 0.01), (0.3, 0.01)], n=60)
    assert len(made) == 14 and set(again) == {(0.1, 0.01), (0.3, 0.01)}
    rows = list(csv.DictReader((results / "first.csv").read_text().splitlines()))
    ti = [row for row in rows if row["method"] == "TI" and row["gamma"] == "0.1"]
    assert again[0.1, 0.01][0] == pytest.approx(np.mean([float(row["f1"]) for row in ti]))


def test_equally_good_strengths_give_the_middle_one():
    middle = sparse_fm_synthetic.middle
    tried = {(g, b): (1.0, 5.0 + b) for g in (0.01, 0.03, 0.1, 0.3, 1.0) for b in (1e-3, 1e-2)}
    assert middle(tried | {(3.0, 1e-3): (0.4, 0.0)}) == (0.1, 1e-3)
    assert middle({(0.1, 0.1): (0.2, 1.0), (0.3, 0.1): (0.3, 9.0)}) == (0.3, 0.1)
    assert middle({(0.1, 0.1): (0.2, 7.0), (0.3, 0.1): (0.2, 3.0), (1.0, 0.1): (0.2, 9.0)}) == (0.3, 0.1)


def test_all_methods_are_measured_by_one_objective():
    """½ mean (y − ŷ)² + γ Σ |W_ij| of the pairs, recomputed from rows and weights."""
    data = sparse_fm_synthetic.planted_interactions(40, 1, 3, 2, seed=0)
    for method in ("TI", "SLQR"):
        with sparse_fm_synthetic.so_many_epochs():
            model = sparse_fm_synthetic.make(method, 0.1, 0.01, 0, 5).fit(data.X, data.y)
        W = model.W_ if method == "SLQR" else model.P_[0][0] @ model.P_[0][0].T
        pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
        said = np.array([sum(W[i, j] * row[i] * row[j] for i, j in pairs) for row in data.X])
        expected = 0.5 * np.mean((data.y - said) ** 2) + 0.1 * sum(abs(W[i, j]) for i, j in pairs)
        assert sparse_fm_synthetic.common_objective(data, model, 0.1) == pytest.approx(expected)


@pytest.mark.thorough
def test_movielens_has_the_49_and_29_features_of_the_source(data_dir, monkeypatch):
    monkeypatch.setenv("RECSYS_DATA", str(data_dir))
    X, y, fields = sparse_fm_table_3.movielens()
    assert {name: part.stop - part.start for name, part in fields.items()} == {
        "users": 943, "items": 1682, "user side": 49, "item side": 29,
    }  # fmt: skip
    assert X.shape == (100_000, 2_703) and len(y) == 100_000
    folder = data_dir / "ml-100k"
    lines = {n: (folder / n).read_text("latin-1").splitlines() for n in ("u.user", "u.item", "u.data")}
    people = {line.split("|")[0]: line.split("|") for line in lines["u.user"]}
    films = {line.split("|")[0]: line.split("|") for line in lines["u.item"]}
    rated = [line.split("\t")[:3] for line in lines["u.data"]]
    side = X[:, fields["user side"]].tocsr(), X[:, fields["item side"]].tocsr()
    ages = sorted({(int(p[1]) + 5) // 10 * 10 for p in people.values()})
    decades = sorted({(int(f[2][-4:]) + 5) // 10 * 10 if f[2] else 0 for f in films.values()})
    for k in range(0, 100_000, 5_003):
        user, film = people[rated[k][0]], films[rated[k][1]]
        mine, its = side[0][k].toarray().ravel(), side[1][k].toarray().ravel()
        assert mine[ages.index((int(user[1]) + 5) // 10 * 10)] == 1 and mine.sum() == 4
        assert its[decades.index((int(film[2][-4:]) + 5) // 10 * 10 if film[2] else 0)] == 1
        assert its[len(decades) :].tolist() == [float(flag) for flag in film[-19:]]
        assert y[k] == float(rated[k][2])


def test_table_3_has_a_linear_row_beside_every_division_and_makes_nothing_twice(results, monkeypatch):
    def small(seed, solver="cd"):
        rng = np.random.default_rng(seed)
        users, items = rng.integers(0, 12, 400), rng.integers(0, 15, 400)
        X = sp.hstack(
            [sp.identity(12, format="csr")[users], sp.identity(15, format="csr")[items]], format="csr"
        )
        y = np.clip(np.round(3 + 0.1 * (users - items) + rng.normal(0, 0.3, 400)), 1, 5)
        return [(X[part], y[part]) for part in np.split(np.arange(400), [240, 320])]

    monkeypatch.setattr(sparse_fm_table_3, "divided", small)
    sparse_fm_table_3.movielens_tables(2, ["TI"], "cd", 3)
    written = (results / "sparse_fm_table_3_movielens.csv").read_text()
    rows = list(csv.DictReader(written.splitlines()))
    assert [(row["table"], row["method"], row["splits"]) for row in rows] == [
        ("both", "linear", "2"), ("both", "FM", "2"), ("3b", "TI", "2"),
    ]  # fmt: skip
    for row in rows:  # 1,000 interactions cannot be had of 27 features: no row of 3a
        assert float(row["below_linear"]) == pytest.approx(
            float(rows[0]["rmse"]) - float(row["rmse"]), abs=1e-5
        )
    monkeypatch.setattr(sparse_fm_table_3.Divisions, "make", None)
    sparse_fm_table_3.movielens_tables(2, ["TI"], "cd", 3)
    assert (results / "sparse_fm_table_3_movielens.csv").read_text() == written


@pytest.mark.parametrize("cost", [0.01, 1.0, 180.0])
def test_the_machine_of_dense_features_is_the_usual_one(monkeypatch, cost):
    monkeypatch.setattr(random_feature_machines, "MANY", 70)  # blocks, the last of them short
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0.3, 1, -1)
    usual = LinearSVC(C=cost, dual=False, tol=1e-8, max_iter=100_000).fit(X, y)
    w = random_feature_machines.newton(np.column_stack([X, np.ones(300)]), y, cost)
    np.testing.assert_allclose(w, np.append(usual.coef_, usual.intercept_), rtol=1e-5, atol=1e-6)
