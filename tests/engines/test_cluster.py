"""Dask: what local engines promise, and what may go wrong with a cluster."""

import os
import subprocess
import sys
import warnings

import psutil
import pytest

from recsys import InputError
from recsys.engines import engine
from recsys.engines.base import installed, run_far
from recsys.engines.folders import OwnFolder
from tests.engines import tasks
from tests.test_imports import modules_after


@pytest.fixture(scope="module")
def dask():
    with engine("dask", workers=2) as found:
        yield found


def test_results_come_in_order_and_errors_as_they_are(dask):
    assert dask.workers == 2
    before = dask.seconds
    assert list(dask.map(tasks.squared, range(7))) == [x * x for x in range(7)]
    assert list(dask.map(tasks.squared, [3, 3])) == [9, 9]
    assert list(dask.map(tasks.threads, [0, 1], threads=1)) == [(1, 1)] * 2
    assert dask.seconds > before
    with pytest.raises(InputError, match="^unit 3 cannot be done$"):
        list(dask.map(tasks.refused, [3]))
    with pytest.raises(TimeoutError, match="^unit 3 asked"):  # which is not the scheduler's
        list(dask.map(tasks.late, [3]))


def test_a_worker_that_ended_is_replaced_and_its_unit_done_again(dask, tmp_path):
    assert (
        list(dask.map(tasks.ended_once, [str(tmp_path / "once"), *[str(tmp_path)] * 3])) == ["done"] * 4
    )


def test_only_this_machine_reaches_the_workers(dask):
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        for one in process.net_connections("inet"):
            assert one.status != "LISTEN" or one.laddr.ip == "127.0.0.1"


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_one_line_where_an_engine_is_not_installed(monkeypatch, name):
    monkeypatch.setitem(sys.modules, {"dask": "distributed", "ray": "ray"}[name], None)
    with pytest.raises(
        InputError, match=rf"^engine {name} needs {name.title()}: pip install 'recsys\[{name}\]'$"
    ):
        engine(name)


@pytest.mark.parametrize("module, name", [("dask", "dask=127.0.0.1:1"), ("ray", "ray=127.0.0.1:1")])
def test_an_address_where_nothing_answers_is_refused(monkeypatch, module, name):
    pytest.importorskip(module)
    monkeypatch.setattr(f"recsys.engines.{module}.PATIENCE", 0.3)
    with pytest.raises(InputError, match=rf"^engine {name}: no.* answers there: "):
        engine(name)
    with pytest.raises(InputError, match="leave the number out"):
        engine(name, workers=2)


def test_workers_of_other_versions_do_nothing():
    versions = installed() | {"scipy": "0.1"}
    with pytest.raises(InputError, match=r"has scipy \d.*, who gives the work scipy 0\.1: install"):
        run_far(tasks.squared, 2, 1, versions)
    assert run_far(tasks.squared, 2, 1, installed())[0] == 4


def test_a_cluster_of_other_versions_is_refused_at_once(monkeypatch):
    with engine("dask", workers=1) as first:
        address = first._cluster.scheduler_address
        monkeypatch.setattr("recsys.engines.base.metadata.version", lambda name: "0.0")
        installed.cache_clear()
        try:
            with pytest.raises(
                InputError, match=r"worker tcp://.* has recsys .*install the same versions"
            ):
                engine(f"dask={address}")
        finally:
            monkeypatch.undo()
            installed.cache_clear()
        with engine(f"dask={address}") as second:
            assert list(second.map(tasks.squared, [4])) == [16] and second.workers == 1
        assert list(first.map(tasks.squared, [5])) == [25]  # goes on when the other one is closed


def test_nothing_of_an_engine_is_imported_unasked():
    code = "import recsys, recsys.engines; from recsys import Recommender; Recommender.recommend_all"
    assert not modules_after(code) & {"dask", "distributed", "ray", "fsspec"}


QUIET = """
import sys
from recsys.engines import engine
from tests.engines import tasks
if __name__ == "__main__":
    with engine(sys.argv[1], workers=int(sys.argv[2]) if sys.argv[2:] else None) as some:
        print(list(some.map(tasks.squared, [1, 2])), some.workers)
"""


