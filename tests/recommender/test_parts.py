"""Lists of all users in folders of parts: resumed, refused, swept, and equal to one file."""

import datetime
import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import recsys
from recsys import InputError, Recommender, make_ranker
from recsys.engines import Engine, engine
from recsys.engines.base import run_unit
from recsys.rankers import fit_package, list_rankers
from recsys.recommender import all_users
from recsys.recommender.all_users import plain_options, write_all_users
from recsys.recommender.parts import Parts
from recsys.utils import atomic


@pytest.fixture(scope="module")
def model():
    return Recommender("ease").fit(recsys.load_dataset("sample"))


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.recsys"
    model.save(path)
    return path


@pytest.fixture(scope="module")
def dask():
    with engine("dask", workers=2) as found:
        yield found


def content(folder):
    return {one.name: one.read_bytes() for one in Path(folder).iterdir()}


def state(folder):
    return {one.name: (one.stat().st_ino, one.stat().st_mtime_ns) for one in Path(folder).glob("part-*")}


OPTIONS = {
    "plain": {},
    "items": {"items": ["m0003", "m0005", "m0007", "m0100"], "n": 3},
    "exclude": {"exclude": np.array(["m0003", "m0005"], dtype=object)},
    "dislikes": {"dislikes": ["m0003"], "n": 4},
    "diversity": {"diversity": 0.3, "n": 4},
    "filters": {"filters": {"year": (1960, None), "genres": {"Drama", "War"}}},
    "one value": {"filters": {"genres": "Drama"}, "n": 4},
    "as of": {"as_of": datetime.date(2004, 10, 8), "n": 4},
    "why": {"why": True, "n": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("given", OPTIONS)
def test_parts_are_the_table_cut_in_pieces(model, tmp_path, given):
    options = OPTIONS[given]
    assert model.recommend_all(f"{tmp_path}/top/", block=150, **options) == tmp_path / "top"
    model.recommend_all(tmp_path / "top.parquet", **options)
    names = [f"part-{start:08d}.parquet" for start in (0, 150, 300)]
    assert sorted(os.listdir(tmp_path / "top")) == ["_MANIFEST.json", "_SUCCESS", *names]
    assert pq.read_table(tmp_path / "top").equals(pq.read_table(tmp_path / "top.parquet"))


@pytest.mark.slow
def test_workers_write_the_same_bytes(model, path, dask, tmp_path):
    for given in ("plain", "filters", "as of", "why"):
        here, there = tmp_path / given / "here", tmp_path / given / "there"
        here.parent.mkdir()
        model.recommend_all(f"{here}/", block=64, **OPTIONS[given])
        model.recommend_all(f"{there}/", block=64, engine=dask, **OPTIONS[given])
        assert content(here) == content(there), "and no model is left in the folder"
    options = plain_options(10, text=True)
    done = write_all_users(tmp_path / "a", model.package, options, model=path, on=dask, block=64)
    assert (done.written, done.skipped, done.users, done.workers) == (7, 0, 400, 2)
    assert 0 < done.work <= 2 * done.seconds and 0 <= done.overhead < 1
    write_all_users(tmp_path / "b", model.package, options, model=path, block=64)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_a_second_run_writes_what_is_missing_only(model, tmp_path, monkeypatch):
    folder = tmp_path / "top"
    model.recommend_all(folder, block=50)  # no ending is a folder, too
    before, whole = state(folder), content(folder)
    (folder / "part-00000100.parquet").unlink()
    (folder / "part-00000350.parquet").unlink()
    shown = []
    done = write_all_users(
        folder, model.package, plain_options(10), block=50, progress=lambda *some: shown.append(some)
    )
    assert (done.written, done.skipped, done.users) == (2, 6, 100) and shown == [(7, 8), (8, 8)]
    after = state(folder)
    assert content(folder) == whole and [k for k in sorted(after) if after[k] != before[k]] == [
        "part-00000100.parquet", "part-00000350.parquet",
    ]  # fmt: skip
    monkeypatch.setattr(all_users, "opened", None)  # none is started for nothing
    done = write_all_users(folder, model.package, plain_options(10), block=50)
    assert (done.written, done.skipped, done.overhead) == (0, 8, 0.0) and state(folder) == after


def test_a_run_that_fails_is_no_success(model, tmp_path, monkeypatch):
    folder, write = tmp_path / "top", all_users.write_rows
    (folder).mkdir()

    def refuses(path, *rest, **named):
        if path.name.startswith("part-00000100"):
            raise InputError("no space")
        write(path, *rest, **named)

    monkeypatch.setattr(all_users, "write_rows", refuses)
    with pytest.raises(InputError, match="no space"):
        model.recommend_all(folder, block=50)
    assert sorted(os.listdir(folder)) == [
        "_MANIFEST.json", "part-00000000.parquet", "part-00000050.parquet",
    ]  # fmt: skip
    monkeypatch.undo()
    model.recommend_all(folder, block=50)
    model.recommend_all(tmp_path / "whole", block=50)
    assert content(folder) == content(tmp_path / "whole")


def test_another_job_is_refused_by_what_differs(model, tmp_path, monkeypatch):
    folder = tmp_path / "top"
    model.recommend_all(folder, block=200)
    before = content(folder)
    other = Recommender("ease:regularization=7").fit(recsys.load_dataset("sample"))
    for call, why in (
        (lambda: model.recommend_all(folder, block=100), r"block is 200 there, 100 here; name another"),
        (lambda: model.recommend_all(folder, 7, block=200), r"n is 10 there, 7 here"),
        (lambda: model.recommend_all(folder, 7, exclude=["m0001"], block=200), "exclude is not given there.*, and 1 more"),
        (lambda: other.recommend_all(folder, block=200), r"model \(its sha256\) is"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why) as told:
            call()
        assert "\n" not in str(told.value)
    monkeypatch.setitem(all_users.installed(), "numpy", "1.0")
    with pytest.raises(InputError, match=r"numpy is .* there, \"1.0\" here"):
        model.recommend_all(folder, block=200)
    monkeypatch.undo()
    assert content(folder) == before
    (folder / "_MANIFEST.json").write_text("{}")
    with pytest.raises(InputError, match="is no list of what parts are made of"):
        model.recommend_all(folder, block=200)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds other files"):
        model.recommend_all(tmp_path / "home")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        model.recommend_all(tmp_path / "no" / "where" / "")
    with pytest.raises(InputError, match="for a folder"):
        model.recommend_all(tmp_path / "top.csv", engine="local=2")
    with pytest.raises(InputError, match="block"):
        model.recommend_all(tmp_path / "new", block=0)


def test_what_dead_runs_left_is_swept_and_what_lives_is_not(model, tmp_path):
    folder = tmp_path / "top"
    model.recommend_all(folder, block=200)
    (folder / "part-00000200.parquet").unlink()
    dead = folder / f".part-00000200.parquet.{'0' * 16}{atomic.TEMPORARY}"
    dead.write_bytes(b"half")
    os.utime(dead, (0, 0))
    with atomic.replacing(folder / "part-00000900.parquet") as living:  # of somebody who is at work
        living.write(b"more")
        model.recommend_all(folder, block=200)
        assert len([name for name in os.listdir(folder) if name.endswith(atomic.TEMPORARY)]) == 1
    assert not dead.exists() and (folder / "part-00000900.parquet").exists()


def test_a_worker_that_sees_other_files_is_told_of(model, path, tmp_path, monkeypatch):
    folder = tmp_path / "top"
    parts = Parts(
        folder, {"format": 1, "users": 400, "block": 50, "model": "f00", "lists": plain_options(3)}
    )
    with pytest.raises(InputError, match=r"worker .* does not see the folder .*: put it where every"):
        all_users.write_part((str(path), parts.digest, str(folder), 0))
    parts.begin()
    with pytest.raises(
        InputError, match=r"worker .* does not see the model .*absent: put it where every"
    ):
        all_users.write_part((str(tmp_path / "absent"), parts.digest, str(folder), 0))
    with pytest.raises(InputError, match="another file than the one that was checked"):
        all_users.write_part((str(path), parts.digest, str(folder), 0))
    with pytest.raises(InputError, match="is of another job"):
        all_users.write_part(
            (str(path), replace(parts, job={**parts.job, "block": 60}).digest, str(folder), 0)
        )
    monkeypatch.setattr("recsys.recommender.parts.PAUSE", 0.0)
    with pytest.raises(InputError, match="written where this process does not see it"):
        parts.finish()
    assert json.loads((folder / "_MANIFEST.json").read_text()) == parts.job


def test_a_worker_reads_a_model_once_and_does_not_repeat_a_part(model, path, tmp_path, monkeypatch):
    digest = recsys.utils.model_file.checksum(path)
    parts = Parts(
        tmp_path / "top",
        {"format": 1, "users": 400, "block": 50, "model": digest, "lists": plain_options(3)},
    )
    parts.begin()
    all_users._package.cache_clear()
    all_users._lists.cache_clear()
    units = [(str(path), parts.digest, str(parts.folder), start) for start in parts.starts()]
    assert all_users.write_part(units[0]) == (50, 0, 0)
    monkeypatch.setattr(all_users, "load_package", None)
    assert all_users.write_part(units[3]) == (50, 0, 0)
    before = state(parts.folder)
    all_users._package.cache_clear()
    all_users._lists.cache_clear()  # a part that is there needs no model
    assert all_users.write_part(units[3]) is None and state(parts.folder) == before
    assert parts.missing() == [50, 100, 200, 250, 300, 350]


def test_of_two_jobs_at_once_one_has_the_folder(tmp_path):
    folder, together, told = tmp_path / "top", threading.Barrier(2), []

    def begin(block):
        parts = Parts(folder, {"format": 1, "users": 400, "block": block, "model": "f00", "lists": {}})
        together.wait()
        try:
            parts.begin()
            told.append(parts)
        except InputError as error:
            assert "holds parts of another job: block is" in str(error)

    for _ in range(20):
        both = [threading.Thread(target=begin, args=(block,)) for block in (40, 50)]
        [one.start() for one in both]
        [one.join() for one in both]
        (only,) = told
        assert Parts.of(folder).job == only.job and os.listdir(folder) == ["_MANIFEST.json"]
        (folder / "_MANIFEST.json").unlink()
        told.clear()


def test_a_folder_that_became_anothers_is_no_success(model, tmp_path, monkeypatch):
    folder, write = tmp_path / "top", all_users.write_rows

    def takes(path, *rest, **named):
        manifest = folder / "_MANIFEST.json"
        manifest.write_text(manifest.read_text().replace('"n": 10', '"n": 7'))
        write(path, *rest, **named)

    monkeypatch.setattr(all_users, "write_rows", takes)
    with pytest.raises(InputError, match="holds parts of another job: n is 7 there, 10 here"):
        model.recommend_all(folder, block=200)
    assert not (folder / "_SUCCESS").exists()


def test_what_a_host_elsewhere_wrote_may_be_seen_late(tmp_path, monkeypatch):
    parts = Parts(tmp_path / "top", {"format": 1, "users": 40, "block": 20, "model": "f00", "lists": {}})
    parts.begin()
    parts.path(0).write_bytes(b"")
    monkeypatch.setattr("time.sleep", lambda _: parts.path(20).write_bytes(b""))
    parts.finish()
    assert (parts.folder / "_SUCCESS").exists()


def test_a_model_that_is_replaced_while_it_is_read_is_refused(model, path, tmp_path, monkeypatch):
    mine, load = tmp_path / "m.recsys", all_users.load_package
    mine.write_bytes(path.read_bytes())
    package, digest = all_users.read_model(mine)
    other = Recommender("ease:regularization=7").fit(recsys.load_dataset("sample"))

    def loads(*given, **named):
        found = load(*given, **named)
        other.save(mine)
        return found

    monkeypatch.setattr(all_users, "load_package", loads)
    why = "m.recsys was replaced by another model meanwhile; run it again"
    with pytest.raises(InputError, match=why):
        all_users.read_model(mine)
    with pytest.raises(InputError, match=why):
        write_all_users(tmp_path / "top", package, plain_options(3), model=mine, digest=digest)
    assert not (tmp_path / "top").exists()


class Elsewhere(Engine):
    """Runs units here, as workers elsewhere would: nothing is kept from one to the next."""

    def _results(self, task, units, threads):
        for unit in units:
            all_users._package.cache_clear()
            all_users._lists.cache_clear()
            yield run_unit(task, unit, threads)


def test_the_same_call_twice_at_once_ends_well(model, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "top"
    model.recommend_all(whole, block=50)
    lost = folder / "part-00000200.parquet"

    def other(some, of):
        if some == 1:  # another run does all the rest, and ends
            model.recommend_all(folder, block=50, engine=Elsewhere())
            lost.unlink()

    write_all_users(
        folder, model.package, plain_options(10), on=Elsewhere(), block=50, progress=other
    )  # which needs its model after the other has ended
    assert content(folder) == content(whole)


def test_values_without_a_dimension_and_names_that_are_none(model, tmp_path):
    model.recommend_all(tmp_path / "a", filters={"year": np.array(1980)})
    model.recommend_all(tmp_path / "b", filters={"year": 1980})
    assert content(tmp_path / "a") == content(tmp_path / "b")
    with pytest.raises(InputError, match=r"top\\x00' is no name of a folder: it holds a NUL"):
        model.recommend_all(f"{tmp_path}/top\0/")
    with pytest.raises(InputError, match="^filters and as_of must be plain values"):
        model.recommend_all(tmp_path / "c", filters={"year": (object(), None)})


@pytest.mark.slow
@pytest.mark.parametrize("name", list_rankers())
def test_every_ranker_writes_its_parts_as_its_file(name, tmp_path):
    package = fit_package(make_ranker(name), recsys.load_dataset("sample"), show_progress=False)
    model = Recommender.of(package)
    model.recommend_all(tmp_path / "top", block=37)
    model.recommend_all(tmp_path / "top.parquet")
    assert pq.read_table(tmp_path / "top").equals(pq.read_table(tmp_path / "top.parquet"))
