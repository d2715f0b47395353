"""What a fit from partitions refuses or keeps apart, so that no run mixes what belongs to another."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from recsys import InputError
from recsys.cli import app
from recsys.data import Interactions
from recsys.engines.local import LocalEngine
from recsys.partitioned import fit_partitions, recommend_partitions
from recsys.partitioned.ids import numbers
from recsys.partitioned.shuffle import PAIRS
from recsys.partitioned.source import batches, look
from recsys.partitioned.work import MANIFEST, Work, held
from recsys.rankers import load_package
from tests.partitioned.test_fit import likes, matrix_of, write

pytestmark = pytest.mark.thorough

COLUMNS = {"user": "who", "item": "what"}


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "data", *likes())


def fit(folder, data, model="cf-komd", **more):
    how = {"out": folder / "m", "work": folder / "w", **COLUMNS, **more}
    return fit_partitions(model, data, **how)


def pairs(folder):
    names, known, matrix = matrix_of(folder)
    return {(names[u], known[i]) for u, i in zip(*matrix.nonzero(), strict=True)}


def test_votes_that_differ_late_are_other_counts(tmp_path, data):
    files = []
    for k, votes in enumerate((0.5, 0.50000001)):
        fit(tmp_path, data, f"cf-komd:votes={votes}", out=tmp_path / f"m{k}")
        fit(tmp_path, data, f"cf-komd:votes={votes}", out=tmp_path / f"n{k}", work=tmp_path / f"w{k}")
        files.append((tmp_path / f"m{k}").read_bytes())
        assert files[-1] == (tmp_path / f"n{k}").read_bytes()
    assert files[0] != files[1]


def test_a_second_run_in_the_folder_is_refused(tmp_path, data):
    with held(tmp_path / "w"), pytest.raises(InputError, match="another run works in"):
        fit(tmp_path, data)
    fit(tmp_path, data)


def test_what_the_manifest_says_counts(tmp_path, data, monkeypatch):
    from recsys.partitioned import work

    wrote = work.write_json
    monkeypatch.setattr(work, "write_json", lambda path, made: wrote(path, made | {"buckets": 7}))
    assert Work.begun(tmp_path / "w", look(data, **COLUMNS), 3).buckets == 7


def test_usual_columns_are_looked_for_with_a_minimum_rating(tmp_path):
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, 8, 200), rng.integers(0, 9, 200)
    stars, when = rng.integers(1, 6, 200), rng.integers(0, 50, 200)
    folder = write(tmp_path / "data", users, items, rating=stars, timestamp=when)
    fit(tmp_path, folder, min_rating=4)
    kept = Interactions.from_ids(users, items, stars, when).rated(4)
    expected = {
        (kept.user_ids[u], kept.item_ids[i]) for u, i in zip(kept.users, kept.items, strict=True)
    }
    assert pairs(tmp_path / "w") == expected
    pq.write_table(pa.table({"who": [1], "what": [1], "rating": [5]}), folder / "a.parquet")
    with pytest.raises(InputError, match="has a column 'timestamp', .* has no times"):
        fit(tmp_path, folder, min_rating=4, work=tmp_path / "other")


def test_times_of_several_units_are_compared_as_moments(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    moments = {
        "s": [1_700_000_000, 3],
        "ns": [1_600_000_000 * 10**9, 2**60 + 1],
        "ms": [5, 2**60 // 10**6],
    }
    late = {"s": 1, "ns": 5, "ms": 2}
    for k, (unit, at) in enumerate(moments.items()):
        table = {
            "who": [1, 2], "what": [1, 2], "rating": [late[unit]] * 2, "time": pa.array(at, pa.timestamp(unit)),
        }  # fmt: skip
        pq.write_table(pa.table(table), folder / f"p{k}.parquet")
    # Of user 1 the row in seconds is the latest, rated 1; of user 2 that in nanoseconds, rated 5.
    fit(tmp_path, folder, min_rating=3)
    assert pairs(tmp_path / "w") == {(2, 2)}
    pq.write_table(
        pa.table({"who": [1], "what": [1], "rating": [5], "time": [7]}), folder / "p9.parquet"
    )
    with pytest.raises(InputError, match="holds timestamps in .*, numbers in .*p9"):
        fit(tmp_path, folder, min_rating=3, work=tmp_path / "other")


def test_whole_numbers_as_times_keep_their_last_digit(tmp_path):
    # the row that comes first is the later one, by less than a float tells
    folder = write(
        tmp_path / "data", [1, 1, 2], [1, 1, 1], 1, rating=[1, 5, 5], time=[2**60 + 1, 2**60, 0]
    )
    fit(tmp_path, folder, min_rating=3)
    assert pairs(tmp_path / "w") == {(2, 1)}


def test_a_file_that_changes_during_the_work_is_refused(tmp_path, data):
    source = look(data, **COLUMNS)
    reading = batches(source, source.units[0])
    next(reading)
    file = source.units[0].file
    os.utime(file, ns=(0, 1))
    with pytest.raises(InputError, match="was changed during the work"):
        list(reading)
    with pytest.raises(InputError, match="was changed during the work"):
        next(batches(source, source.units[0]))
    for known, ids in ((np.array([1, 3]), np.array([2])), (np.array([1, 3]), np.array([4]))):
        with pytest.raises(InputError, match="was not there before"):
            numbers(ids, known)
    with pytest.raises(InputError, match="was not there before"):
        numbers(pa.array(["b"], pa.large_string()), pa.array(["a"], pa.large_string()))


def test_parts_of_other_rows_are_another_job(tmp_path, data):
    fit(tmp_path, data)
    users, items = likes()
    renamed = write(tmp_path / "renamed", users + 10_000, items)  # the same rows of other users
    fit(tmp_path, renamed, work=tmp_path / "w2", out=tmp_path / "m2")
    recommend_partitions(tmp_path / "m", tmp_path / "w", tmp_path / "top", users=5)
    with pytest.raises(InputError, match="was not fitted on the rows"):
        recommend_partitions(tmp_path / "m", tmp_path / "w2", tmp_path / "top", users=5)
    with pytest.raises(InputError, match="parts of another job: model"):
        recommend_partitions(tmp_path / "m2", tmp_path / "w2", tmp_path / "top", users=5)


@pytest.mark.parametrize(
    "change", [{"buckets": -1}, {"buckets": 0}, {"buckets": 10**9}, {"buckets": 2.5}, {"memory": "x"},
               {"source": []}, {"versions": 3}, "deep", [1]]
)  # fmt: skip
def test_a_forged_manifest_is_told_in_one_line(tmp_path, data, change):
    Work.begun(tmp_path / "w", look(data, **COLUMNS), 3)
    path = tmp_path / "w" / MANIFEST
    made = json.loads(path.read_text())
    text = json.dumps(made | change if isinstance(change, dict) else change)
    path.write_text("[" * 200_000 if change == "deep" else text)
    for call in (lambda: fit(tmp_path, data), lambda: Work.opened(tmp_path / "w")):
        with pytest.raises(InputError, match="is damaged: remove the folder"):
            call()


def test_other_versions_are_refused(tmp_path, data):
    Work.begun(tmp_path / "w", look(data, **COLUMNS), 3)
    path = tmp_path / "w" / MANIFEST
    made = json.loads(path.read_text())
    made["versions"]["numba"] = "0.1"
    path.write_text(json.dumps(made))
    with pytest.raises(InputError, match="holds what numba 0.1 made, here is numba"):
        fit(tmp_path, data)


def test_pairs_that_a_killed_run_left_are_removed(tmp_path, data):
    fit(tmp_path, data)
    left = tmp_path / "w" / PAIRS / "00000"
    left.write_bytes(b"left")
    fit(tmp_path, data)
    assert not left.exists() and (tmp_path / "w" / PAIRS / "_SUCCESS").exists()


def test_odd_arguments_are_told(tmp_path, data):
    (tmp_path / "file").touch()
    for match, more in (
        ("is a file: name a folder to work in", {"work": tmp_path / "file"}),
        ("users and items are both column 'who'", {"item": "who"}),
        ("has its own workers", {"engine": LocalEngine(), "workers": 2}),
    ):
        with pytest.raises(InputError, match=match):
            fit(tmp_path, data, **more)
    with pytest.raises(InputError, match="not from URLs; mount or copy"):
        fit(tmp_path, "s3://bucket/likes")
    folder = write(tmp_path / "text", [1], [2], 1, rating=[5], time=["2020-01-01"])
    with pytest.raises(InputError, match="'time' holds string; it has to hold numbers or timestamps"):
        fit(tmp_path, folder, min_rating=1)
    Work.begun(tmp_path / "w", look(data, **COLUMNS), 3)
    with pytest.raises(InputError, match="has no rows yet"):
        fit(tmp_path, data, out=tmp_path / "other", work=tmp_path / "w2")
        recommend_partitions(tmp_path / "other", tmp_path / "w", tmp_path / "top")


def test_a_smaller_memory_on_resume_is_told(tmp_path, data):
    assert fit(tmp_path, data, memory="2MB").notes == []
    assert fit(tmp_path, data, memory="3MB").notes == []
    (note,) = fit(tmp_path, data, memory="1MB").notes
    assert "was divided for 2.0 MB a worker, which stays so: for 1.0 MB name" in note


def test_lists_have_the_columns_of_the_command_line(tmp_path, data):
    fit(tmp_path, data, keep_users=False)
    folder = recommend_partitions(tmp_path / "m", tmp_path / "w", tmp_path / "top", users=5)
    assert list(pd.read_parquet(folder)) == ["user_id", "rank", "item_id", "score"]
    with pytest.raises(InputError, match="without ids of users, as made from partitions"):
        load_package(tmp_path / "m")


def test_workers_and_threads_of_the_command(tmp_path, data):
    line = ["fit", "--partitions", str(data), "--user-col", "who", "--item-col", "what"]
    line += ["--out", str(tmp_path / "m"), "--work", str(tmp_path / "w")]
    for more, told in (
        (["--threads", "2"], "name how many by --workers"),
        (["--engine", "local=2", "--workers", "2"], "has its own number of workers"),
    ):
        error = CliRunner().invoke(app, [*line, *more]).exception
        assert isinstance(error, InputError) and told in str(error)
    error = CliRunner().invoke(app, ["fit", "--out", "m", "--workers", "2"]).exception
    assert isinstance(error, InputError) and "go with --partitions" in str(error)
