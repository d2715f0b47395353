"""The page Recommend: lists, reasons, filters, likes and dislikes, two models side by side."""

import csv
import io
import itertools
import re
from datetime import UTC, datetime

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("streamlit")

from app.catalogues import catalogue_of, usual_threshold
from recsys import EASE, make_ranker
from recsys.data import Interactions
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.explain import item_attributes
from recsys.reranking import rerank
from recsys.utils.spec import parse_spec
from tests.app.card_texts import cards, titles
from tests.app.page_runs import ROOT, box, captions, open_page, press, settle, texts

MAIN = str(ROOT / "app" / "main.py")
DATA = load_dataset("sample")
R = DATA.matrix


@pytest.fixture
def moving(monkeypatch):
    """Offer `ease` in time, too."""
    monkeypatch.setattr(EASE, "offered", ("", "recency=1.0"))
    return "ease:recency=1.0"


def wanted(spec, row, times):
    """Return the titles that a model of the sample lists for a row, fitted here."""
    name, params = parse_spec(spec)
    model = make_ranker(name, **params).fit(R, show_progress=False, times=SideInformation(DATA).times)
    ids = model.recommend(0, row, recalculate_user=True, times=times).ids
    return [str(DATA.titles[k]) for k in ids]


def item_id(title):
    return str(DATA.item_ids[list(DATA.titles).index(title)])


def whys(at):
    return [card["why"] for card in cards(at)]


def rated(grades, users=30, each=20, items=60, seed=0):
    rng = np.random.default_rng(seed)
    u = np.repeat(np.arange(users), each)
    i = np.concatenate([rng.choice(items, each, replace=False) for _ in range(users)])
    r = rng.choice(np.asarray(grades, dtype=float), len(u))
    return Interactions.from_ids(u.astype(str).astype(object), i.astype(str).astype(object), r)


def uploaded(data):
    """Keep a table as an upload would be, and return the dataset's name in a session."""
    from app import state
    from app.uploads import UploadedTable

    return state.keep_table(UploadedTable(data), "test")


def test_the_first_list_has_reasons_and_a_word_for_each_match():
    at = open_page("recommend")
    shown = cards(at)
    assert [card["place"] for card in shown] == list(range(1, 11)) and not at.error
    assert all(card["why"].startswith("Because you liked") for card in shown)
    likes = sum(DATA.users == 0)
    assert f"For u0001 ({likes} liked items)." in texts(at)
    assert "Model: Balanced, cf-komd:kernel=mc,degree=2" in captions(at)


@pytest.mark.parametrize("spec", ["ease", "popularity"])
def test_the_word_for_a_match_and_its_score_are_counted(spec):
    model = make_ranker(spec).fit(R, show_progress=False)
    ids, scores = model.recommend(0, R[0], N=300)
    for card, item, score in zip(
        cards(open_page("recommend", model=spec, n=30)), ids, scores, strict=False
    ):
        share = (score - scores.min()) / (scores.max() - scores.min())
        assert card["title"] == str(DATA.titles[item]) and card["score"] == float(f"{score:.4g}")
        assert abs(card["share"] - 100 * share) <= 0.5
        assert card["match"] == ("strong" if share * 3 >= 2 else "fair" if share * 3 >= 1 else "weak")


def test_chips_are_the_years_and_genres_of_the_items():
    at = open_page("recommend", model="ease")
    genres = dict(zip(DATA.titles, DATA.item_features["genres"], strict=True))
    for card in cards(at):
        assert card["chips"] and set(card["chips"]) <= set(genres[card["title"]].split("|"))


@pytest.mark.thorough
def test_an_empty_profile_shows_what_many_like_and_a_built_one_reasons():
    at = open_page("recommend", mode="profile")
    assert "profile is empty" in at.info[0].value
    counts = np.asarray(R.sum(axis=0)).ravel()
    best = np.argsort(-counts, kind="stable")[:10]
    assert titles(at) == [str(DATA.titles[k]) for k in best]
    assert whys(at) == [f"{int(counts[k])} people like it." for k in best]
    built = [str(DATA.item_ids[k]) for k in best[:6]]
    at = open_page("recommend", mode="profile", likes=built)
    assert not at.info and all(why.startswith("Because you liked") for why in whys(at))
    assert not set(titles(at)) & {str(DATA.titles[k]) for k in best[:6]}


