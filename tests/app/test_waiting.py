"""Waiting on a page: one job a session, which other questions of the page do not end."""

import re
import threading
import time
from html import unescape

import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

from app import state
from app.jobs import Jobs
from app.session import Session
from recsys.datasets import load_dataset
from tests.app.card_texts import cards
from tests.app.page_runs import HARNESS, ROOT, captions, settle

PAGE = """
from app import state
from app.session import session
session().page = "here"
for key in session().get("keys", []):
    state.result((key,), WORK[key], key)
"""


@pytest.fixture
def waiting(monkeypatch):
    """Return a function that runs a page asking for some keys, and the jobs."""
    jobs, gates = Jobs(), {}
    monkeypatch.setattr(state, "jobs", lambda: jobs)
    monkeypatch.setattr(state, "PATIENCE", 0.05)

    def work(key):
        gates.setdefault(key, threading.Event())

        def run(progress):
            while not gates[key].wait(0.01):
                progress(key, 0, 1)
            return key

        return run

    import builtins

    builtins.WORK = {key: work(key) for key in ("data", "fit", "other")}
    here = Session({}, "one")

    def run(*keys):
        here.set("keys", list(keys))
        at = AppTest.from_string(PAGE, default_timeout=60)
        at.session_state["session"] = here
        at.run()
        assert not at.exception, at.exception
        return at

    yield run, jobs, gates, here
    for gate in gates.values():
        gate.set()
    del builtins.WORK


def test_a_page_that_is_run_again_goes_on_waiting(waiting):
    run, jobs, gates, here = waiting
    gates["data"].set()
    run("data", "fit")
    fit = jobs.find(("fit",))
    assert fit.running and here.awaited == ("fit",)
    run("data", "fit")  # asks for what is ready first
    assert jobs.find(("fit",)) is fit and not fit.cancelled
    gates["fit"].set()
    assert fit.wait(5)
    run("data", "fit")
    assert here.awaited is None and fit.result == "fit"


def test_waiting_for_another_job_ends_the_one_before(waiting):
    run, jobs, gates, here = waiting
    gates["data"].set()
    run("data", "fit")
    fit = jobs.find(("fit",))
    run("data", "other")
    assert fit.cancelled and here.awaited == ("other",)


def test_what_was_cancelled_is_begun_anew_only_when_asked(waiting):
    run, jobs, gates, here = waiting
    run("fit")
    here.cancelled.add(("fit",))
    jobs.leave(("fit",), "one")
    at = run("fit")
    assert [b.label for b in at.button] == ["Begin again"] and jobs.find(("fit",)).cancelled
    at.button[0].click().run()
    assert not jobs.find(("fit",)).cancelled and [b.label for b in at.button] == ["Cancel"]


def test_a_job_of_another_page_is_in_the_tray(waiting):
    run, jobs, gates, here = waiting
    run("fit")
    page = "from app import state; from app.session import session; session().page='there'; state.tray()"
    at = AppTest.from_string(page, default_timeout=60)
    at.session_state["session"] = here
    at.run()
    assert [c.value for c in at.caption] == ["Running"] and len(at.get("progress")) == 1
    here.page = "here"
    at = AppTest.from_string(page.replace("there", "here"), default_timeout=60)
    at.session_state["session"] = here
    assert not at.run().caption


def test_what_waits_before_it_begins_is_cancelled_at_once(waiting):
    run, jobs, gates, here = waiting
    page = "from app import state; state.run(('later',), WORK['other'], 'Later', delay=3600.0)"
    at = AppTest.from_string(page, default_timeout=60)
    at.session_state["session"] = here
    assert not at.run().exception
    job = jobs.find(("later",))
    assert job.running and "other" not in job.step
    jobs.leave(("later",), "one")
    job._thread.join(20)
    assert not job.running and job.step == "" and job.cancelled


def test_popular_items_stand_where_the_list_will_be(monkeypatch):
    jobs, gate = Jobs(), threading.Event()
    fitting = state.fitting

    def slow(catalogue, spec):
        key, fit = fitting(catalogue, spec)

        def held(progress):
            while not gate.wait(0.01):
                progress("held", 0, 1)
            return fit(progress)

        return key, held

    monkeypatch.setattr(state, "jobs", lambda: jobs)
    monkeypatch.setattr(state, "PATIENCE", 0.05)
    monkeypatch.setattr(state, "fitting", slow)
    here = Session({}, "one")
    here.set("model", "ease")
    here.set("n", 5)
    here.set("dislikes", ["m0002"])
    at = AppTest.from_string(HARNESS.format(root=str(ROOT), page="recommend"), default_timeout=60)
    at.session_state["session"] = here

    def listed():
        bodies = [one.proto.body for one in at.get("html") if "<ol" in one.proto.body]
        return [unescape(re.sub(r"<[^>]*>", "", line)) for line in re.findall(r"<li>(.*?)</li>", "".join(bodies))]  # fmt: skip

    for _ in range(200):
        at.run()
        if listed():
            break
        time.sleep(0.1)
    data = load_dataset("sample")
    pairs = list(zip(data.users.tolist(), data.items.tolist(), strict=True))
    count = {item: sum(k == item for _, k in pairs) for item in range(300)}
    away = {item for user, item in pairs if user == 0} | {list(data.item_ids).index("m0002")}
    wanted = sorted(set(count) - away, key=lambda item: (-count[item], item))[:5]
    title = "Popular items, not the model's list"
    assert [one.value for one in at.subheader] == [title] and not cards(at)
    assert len(at.get("progress")) == 1 and [b.label for b in at.button].count("Cancel") == 1
    for line, item in zip(listed(), wanted, strict=True):
        assert line.startswith(str(data.titles[item]))
        assert line.endswith(f"liked by {count[item]} of 400 users")
    next(b for b in at.button if b.label == "Cancel").click().run()
    assert "Begin again" in [b.label for b in at.button] and len(listed()) == 5
    gate.set()
    next(b for b in at.button if b.label == "Begin again").click().run()
    settle(at)
    assert len(cards(at)) == 5 and not listed() and title not in [one.value for one in at.subheader]
    assert not [one for one in captions(at) if one.startswith("The same for everybody")]
