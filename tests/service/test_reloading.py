"""Whatever is put in the place of a model: the service lives, says so, and serves the next good file."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httptools")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.errors import ModelFileError
from recsys.rankers import fit_package
from recsys.service import create_app, model_store
from tests.service.conftest import wait_until
from tests.service.test_serving import Served, children, got

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_file_that_raises_anything_is_told_and_the_next_one_served(model, path, monkeypatch):
    real = model_store.load_package
    raised = iter([ValueError("Maximum allowed dimension"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"),
                   TypeError("59.0"), MemoryError(), RecursionError("deep"), ZeroDivisionError("?")])  # fmt: skip
    with TestClient(create_app(model, reload_seconds=0.01)) as client:
        names = []
        for error in raised:

            def broken(file, error=error, **more):
                raise error

            monkeypatch.setattr(model_store, "load_package", broken)
            os.utime(model, ns=(1, 1 + len(names)))
            named = type(error).__name__
            wait_until(lambda named=named: named in str(client.get("/health").json()["error"]))
            names.append(named)
            answer = client.post("/recommend", json={"history": [], "n": 1})
            assert answer.status_code == 200, "the old model goes on"
        monkeypatch.setattr(model_store, "load_package", real)
        shutil.copy(path, f"{model}.new")
        os.replace(f"{model}.new", model)
        wait_until(lambda: client.get("/health").json()["reloads"] == 1)
        assert client.get("/health").json()["error"] is None
    assert len(names) == 6


def test_a_model_whose_scores_are_no_numbers_is_refused(data, tmp_path):
    package = fit_package(make_ranker("ease"), data, show_progress=False)
    package.ranker.weights_[:] = 3e38  # finite, and so are not its sums
    package.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="not finite"):
        create_app(tmp_path / "m")


def test_what_failed_for_a_moment_is_tried_again(model, monkeypatch):
    real, calls = model_store.load_package, []

    def short_of_memory(file, **more):
        calls.append(file)
        if len(calls) < 3:
            raise MemoryError
        return real(file, **more)

    with TestClient(create_app(model, reload_seconds=0.01)) as client:
        monkeypatch.setattr(model_store, "load_package", short_of_memory)
        os.utime(model, ns=(1, 1))
        wait_until(lambda: client.get("/health").json()["error"] is not None)
        wait_until(lambda: client.get("/health").json()["reloads"] == 1)
        assert client.get("/health").json()["error"] is None and len(calls) == 3


def test_a_model_that_is_back_is_no_error(model):
    with TestClient(create_app(model, reload_seconds=0.01)) as client:
        os.rename(model, f"{model}.away")
        wait_until(lambda: client.get("/health").json()["error"] is not None)
        os.rename(f"{model}.away", model)
        wait_until(lambda: client.get("/health").json()["error"] is None)
        assert client.get("/health").json()["reloads"] == 0


def sparse(file, path):
    with open(file, "wb") as made:
        made.write((1 << 19).to_bytes(8, "little") + b"{" * 100)
        made.truncate(1 << 40)


def truncated(file, path):
    with open(path, "rb") as good, open(file, "wb") as made:
        made.write(good.read()[:-9])


# What is put where the model was, and the next good one after it.
BAD = {
    "1 TB with a broken head": sparse,
    "empty": lambda file, path: open(file, "wb").close(),
    "truncated": truncated,
    "pickle": lambda file, path: Path(file).write_bytes(b"\x80\x04K\x01."),
    "FIFO": lambda file, path: os.mkfifo(file),
    "folder": lambda file, path: os.mkdir(file),
    "link to itself": None,
    "endless device": lambda file, path: os.symlink("/dev/zero", file),
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("kind", BAD)
def test_no_kind_of_file_ends_it(model, path, kind, mapped):
    store = model_store.ModelStore(Path(model), 3600, mapped=mapped)
    try:
        os.unlink(model)
        if kind == "link to itself":
            os.symlink(model, model)
        else:
            BAD[kind](model, path)
        store.check()
        assert "refused" in store.error and store.reloads == 0
        os.rename(model, f"{model}.bad")
        shutil.copy(path, model)
        store.check()
        assert store.error is None and store.reloads == 1
    finally:
        store.close()


@pytest.mark.parametrize("mapped", [False, True])
def test_a_load_writes_nothing_and_is_told(model, path, tmp_path, monkeypatch, mapped):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    real, told = model_store.load, []
    with TestClient(create_app(model, reload_seconds=0.01, mapped=mapped)) as client:

        def slow(file, mapped):
            told.append(client.get("/health").json()["loading"])
            return real(file, mapped)

        monkeypatch.setattr(model_store, "load", slow)
        shutil.copy(path, f"{model}.new")
        os.replace(f"{model}.new", model)
        wait_until(lambda: client.get("/health").json()["reloads"] == 1)
        assert client.get("/health").json()["loading"] is None
    assert told == [f"m.recsys, {os.path.getsize(path):,} bytes"]
    assert not list(scratch.iterdir())
    assert sorted(os.listdir(tmp_path)) == ["m.recsys", "scratch"], "and no .new is left"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_list_of_bad_files_with_real_workers(model, path, tmp_path, workers, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with Served("--ranker", model, "--port", 0, "--workers", workers) as served:
        for _ in range(workers):
            line = served.wait_for("serving")
        base = re.search(r"http://\S+?:\d+", line)[0]

        def health():
            """What the workers say; whichever is asked answers."""
            return [json.loads(got(f"{base}/health")) for _ in range(10)]

        wait_until(lambda: all(one["status"] == "ok" for one in health()))
        for k, (kind, make) in enumerate(BAD.items()):
            made = Path(f"{model}.{k}")
            if kind == "link to itself":
                os.symlink(model, made)
            else:
                make(made, path)
            if os.path.isdir(made):
                os.unlink(model)
            os.rename(made, model)
            wait_until(lambda: all("refused" in str(one["error"]) for one in health()))
            assert len(served_pids(served, workers)) == workers, kind
            os.rename(model, f"{model}.{k}.bad")
            shutil.copy(path, f"{model}.good")
            os.replace(f"{model}.good", model)
            wait_until(lambda: all(one["error"] is None for one in health()))
        written = sum(file.stat().st_blocks * 512 for file in scratch.rglob("*"))
        assert written < os.path.getsize(path), "no copy of a model"
        assert served.stop()[0] == 0


def served_pids(served, workers):
    return [served.process.pid] if workers == 1 else children(served.process.pid)