@pytest.mark.thorough
def test_variety_and_novelty_change_the_list_and_say_how():
    first = titles(open_page("recommend", model="ease"))
    counts = dict(zip(DATA.titles, np.asarray(R.sum(axis=0)).ravel(), strict=True))
    for name in ("variety", "novelty"):
        at = open_page("recommend", model="ease", **{name: 0.8})
        now = titles(at)
        assert now != first and len(set(now)) == 10
        (line,) = [c for c in captions(at) if c.startswith("By score alone")]
        others = len(set(now) - set(first))
        mean = sum(counts[one] for one in first) / 10
        assert f" {others} other item" in line and f"{mean:,.0f} users an item on average" in line
    people = [sum(counts[t] for t in one) for one in (now, first)]
    assert people[0] < people[1], "novelty lists what fewer people know"
    assert not any(
        c.startswith("By score alone") for c in captions(open_page("recommend", model="ease"))
    )


def counts_of(listed):
    """Return, by plain loops, a list's diversity, people an item and items of the long tail.

    Cosines of the sets of people; the tail begins where the more popular ones hold 80% of all likes.
    """
    people = {}
    for user, item in zip(DATA.users.tolist(), DATA.items.tolist(), strict=True):
        people.setdefault(str(DATA.titles[item]), set()).add(user)
    likes = [len(people.get(str(title), ())) for title in DATA.titles]
    head, held = set(), 0
    for k in sorted(range(len(likes)), key=lambda k: (-likes[k], k)):
        if held >= 0.8 * sum(likes):
            break
        head.add(str(DATA.titles[k]))
        held += likes[k]
    apart = [
        1 - len(people[a] & people[b]) / (len(people[a]) * len(people[b])) ** 0.5
        for a, b in itertools.combinations(listed, 2)
    ]
    varied = f"{sum(apart) / len(apart):.2f}" if apart else "–"
    mean = sum(len(people[one]) for one in listed) / len(listed)
    return varied, f"{mean:,.0f}", str(sum(one not in head for one in listed))


def told_of(at):
    """Return the numbers of the sentences about lists: (diversity, people, tail, of) each."""
    pattern = (
        r"Diversity ([\d.–]+): 1 means that .* On average ([\d,]+) users have an item of this list; "
        r"([\d,]+) of the ([\d,]+) are in the long tail, .*"
    )
    return [found.groups() for c in captions(at) if (found := re.fullmatch(pattern, c))]


assert len(set(DATA.titles)) == len(DATA.titles), "a title names an item"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "moved"),
    [
        ("ease", {}),
        ("als", {"variety": 0.7}),
        ("ease", {"novelty": 1.0}),
        ("popularity", {"n": 3, "novelty": 0.6}),
    ],
)
def test_what_a_list_is_like_is_counted(model, moved):
    at = open_page("recommend", model=model, user="u0124", **moved)
    now = titles(at)
    assert told_of(at) == [(*counts_of(now), str(len(now)))] and len(now) == moved.get("n", 10)
    plain = titles(open_page("recommend", model=model, user="u0124", n=len(now)))
    pattern = (
        r"By score alone the list would have (\d+) other items?, diversity ([\d.]+), ([\d,]+) users an "
        r"item on average and (\d+) of the tail\."
    )
    found = [f.groups() for c in captions(at) if (f := re.fullmatch(pattern, c))]
    others = sum(one not in now for one in plain)
    assert found == ([] if now == plain else [(str(others), *counts_of(plain))])
    assert (now == plain) == (not moved) or model == "popularity"


@pytest.mark.thorough
def test_a_list_of_one_item_has_no_diversity():
    years = DATA.item_features["year"].astype(int).to_numpy()
    liked = set(R[0].indices.tolist())
    count = {y: sum(int(v) == y and k not in liked for k, v in enumerate(years)) for y in set(years)}
    year = next(int(y) for y in sorted(count) if count[y] == 1)
    at = open_page("recommend", model="ease", years=(year, year))
    assert len(titles(at)) == 1 and told_of(at) == [(*counts_of(titles(at)), "1")]
    assert told_of(at)[0][0] == "–"


