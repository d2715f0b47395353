"""The page Map: what it draws and says, counted; an area selected in a browser, and recommended from."""

import re
import time
from html import unescape

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("streamlit")

from app.catalogues import catalogue_of
from app.parts.chosen_user import ChosenUser
from app.views import map as view
from recsys import make_ranker
from recsys.data import Interactions
from recsys.datasets import load_dataset
from recsys.embeddings import ItemVectors, Projection, item_vectors, project
from recsys.rankers.registry import RANKERS
from tests.app.browsing import MARKS, settled, shot
from tests.app.page_runs import captions, open_page, press, texts


@pytest.fixture(scope="module")
def catalogue():
    return catalogue_of(("dataset", "sample"), load_dataset("sample"))


def run(**address):
    return open_page("map", {name.replace("_", "."): value for name, value in address.items()})


def drawn(catalogue, seed=0):
    items = view.on_map(catalogue)
    return view.Drawn(items, np.random.default_rng(seed).normal(size=(len(items), 2)))


@pytest.mark.thorough
def test_the_page_says_what_it_shows(catalogue):
    at = run()
    model = make_ranker("cf-komd", kernel="mc", degree=2).fit(catalogue.matrix, show_progress=False)
    found = item_vectors(model, catalogue.matrix)
    shares = project(found.vectors).shares
    n = int((np.asarray(catalogue.matrix.sum(axis=0)).ravel() > 0).sum())
    likes = catalogue.matrix[0].nnz
    which = "all 300" if n == 300 else f"the {n} most popular of 300"
    assert f"The map has {which} items. Diamonds mark {likes} liked items of user u0001, triangles 10 items that the model recommends." in texts(at)  # fmt: skip
    assert any(t.startswith(f"Its two directions show {shares.sum():.0%} of how the vectors differ; the other {1 - shares.sum():.0%}") for t in texts(at))  # fmt: skip
    assert "Distance on the map is not the score: the model ranks by its scores alone." in texts(at)
    assert any(f"these are the 32 main directions of its scores for 400 users, which miss {found.error:.0%} of their size" in t for t in texts(at))  # fmt: skip
    assert "Nothing is selected" in at.info[0].value
    assert not [d for d in at.dataframe if "marked" in d.value]


def test_models_with_vectors_of_their_own_are_named_and_one_is_offered():
    own = [name for name in view.with_vectors()]
    for spec in own:
        assert hasattr(RANKERS.get(spec.split(":")[0]), "item_embeddings")
    assert {"als", "bpr", "fm"} <= set(own) and "ease" not in own
    at = run()
    assert f"Models with vectors of their own: {', '.join(own)}." in texts(at)
    press(at, "Show the map of als")
    assert next(s for s in at.selectbox if s.label == "Model").value == "als"
    assert not any("main directions" in t for t in texts(at))
    assert not any(b.label.startswith("Show the map") for b in at.button)


@pytest.mark.slow
def test_tsne_says_what_its_distances_are_not():
    at = run(map_method="tsne", model="als")
    assert any("t-SNE puts items next to those" in t for t in texts(at))
    assert not any("directions show" in t for t in texts(at))


def test_around_a_title_are_the_nearest(catalogue):
    title = "m0150"
    at = run(map_around=title)
    frame = next(d.value for d in at.dataframe if "marked" in d.value)
    assert frame["title"].iloc[0] == catalogue.label(title) and len(frame) == view.AROUND + 1
    assert any(t.startswith(f"{catalogue.label(title)} and the 20 items nearest to it") for t in texts(at))  # fmt: skip
    assert "Recommend from these 21 items" in [b.label for b in at.button]
    assert not at.info


def test_nearest_by_every_distance(catalogue):
    here = drawn(catalogue)
    for item in here.items[[0, 17, 40]]:
        at = int(np.flatnonzero(here.items == item)[0])
        found = view.nearest(here, int(item), 6)
        gaps = {k: np.linalg.norm(here.points[k] - here.points[at]) for k in range(len(here.items))}
        assert found.tolist() == sorted(gaps, key=lambda k: (k != at, gaps[k]))[:7]


def test_an_area_holds_the_points_inside(catalogue):
    here = drawn(catalogue)
    box = {"x": [0.5, -0.3], "y": [-1.0, 0.2]}
    wanted = [k for k, (x, y) in enumerate(here.points) if -0.3 <= x <= 0.5 and -1 <= y <= 0.2]
    assert view.inside(here, box).tolist() == wanted and 0 < len(wanted) < len(here.items)
    assert len(view.inside(here, {})) == len(here.items)
    edge = {"x": [here.points[3, 0]] * 2, "y": [here.points[3, 1]] * 2}
    assert view.inside(here, edge).tolist() == [3]


