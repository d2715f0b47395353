"""SLIST's sparse form from partitions is that of a fit in memory: to the bit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys import InputError
from recsys.data import Interactions
from recsys.partitioned import fit_partitions, recommend_partitions
from recsys.rankers import fit_package, load_package, load_ranker, make_ranker
from recsys.utils.spec import parse_spec
from tests.partitioned.test_fit import COLUMNS, likes, same_state, write

SPECS = (
    "slist:form=cosine",
    "slist:form=cosine,decay=power0.5,backward=0,votes=0.7,locality=1,ties=popularity",
    "slist:form=cosine,decay=exp2+none,random_state=7,backward=1",
)


def in_memory(spec, users, items, when, work):
    """Return a fit on the same rows, whose users and items are numbered as the work folder has them."""
    from tests.partitioned.test_fit import matrix_of

    names, known, matrix = matrix_of(work)
    data = Interactions.from_ids(users, items, time=when)
    row, column = ({str(one): k for k, one in enumerate(ids)} for ids in (names, known))
    u = np.array([row[str(data.user_ids[k])] for k in data.users], dtype=np.int32)
    i = np.array([column[str(data.item_ids[k])] for k in data.items], dtype=np.int32)
    ids = [np.array(some, dtype=object) for some in (names, known)]
    name, params = parse_spec(spec)
    numbered = Interactions(u, i, *ids, time=data.time)
    found = fit_package(make_ranker(name, **params), numbered, show_progress=False)
    assert (found.user_items != matrix).nnz == 0
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    "when",
    ["numbers", "ties", "early", "equal", "unknown", "none"],
)
@pytest.mark.parametrize("spec", SPECS[:1])
def test_times_of_any_kind(tmp_path, monkeypatch, spec, when):
    check(tmp_path, monkeypatch, spec, when)


@pytest.mark.thorough
@pytest.mark.parametrize("spec", SPECS[1:])
def test_any_law(tmp_path, monkeypatch, spec):
    check(tmp_path, monkeypatch, spec, "ties")


def check(tmp_path, monkeypatch, spec, when):
    monkeypatch.setattr("recsys.partitioned.fit._buckets", lambda *_: 4)
    users, items = likes(users=25, items=40)
    rng = np.random.default_rng(5)
    times = {
        "numbers": rng.permutation(300) * 1.5 + 1, "ties": rng.integers(1, 9, 300),
        "early": rng.integers(-50, 9, 300).astype(float), "equal": np.full(300, 7.0), "none": None,
        "unknown": np.where(rng.random(300) < 0.3, -np.inf, rng.integers(1, 5, 300)),
    }[when]  # fmt: skip
    column = {} if times is None else {"timestamp": times}
    data = write(tmp_path / "data", users, items, **column)
    out, work = tmp_path / "m", tmp_path / "w"
    told = fit_partitions(spec, data, out=out, work=work, memory="4KB", **COLUMNS)
    assert any("--time-col" in note for note in told.notes) == (times is None)
    assert len(list(work.glob("followed-*/0*"))) > 4
    expected = in_memory(spec, users, items, times, work)
    package = load_package(out, mapped=True)
    same_state(package.ranker, expected.ranker)
    assert package.start == expected.start
    everybody = np.arange(package.ranker.n_users_)
    a, b = (one.ranker.recommend(everybody, one.user_items) for one in (package, expected))
    assert np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores)
    small = tmp_path / "small"
    fit_partitions(spec, data, out=small, work=work, memory="4KB", keep_users=False, **COLUMNS)
    folder = recommend_partitions(small, work, tmp_path / "top", n=10, block=9)
    table = pd.read_parquet(folder)
    assert np.array_equal(table.score.to_numpy(), b.scores[b.ids >= 0])


def test_moments_are_seconds(tmp_path):
    users, items = likes(rows=60)
    rng = np.random.default_rng(2)
    moments = np.datetime64("2001-01-01", "us") + rng.integers(0, 10**12, 60)
    data = write(tmp_path / "data", users, items, timestamp=pa.array(moments))
    fit_partitions("slist", data, out=tmp_path / "m", work=tmp_path / "w", memory="1MB", **COLUMNS)
    package = load_package(tmp_path / "m")
    expected = in_memory("slist:form=cosine", users, items, moments, tmp_path / "w")
    np.testing.assert_allclose(package.times.data, expected.times.data, rtol=1e-15)
    assert package.dated
    assert (package.ranker.weights_ != expected.ranker.weights_).nnz == 0


@pytest.mark.parametrize("users, items, rows", [(1, 1, 1), (90, 1, 60), (1, 40, 90)])
def test_any_shape_of_the_data(tmp_path, users, items, rows):
    given = likes(users=users, items=items, rows=rows)
    when = np.arange(1, rows + 1) % 7 + 1
    data = write(tmp_path / "data", *given, timestamp=when)
    fit_partitions("slist", data, out=tmp_path / "m", work=tmp_path / "w", memory="4KB", **COLUMNS)
    found = load_ranker(tmp_path / "m", mmap=True)
    expected = in_memory("slist:form=cosine", *given, when, tmp_path / "w").ranker
    assert (found.weights_ != expected.weights_).nnz == 0 and found.ordered_ == expected.ordered_


def test_what_cannot_be_fitted_is_told_in_one_line(tmp_path):
    users, items = likes()
    data = write(tmp_path / "data", users, items)
    how = {"out": tmp_path / "m", "work": tmp_path / "w", **COLUMNS}
    for spec, told in (
        ("slist:form=ridge", "pass form=cosine, or fit in memory"),
        ("slist:time_scale=3", "slist with time_scale is not fitted from partitions"),
        ("slist:trend=1,top_k=3", "slist with trend and top_k is not"),
    ):
        with pytest.raises(InputError, match=told):
            fit_partitions(spec, data, **how)
    late = pa.table({"who": [1, 2], "what": [1, 2], "timestamp": [1.0, np.inf]})
    pq.write_table(late, tmp_path / "late.parquet")
    with pytest.raises(InputError, match="times hold infinity"):
        fit_partitions("slist", tmp_path / "late.parquet", **how)
