"""The seam: units in order, threads within the task, errors as they are."""

import os

import numba
import pytest
from threadpoolctl import threadpool_info

from recsys import InputError
from recsys.engines import engine
from recsys.engines.base import check_same, installed


def squared(x):
    return x * x


def threads(_):
    return numba.get_num_threads(), max(
        (one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"), default=1
    )


def refused(x):
    raise InputError(f"unit {x} cannot be done")


def ended(x):
    os._exit(9)


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


@pytest.mark.parametrize(
    "name, why",
    [
        ("dusk", "did you mean 'dask'"),
        ("local=0", "number of processes"),
        ("local=two", "number of pro"),
    ],
)
def test_names_that_are_none_are_refused(name, why):
    with pytest.raises(InputError, match=why):
        engine(name)


def test_workers_of_other_versions_are_refused():
    check_same({"a": installed()})
    with pytest.raises(InputError, match=r"worker b has numpy 1\.0, who gives the work numpy"):
        check_same({"a": installed(), "b": installed() | {"numpy": "1.0"}})
