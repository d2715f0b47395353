"""Rankers fitted from partitions are those of a fit in memory: to the bit."""

import os
import signal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from recsys import InputError
from recsys.cli import app
from recsys.data import Interactions
from recsys.engines.local import LocalEngine, ProcessEngine
from recsys.partitioned import fit_partitions, recommend_partitions
from recsys.partitioned.arrays import read_arrays
from recsys.partitioned.ids import plain, unpacked
from recsys.partitioned.rows import read_catalogue, read_rows
from recsys.partitioned.work import Work
from recsys.rankers import load_package, load_ranker, make_ranker
from recsys.utils.spec import parse_spec
from tests.engines.tasks import process

COLUMNS = {"user": "who", "item": "what"}
MODELS = (
    "cf-komd", "cf-komd:votes=1", "cf-komd:kernel=mc,degree=2", "msdw",
    "msdw:votes=0.5,locality=1.3,diagonal=false",
)  # fmt: skip


def write(folder, users, items, parts=3, group=7, **others):
    """Write rows in so many files."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"who": users, "what": items, **others})
    edges = np.linspace(0, len(users), parts + 1).astype(int)
    for k, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        pq.write_table(table.slice(low, high - low), folder / f"p{k:03d}.parquet", row_group_size=group)
    return folder


def likes(seed=0, users=60, items=120, rows=300, text=False):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, users, rows) * 3 - 20
    i = (items * rng.random(rows) ** 2).astype(int) * 7
    return ([f"u{x}" for x in u], [f"é{x}" for x in i]) if text else (u, i)


def matrix_of(work):
    """Return ids of users and items as the work folder numbers them, and the rows."""
    work = Work.opened(work)
    rows = [read_rows(work, b) for b in range(work.buckets)]
    items = plain(unpacked("ids", read_catalogue(work)))
    users = [name for one in rows for name in plain(one.users)]
    lengths = np.concatenate([np.diff(one.indptr) for one in rows])
    indices = np.concatenate([one.items for one in rows])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return (
        users,
        items,
        sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(users), len(items))),
    )


def in_memory(spec, matrix, monkeypatch):
    from recsys.rankers import _margin, cf_komd, msdw

    monkeypatch.setattr(msdw, "SMALL", 0)
    for module in (_margin, cf_komd):
        monkeypatch.setattr(module, "prefers_dense", lambda *_: False)
    name, params = parse_spec(spec)
    return make_ranker(name, **params).fit(matrix, show_progress=False)


def same_state(one, other):
    a, b = one.get_state(), other.get_state()
    assert a.scalars == b.scalars
    assert a.arrays.keys() == b.arrays.keys()
    for name in a.arrays:
        assert a.arrays[name].dtype == b.arrays[name].dtype, name
        assert np.array_equal(a.arrays[name], b.arrays[name]), name


@pytest.mark.thorough
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("spec", MODELS)
def test_a_ranker_is_that_of_a_fit_in_memory(tmp_path, monkeypatch, spec, text):
    users, items = likes(text=text)
    data = write(tmp_path / "data", users, items)
    fit_partitions(
        spec, data, out=tmp_path / "m.recsys", work=tmp_path / "work", memory=20_000, **COLUMNS
    )
    names, known, matrix = matrix_of(tmp_path / "work")
    assert Work.opened(tmp_path / "work").buckets > 1
    pairs = {(names[u], known[i]) for u, i in zip(*matrix.nonzero(), strict=True)}
    assert pairs == set(zip(np.asarray(users).tolist(), np.asarray(items).tolist(), strict=True))
    assert known == sorted(known)
    expected = in_memory(spec, matrix, monkeypatch)
    package = load_package(tmp_path / "m.recsys", mapped=True)
    same_state(package.ranker, expected)
    assert list(package.user_ids) == names and list(package.item_ids) == known
    assert (package.user_items != matrix).nnz == 0
    everybody = np.arange(len(names))
    a, b = package.ranker.recommend(everybody, matrix), expected.recommend(everybody, matrix)
    assert np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        {"users": 1, "items": 1, "rows": 1},
        {"users": 300, "items": 1, "rows": 200},
        {"users": 1, "items": 90, "rows": 200},
        {"users": 9, "items": 40, "rows": 500, "parts": 11, "group": 3},
        {"users": 50, "items": 30, "rows": 60, "buckets": 40},
        {"users": 60, "items": 30, "rows": 400, "memory": 24, "buckets": 3},  # a block of one item each
    ],
)
def test_any_shape_of_the_data(tmp_path, monkeypatch, case):
    parts = {key: case.pop(key) for key in ("parts", "group") if key in case}
    memory, buckets = case.pop("memory", 4_000), case.pop("buckets", None)
    if buckets:
        monkeypatch.setattr("recsys.partitioned.fit._buckets", lambda *_: buckets)
    for seed in range(3):
        here = tmp_path / str(seed)
        users, items = likes(seed, text=seed == 2, **case)
        data = write(here / "data", users, items, **parts)
        fit_partitions("cf-komd", data, out=here / "m", work=here / "w", memory=memory, **COLUMNS)
        _, _, matrix = matrix_of(here / "w")
        assert matrix.has_canonical_format and matrix.getnnz(axis=1).min() > 0
        same_state(load_ranker(here / "m", mmap=True), in_memory("cf-komd", matrix, monkeypatch))
        if memory == 24:
            edges = read_arrays(here / "w" / "counts-popular-0-pairs" / "edges")["edges"]
            assert (np.diff(edges) == 1).all()


@pytest.mark.thorough
def test_the_latest_rating_of_a_pair_decides(tmp_path):
    rng = np.random.default_rng(3)
    users, items, rows = rng.integers(0, 8, 400), rng.integers(0, 9, 400), np.arange(400)
    stars, when = rng.integers(1, 6, 400), rng.integers(0, 50, 400)
    for time in (None, "when"):
        here = tmp_path / str(time)
        data = write(here / "data", users, items, stars=stars, when=when)
        fit_partitions(
            "cf-komd", data, out=here / "m", work=here / "w", rating="stars", time=time, min_rating=4,
            memory=2_000, **COLUMNS,
        )  # fmt: skip
        table = pd.DataFrame({"u": users, "i": items, "s": stars, "t": when if time else rows})
        kept = Interactions.from_ids(table.u, table.i, table.s, table.t).rated(4)
        expected = {
            (kept.user_ids[u], kept.item_ids[i]) for u, i in zip(kept.users, kept.items, strict=True)
        }
        names, known, matrix = matrix_of(here / "w")
        assert {(names[u], known[i]) for u, i in zip(*matrix.nonzero(), strict=True)} == expected
        assert set(names) == set(kept.user_ids) and set(known) == set(kept.item_ids)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage", ["items", "pairs", "rows", "places-popular", "counts-popular-0-pairs", ""]
)
def test_what_was_stopped_goes_on_and_comes_to_the_same(tmp_path, monkeypatch, stage):
    data = write(tmp_path / "data", *likes())
    how = {"work": tmp_path / "w", "memory": 3_000, **COLUMNS}
    fit_partitions(
        "cf-komd", data, out=tmp_path / "whole", work=tmp_path / "other", memory=3_000, **COLUMNS
    )
    done = []

    class Stopping(LocalEngine):
        def _results(self, task, units, threads):
            for k, found in enumerate(super()._results(task, units, threads)):
                done.append(units[k])
                if stage and stage in str(self.at) and k == 1:
                    raise KeyboardInterrupt
                yield found

    engine = Stopping()
    run = Work.run
    monkeypatch.setattr(Work, "run", lambda w, s, *a: (setattr(engine, "at", s), run(w, s, *a))[1])
    if stage:
        with pytest.raises(KeyboardInterrupt):
            fit_partitions("cf-komd", data, out=tmp_path / "m", engine=engine, **how)
        assert not (tmp_path / "m").exists()
        stage = ""
        fit_partitions("cf-komd", data, out=tmp_path / "m", engine=engine, **how)
    else:
        fit_partitions("cf-komd", data, out=tmp_path / "m", engine=engine, **how)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    before = len(done)
    fit_partitions("cf-komd:kernel=mc,degree=2", data, out=tmp_path / "m2", engine=engine, **how)
    assert len(done) == before  # another kernel of the same counts
    assert load_ranker(tmp_path / "m2").get_params()["kernel"] == "mc"


@pytest.mark.slow
def test_a_killed_worker_and_a_rerun_by_two_come_to_the_same(tmp_path):
    data = write(tmp_path / "data", *likes())
    fit_partitions(
        "cf-komd", data, out=tmp_path / "whole", work=tmp_path / "other", memory=3_000, **COLUMNS
    )
    how = {"out": tmp_path / "m", "work": tmp_path / "w", "memory": 3_000, **COLUMNS}
    with ProcessEngine(2) as engine, pytest.raises(InputError, match="run it again"):
        os.kill(next(engine.map(process, [0]))[0], signal.SIGKILL)
        fit_partitions("cf-komd", data, engine=engine, **how)
    with ProcessEngine(2) as engine:
        fit_partitions("cf-komd", data, engine=engine, **how)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.thorough
def test_lists_of_users_without_a_package(tmp_path):
    for text in (False, True):
        here = tmp_path / str(text)
        data = write(here / "data", *likes(text=text))
        out, work = here / "m.recsys", here / "w"
        fit_partitions("cf-komd", data, out=out, work=work, memory=20_000, keep_users=False, **COLUMNS)
        with pytest.raises(InputError, match="without ids"):
            load_package(out)
        folder = recommend_partitions(out, work, here / "top", n=4, users=50, block=7)
        assert (folder / "_SUCCESS").exists() and len(list(folder.glob("*.parquet"))) == 8
        names, known, matrix = matrix_of(work)
        found = load_ranker(out).recommend(np.arange(50), matrix[:50], N=4)
        table = pq.read_table(folder).to_pandas()
        assert table.user_id.tolist() == list(np.repeat(names[:50], 4))
        assert table["item_id"].tolist() == [known[i] for i in found.ids.ravel()]
        assert (table.score.to_numpy() == found.scores.ravel()).all()
        assert table["rank"].tolist() == [1, 2, 3, 4] * 50
        times = {one.name: one.stat().st_mtime_ns for one in folder.iterdir()}
        next(folder.glob("part-*7.parquet")).unlink()
        recommend_partitions(out, work, folder, n=4, users=50, block=7)
        now = {one.name: one.stat().st_mtime_ns for one in folder.iterdir()}
        assert sum(times[name] != now[name] for name in times) == 2  # the part, and _SUCCESS
    with pytest.raises(InputError, match="was not fitted on the rows"):
        recommend_partitions(tmp_path / "False" / "m.recsys", work, tmp_path / "no", users=50)


def refused(match, **changes):
    def call(tmp_path, **more):
        how = {
            "model": "cf-komd",
            "paths": tmp_path / "data",
            "out": tmp_path / "m",
            "work": tmp_path / "w",
        }
        with pytest.raises(InputError, match=match) as told:
            fit_partitions(**{**how, **COLUMNS, **changes, **more})
        assert "\n" not in str(told.value)

    return call


def test_what_cannot_be_used_is_told_in_one_line(tmp_path):
    data = write(tmp_path / "data", *likes())
    refused("no single column 'who2'; it has 'who', 'what'", user="who2")(tmp_path)
    refused("name the column of users with --user-col", user=None)(tmp_path)
    refused("does not exist|no file matches", paths=tmp_path / "absent")(tmp_path)
    (tmp_path / "empty").mkdir()
    refused("holds no .parquet file", paths=tmp_path / "empty")(tmp_path)
    refused("a minimum rating needs", min_rating=3)(tmp_path)
    refused("als is not fitted from partitions; cf-komd, ease, msdw, slist are", model="als")(tmp_path)
    refused("cf-komd with recency is not fitted", model="cf-komd:recency=1")(tmp_path)
    refused("the folder .* does not exist", out=tmp_path / "absent" / "m")(tmp_path)
    refused("holds something else", work=tmp_path / "data")(tmp_path)
    (tmp_path / "data" / "p009.parquet").write_bytes(b"PAR1 no")
    refused("no readable Parquet file")(tmp_path)
    write(tmp_path / "text", *likes(text=True), parts=1)
    (tmp_path / "text" / "p000.parquet").rename(tmp_path / "data" / "p009.parquet")
    refused("are text in one of")(tmp_path)
    pq.write_table(pa.table({"who": [1, None], "what": [1, 2]}), tmp_path / "data" / "p009.parquet")
    refused("column 'who' has empty cells")(tmp_path)
    pq.write_table(pa.table({"who": [1.5], "what": [1]}), tmp_path / "data" / "p009.parquet")
    refused("holds double; ids are text or integers")(tmp_path)
    pq.write_table(pa.table({"who": [1], "what": [1]}), tmp_path / "data" / "p009.parquet")
    refused("holds the work on other data .files differ.")(tmp_path)
    assert not (tmp_path / "m").exists() and data.exists()


def test_the_command_line_does_the_same(tmp_path):
    data = write(tmp_path / "data", *likes())
    fit_partitions("cf-komd", data, out=tmp_path / "whole", work=tmp_path / "other", **COLUMNS)
    runner = CliRunner()
    line = [
        "fit",
        "--partitions",
        str(data),
        "--user-col",
        "who",
        "--item-col",
        "what",
        "--out",
        str(tmp_path / "m"),
    ]
    found = runner.invoke(app, [*line, "--work", str(tmp_path / "w"), "--memory", "1GB"])
    assert found.exit_code == 0, found.output
    assert "fitted on 60 users" in found.output
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    for wrong, told in (
        (line, "name it by --work"),
        ([*line, "--work", "w", "--dataset", "sample"], "leave out other options of data"),
        ([*line, "--work", "w", "--from", "m"], "leave out --from"),
        (["fit", "--out", "m", "--engine", "local=2"], "go with --partitions"),
    ):
        error = runner.invoke(app, wrong).exception
        assert isinstance(error, InputError) and told in str(error)
    package = load_package(tmp_path / "m")
    assert package.columns.user == "who" and len(package.user_ids) == 60