def test_the_map_has_what_somebody_likes_and_of_too_much_the_most_popular(catalogue, monkeypatch):
    count = np.asarray(catalogue.matrix.sum(axis=0)).ravel()
    assert set(view.on_map(catalogue)) == set(np.flatnonzero(count > 0))
    monkeypatch.setattr(view, "MOST_ITEMS", 25)
    found = view.on_map(catalogue)
    assert len(found) == 25 and (np.diff(found) > 0).all()
    assert count[found].min() >= np.sort(count)[::-1][:25].min()
    lines = view.sentences(
        catalogue, "als", ItemVectors(np.ones((300, 3), np.float32), True, 0, 0.0),
        Projection(np.ones((25, 2)), np.array([0.5, 0.25])), view.Drawn(found, np.ones((25, 2))),
        ChosenUser(catalogue.user(0)), found[:3].astype(np.int32),
    )  # fmt: skip
    likes = len(set(found.tolist()) & set(catalogue.matrix[0].indices.tolist()))
    noun = "liked item" if likes == 1 else "liked items"
    assert lines[0] == f"The map has the 25 most popular of 300 items. Diamonds mark {likes} {noun} of user u0001, triangles 3 items that the model recommends."  # fmt: skip
    assert lines[1].startswith("Its two directions show 75% of how the vectors differ; the other 25%")
    assert len(lines) == 3


def test_genres_are_the_rarest_of_the_frequent_ones(catalogue):
    features = load_dataset("sample").item_features["genres"]
    items = view.on_map(catalogue)
    cells = [set(str(features.iloc[k]).split("|")) for k in items]
    count = {g: sum(g in cell for cell in cells) for g in set().union(*cells)}
    frequent = sorted(count, key=lambda g: -count[g])[: view.MOST_GROUPS]
    found, groups = view.genres(catalogue, items)
    assert [count[g] for g in groups if g != view.OTHER] == [count[g] for g in frequent]
    named = [g for g in groups if g != view.OTHER]
    for one, cell in zip(found, cells, strict=True):
        has = [g for g in named if g in cell]
        assert one == (has[-1] if has else view.OTHER)
        assert not has or count[one] == min(count[g] for g in has)
    assert (view.OTHER in groups) == (view.OTHER in found)
    assert "6 genres" in view.genre_note(groups) and ("Grey" in view.genre_note(groups)) == (view.OTHER in groups)  # fmt: skip
    assert view.genre_note(["Drama"]) == "Coloured by genre."


def test_decades_in_order_and_without_a_year(catalogue):
    items = view.on_map(catalogue)
    years = catalogue.years[items]
    found, groups = view.decades(catalogue, items)
    assert found == [f"{int(y) // 10}0s" for y in years]
    assert groups == sorted(set(found), key=lambda d: int(d[:-1])) and len(groups) > 2


def test_points_are_marked(catalogue):
    here = drawn(catalogue)
    listed = here.items[:4].astype(np.int32)
    liked = here.items[3:9].astype(np.int32)
    for colour in (view.GENRE, view.DECADE, view.POPULARITY):
        frame, groups = view.points(catalogue, here, colour, liked, listed)
        assert frame["mark"].tolist()[:10] == ["recommended"] * 3 + ["liked"] * 6 + [""]
        assert frame["users"].tolist() == [int((catalogue.matrix[:, k] != 0).sum()) for k in here.items]
        assert (colour == view.POPULARITY) == (not groups)
        view.map_charts.items(frame, colour, groups, ("a", "b"), "c").to_dict()


def test_similarities_are_cosines_and_the_nearest_likes_are_those_of_every_pair(catalogue):
    vectors = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    vectors[7] = 0.0
    vectors.setflags(write=False)
    listed, liked = np.array([3, 7, 9], dtype=np.int32), np.array([1, 4, 7, 11, 20, 30, 33], dtype=np.int32)  # fmt: skip
    found = view.similarities(vectors, listed, liked)
    for row, one in enumerate(listed):
        for column, other in enumerate(liked):
            a, b = vectors[one].astype(float), vectors[other].astype(float)
            lengths = np.sqrt(sum(a * a)) * np.sqrt(sum(b * b))
            assert found[row, column] == pytest.approx(sum(a * b) / lengths if lengths else 0.0)
    best = [max(found[row, column] for row in range(3)) for column in range(7)]
    assert view.nearest_likes(found).tolist() == sorted(range(7), key=lambda k: (-best[k], k))[:5]
    assert view.nearest_likes(np.zeros((0, 4))).tolist() == []
    assert view.nearest_likes(np.zeros((4, 0))).tolist() == []