@pytest.mark.thorough
@pytest.mark.parametrize("user", ["u0001", "u0124"])
def test_the_heading_counts_likes_and_dislikes(user):
    def heading(at):
        return [t for t in texts(at) if t.startswith("For ")]

    likes = sum(DATA.user_ids[u] == user for u in DATA.users.tolist())
    at = open_page("recommend", model="ease", user=user)
    assert heading(at) == [f"For {user} ({likes} liked items)."]
    away = [item_id(title) for title in titles(at)[:3]]
    at = open_page("recommend", model="ease", user=user, dislikes=away[:1], more=away[1:])
    assert heading(at) == [f"For {user} ({likes + 2} liked items, away from 1 title disliked)."]
    at = open_page("recommend", model="ease", mode="profile", likes=away[:1], dislikes=away[1:])
    assert heading(at) == ["For my profile (1 liked item, away from 2 titles disliked)."]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "moved"),
    [("als", {}), ("popularity", {"n": 30}), ("msdw", {"variety": 0.6}), ("als", {"genres": ["Drama"]})],
)
def test_the_agreement_of_two_lists_is_counted(other, moved):
    at = open_page("recommend", model="ease", user="u0007", **{"with": other}, **moved)
    every = titles(at)
    half = len(every) // 2
    ours, theirs = every[:half], every[half:]
    both = sum(one in theirs for one in ours)
    are = "is" if both == 1 else "are"
    assert f"{both} of the {half} items {are} in both lists." in texts(at)
    assert told_of(at) == [(*counts_of(one), str(half)) for one in (ours, theirs)]
    assert not any(c.startswith("By score alone") for c in captions(at))


def test_what_goes_with_dislikes_is_lowered():
    model = make_ranker("ease").fit(R, show_progress=False)
    disliked = model.recommend(0, R[0], N=3).ids.tolist()[:2]
    at = open_page("recommend", model="ease")
    assert len(box(at, "Titles you dislike", "multiselect").options) == R.shape[1] - R[0].nnz
    press_card(at, "Dislike", 1)
    press_card(at, "Dislike", titles(at).index(str(DATA.titles[disliked[0]])))
    found = rerank(model, 0, R[0], 10, dislikes=disliked, recalculate_user=True)
    assert titles(at) == [str(DATA.titles[k]) for k in found.ids]
    assert titles(at) != [str(DATA.titles[k]) for k in model.recommend(0, R[0], N=12).ids[2:]]
    assert any("away from 2 titles disliked" in t for t in texts(at))


def press_card(at, label, place):
    """Press a button of the card at a place, from 0."""
    key = f"{label.lower()} {item_id(titles(at)[place])}"
    next(b for b in at.button if b.key == key).click().run()
    return settle(at)


def test_a_like_on_a_card_is_liked_by_the_person_shown_and_by_nobody_else():
    at = open_page("recommend", model="ease", user="u0124")
    liked = titles(at)[2]
    k = list(DATA.titles).index(liked)
    press_card(at, "Like", 2)
    row = R[123].tolil()
    row[0, k] = 1
    assert titles(at) == wanted("ease", row.tocsr().astype(np.float32), None)
    assert f"Liked here besides: {liked}." in texts(at)
    box(at, "User").set_value("u0007").run()
    settle(at)
    assert titles(at) == wanted("ease", R[6], None)
    box(at, "User").set_value("u0124").run()
    settle(at)
    press(at, "Forget these likes")
    assert titles(at) == wanted("ease", R[123], None)


def test_like_on_a_card_of_a_built_profile_makes_it_the_latest():
    at = open_page("recommend", model="ease", mode="profile", likes=["m0041", "m0004"])
    added = item_id(titles(at)[1])
    press_card(at, "Like", 1)
    assert box(at, "Titles you like", "multiselect").value == ["m0041", "m0004", added]


def test_two_models_side_by_side_mark_what_moved():
    at = open_page("recommend", model="ease", **{"with": "popularity"})
    every = cards(at)
    left, right = every[:10], every[10:]
    assert [s.value for s in at.subheader] == ["ease", "popularity"]
    ours, theirs = [c["title"] for c in left], [c["title"] for c in right]
    both = len(set(ours) & set(theirs))
    said = f"{both} of the 10 items {'is' if both == 1 else 'are'} in both lists."
    assert said in texts(at)
    for one, other, name in ((left, theirs, "popularity"), (right, ours, "ease")):
        for place, card in enumerate(one):
            if card["title"] not in other:
                assert card["mark"] == "only here"
                continue
            by = other.index(card["title"]) - place
            arrow = "same rank" if by == 0 else f"{'▲' if by > 0 else '▼'} {abs(by)} against {name}"
            assert card["mark"] == arrow