@pytest.mark.parametrize(
    "arguments", [("dask", "1"), ("local=1",), pytest.param(("ray", "1"), marks=pytest.mark.slow)]
)
def test_an_engine_says_nothing_and_leaves_nothing(arguments, tmp_path):
    (tmp_path / "quiet.py").write_text(QUIET)
    home = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", tmp_path / "quiet.py", *arguments],
        capture_output=True, text=True, timeout=120,
        env=os.environ | home | {"PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[1, 4] 1\n", "")
    assert {path.name for path in tmp_path.iterdir()} <= {
        "quiet.py",
        ".cache",
        f"recsys-numba-{os.getuid()}",
    }


@pytest.mark.slow
def test_ray_does_what_dask_does(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("ray")
    with engine("ray", workers=2) as ray:
        assert ray.workers == 2
        assert list(ray.map(tasks.squared, range(7))) == [x * x for x in range(7)]
        assert list(ray.map(tasks.threads, [0, 1], threads=1)) == [(1, 1)] * 2
        with pytest.raises(InputError, match="^unit 3 cannot be done$"):
            list(ray.map(tasks.refused, [3]))
        assert list(ray.map(tasks.ended_once, [str(tmp_path / "once")] * 2)) == ["done"] * 2
        with pytest.raises(InputError, match="its workers ended before the work did"):
            list(ray.map(tasks.ended, [1]))


TWICE = """
import os, sys
import ray
from recsys.engines import engine
from tests.engines import tasks
before = dict(os.environ)
for _ in range(2):
    with engine("ray", workers=1) as some:
        print(list(some.map(tasks.squared, [1, 2])))
print({name for name in os.environ if os.environ[name] != before.get(name)})
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=50,
         _node_ip_address="127.0.0.1", object_store_memory=100_000_000)
print(ray.get(ray.remote(tasks.squared).remote(3)))
ray.shutdown()
"""


@pytest.mark.slow
def test_ray_is_opened_again_by_us_and_by_the_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TWICE], capture_output=True, text=True, timeout=200,
        env=os.environ | {"HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "[1, 4]\n[1, 4]\nset()\n9\n", done.stderr


@pytest.mark.slow
def test_a_cluster_that_cannot_do_units_is_told_of(monkeypatch):
    here = os.getpid()

    def away():
        if os.getpid() != here:
            raise ModuleNotFoundError("No module named 'recsys'")
        return installed()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = pytest.importorskip("ray")
        with engine("ray", workers=1):  # as a program that has called ray.init
            monkeypatch.setattr("recsys.engines.ray.installed", away)
            with pytest.raises(
                InputError, match="^engine ray: a worker cannot run .*No module named 'recsys'$"
            ):
                engine("ray")
            monkeypatch.undo()
            monkeypatch.setattr(ray, "cluster_resources", dict)
            with pytest.raises(InputError, match="^engine ray: its machines offer no processors"):
                engine("ray")


def test_own_folders_are_removed_and_those_of_the_killed_are_swept(tmp_path, monkeypatch):
    left, held = OwnFolder("some-", str(tmp_path)), OwnFolder("some-", str(tmp_path))
    left._lock.close()  # as when its process was killed
    (tmp_path / "other").mkdir()
    OwnFolder("some-", str(tmp_path)).remove()
    assert len(list(tmp_path.iterdir())) == 3  # they may be so young that they have no lock yet
    monkeypatch.setattr("recsys.engines.folders.YOUNG", -1.0)
    OwnFolder("some-", str(tmp_path)).remove()
    assert {str(one) for one in tmp_path.iterdir()} == {held.path, str(tmp_path / "other")}
    held.remove()


@pytest.mark.slow
def test_a_unit_that_ends_every_worker_is_told_of():
    with engine("dask", workers=1) as dask, pytest.raises(InputError, match="one after another"):
        list(dask.map(tasks.ended, [1]))
