"""The seam: units in order, threads within the task, errors as they are."""

import gc
import random
import threading
import time

import numba
import psutil
import pytest

from recsys import InputError
from recsys.engines import engine
from recsys.engines.base import check_same, installed
from tests.engines.tasks import (
    ended,
    ended_if_odd,
    grown,
    killed_while_writing,
    refused,
    repeated,
    squared,
    threads,
)


@pytest.fixture(params=["local", "local=2"], scope="module")
def some(request):
    with engine(request.param) as found:
        yield found


@pytest.fixture
def before():
    """Return the program's processes, with the one that counts the workers: it starts once, and stays."""
    with engine("local=1") as one:
        list(one.map(squared, [1]))
    return psutil.Process().children()


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


@pytest.mark.thorough
@pytest.mark.timeout(120)
def test_a_process_that_is_killed_while_it_writes_its_result_is_told_of(before):
    with engine("local=2") as two:
        with pytest.raises(InputError, match="ended before its work did"):
            list(two.map(killed_while_writing, [1, 2, 3]))
    assert all_end(before)


@pytest.mark.slow
def test_the_other_processes_end_with_one_that_ends(before):
    with engine("local=2") as two:
        with pytest.raises(InputError, match="ended before its work did"):
            list(two.map(ended_if_odd, [0, 1, *[2] * 20]))
        with pytest.raises(InputError, match="ended before its work did"):
            list(two.map(squared, [0, 1]))  # nor is another started
        assert all_end(before)


def test_the_units_after_one_that_is_given_up_are_done_by_the_next_to_ask(some):
    units = some.map(squared, range(50))
    assert next(units) == 0
    units.close()
    assert list(some.map(squared, [3, 4])) == [9, 16]


@pytest.mark.slow
def test_an_engine_that_nobody_closes_ends_with_its_program(before):
    two = engine("local=2")
    assert list(two.map(squared, [3, 4])) == [9, 16]
    assert started(before)
    del two
    gc.collect()
    assert all_end(before)


@pytest.mark.thorough
def test_large_results_and_large_units_pass():
    with engine("local=2") as two:
        found = list(two.map(repeated, [b"x" * 10**6] * 6))
        assert found == [b"x" * 3 * 10**6] * 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_process_that_is_killed_at_any_moment_is_told_of(before, seed):
    """While it starts, reads a unit, works, writes what came out, or has nothing to do."""
    rng = random.Random(seed)
    units = [b"x" * 10**5] * 400

    def kill() -> None:
        for _ in range(1000):
            if found := started(before):
                time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.2), rng.uniform(0.0, 3.0))))
                rng.choice(found).kill()
                return
            time.sleep(0.001)

    with engine("local=2") as two:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            assert list(two.map(repeated, units)) == [b"x" * 3 * 10**5] * 400
        except InputError as error:
            assert "ended before its work did" in str(error)
        killer.join()
    assert not started(before)


@pytest.mark.thorough
@pytest.mark.timeout(120)
def test_an_idle_process_that_does_not_answer_ends_with_the_engine(before):
    """As one that waits for the lock of the queue of tasks, which another one held when it was killed."""
    with engine("local=2") as two:
        assert list(two.map(squared, [1, 2, 3, 4])) == [1, 4, 9, 16]
        for process in started(before):
            process.suspend()
    assert all_end(before)


def all_end(before):
    """Whether those that are told to end do: on a busy machine, not at the moment that they are."""
    until = time.monotonic() + 30
    while started(before) and time.monotonic() < until:
        time.sleep(0.01)
    return not started(before)


def started(before):
    """Return the processes that are there and were not before."""
    return [one for one in psutil.Process().children() if one not in before and runs(one)]


def runs(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended a moment ago
        return False


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
        with pytest.raises(InputError, match=r"^a task cannot be sent to .*\(.*\): "):
            list(one.map(squared, [threading.Lock()]))
        assert list(one.map(squared, [2])) == [4]


@pytest.mark.slow
def test_a_worker_that_holds_more_memory_is_not_replaced():
    with engine("local=1") as one:
        assert len(set(one.map(grown, [0, 400_000_000, 0, 0]))) == 1


@pytest.mark.thorough
def test_workers_of_other_versions_are_refused():
    check_same({"a": installed()})
    with pytest.raises(InputError, match=r"worker b has numpy 1\.0, who gives the work numpy"):
        check_same({"a": installed(), "b": installed() | {"numpy": "1.0"}})
