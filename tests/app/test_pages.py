"""Each page's logic, through Streamlit's own test harness."""

import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

MAIN = str(Path(__file__).parents[2] / "app" / "main.py")
HARNESS = """
import sys
sys.path.insert(0, {root!r})
import streamlit as st
from app.views import {page}
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
    assert any(text.endswith(" people like it.") for text in texts(at))
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
    assert [s.value for s in at.subheader] == ["cf-komd", "popularity"]


def test_titles_that_a_person_dislikes_are_kept_away_from():
    from recsys import make_ranker
    from recsys.datasets import load_dataset
    from recsys.reranking import rerank

    def listed(at):
        cards = [t.split(". ", 1) for t in texts(at) if t.split(". ")[0].isdigit()]
        return [title.removesuffix("  ◆") for _, title in cards]

    data = load_dataset("sample")
    R = data.matrix
    model = make_ranker("ease").fit(R, show_progress=False)
    disliked = model.recommend(0, R[0], N=3).ids.tolist()
    at = run("recommend")
    at.selectbox(key="model").set_value("ease").run()
    settle(at)
    assert listed(at)[:3] == [data.titles[k] for k in disliked]
    box = next(m for m in at.multiselect if m.label == "Titles you dislike")
    assert len(box.options) == R.shape[1] - R[0].nnz, "nothing is liked and disliked"
    box.set_value(disliked[:2]).run()
    settle(at)
    wanted = rerank(model, 0, R[0], 10, dislikes=disliked[:2], recalculate_user=True)
    assert listed(at) == [data.titles[k] for k in wanted.ids]
    assert listed(at) != [data.titles[k] for k in model.recommend(0, R[0], N=12).ids[2:]]
    assert any("Kept away from 2 titles you dislike" in c.value for c in at.caption)
    next(s for s in at.slider if s.label == "Variety").set_value(0.8).run()
    settle(at)
    varied = rerank(model, 0, R[0], 10, dislikes=disliked[:2], diversity=0.8, item_users=R.tocsc())
    assert listed(at) == [data.titles[k] for k in varied.ids]


def test_pages_are_found_by_name_and_import_neither_each_other_nor_the_command_line():
    import re

    from app.navigation import PAGES

    views = Path(MAIN).parent / "views"
    assert {path.stem for path in views.glob("*.py")} - {"__init__"} == set(PAGES)
    for path in Path(MAIN).parent.rglob("*.py"):
        imported = re.findall(r"^ *(?:from|import) ([\w.]+)", path.read_text(), re.M)
        assert not [name for name in imported if name.startswith(("app.views", "recsys.cli"))], path


def test_explain_this_opens_the_page_of_that_name():
    at = settle(AppTest.from_file(MAIN, default_timeout=60).run())
    next(b for b in at.button if b.label == "Explain this").click().run()
    settle(at)
    assert [h.value for h in at.header] == ["Explain"]


@pytest.mark.parametrize("model", ["ease", "slim", "msdw", "als", "popularity"])
def test_every_kind_of_model_gives_a_list_and_an_explanation(model):
    for page in ("recommend", "explain"):
        at = run(page)
        at.selectbox(key="model").set_value(model).run()
        settle(at)
        assert not at.error and texts(at)


def test_explain_shows_shares_and_what_would_change():
    at = run("explain")
    at.selectbox(key="model").set_value("auto").run()
    settle(at)
    values = {m.label: m.value for m in at.metric}
    assert set(values) == {"score", "place"} and values["place"].startswith("1 of ")
    shown = texts(at)
    assert any(text.startswith("Because you liked") for text in shown)
    assert any(text.startswith("Place now: 1 of ") for text in shown)
    assert any(text.startswith("auto adds up ") and "held-out halves" in text for text in shown)
    captions = " ".join(c.value for c in at.caption)
    assert "adds to the score" in captions and "not a share of it" in captions


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


def rated(grades, users=30, each=20, items=60, seed=0):
    from recsys.data import Interactions

    rng = np.random.default_rng(seed)
    u = np.repeat(np.arange(users), each)
    i = np.concatenate([rng.choice(items, each, replace=False) for _ in range(users)])
    r = rng.choice(np.asarray(grades, dtype=float), len(u))
    return Interactions.from_ids(u.astype(str).astype(object), i.astype(str).astype(object), r)


@pytest.mark.parametrize(
    ("grades", "least"),
    [
        ([1, 2, 3, 4, 5], 4),
        (np.arange(1, 9) / 2, 3.5),
        ([0, 1], 1),
        ([3], 3),
        (range(1, 11), 8),
        (range(100), 0),
    ],
)
def test_the_usual_threshold_is_three_quarters_up_the_scale(grades, least):
    from app import state

    assert state.usual_threshold(np.array(list(grades), dtype=float)) == least


def test_a_threshold_decides_what_is_liked_and_nothing_rated_is_recommended():
    from app.parts.profile import Asked

    from app import state
    from recsys import make_ranker
    from recsys.rankers.catalogue import Profile

    data = rated([1, 2, 3, 4, 5])
    found = state.catalogue_of(("upload", "x"), data)
    assert (found.least, found.lowest, found.top, found.word) == (4, 1, 5, "liked")
    every = state.catalogue_of(("upload", "x"), data, 1)
    assert every.word == "rated" and every.matrix.nnz == len(data.users)
    model = make_ranker("ease").fit(found.matrix, show_progress=False)
    for user in range(found.matrix.shape[0]):
        name = found.data.user_ids[user]
        mine = {
            str(data.item_ids[i]): r
            for u, i, r in zip(data.users, data.items, data.rating, strict=True)
            if data.user_ids[u] == name
        }
        given = found.rated(user)
        known = {str(found.data.item_ids[k]): text for k, text in given.items()}
        assert known == {i: f"{r:g} of 5" for i, r in mine.items() if i in set(found.data.item_ids)}
        liked = {str(found.data.item_ids[k]) for k in found.matrix[user].indices}
        assert liked == {i for i, r in mine.items() if r >= 4}
        lower = np.array(sorted(set(given) - set(found.matrix[user].indices.tolist())), dtype=np.int64)
        asked = Asked(Profile(user, found.matrix[user]), lower, given)
        ids, _ = state.recommend(model, user, asked.row, 100, without=asked.lower)
        assert not {str(found.data.item_ids[k]) for k in ids} & set(mine)


def test_a_rated_upload_has_a_threshold_to_change_and_shows_the_ratings():
    at = AppTest.from_string(
        HARNESS.format(root=str(Path(MAIN).parents[1]), page="recommend"), default_timeout=60
    )
    at.session_state["uploaded"] = (("upload", "t"), rated([1, 2, 3, 4, 5], seed=3))
    at.session_state["dataset"] = "upload: interactions"
    at.run()
    at.selectbox(key="model").set_value("ease").run()
    settle(at)
    box = next(s for s in at.selectbox if s.label.startswith("Counts as liked"))
    assert box.value == 4 and box.options[0] == "1 of 5 (every rating)"
    reasons = [t for t in texts(at) if t.startswith("Because you liked")]
    assert reasons and all("[4 of 5]" in t or "[5 of 5]" in t for t in reasons)
    assert any("rated lower: not liked, not recommended." in c.value for c in at.caption)
    box.set_value(1.0).run()
    settle(at)
    reasons = [t for t in texts(at) if t.startswith("Because you")]
    assert reasons and all(t.startswith("Because you rated") for t in reasons)


def test_explain_answers_for_a_liked_item_and_for_one_far_down():
    at = run("explain")
    at.selectbox(key="model").set_value("ease").run()
    settle(at)
    box = next(s for s in at.selectbox if s.label == "Item")
    assert len(box.options) == 300, "every item can be asked about"
    box.set_value(far_item(at, 200)).run()
    settle(at)
    assert any(
        t.startswith("It is not among the first 10: the last of these has a score of") for t in texts(at)
    )
    box = next(s for s in at.selectbox if s.label == "Item")
    box.set_value(liked_item()).run()
    settle(at)
    assert any(t.startswith("You liked it already") for t in texts(at))


def liked_item():
    from recsys.datasets import load_dataset

    return int(load_dataset("sample").matrix[0].indices[0])


def far_item(at, place):
    from recsys import make_ranker
    from recsys.datasets import load_dataset

    R = load_dataset("sample").matrix
    return int(make_ranker("ease").fit(R, show_progress=False).recommend(0, R[0], N=300)[0][place])


def test_popularity_has_a_unit():
    at = run("explain")
    at.selectbox(key="model").set_value("popularity").run()
    settle(at)
    values = {m.label: m.value for m in at.metric}
    assert "." not in values["score: people who have it"]


def test_a_waterfall_ends_at_the_score():
    from app import charts

    rows = [("base", "base", 0.5), ("a", "part", 0.4), ("b", "part", -0.2), ("score", "score", 0.7)]
    frame = charts.waterfall(rows).data
    assert frame["from"].tolist() == pytest.approx([0.0, 0.5, 0.9, 0.0])
    assert frame["to"].tolist() == pytest.approx([0.5, 0.9, 0.7, 0.7])
    assert frame["kind"].tolist() == ["base", "for", "against", "score"]


def test_models_and_metrics_are_offered_as_the_registries_declare_them(monkeypatch):
    from app.parts.models import metrics, models
    from recsys import EASE
    from recsys.evaluation.metrics import METRICS

    assert models()[:2] == ["cf-komd:kernel=mc,degree=2", "auto"] and "ease" in models()
    monkeypatch.setattr(EASE, "offered", ("regularization=3",))
    assert "ease:regularization=3" in models() and "ease" not in models()
    assert {name.split("@")[0] for name in metrics()} == set(METRICS.names())
    at = run("evaluate")
    assert "ease:regularization=3" in at.multiselect[0].options


@pytest.fixture
def moving(monkeypatch):
    """Offer `ease` in time, too."""
    from recsys import EASE

    monkeypatch.setattr(EASE, "offered", ("", "recency=1.0"))
    return "ease:recency=1.0"


def listed(at):
    cards = [t.split(". ", 1) for t in texts(at) if t.split(". ")[0].isdigit()]
    return [title.removesuffix("  ◆") for _, title in cards]


def wanted(spec, row, times):
    """Return the titles that a model of the sample lists for a row, fitted here."""
    from recsys import load_dataset, make_ranker
    from recsys.data.side_information import SideInformation
    from recsys.utils.spec import parse_spec

    data = load_dataset("sample")
    name, params = parse_spec(spec)
    known = SideInformation(data).times
    model = make_ranker(name, **params).fit(data.matrix, show_progress=False, times=known)
    ids = model.recommend(0, row, recalculate_user=True, times=times).ids
    return [str(data.titles[k]) for k in ids]


def chosen(page, spec, user=None, main=False):
    at = run(page) if not main else settle(AppTest.from_file(MAIN, default_timeout=60).run())
    at.selectbox(key="model").set_value(spec).run()
    settle(at)
    if user is not None:
        at.selectbox(key="user").set_value(user).run()
        settle(at)
    return at


@pytest.mark.parametrize("user", [123, 0])
def test_what_comes_next_and_what_fits_in_general(moving, user):
    from recsys import load_dataset
    from recsys.data.side_information import SideInformation

    data = load_dataset("sample")
    row, times = data.matrix[user], SideInformation(data).times[user]
    for _ in range(2):  # the second time as after a reload: another session of the same server
        at = chosen("recommend", moving, user)
        assert at.radio(key="order").value == "what comes next"
        assert listed(at) == wanted(moving, row, times)
        reasons = [t for t in texts(at) if t.startswith("Because you liked")]
        assert len(reasons) == 10 and all(" before your latest like)" in t or " ago)" in t or "latest like)" in t for t in reasons)  # fmt: skip
        at.radio(key="order").set_value("what fits in general").run()
        settle(at)
        assert listed(at) == wanted(moving, row, None) != wanted(moving, row, times)
        reasons = [t for t in texts(at) if t.startswith("Because you liked")]
        assert len(reasons) == 10 and not any("latest like" in t or " ago" in t for t in reasons)


def test_the_switch_is_there_where_there_are_times_and_a_model_in_time(moving):
    def switches(at):
        return [r.label for r in at.radio if r.key == "order"]

    at = chosen("recommend", "ease")
    assert not switches(at)
    next(s for s in at.selectbox if s.label == "Compare with").set_value(moving).run()
    assert switches(settle(at)), "one of the two is in time"
    for page in ("recommend", "explain"):
        assert not switches(chosen(page, "ecf-omd")) and switches(chosen(page, moving))
    at = AppTest.from_string(
        HARNESS.format(root=str(Path(MAIN).parents[1]), page="recommend"), default_timeout=60
    )
    at.session_state["uploaded"] = (("upload", "untimed"), rated([1, 2, 3, 4, 5], seed=3))
    at.session_state["dataset"] = "upload: interactions"
    at.session_state["model"] = moving
    assert not switches(settle(at.run()))


def test_a_built_profile_is_in_the_order_it_was_picked(moving):
    import scipy.sparse as sp

    at = chosen("recommend", moving)
    at.radio(key="mode").set_value("a profile I build").run()
    settle(at)
    seen = []
    for picked in ([40, 3, 77, 12], [12, 3, 40, 77]):
        box = next(m for m in at.multiselect if m.label == "Titles you like")
        box.set_value(picked).run()
        settle(at)
        row = sp.csr_matrix((np.ones(4, np.float32), ([0] * 4, picked)), (1, 300))
        times = sp.csr_matrix((np.arange(1.0, 5), ([0] * 4, picked)), (1, 300))
        assert listed(at) == wanted(moving, row, times)
        seen.append(listed(at))
        assert any("likes ago)" in t or "your latest like)" in t for t in texts(at))
    assert seen[0] != seen[1]


@pytest.mark.parametrize("order", ["what comes next", "what fits in general"])
def test_explain_is_about_the_user_the_model_and_the_order_that_were_chosen(moving, order):
    """It was about the first user and the default model, whoever the list was for."""
    at = chosen("recommend", moving, 123, main=True)
    at.radio(key="order").set_value(order).run()
    settle(at)
    first, why = listed(at)[0], next(t for t in texts(at) if t.startswith("Because you liked"))
    next(b for b in at.button if b.label == "Explain this").click().run()
    settle(at)
    assert [h.value for h in at.header] == ["Explain"]
    assert at.selectbox(key="model").value == moving and at.selectbox(key="user").value == 123
    assert at.radio(key="order").value == order
    assert {m.label: m.value for m in at.metric}["place"].startswith("1 of ")
    shown = texts(at)
    assert first in shown and why in shown, "the same reason as on the list"


def test_explain_is_about_the_profile_that_was_built(moving):
    at = chosen("recommend", moving, main=True)
    at.radio(key="mode").set_value("a profile I build").run()
    settle(at)
    box = next(m for m in at.multiselect if m.label == "Titles you like")
    box.set_value([40, 3, 77, 12]).run()
    settle(at)
    next(b for b in at.button if b.label == "Explain this").click().run()
    settle(at)
    box = next(m for m in at.multiselect if m.label == "Titles you like")
    assert box.value == [40, 3, 77, 12] and {m.label: m.value for m in at.metric}["place"].startswith(
        "1 of "
    )


def test_choices_of_another_page_are_taken_where_they_are_offered():
    at = AppTest.from_string(
        HARNESS.format(root=str(Path(MAIN).parents[1]), page="explain"), default_timeout=60
    )
    at.session_state["kept model"] = "ease:recency=77"
    at.session_state["kept user"] = 10_000
    settle(at.run())
    assert (
        at.selectbox(key="model").value == "cf-komd:kernel=mc,degree=2"
        and at.selectbox(key="user").value == 0
    )


def test_a_history_is_shown_newest_first_with_its_dates():
    from datetime import UTC, datetime

    from recsys import load_dataset

    data = load_dataset("sample")
    user = 123
    at = chosen("recommend", "ease", user)
    mine = data.users == user
    newest = np.argsort(-data.time[mine], kind="stable")
    table = at.dataframe[0].value
    assert table["title"].tolist() == [data.titles[k] for k in data.items[mine][newest]]
    days = [datetime.fromtimestamp(t, UTC).date().isoformat() for t in data.time[mine][newest]]
    assert table["date"].tolist() == days and days == sorted(days, reverse=True)


def test_a_history_without_dates_is_shown_in_order():
    from app.parts.profile import history

    from app import state
    from recsys.data import Interactions

    users, items = ["a"] * 4 + ["b"] * 2, ["x", "y", "z", "w", "x", "y"]

    def table(times, user=0):
        data = Interactions.from_ids(users, items, time=times)
        found = state.catalogue_of(("upload", "t"), data)
        return history(found, found.user(user), {0: "4 of 5"})

    assert table([3, 1, -np.inf, 2, 5, 4]) == {
        "title": ["x", "w", "y", "z"], "rating": ["4 of 5", "", "", ""], "newer": [0, 1, 2, None],
    }  # fmt: skip
    assert table([3, 1, 0, 2, 5, 4])["newer"] == [0, 1, 2, 3]
    assert list(table(None)) == list(table([7] * 6)) == ["title", "rating"]
    dated = table([1.2e9, 1.1e9, -np.inf, 1.3e9, 1e9, 1e9])
    assert dated["title"] == ["w", "x", "y", "z"]
    assert dated["date"] == ["2011-03-13", "2008-01-10", "2004-11-09", ""]


def test_genres_are_any_or_all_of_those_chosen():
    from recsys.datasets import load_dataset
    from recsys.explain import item_attributes

    data = load_dataset("sample")
    genres = dict(zip(data.titles, data.item_features["genres"], strict=True))
    at = run("recommend")
    box = next(m for m in at.multiselect if m.label == "Genre")
    two = ["Comedy", "Drama"]
    names = item_attributes(data).names
    box.set_value([names.index(name) for name in two]).run()
    settle(at)
    for mode, wanted in ((0, any), (1, all)):
        radio = next(r for r in at.radio if r.label == "An item has")
        radio.set_value(radio.options[mode]).run()
        settle(at)
        cards = [
            t.split(". ", 1)[1].removesuffix("  ◆") for t in texts(at) if t.split(". ")[0].isdigit()
        ]
        assert cards and all(wanted(name in genres[title].split("|") for name in two) for title in cards)


TITLES = {
    "Godfather, The (1972)": "The Godfather (1972)",
    "Avventura, L' (1960)": "L'Avventura (1960)",
    "City of Lost Children, The (Cité des enfants perdus, La) (1995)": (
        "The City of Lost Children (Cité des enfants perdus, La) (1995)"
    ),
    "Alien (1979)": "Alien (1979)",
    "Good, the Bad and the Ugly, The": "The Good, the Bad and the Ugly",
    "Love, Actually": "Love, Actually",
    "": "",
}


@pytest.mark.parametrize("title", TITLES)
def test_titles_are_shown_as_they_are_said(title):
    from app.parts.titles import natural

    assert natural(title) == TITLES[title] and natural(natural(title)) == TITLES[title]