def test_the_download_says_whose_list_it_is():
    from app.views import recommend

    kept = {}
    original = recommend.st.download_button
    recommend.st.download_button = lambda label, data, name, *a, **k: kept.update({name: data})
    try:
        at = open_page("recommend", model="ease", user="u0124")
    finally:
        recommend.st.download_button = original
    ((name, text),) = [(n, t) for n, t in kept.items() if n.startswith("recommendations")]
    assert name == "recommendations-sample-u0124-ease.csv"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["title"] for row in rows] == titles(at) and [row["why"] for row in rows] == whys(at)
    assert {(r["dataset"], r["user"], r["model"]) for r in rows} == {("sample", "u0124", "ease")}


@pytest.mark.thorough
def test_genres_are_any_or_all_of_those_chosen():
    genres = dict(zip(DATA.titles, DATA.item_features["genres"], strict=True))
    two = ["Comedy", "Drama"]
    assert set(two) <= set(item_attributes(DATA).names)
    for every, which in (("any of these genres", any), ("all of them", all)):
        shown = titles(open_page("recommend", model="ease", genres=two, every=every))
        assert shown and all(which(name in genres[one].split("|") for name in two) for one in shown)
    nothing = open_page("recommend", model="ease", genres=two, years=(1950, 1950), every="all of them")
    passing = [
        one
        for one, year in zip(DATA.titles, DATA.item_features["year"], strict=True)
        if int(year) == 1950 and set(two) <= set(genres[one].split("|"))
    ]
    assert bool(nothing.warning) == (not passing) and len(titles(nothing)) <= len(passing)


def test_a_year_filter_passes_only_those_years():
    years = dict(zip(DATA.titles, DATA.item_features["year"], strict=True))
    shown = titles(open_page("recommend", model="ease", years=(1980, 1990)))
    assert shown and all(1980 <= int(years[one]) <= 1990 for one in shown)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ease", "slim", "msdw", "als", "popularity", "bpr"])
def test_every_kind_of_model_gives_a_list_and_an_explanation(model):
    for page in ("recommend", "explain"):
        at = open_page(page, model=model)
        assert not at.error and at.get("html")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("eas", "unknown ranker 'eas': did you mean 'ease'?"),
        ("ease:x", "x"),
        ("ease:lambda=3", "lambda"),
    ],
)
def test_a_model_that_is_none_is_refused_in_one_line(given, told):
    at = open_page("recommend", model=given)
    assert len(at.error) == 1 and told in at.error[0].value and not cards(at)
    assert "?." not in at.error[0].value


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["recommend", "explain", "map"])
@pytest.mark.parametrize("model", ["bpr"])
def test_models_of_known_people_only_say_so_for_a_built_profile(page, model):
    """They showed the list of the first user."""
    for likes in (["m0041", "m0004"], []):
        at = open_page(page, mode="profile", likes=likes, model=model)
        assert f"{model} knows only the users that it was fitted on" in at.warning[0].value
        assert len(at.warning) == 1 and not at.info and not cards(at) and not at.metric


def test_the_second_of_two_models_may_know_no_built_profiles_either():
    at = open_page("recommend", mode="profile", likes=["m0041"], model="ease", **{"with": "bpr"})
    assert "bpr knows only the users" in at.warning[0].value and not cards(at)


# ---- ratings


def test_no_threshold_leaves_rows_out_unasked():
    assert usual_threshold(np.array([3.0, 1, 5])) == 1
    data = rated([1, 2, 3, 4, 5])
    found = catalogue_of(("upload", "x"), data)
    assert found.matrix.nnz == len(data.users) and found.word == "rated"


def test_a_threshold_decides_what_is_liked_and_nothing_rated_is_recommended():
    from app.parts.chosen_user import ChosenUser
    from app.parts.lists import recommend
    from recsys.rankers.catalogue import Profile

    data = rated([1, 2, 3, 4, 5])
    found = catalogue_of(("upload", "x"), data, 4)
    assert (found.least, found.lowest, found.top, found.word) == (4, 1, 5, "liked")
    every = catalogue_of(("upload", "x"), data, 1)
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
        asked = ChosenUser(Profile(user, found.matrix[user]), lower, given)
        ids, _ = recommend(model, asked, 100)
        assert not {str(found.data.item_ids[k]) for k in ids} & set(mine)


