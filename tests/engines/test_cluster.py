"""Dask: what local engines promise, and what may go wrong with a cluster."""

import os
import socket
import subprocess
import sys
from importlib.util import find_spec

import psutil
import pytest

from recsys import InputError
from recsys.engines import engine
from recsys.engines.base import installed, run_far
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


@pytest.mark.thorough
def test_a_worker_that_ended_is_replaced_and_its_unit_done_again(dask, tmp_path):
    assert (
        list(dask.map(tasks.ended_once, [str(tmp_path / "once"), *[str(tmp_path)] * 3])) == ["done"] * 4
    )


def test_only_this_machine_reaches_the_workers(dask):
    check_loopback()


def check_loopback():
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            found = process.net_connections("inet")
        except (psutil.NoSuchProcess, psutil.ZombieProcess):  # it has ended since
            continue
        for one in found:
            assert one.status != "LISTEN" or one.laddr.ip.removeprefix("::ffff:") == "127.0.0.1"


def test_an_address_that_accepts_connections_and_stays_silent_is_refused(monkeypatch):
    monkeypatch.setattr("recsys.engines.dask.PATIENCE", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"dask=tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match="no scheduler answers there: not within 1 s$"):
            engine(address)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_one_line_where_an_engine_is_not_installed(monkeypatch, name):
    monkeypatch.setitem(sys.modules, {"dask": "distributed", "ray": "ray"}[name], None)
    with pytest.raises(
        InputError, match=rf"^engine {name} needs {name.title()}: pip install '.*\[{name}\]'$"
    ):
        engine(name)


@pytest.mark.parametrize("module, name", [("dask", "dask=127.0.0.1:1"), ("ray", "ray=127.0.0.1:1")])
def test_an_address_where_nothing_answers_is_refused(monkeypatch, module, name):
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray reads it once, at import
    pytest.importorskip(module)
    monkeypatch.setattr(f"recsys.engines.{module}.PATIENCE", 0.3)
    with pytest.raises(InputError, match=rf"^engine {name}: no.* answers there: "):
        engine(name)
    with pytest.raises(InputError, match="leave the number out"):
        engine(name, workers=2)


@pytest.mark.thorough
def test_workers_of_other_versions_do_nothing():
    versions = installed() | {"scipy": "0.1"}
    with pytest.raises(InputError, match=r"has scipy \d.*, who gives the work scipy 0\.1: install"):
        run_far(tasks.squared, 2, 1, versions)
    assert run_far(tasks.squared, 2, 1, installed())[0] == 4


@pytest.mark.thorough
def test_a_cluster_that_runs_is_checked_and_goes_on(monkeypatch):
    with engine("dask", workers=1) as first:
        with engine(f"dask={first._cluster.scheduler_address}") as second:
            assert list(second.map(tasks.squared, [4])) == [16] and second.workers == 1
            with pytest.raises(InputError, match=r"^engine dask=.*: a worker cannot run .*'recsys'$"):
                list(second.map(tasks.away, [1]))
            monkeypatch.setattr("recsys.engines.dask.installed", lambda: installed() | {"numpy": "0.0"})
            with pytest.raises(InputError, match=r"^worker .* has numpy .*install the same versions"):
                list(second.map(tasks.squared, [4]))
        monkeypatch.undo()
        assert list(first.map(tasks.squared, [5])) == [25]  # goes on when the other one is closed


@pytest.mark.thorough
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


@pytest.mark.thorough
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
        ".ray",  # a token, with which Ray keeps other users of the machine out
        f"recsys-numba-{os.getuid()}",
    }


@pytest.mark.slow
def test_ray_does_what_dask_does(tmp_path):
    if find_spec("ray") is None:  # not imported here: it reads at import on which addresses it listens
        pytest.skip("Ray is not installed")
    with engine("ray", workers=2) as ray:
        assert ray.workers == 2
        assert list(ray.map(tasks.squared, range(7))) == [x * x for x in range(7)]
        assert list(ray.map(tasks.threads, [0, 1], threads=1)) == [(1, 1)] * 2
        with pytest.raises(InputError, match="^unit 3 cannot be done$"):
            list(ray.map(tasks.refused, [3]))
        assert list(ray.map(tasks.ended_once, [str(tmp_path / "once")] * 2)) == ["done"] * 2
        with pytest.raises(InputError, match="^engine ray: a worker cannot run .*'recsys'$"):
            list(ray.map(tasks.away, [1]))
        with pytest.raises(InputError, match="its workers ended before the work did"):
            list(ray.map(tasks.ended, [1]))
        assert engine("ray").workers == 2  # as in a program that called ray.init
        check_loopback()


@pytest.mark.slow
def test_a_unit_that_ends_every_worker_is_told_of():
    with engine("dask", workers=1) as dask, pytest.raises(InputError, match="one after another"):
        list(dask.map(tasks.ended, [1]))
