"""Jobs: shared, listed, cancelled, and kept while they fit."""

import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("streamlit")

from app.jobs import CANCELLED, Job, Jobs, size_of
from recsys import InputError, make_ranker
from recsys.datasets import load_dataset
from recsys.utils.progress import report


def endless(progress):
    for k in range(10_000):
        time.sleep(0.01)
        progress("step", k, 10_000)


def test_jobs_are_built_once_and_shared():
    built = []

    def work(progress):
        built.append(1)
        time.sleep(0.1)
        return "done"

    jobs = Jobs()
    same = [jobs.get("k", work) for _ in range(8)]
    assert all(job is same[0] for job in same) and same[0].wait(5) and same[0].result == "done"
    assert built == [1]


def test_results_are_kept_by_memory_those_unused_for_longest_go_first():
    jobs = Jobs(most=1_000_000, spared=0.0)
    for k in range(10):
        assert jobs.get(k, lambda progress: np.zeros(50_000)).wait(5)  # 400 kB each
        if k > 0:
            jobs.get(0, lambda progress: pytest.fail("it is used and kept"))
    jobs.get("end", lambda progress: None).wait(5)
    kept = [k for k in range(10) if jobs.find(k) is not None]
    assert kept == [0, 9]
    small = Jobs(most=1_000_000, spared=0.0)
    for k in range(300):
        small.get(k, lambda progress: None).wait(5)
    kept = [k for k in range(300) if small.find(k) is not None]
    assert kept == list(range(300 - len(kept), 300)) and 100 <= len(kept) <= 126, "8 kB each"


def test_a_page_whose_parts_are_too_large_together_is_drawn_all_the_same():
    jobs, built = Jobs(most=1_000_000), []

    def work(name):
        return lambda progress: built.append(name) or np.zeros(75_000)

    for _ in range(4):  # runs of a page, each of which asks for everything in order
        for name in ("data", "catalogue", "model"):
            assert jobs.get(name, work(name)).wait(5)
    assert built == ["data", "catalogue", "model"]


def test_closed_pages_are_forgotten():
    jobs = Jobs(alive=lambda session: session == "open")
    for k in range(50):
        jobs.get("k", lambda progress: 3, session=f"closed {k}").wait(5)
    jobs.get("k", lambda progress: 3, session="open")
    assert len(jobs._wanted["k"]) == 1


def test_sizes_are_those_of_arrays_each_counted_once():
    rows = np.zeros((100, 100))
    assert size_of(rows) == 80_000 == size_of([rows, rows, rows[:5]])
    matrix = sp.random(100, 100, 0.1, format="csr", random_state=0)
    assert size_of(matrix) >= matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    R = load_dataset("sample").matrix
    model = make_ranker("ease").fit(R, show_progress=False)
    assert size_of(model) >= model.weights_.nbytes


def test_a_job_that_fails_says_why_in_one_line():
    job = Job(lambda progress: 1 / 0)
    assert job.wait(5) and job.error == "ZeroDivisionError: division by zero"

    def refused(progress):
        raise InputError("too few rows")

    job = Job(refused)
    assert job.wait(5) and job.error == "too few rows"


def test_a_cancelled_job_is_over_at_once_and_its_thread_ends():
    job = Job(endless)
    assert not job.wait(0.2)
    job.cancel()
    assert job.over and job.error == CANCELLED and job.wait(0)
    for _ in range(100):
        if not job.running:
            break
        time.sleep(0.02)
    assert not job.running and job.result is None


@pytest.mark.parametrize("spec", ["fm", "als", "auto"])
def test_fits_hear_that_they_are_cancelled(spec):
    """`except Exception` inside a fit does not hold a cancellation up."""
    R = load_dataset("sample").matrix
    begun = threading.Event()
    params = {"fm": {"iterations": 100_000}, "als": {"iterations": 100_000}, "auto": {}}[spec]

    def work(progress):
        begun.set()
        return make_ranker(spec, **params).fit(R, show_progress=False)

    job = Job(work)
    assert begun.wait(30)
    for _ in range(600):  # until it has compiled and reports
        if job.step:
            break
        time.sleep(0.1)
    assert job.step and job.total > 0
    job.cancel()
    for _ in range(300):
        if not job.running:
            break
        time.sleep(0.1)
    assert not job.running and job.error == CANCELLED


def test_who_waits_keeps_a_job_running_and_the_last_to_leave_ends_it():
    jobs = Jobs(alive=lambda session: session != "closed")
    job = jobs.get("k", endless, session="one")
    for session in ("two", "closed"):
        assert jobs.get("k", endless, session=session) is job
    jobs.leave("k", "one")
    assert not job.cancelled and jobs.of("one") == {} and list(jobs.of("two")) == ["k"]
    jobs.leave("k", "two")
    assert job.cancelled, "who has closed the page does not wait"
    assert jobs.get("k", lambda progress: 3).wait(5) and jobs.find("k").result == 3


def test_a_reload_finds_what_its_browser_has_begun():
    jobs = Jobs()
    job = jobs.get("k", endless, session="before", browser="mine")
    assert list(jobs.of("after", "mine")) == ["k"] and jobs.of("after", "another") == {}
    assert jobs.of("after", "") == {}
    job.cancel()
    assert jobs.of("after", "mine") == {}


def test_time_left_follows_from_the_pace():
    clock = threading.Event()

    def work(progress):
        for k in range(1, 5):
            progress("step", k, 10)
            time.sleep(0.5)
        clock.wait(20)

    job = Job(work)
    assert job.left is None
    time.sleep(2.2)
    assert job.share == 0.4 and 2.0 < job.left < 8.0
    clock.set()


def test_what_inner_code_reports_is_heard():
    def work(progress):
        report("inner", 1, 4)
        return threading.get_ident()

    job = Job(work)
    assert job.wait(5) and (job.step, job.share) == ("inner", 0.25)


def test_a_job_waits_its_delay_before_it_works():
    began = time.monotonic()
    job = Job(lambda progress: time.monotonic(), delay=0.3)
    assert not job.wait(0.05) and job.wait(20) and job.result - began > 0.25


def test_a_cancel_ends_the_delay_of_a_job_at_once():
    jobs, worked = Jobs(), []
    job = jobs.get("k", worked.append, session="one", delay=3600.0)
    assert not job.wait(0.05) and job.running
    jobs.leave("k", "one")
    job._thread.join(20)
    assert not job.running and job.error == CANCELLED and not worked