def test_a_rated_upload_has_a_threshold_to_change_and_shows_the_ratings():
    at = open_page("recommend", data=uploaded(rated([1, 2, 3, 4, 5], seed=3)), model="ease")
    choice = box(at, "Counts as liked: rated at least")
    assert choice.value == 1 and choice.options[0] == "1 of 5 (every rating)"
    reasons = [t for t in whys(at) if t.startswith("Because you")]
    assert reasons and all(t.startswith("Because you rated") for t in reasons)
    choice.set_value(4.0).run()
    settle(at)
    reasons = [t for t in whys(at) if t.startswith("Because you liked")]
    assert reasons and all("[4 of 5]" in t or "[5 of 5]" in t for t in reasons)
    assert any("rated lower: not liked, not recommended." in c for c in captions(at))


@pytest.mark.slow
def test_who_and_what_is_not_there_is_said():
    at = open_page("recommend", user="nobody", likes=["x"])
    assert at.info[0].value == "The user nobody is not in this dataset: u0001 is shown."
    assert not at.run().info and len(cards(at)) == 10
    at = open_page("recommend", data="nonsense")
    assert "The dataset nonsense is not here" in at.warning[0].value and len(cards(at)) == 10
    at = open_page("compare", evaluate__models=["zzz"])
    assert len(box(at, "Models", "multiselect").value) == 3, "the usual ones"


def test_an_upload_that_is_gone_is_said_and_the_sample_shown():
    at = open_page("recommend", data="upload-nothing")
    assert "no longer here" in at.warning[0].value and len(cards(at)) == 10


# ---- time


@pytest.mark.slow
@pytest.mark.parametrize("user", [123, 0])
def test_what_comes_next_and_what_fits_in_general(moving, user):
    row, times = R[user], SideInformation(DATA).times[user]
    at = open_page("recommend", model=moving, user=str(DATA.user_ids[user]))
    assert titles(at) == wanted(moving, row, times)
    told = whys(at)
    assert all(" before your latest like)" in t or " ago)" in t or "latest like)" in t for t in told)
    at = open_page("recommend", model=moving, user=str(DATA.user_ids[user]), order="general")
    assert titles(at) == wanted(moving, row, None) != wanted(moving, row, times)
    assert not any("latest like" in t or " ago" in t for t in whys(at))


@pytest.mark.slow
def test_the_switch_is_there_where_there_are_times_and_a_model_in_time(moving):
    def switches(at):
        return [r.label for r in at.radio if r.label == "Recommend"]

    assert not switches(open_page("recommend", model="ease"))
    assert switches(open_page("recommend", model="ease", **{"with": moving})), "one of the two is"
    for page in ("recommend", "explain"):
        assert not switches(open_page(page, model="ecf-omd"))
        assert switches(open_page(page, model=moving))
    untimed = uploaded(rated([1, 2, 3, 4, 5], seed=3))
    assert not switches(open_page("recommend", model=moving, data=untimed))


def test_a_built_profile_is_in_the_order_it_was_picked(moving):
    seen = []
    for picked in ([40, 3, 77, 12], [12, 3, 40, 77]):
        ids = [str(DATA.item_ids[k]) for k in picked]
        at = open_page("recommend", model=moving, mode="profile", likes=ids)
        row = sp.csr_matrix((np.ones(4, np.float32), ([0] * 4, picked)), (1, 300))
        times = sp.csr_matrix((np.arange(1.0, 5), ([0] * 4, picked)), (1, 300))
        assert titles(at) == wanted(moving, row, times)
        seen.append(titles(at))
        assert any("likes ago)" in t or "your latest like)" in t for t in whys(at))
    assert seen[0] != seen[1]


