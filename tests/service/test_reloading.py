"""Whatever is put in the place of a model: the service lives, says so, and serves the next good file."""

import os
import shutil
import time

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.errors import ModelFileError
from recsys.rankers import fit_bundle
from recsys.service import create_app, model_store

pytestmark = pytest.mark.filterwarnings("ignore")


def wait_until(told):
    until = time.monotonic() + 20
    while not told():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def model(path, tmp_path):
    return shutil.copy(path, tmp_path / "m.recsys")


def test_a_file_that_raises_anything_is_told_and_the_next_one_served(model, path, monkeypatch):
    real = model_store.load_bundle
    raised = iter([ValueError("Maximum allowed dimension"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"),
                   TypeError("59.0"), MemoryError(), RecursionError("deep"), ZeroDivisionError("?")])  # fmt: skip
    with TestClient(create_app(model, reload_seconds=0.01)) as client:
        names = []
        for error in raised:

            def broken(file, error=error, **more):
                raise error

            monkeypatch.setattr(model_store, "load_bundle", broken)
            os.utime(model, ns=(1, 1 + len(names)))
            named = type(error).__name__
            wait_until(lambda named=named: named in str(client.get("/health").json()["error"]))
            names.append(named)
            answer = client.post("/recommend", json={"history": [], "n": 1})
            assert answer.status_code == 200, "the old model goes on"
        monkeypatch.setattr(model_store, "load_bundle", real)
        shutil.copy(path, f"{model}.new")
        os.replace(f"{model}.new", model)
        wait_until(lambda: client.get("/health").json()["reloads"] == 1)
        assert client.get("/health").json()["error"] is None
    assert len(names) == 6


def test_a_model_whose_scores_are_no_numbers_is_refused(data, tmp_path):
    bundle = fit_bundle(make_ranker("ease"), data, show_progress=False)
    bundle.ranker.weights_[:] = 3e38  # finite, and so are not its sums
    bundle.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="not finite"):
        create_app(tmp_path / "m")


def test_what_failed_for_a_moment_is_tried_again(model, monkeypatch):
    real, calls = model_store.load_bundle, []

    def short_of_memory(file, **more):
        calls.append(file)
        if len(calls) < 3:
            raise MemoryError
        return real(file, **more)

    with TestClient(create_app(model, reload_seconds=0.01)) as client:
        monkeypatch.setattr(model_store, "load_bundle", short_of_memory)
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


@pytest.mark.parametrize("kind", ["folder", "fifo", "link to itself", "empty", "pickle"])
def test_no_kind_of_file_ends_it(model, path, kind):
    with TestClient(create_app(model, reload_seconds=0.01)) as client:
        os.unlink(model)
        if kind == "folder":
            os.mkdir(model)
        elif kind == "fifo":
            os.mkfifo(model)
        elif kind == "link to itself":
            os.symlink(model, model)
        else:
            with open(model, "wb") as file:
                file.write(b"" if kind == "empty" else b"\x80\x04K\x01.")
        wait_until(lambda: "refused" in str(client.get("/health").json()["error"]))
        os.rename(model, f"{model}.bad")
        shutil.copy(path, model)
        wait_until(lambda: client.get("/health").json()["error"] is None)
