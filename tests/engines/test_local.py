"""The seam: units in order, threads within the task, errors as they are."""

import threading
import time
from concurrent.futures import Future

import numba
import psutil
import pytest

from recsys import InputError
from recsys.engines import engine
from recsys.engines.base import check_same, installed
from tests.engines.tasks import ended, ended_if_odd, refused, squared, threads


@pytest.fixture(params=["local", "local=2"], scope="module")
def some(request):
    with engine(request.param) as found:
        yield found


def test_results_come_in_the_order_of_the_units(some):
    before = some.seconds
    assert list(some.map(squared, range(7))) == [x * x for x in range(7)]
    assert some.seconds > before


def test_threads_are_limited_inside_the_task(some):
    before = numba.get_num_threads()
    assert list(some.map(threads, [0, 1], threads=1)) == [(1, 1)] * 2
    assert numba.get_num_threads() == before


def test_what_a_task_refuses_is_raised(some):
    with pytest.raises(InputError, match="unit 3 cannot be done"):
        list(some.map(refused, [3]))
    assert list(some.map(squared, [2])) == [4]


def test_a_process_that_ends_is_told_of():
    with engine("local=1") as one, pytest.raises(InputError, match="ended before its work did"):
        list(one.map(ended, [1]))


@pytest.mark.parametrize("cancelled", [False, True])
def test_the_other_processes_end_however_long_the_news_of_one_takes(cancelled, monkeypatch):
    """One of two ends, and the pool tells each unit so; one that is cancelled meanwhile ends its thread."""
    tell = Future.set_exception

    def slowly(self, error):
        if cancelled and self.running() is False:
            self.cancel()  # as by who has heard of the first
        tell(self, error)
        time.sleep(0.02)

    monkeypatch.setattr(Future, "set_exception", slowly)
    monkeypatch.setattr(threading, "excepthook", lambda told: None)
    with engine("local=1") as one:  # the first starts what counts a program's processes, and stays
        list(one.map(squared, [1]))
    before = psutil.Process().children()
    with engine("local=2") as two:
        results = two.map(ended_if_odd, [0, 1, *[2] * 20])
        with pytest.raises(InputError, match="ended before its work did"):
            list(results)
    left = [one for one in psutil.Process().children() if one not in before]
    assert not [one for one in left if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(
    "name, why",
    [
        ("dusk", "did you mean 'dask'"),
        ("local=0", "number of processes"),
        ("local=two", "number of pro"),
        ("local=", "^engine local=: a number of processes is missing behind the =$"),
        ("dask=", "^engine dask=: the address of a cluster is missing"),
        ("ray= ", "^engine ray= : the address of a cluster is missing"),
    ],
)
def test_names_that_are_none_are_refused(name, why):
    with pytest.raises(InputError, match=why):
        engine(name)


def test_an_engine_that_is_handed_over_has_its_own_workers():
    with engine("local") as here:
        assert engine(here) is here
        with pytest.raises(InputError, match="^engine local has its own workers: leave the number out$"):
            engine(here, workers=4)


def test_what_cannot_be_sent_is_told_in_a_line():
    with engine("local=1") as one:
        for task, unit in ((lambda x: x, 1), (squared, open(__file__))):  # noqa: SIM115
            with pytest.raises(
                InputError, match=r"^a unit of work cannot be sent to processes \(.*\): .*$"
            ):
                list(one.map(task, [unit]))
            if unit != 1:
                unit.close()
        assert list(one.map(squared, [2])) == [4]


def test_workers_of_other_versions_are_refused():
    check_same({"a": installed()})
    with pytest.raises(InputError, match=r"worker b has numpy 1\.0, who gives the work numpy"):
        check_same({"a": installed(), "b": installed() | {"numpy": "1.0"}})
