"""Sparse EASE from partitions is that of a fit in memory: to the bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recsys import FitError, InputError
from recsys.partitioned import fit_partitions, recommend_partitions
from recsys.rankers import ease, load_package, load_ranker, make_ranker
from recsys.rankers.sparse_inverse import sparse_inverse_weights, weighted_counts
from recsys.utils.spec import parse_spec
from tests.partitioned.test_fit import COLUMNS, likes, matrix_of, same_state, write
from tests.strategies import liked_matrices

PLENTY = 10**9


def expected_of(spec, matrix):
    """Return what a fit in memory gives, in the sparse form whatever the size."""
    name, params = parse_spec(spec)
    ranker = make_ranker(name, **params)
    ranker.check_parameters()
    votes = None
    if ranker.votes:
        votes = np.diff(matrix.indptr).astype(np.float64) ** -ranker.votes
    top_k = min(ranker.top_k or ease.TOP_K, matrix.shape[1])
    ridge = ranker._ridge(weighted_counts(matrix, votes))
    return sparse_inverse_weights(matrix, ridge, top_k, PLENTY, False, votes)


def fitted(folder, spec, users, items, memory="1GB", parts=3):
    data = write(folder / "data", users, items, parts=parts)
    fit_partitions(spec, data, out=folder / "m", work=folder / "w", memory=memory, **COLUMNS)
    return matrix_of(folder / "w")[2]


@pytest.mark.thorough
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        "ease:top_k=5,regularization=3",
        "ease:top_k=9,regularization=2,votes=0.5,ridge_power=0.6,dropout=0.3,ties=popularity",
    ],
)
def test_a_ranker_is_that_of_a_fit_in_memory(tmp_path, monkeypatch, spec, text):
    monkeypatch.setattr("recsys.rankers._gram_view.SMALL", 0)
    monkeypatch.setattr("recsys.partitioned.fit._buckets", lambda *_: 4)
    matrix = fitted(tmp_path, spec, *likes(text=text), memory="16KB")
    name, params = parse_spec(spec)
    expected = make_ranker(name, **params).fit(matrix, show_progress=False)
    package = load_package(tmp_path / "m", mapped=True)
    same_state(package.ranker, expected)
    everybody = np.arange(matrix.shape[0])
    a, b = package.ranker.recommend(everybody, matrix), expected.recommend(everybody, matrix)
    assert np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores)
    folder = recommend_partitions(tmp_path / "m", tmp_path / "w", tmp_path / "top", n=3, block=9)
    assert len(list(folder.glob("*.parquet"))) == -(-matrix.shape[0] // 9)


@pytest.mark.thorough
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    liked_matrices(max_users=20, max_items=12), st.integers(1, 14), st.sampled_from(["0", "0.5"]),
    st.sampled_from([24 * 3 * 11 * 11, "1GB"]),
)  # fmt: skip
def test_any_table(tmp_path_factory, R, top_k, votes, memory):
    if not R.nnz:
        return
    users, items = R.nonzero()
    spec = f"ease:top_k={top_k},regularization=1.5,votes={votes}"
    folder = tmp_path_factory.mktemp("any")
    matrix = fitted(folder, spec, users, items, memory, parts=1)
    found = load_ranker(folder / "m", mmap=True).weights_
    expected = expected_of(spec, matrix)
    assert found.has_sorted_indices
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [
        {"users": 1, "items": 1, "rows": 1},
        {"users": 300, "items": 1, "rows": 200},
        {"users": 1, "items": 90, "rows": 200},  # all alike: ties
    ],
)
def test_any_shape_of_the_data(tmp_path, case):
    matrix = fitted(tmp_path, "ease:top_k=4,regularization=0.5", *likes(**case), memory="20KB")
    found = load_ranker(tmp_path / "m", mmap=True).weights_
    assert (found != expected_of("ease:top_k=4,regularization=0.5", matrix)).nnz == 0
    assert found.nnz == (4 * found.shape[0] if found.shape[0] > 1 else 0)


@pytest.mark.thorough
def test_another_ridge_starts_from_the_counts(tmp_path):
    data = write(tmp_path / "data", *likes())
    how = {"work": tmp_path / "w", "memory": "1GB", **COLUMNS}
    fit_partitions("ease:regularization=3", data, out=tmp_path / "a", **how)
    before = {one: one.stat().st_mtime_ns for one in (tmp_path / "w").glob("counts-*/*")}
    fit_partitions("ease:regularization=4", data, out=tmp_path / "b", **how)
    assert before == {one: one.stat().st_mtime_ns for one in (tmp_path / "w").glob("counts-*/*")}
    matrix = matrix_of(tmp_path / "w")[2]
    for name, ridge in (("a", 3), ("b", 4)):
        found = load_ranker(tmp_path / name).weights_
        assert (found != expected_of(f"ease:regularization={ridge}", matrix)).nnz == 0
    assert sp.issparse(found)
    left = [one.name for one in (tmp_path / "w").glob("regressions-*/*")]
    assert set(left) == {"_SUCCESS"}  # what was turned into rows is gone


@pytest.mark.thorough
@pytest.mark.parametrize("stage", ["regressions", "weights"])
def test_what_was_stopped_goes_on_and_comes_to_the_same(tmp_path, monkeypatch, stage):
    from recsys.partitioned.work import Work

    data = write(tmp_path / "data", *likes())
    how = {"memory": "12KB", **COLUMNS}
    spec = "ease:top_k=4,regularization=2"
    fit_partitions(spec, data, out=tmp_path / "whole", work=tmp_path / "other", **how)
    run = Work.run

    def stopping(work, name, task, units, engine):
        if name.startswith(stage):
            task(units[0])
            raise KeyboardInterrupt
        return run(work, name, task, units, engine)

    with monkeypatch.context() as patch:
        patch.setattr(Work, "run", stopping)
        with pytest.raises(KeyboardInterrupt):
            fit_partitions(spec, data, out=tmp_path / "m", work=tmp_path / "w", **how)
    fit_partitions(spec, data, out=tmp_path / "m", work=tmp_path / "w", **how)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_what_cannot_be_fitted_is_told_in_one_line(tmp_path):
    data = write(tmp_path / "data", *likes())
    how = {"out": tmp_path / "m", "work": tmp_path / "w", **COLUMNS}
    for spec, told in (
        ("ease:recency=1", "ease with recency is not fitted from partitions"),
        ("ease:keep_inverse=true", "ease with keep_inverse is not"),
        ("ease:memory=1GB", "ease with memory is not"),
        ("ease:top_k=200", "top_k=104 needs 763.8 KB a worker and has 9.0 KB: lower top_k"),
    ):
        with pytest.raises(InputError, match=told) as error:
            fit_partitions(spec, data, memory="9KB", **how)
        assert "\n" not in str(error.value)
    with pytest.raises(FitError, match="raise regularization"):
        fit_partitions("ease:top_k=3,regularization=1e-300", data, memory="9KB", **how)
    assert not (tmp_path / "m").exists()