def test_as_of_a_day_counts_what_was_liked_before_it(moving):
    user = 123
    row, times = R[user].tocsr(), SideInformation(DATA).times[user].tocsr()
    days = sorted({datetime.fromtimestamp(t, UTC).date().isoformat() for t in times.data})
    day = days[len(days) // 2]
    moment = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    early = times.data < moment
    assert 0 < early.sum() < len(early)
    part = sp.csr_matrix((row.data[early], row.indices[early], [0, int(early.sum())]), row.shape)
    when = sp.csr_matrix((times.data[early], row.indices[early], [0, int(early.sum())]), row.shape)
    at = open_page("recommend", model=moving, user=str(DATA.user_ids[user]), asof=day)
    assert titles(at) == wanted(moving, part, when)
    assert at.expander[0].label == f"Likes {int(early.sum())} items"


def test_a_history_is_shown_newest_first_with_its_dates():
    user = 123
    at = open_page("recommend", model="ease", user=str(DATA.user_ids[user]))
    mine = DATA.users == user
    newest = np.argsort(-DATA.time[mine], kind="stable")
    table = at.dataframe[0].value
    assert table["title"].tolist() == [DATA.titles[k] for k in DATA.items[mine][newest]]
    days = [datetime.fromtimestamp(t, UTC).date().isoformat() for t in DATA.time[mine][newest]]
    assert table["date"].tolist() == days and days == sorted(days, reverse=True)


def test_a_history_without_dates_is_shown_in_order():
    from app.parts.chosen_user import history

    users, items = ["a"] * 4 + ["b"] * 2, ["x", "y", "z", "w", "x", "y"]

    def table(times, user=0):
        data = Interactions.from_ids(users, items, time=times)
        found = catalogue_of(("upload", "t"), data)
        return history(found, found.user(user), {0: "4 of 5"})

    assert table([3, 1, -np.inf, 2, 5, 4]) == {
        "title": ["x", "w", "y", "z"], "rating": ["4 of 5", "", "", ""], "newer": [0, 1, 2, None],
    }  # fmt: skip
    assert table([3, 1, 0, 2, 5, 4])["newer"] == [0, 1, 2, 3]
    assert list(table(None)) == list(table([7] * 6)) == ["title", "rating"]
    dated = table([1.2e9, 1.1e9, -np.inf, 1.3e9, 1e9, 1e9])
    assert dated["title"] == ["w", "x", "y", "z"]
    assert dated["date"] == ["2011-03-13", "2008-01-10", "2004-11-09", ""]


# ---- titles


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


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Amélie", "amelie"),
        ("Cité des enfants", "cite des"),
        ("Smørrebrød", "smorrebrod"),
        ("Alien", "ali"),
    ],
)
def test_titles_are_found_with_and_without_accents(title, found):
    from app.parts.titles import typed

    assert found in typed(title).lower() and title in typed(title)
    assert (typed(title) == title) == title.isascii()


def test_titles_are_text_and_never_markup():
    from app.parts.cards import card, chips, title

    nasty = "<script>x</script><img src=x onerror=alert(1)> & \"'"
    for markup in (
        card(1, nasty, [nasty], 0.5, 1.0, nasty, nasty),
        chips([nasty]),
        title(nasty, [nasty]),
    ):
        assert "<script" not in markup and "<img" not in markup and "&lt;script&gt;" in markup


# ---- saved profiles


def test_a_profile_is_named_saved_and_opened_again():
    at = open_page("recommend", mode="profile", likes=["m0041", "m0004"], dislikes=["m0007"])
    box(at, "Name", "text_input").set_value("Sunday")
    press(at, "Save")
    later = open_page("recommend", mode="profile", likes=["m0001"])
    assert box(later, "Saved on this dataset").options == ["Sunday"]
    press(later, "Open")
    assert box(later, "Titles you like", "multiselect").value == ["m0041", "m0004"]
    assert box(later, "Titles you dislike", "multiselect").value == ["m0007"]
    press(later, "Remove")
    assert not [s for s in later.selectbox if s.label == "Saved on this dataset"]


def test_downloaded_profiles_are_read_and_other_files_refused():
    from app.parts.chosen_user import read_profile

    good = b'{"dataset": "sample", "likes": ["a", "b", "a"], "dislikes": ["c"]}'
    assert read_profile(good) == {"likes": ["a", "b"], "dislikes": ["c"]}
    for bad in (
        b"",
        b"[]",
        b'{"likes": [1]}',
        b'{"likes": "abc"}',
        b"\xff\xfe",
        b'{"likes": {}}',
        b"[" * 99_999,
    ):
        assert read_profile(bad) is None, bad[:20]