def test_the_page_lists_the_neighbours_of_each_recommendation_and_titles_them(catalogue, monkeypatch):
    at = run(model="als")
    model = make_ranker("als").fit(catalogue.matrix, show_progress=False)
    vectors = item_vectors(model, catalogue.matrix).vectors.astype(float)
    listed = model.recommend(0, catalogue.matrix[0], N=10).ids
    liked = catalogue.matrix[0].indices

    def cosine(a, b):
        return vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b])

    (body,) = [one.proto.body for one in at.get("html") if "<ol" in one.proto.body]
    lines = [unescape(re.sub("<[^>]*>", "", one)).strip() for one in re.findall("<li>(.*?)</li>", body)]
    for line, item in zip(lines, listed, strict=True):
        near = sorted(liked, key=lambda other: -cosine(item, other))[:2]
        assert line == f"{catalogue.labels[item]} – near {' and '.join(catalogue.labels[k] for k in near)}"  # fmt: skip
    assert any("the 5 liked items most like one of them" in c for c in captions(at))
    here = drawn(catalogue)
    close = sorted(liked, key=lambda other: -max(cosine(item, other) for item in listed))[:5]
    frame, groups = view.points(catalogue, here, view.GENRE, liked, listed, [*listed, *close])
    named = {catalogue.labels[k] for k in [*listed, *close]}
    assert set(frame["name"]) == named | {""} and (frame["name"] == "").sum() == len(frame) - 15
    spec = view.map_charts.items(frame, view.GENRE, groups, ("a", "b"), "c").to_dict()
    written = [one for one in spec["layer"] if one["mark"]["type"] == "text"]
    assert written and all(one["mark"]["color"] == {"expr": view.map_charts.INK} for one in written)
    assert spec["layer"][0]["mark"]["opacity"] < 0.5, "all else is pale"


def test_a_profile_of_nothing_has_no_neighbours():
    at = run(mode="profile")
    assert not [one for one in at.get("html") if "<ol" in one.proto.body]


def test_titles_are_put_where_they_cover_least():
    charts = view.map_charts
    frame = pd.DataFrame({"x": [0.0, 1.0, 0.5, 0.505], "y": [0.0, 1.0, 0.5, 0.5], "name": ["", "", "one of two", "another"]})  # fmt: skip
    named = frame[frame["name"] != ""]
    first, second = charts.sides(named, frame)
    assert first == "left" and second == "right", "neither lies on the other's mark"
    right = charts.sides(frame.assign(name=["", "at the edge", "", ""]).query("name != ''"), frame)
    assert right.tolist() == ["left"], "nothing is cut off"
    alone = frame.iloc[:1].assign(name="x")
    assert charts.sides(alone, alone).tolist() == ["right"], "one point has no extent"


def test_the_table_of_an_area(catalogue):
    items = view.on_map(catalogue)[:12]
    asked = ChosenUser(catalogue.user(0))
    frame = view.table(catalogue, items, asked, items[2:4].astype(np.int32))
    liked = set(catalogue.matrix[0].indices.tolist())
    for place, (_, row) in enumerate(frame.iterrows()):
        item = int(items[place])
        assert row["title"] == catalogue.labels[item] and row["year"] == catalogue.years[item]
        assert row["users who have it"] == (catalogue.matrix[:, item] != 0).sum()
        mark = "liked" if item in liked else f"recommended, place {place - 1}" if place in (2, 3) else ""
        assert row["marked"] == mark
        assert set(row["genres"].split(", ")) <= set(catalogue.attributes.names) | {""}


def test_axes_and_buttons():
    assert view.axes(Projection(np.ones((3, 2)), np.array([0.301, 0.1]))) == ("first direction (30% of the variance)", "second direction (10%)")  # fmt: skip
    assert view.axes(Projection(np.ones((3, 2)), None))[0] == "t-SNE, no unit"
    assert view.button(1, 1) == "Recommend from this item"
    assert view.button(5, 5) == "Recommend from these 5 items"
    assert view.button(100, 130) == "Recommend from the first 100 of these items"


def test_a_catalogue_without_genres_or_years_is_coloured_by_popularity():
    likes = Interactions.from_ids(["a", "a", "b", "b", "c"], ["x", "y", "y", "z", "x"])
    made = catalogue_of(("upload", "few"), likes)
    assert [name for name, there in view._colours(made).items() if there] == [view.POPULARITY]
    frame = view.table(made, np.arange(3), ChosenUser(made.user(0)), np.array([2], dtype=np.int32))
    assert frame.columns.tolist() == ["title", "users who have it", "marked"]


class TestBrowser:
    pytestmark = MARKS

    def test_an_area_is_recommended_from(self, tab, address):
        tab.goto(f"{address}/map")
        tab.get_by_text("Nothing is selected").wait_for()
        settled(tab)
        time.sleep(1)
        shot(tab, "map-1400")
        chart = tab.locator("[data-testid=stVegaLiteChart] .marks").first
        box = chart.bounding_box()
        tab.mouse.move(box["x"] + 80, box["y"] + 250)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 300, box["y"] + 400, steps=8)
        tab.mouse.up()
        said = tab.get_by_text("in the selected area")
        said.wait_for()
        number = int(re.match(r"[\d,]+", said.inner_text())[0].replace(",", ""))
        assert number > 3
        settled(tab)
        shot(tab, "map-area-1400")
        tab.get_by_role("button", name="Recommend from").click()
        tab.get_by_role("heading", name="Recommend").wait_for()
        tab.get_by_text(f"For my profile ({min(number, 100)} liked items)").wait_for()

    def test_a_phone_shows_all_of_it(self, browser, address):
        page = browser.new_page(viewport={"width": 400, "height": 900})
        page.set_default_timeout(180_000)
        page.goto(f"{address}/map")
        page.get_by_text("Nothing is selected").wait_for()
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.close()
