"""The page Explain: one item taken apart, for whom and by what was chosen."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

import recsys
from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.explain import blend_parts, into_list, item_rule, out_of_list, reasons, what_if
from recsys.explain.text import falls, rises
from tests.app.card_texts import cards, heading, titles
from tests.app.page_runs import ROOT, box, captions, open_page, press, settle, texts

MAIN = str(ROOT / "app" / "main.py")
DATA = load_dataset("sample")
R = DATA.matrix


@pytest.fixture(scope="module")
def ease():
    return make_ranker("ease").fit(R, show_progress=False)


def name(item):
    return str(DATA.item_ids[item])


def ranked_at(at):
    """Return the rank, of how many, and the rest of the sentence."""
    (found,) = [m for t in texts(at) if (m := re.match(r"Rank ([\d,]+) of ([\d,]+), (.*?)\. [IY]", t))]
    return int(found[1].replace(",", "")), int(found[2].replace(",", "")), found[3]


@pytest.mark.slow
@pytest.mark.parametrize("user", [0, 123])
def test_score_place_and_what_would_change_it_are_the_models(ease, user):
    ranked = ease.recommend(user, R[user], N=300).ids
    for place in (0, 14):
        item = int(ranked[place])
        at = open_page("explain", model="ease", user=str(DATA.user_ids[user]), item=name(item))
        assert heading(at) == str(DATA.titles[item])
        found = reasons(ease, user, R[user], item)
        assert ranked_at(at) == (place + 1, len(ranked), f"with a score of {found.score:.4f}")
        after = what_if(ease, user, R[user], item)
        shown = texts(at)
        moves = [t for t in shown if t.startswith(("Without", "With ", "Even", "No further like"))]
        assert 1 <= len(moves) <= 3
        if place == 0:
            assert falls(DATA.titles, out_of_list(ease, user, R[user], item)) in shown
        else:
            from app.catalogues import catalogue_of
            from app.views.explain import companions

            offered = companions(catalogue_of(("dataset", "sample"), DATA), item)
            path = into_list(ease, user, R[user], item, offered, 10)
            assert rises(DATA.titles, path) in shown and path.items
        tables = [d.value for d in at.dataframe if "without" in d.value]
        then = [change.rank for change in after.moved[:12]]
        assert [t["rank"].tolist() for t in tables] == ([then] if then else [])


def test_companions_are_those_whose_people_are_most_alike():
    from app.catalogues import catalogue_of
    from app.views.explain import COMPANIONS, companions

    dense = R.toarray()
    for item in (3, 200):
        cosines = [
            0.0 if k == item else float(dense[:, item] @ dense[:, k]) / np.sqrt(dense[:, k].sum())
            for k in range(300)
        ]
        order = sorted(range(300), key=lambda k: (-round(cosines[k], 9), k))[:COMPANIONS]
        found = companions(catalogue_of(("dataset", "sample"), DATA), item)
        assert [round(cosines[k], 9) for k in found] == [round(cosines[k], 9) for k in order]


def test_any_item_can_be_asked_about(ease):
    far = int(ease.recommend(0, R[0], N=300).ids[200])
    at = open_page("explain", model="ease", item=name(far))
    assert len(box(at, "Item").options) == 300
    assert any("It is not among the first 10: the last of these has a score of" in t for t in texts(at))
    own = int(R[0].indices[0])
    at = open_page("explain", model="ease", item=name(own))
    (line,) = [t for t in texts(at) if t.startswith("You liked it already")]
    row = R[0].tolil()
    row[0, own] = 0
    rest = sp.csr_matrix(row, dtype=np.float32)
    scores = ease.scores([0], rest, recalculate_user=True)[0]
    rivals = [k for k in range(300) if k not in R[0].indices]
    place = 1 + sum(scores[k] > scores[own] or (scores[k] == scores[own] and k < own) for k in rivals)
    assert f"would have rank {place:,} of {len(rivals) + 1:,}" in line


@pytest.mark.slow
def test_what_is_said_of_places_holds_in_the_list_with_dislikes(ease):
    ids = ease.recommend(0, R[0], N=300).ids
    disliked = [name(ids[0]), name(ids[3])]
    listed = open_page("recommend", model="ease", dislikes=disliked, n=30)
    places = {card["title"]: card["place"] for card in cards(listed)}
    told = []
    for item in (*ids[1:3], *ids[4:14]):
        at = open_page("explain", model="ease", dislikes=disliked, item=name(item))
        shown, place = texts(at), places.get(str(DATA.titles[item]), 99)
        assert any(t.endswith(" It is among the first 10.") for t in shown) == (place <= 10)
        assert any(t.endswith(" It is not among the first 10.") for t in shown) == (place > 10)
        own = ranked_at(at)[0]
        assert own == 1 + sum(name(k) not in disliked for k in ids[: list(ids).index(item)])
        said = [t for t in shown if t.startswith("In the list it has rank")]
        if place < 99:
            assert bool(said) == (own != place) and all(f"rank {place}," in t for t in said)
            told += said
    assert told, "some place is moved"
    at = open_page("explain", model="ease", dislikes=disliked, item=disliked[0])
    assert any(t.endswith(" You dislike it: it is not recommended.") for t in texts(at))


def test_an_only_like_cannot_be_taken_out():
    at = open_page("explain", model="ease", mode="profile", likes=["m0041"], item="m0041")
    assert "You liked it already, so it is not recommended." in texts(at)
    at = open_page("explain", model="bpr", item=name(R[0].indices[0]))
    assert "You liked it already, so it is not recommended." in texts(at)


def test_a_blend_is_opened():
    at = open_page("explain", model="blend:models=ease+msdw", user="u0007")
    model = make_ranker("blend", models="ease+msdw").fit(R, show_progress=False)
    item = list(DATA.titles).index(heading(at))
    parts = blend_parts(model, 6, R[6], item)
    table = next(d.value for d in at.dataframe if "part" in d.value)
    assert table["part"].tolist() == ["ease", "msdw"]
    assert table["its own rank"].tolist() == [part.rank for part in parts]
    assert table["adds to the score"].tolist() == [round(part.adds, 4) for part in parts]
    assert any(t.startswith("blend adds up 2 models") for t in texts(at))


def test_a_machine_shows_its_products():
    at = open_page("explain", model="fm:iterations=3")
    assert "Which features, and which two together" in [e.label for e in at.expander]
    assert any("two names joined by ×" in c for c in captions(at))


def test_a_score_that_is_not_the_lists_is_told_beside_the_lists():
    model = recsys.Recommender("lmf").fit(DATA)
    item = model.recommend("u0003", n=1)["item"][0]
    (note,) = model.explain("u0003", item).notes
    assert f"{model.recommend('u0003', n=1)['score'][0]:.4g}" in note
    at = open_page("explain", model="lmf", user="u0003", item=item)
    assert f"{note[0].upper()}{note[1:]}." in captions(at)
    assert not [
        told
        for told in captions(open_page("explain", model="ease", user="u0003", item=item))
        if "in the list is" in told
    ]


def test_popularity_has_a_unit_and_says_that_rules_are_about_the_data():
    at = open_page("explain", model="popularity")
    item = list(DATA.titles).index(heading(at))
    assert ranked_at(at)[2] == f"because {R[:, [item]].nnz} users have it"
    assert any("The model does not use this rule." in c for c in captions(at))


def test_a_rule_of_other_people_has_its_bound_and_similar_titles_are_the_models(ease):
    rules = {int(k): item_rule(R, R[6].indices, int(k), exclude=6) for k in ease.recommend(6, R[6]).ids}
    item, rule = next((k, found) for k, found in rules.items() if found is not None)
    at = open_page("explain", model="ease", user="u0007", item=name(item))
    (least,) = [int(m[1]) for c in captions(at) if (m := re.search(r"at least (\d+)% of such", c))]
    low = scipy.stats.beta.ppf(0.05, rule.tested_hits, rule.tested - rule.tested_hits + 1)
    assert least == int(100 * low) and low > rule.base
    near = [str(DATA.titles[k]) for k in ease.similar_items(item, N=7)[0] if k != item][:6]
    shown = "".join(element.proto.body for element in at.get("html"))
    assert all(f">{title}</span>" in shown for title in near)


def test_a_click_on_explain_is_kept_before_the_list_is_drawn_again(monkeypatch):
    """Another event may end the run that a click begins before it has reached the button."""
    at = AppTest.from_file(MAIN, default_timeout=60)
    at.query_params["model"] = "popularity"
    settle(at.run())
    title, drawn = titles(at)[2], []
    monkeypatch.setattr("app.views.recommend.page", lambda: drawn.append("the list"))
    monkeypatch.setattr(
        "app.views.explain.page", lambda: drawn.append(at.session_state["session"].get("item"))
    )
    [b for b in at.button if b.label == "Explain"][2].click().run()
    (item,) = drawn
    assert DATA.titles[list(DATA.item_ids).index(item)] == title


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["next", "general"])
def test_explain_is_about_the_user_the_model_and_the_order_that_were_chosen(order):
    """It was about the first user and the default model, whoever the list was for."""
    at = AppTest.from_file(MAIN, default_timeout=60)
    for key, value in {"model": "slist", "user": "u0124", "order": order}.items():
        at.query_params[key] = value
    first = cards(settle(at.run(), rule=True))[2]
    [b for b in at.button if b.label == "Explain"][2].click().run()
    settle(at)
    assert [h.value for h in at.header] == ["Explain"] and heading(at) == first["title"]
    assert box(at, "Model").value == "slist" and box(at, "User").value == "u0124"
    assert box(at, "Recommend", "radio").value == order
    assert first["why"] in texts(at), "the same reason as on the list"
    assert ranked_at(at)[0] == 3
    press(at, "Back to the list")
    assert [h.value for h in at.header] == ["Recommend"] and cards(at)[2] == first


@pytest.mark.thorough
def test_explain_is_about_the_profile_that_was_built():
    at = open_page("explain", model="slist", mode="profile", likes=["m0041", "m0004", "m0078"])
    assert box(at, "Titles you like", "multiselect").value == ["m0041", "m0004", "m0078"]
    listed = titles(
        open_page("recommend", model="slist", mode="profile", likes=["m0041", "m0004", "m0078"])
    )
    assert heading(at) == listed[0]
    assert open_page("explain", mode="profile").info[0].value.startswith("This profile is empty")


def test_a_taste_rule_says_in_how_many_of_the_liked_and_of_all():
    genres = dict(zip(DATA.titles, DATA.item_features["genres"], strict=True))
    at = open_page("explain", model="ease", user="u0007")
    (rule,) = [t for t in texts(at) if t.startswith("This profile as a rule: ")]
    said = next(c for c in captions(at) if "you liked follow" in c)
    names = rule.removeprefix("This profile as a rule: ")
    assert re.fullmatch(r"[A-Z][\w-]+", names), "one genre, whose items are counted here"
    liked = [str(DATA.titles[k]) for k in R[6].indices]
    own = sum(names in genres[one].split("|") for one in liked)
    every = sum(names in one.split("|") for one in genres.values())
    assert said.startswith(
        f"{own} of the {len(liked)} items you liked follow it, and {every} of all 300"
    )


def test_a_waterfall_ends_at_the_score():
    from app.charts import explain as charts

    rows = [("base", "base", 0.5), ("a", "part", 0.4), ("b", "part", -0.2), ("score", "score", 0.7)]
    frame = charts.waterfall(rows, "Title").data
    assert frame["from"].tolist() == pytest.approx([0.0, 0.5, 0.9, 0.0])
    assert frame["to"].tolist() == pytest.approx([0.5, 0.9, 0.7, 0.7])
    assert frame["kind"].tolist() == ["base", "raises it", "lowers it", "score"]
