"""Pinned items, boosts, at most so many of an attribute; scores of pairs; similar users."""

from collections import Counter

import numpy as np
import pytest

import recsys
from recsys.errors import CapabilityError, InputError


@pytest.fixture(scope="module")
def data():
    return recsys.load_dataset("sample")


@pytest.fixture(scope="module")
def model(data):
    return recsys.Recommender("ease").fit(data)


def items(table):
    return table["item"].tolist()


def test_pinned_items_come_first(model, data):
    plain = items(model.recommend("u0001", 300, why=False))
    pins = [plain[40], plain[7]]
    found = items(model.recommend("u0001", 5, pinned=pins, why=False))
    assert found == pins + plain[:3]
    assert items(model.recommend("u0001", 1, pinned=pins, why=False)) == pins[:1]
    assert items(model.recommend("u0001", 5, pinned=pins, exclude=pins[:1], why=False)) == [
        pins[1],
        *plain[:4],
    ]
    liked = str(data.item_ids[data.matrix[0].indices[0]])
    assert liked not in items(model.recommend("u0001", 5, pinned=[liked], why=False))
    assert items(model.recommend("u0001", 5, pinned=[liked], filter_liked=False))[0] == liked


def test_boosts_multiply_scores_and_raise_negative_ones(model):
    plain = model.recommend("u0001", 300, why=False)
    score = dict(zip(plain["item"], plain["score"], strict=True))
    low, high = plain["item"].iloc[-1], plain["item"].iloc[0]
    assert score[low] < 0 < score[high]
    found = model.recommend("u0001", 300, boosts={low: 2.5, high: 0.1}, why=False)
    after = dict(zip(found["item"], found["score"], strict=True))
    assert after[high] == pytest.approx(0.1 * score[high], rel=1e-6)
    assert after[low] == pytest.approx(-0.5 * score[low], rel=1e-6)
    others = [k for k in plain["item"] if k not in (low, high)]
    assert all(after[k] == score[k] for k in others)
    assert found["score"].is_monotonic_decreasing
    assert [k for k in found["item"] if k in set(others)] == others


@pytest.mark.parametrize("more", [{}, {"diversity": 0.6}, {"dislikes": ["m0007"]}], ids=str)
def test_at_most_so_many_of_a_value(model, data, more):
    genres = dict(zip(data.item_ids, data.item_features["genres"], strict=True))

    def most(names):
        return max(Counter(value for k in names for value in genres[k].split("|")).values())

    plain = items(model.recommend("u0001", 12, why=False, **more))
    found = items(model.recommend("u0001", 12, at_most={"genres": 2}, why=False, **more))
    assert most(plain) > 2 >= most(found) and len(set(found)) == len(found)
    if not more:  # the greedy list, as it is defined
        kept, counts = [], Counter()
        for k in items(model.recommend("u0001", 300, why=False)):
            if all(counts[value] < 2 for value in genres[k].split("|")):
                counts.update(genres[k].split("|"))
                kept.append(k)
        assert found == kept[:12]
    pin = kept[-1] if not more else plain[-1]
    pinned = items(model.recommend("u0001", 12, at_most={"genres": 2}, pinned=[pin], why=False, **more))
    assert pinned[0] == pin and most(pinned) <= 2


@pytest.mark.thorough
def test_every_way_to_make_lists_takes_them(model, tmp_path):
    rules = {"pinned": ["m0005"], "boosts": {"m0009": 3.0}, "at_most": {"genres": 1}}
    one = model.recommend(["u0001", "u0002"], 4, filter_liked=False, why=False, **rules)
    every = model.recommend_all(n=4, filter_liked=False, **rules)
    assert every[every["user"].isin(["u0001", "u0002"])].reset_index(drop=True).equals(one)
    assert (every[every["rank"] == 1]["item"] == "m0005").all()
    history = model.recommend_history(["m0001"], 4, **rules)
    assert items(history)[0] == "m0005"
    unknown = model.recommend("nobody", 4, unknown="popular", **rules)
    assert items(unknown)[0] == "m0005" and (unknown["source"] == "popular").all()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"pinned": ["nope"]}, "nope"), ({"boosts": {"m0001": -1}}, "boosts of 'm0001'"), ({"boosts": ["m0001"]}, "mapping"),
        ({"boosts": {"m0001": float("nan")}}, "finite"), ({"at_most": {"brand": 2}}, "brand"),
        ({"at_most": {"genres": 0}}, "at_most of 'genres'"), ({"at_most": 3}, "mapping"), ({"pinned": 1.5}, "pinned"),
    ],
)  # fmt: skip
def test_wrong_rules_are_refused_in_a_line(model, given, says):
    with pytest.raises(InputError, match=says) as told:
        model.recommend("u0001", **given)
    assert "\n" not in str(told.value)


def test_scores_of_pairs_are_those_of_the_ranker(model, data, monkeypatch):
    rng = np.random.default_rng(0)
    users, things = rng.integers(0, 400, 70), rng.integers(0, 300, 70)
    wanted = model.ranker.scores(np.arange(400), data.matrix)[users, things]
    for block in (16_000_000, 900):
        monkeypatch.setattr("recsys.recommender.recommender.SCORE_BLOCK", block)
        found = model.predict(data.user_ids[users], data.item_ids[things])
        assert list(found.columns) == ["user", "item", "score"]
        assert found["score"].to_numpy() == pytest.approx(wanted, rel=1e-6)
        assert found["user"].tolist() == data.user_ids[users].tolist()
    listed = model.recommend("u0001", 5, why=False)
    assert model.predict("u0001", listed["item"])["score"].tolist() == listed["score"].tolist()
    for wrong in ((["u0001", "u0002"], ["m0001"] * 3), ("nobody", "m0001"), ("u0001", "nope")):
        with pytest.raises(InputError):
            model.predict(*wrong)


def test_scores_say_where_they_are_counts(data):
    model = recsys.Recommender("ease").fit(data)
    model.forget("u0002")
    found = model.predict(["u0001", "u0002"], "m0001")
    assert found["source"].tolist() == ["model", "popular"]
    assert found["score"][1] == model.ranker.popularity_[model.package.item_index["m0001"]]


def test_similar_users(data):
    model = recsys.Recommender("als:factors=8,iterations=2").fit(data)
    ids, scores = model.ranker.similar_users(3, N=6)
    found = model.similar_users(str(data.user_ids[3]), 5)
    assert list(found.columns) == ["to", "rank", "user", "score"]
    assert found["user"].tolist() == [data.user_ids[k] for k in ids if k != 3][:5]
    assert found["score"].tolist() == pytest.approx(
        [s for k, s in zip(ids, scores, strict=True) if k != 3][:5]
    )
    with pytest.raises(CapabilityError):
        recsys.Recommender("popularity").fit(data).similar_users("u0001")
