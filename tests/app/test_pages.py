"""Each page's logic, through Streamlit's own test harness."""

import time
from pathlib import Path

import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

MAIN = str(Path(__file__).parents[2] / "app" / "main.py")
HARNESS = """
import sys
sys.path.insert(0, {root!r})
import streamlit as st
from app.views import {page}
st.session_state["explain page"] = "x"
{page}.page()
"""


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch, tmp_path):
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(page):
    at = AppTest.from_string(
        HARNESS.format(root=str(Path(MAIN).parents[1]), page=page), default_timeout=60
    )
    return settle(at.run())


def settle(at):
    """Run again while a page shows progress, as its timer would."""
    for _ in range(60):
        if not len(at.get("progress")):
            break
        time.sleep(1)
        at.run()
    assert not at.exception, at.exception
    return at


def texts(at):
    return [element.value for element in at.text]


def test_the_first_run_shows_a_list_with_reasons():
    at = settle(AppTest.from_file(MAIN, default_timeout=60).run())
    shown = texts(at)
    assert sum(text.startswith("Because you liked") for text in shown) == 10
    assert any(text.startswith("1. ") for text in shown)
    assert not at.error and any("diversity" in c.value for c in at.caption)


def test_a_built_profile_gets_other_items_and_a_rule():
    at = run("recommend")
    before = texts(at)
    at.radio(key="mode").set_value("a profile I build").run()
    settle(at)
    assert at.info and "profile is empty" in at.info[0].value
    assert any("Many people like it." in text for text in texts(at))
    box = next(m for m in at.multiselect if m.label == "Titles you like")
    box.set_value([0, 1, 2, 3, 4, 5]).run()
    settle(at)
    assert not at.info and texts(at) != before
    assert sum(text.startswith("Because you liked") for text in texts(at)) == 10


def test_filters_variety_and_a_second_model():
    at = run("recommend")
    first = [t for t in texts(at) if t.startswith("1. ")]
    next(s for s in at.slider if s.label == "Variety").set_value(0.9).run()
    settle(at)
    varied = texts(at)
    assert [t for t in varied if t.startswith("1. ")] == first, "the best stays first"
    genre = next(m for m in at.multiselect if m.label == "Genre")
    genre.set_value([genre.options.index("Film-Noir")] if "Film-Noir" in genre.options else [0]).run()
    settle(at)
    assert texts(at) != varied
    next(s for s in at.selectbox if s.label == "Compare with").set_value("popularity").run()
    settle(at)
    assert [s.value for s in at.subheader] == ["auto", "popularity"]


@pytest.mark.parametrize("model", ["ease", "slim", "msdw", "als", "popularity"])
def test_every_kind_of_model_gives_a_list_and_an_explanation(model):
    for page in ("recommend", "explain"):
        at = run(page)
        at.selectbox(key="model").set_value(model).run()
        settle(at)
        assert not at.error and texts(at)


def test_explain_shows_shares_and_what_would_change():
    at = run("explain")
    assert at.metric[0].label == "score"
    assert any(text.startswith("Because you liked") for text in texts(at))
    assert len(at.dataframe) >= 2  # the profile, and what would change
    assert "add" in " ".join(c.value for c in at.caption)


def test_evaluate_runs_in_the_background_and_reports():
    at = run("evaluate")
    assert at.info
    at.multiselect[0].set_value(["popularity", "ease"])
    at.button[0].click().run()
    for _ in range(60):
        if at.session_state["evaluation job"].over:
            break
        time.sleep(0.5)
    at.run()
    assert not at.exception and not at.error
    table = at.dataframe[0].value
    assert set(table["model"]) == {"popularity", "ease"} and table["auc"].between(0.5, 1).all()


def test_evaluate_refuses_a_wrong_model_in_one_sentence():
    at = run("evaluate")
    at.text_input[0].set_value("eaze")
    at.button[0].click().run()
    assert "did you mean 'ease'" in at.error[0].value
    at.text_input[0].set_value("")
    at.multiselect[0].set_value([])
    at.button[0].click().run()
    for _ in range(20):
        if at.session_state["evaluation job"].over:
            break
        time.sleep(0.2)
    at.run()
    assert "at least one model" in at.error[0].value


def test_an_evaluation_can_be_cancelled():
    from app.jobs import Job

    def work(progress):
        for k in range(10_000):
            progress("step", k, 10_000)
            time.sleep(0.01)

    job = Job(work)
    time.sleep(0.1)
    job.cancel()
    assert job.wait(5) and job.error == "cancelled" and job.result is None


def test_data_shows_density_and_tails():
    at = run("data")
    values = {m.label: m.value for m in at.metric}
    assert values["users"] == "400" and values["items"] == "300"
    assert at.dataframe[-1].value.shape == (1, 3)


UPLOADS = {
    b"": "empty",
    b"a\n1\n": "needs a column of users",
    bytes(range(256)) * 16: "",
    b"user_id,item_id\nu1,i1,extra\n": "line 2",
}


@pytest.mark.parametrize("content", UPLOADS)
def test_bad_uploads_are_one_sentence(content):
    from app.views import data

    class File:
        name, size = "<img src=x>.csv", len(content)

        def getvalue(self):
            return content

    from recsys import InputError

    with pytest.raises(InputError) as caught:
        data.columns(data.limited(File()), File.name)
    told = data.clean(str(caught.value), File.name)
    assert UPLOADS[content] in told and "/tmp" not in told and "\n" not in told


def test_oversized_uploads_are_not_read():
    from app.views import data
    from recsys import InputError

    class File:
        name, size = "big.csv", data.MOST_BYTES + 1

        def getvalue(self):
            raise AssertionError("read")

    with pytest.raises(InputError, match="at most 200 MB"):
        data.limited(File())


def test_uploads_become_interactions_whatever_their_name():
    from app.views import data

    found = data.parsed(b"who,what\na,x\na,y\nb,x\n", "../../etc/passwd", "who", "what", None, None)
    assert (found.n_users, found.n_items) == (2, 2)


def test_kernels_page_learns_a_rule():
    at = run("kernels")
    for _ in range(30):
        if len(at.metric):
            break
        time.sleep(1)
        at.run()
    values = {m.label: m.value for m in at.metric}
    assert values["accuracy"] == "1.000" and values["clauses"] == "8"


def test_jobs_are_built_once_and_shared():
    from app.jobs import Jobs

    built = []

    def work(progress):
        built.append(1)
        time.sleep(0.1)
        return "done"

    jobs = Jobs()
    same = [jobs.get("k", work) for _ in range(8)]
    assert all(job is same[0] for job in same) and same[0].wait(5) and same[0].result == "done"
    assert built == [1]
    for k in range(30):
        jobs.get(k, lambda progress: None).wait(5)
    assert len(jobs._jobs) <= 14


def test_a_job_that_fails_says_why_in_one_line():
    from app.jobs import Job

    job = Job(lambda progress: 1 / 0)
    assert job.wait(5) and job.error == "ZeroDivisionError: division by zero"
