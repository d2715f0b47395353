"""Rules of all users in one call: each test that of one user, and each number in the sentences counted."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from recsys import InputError, load_dataset, make_ranker
from recsys.data import Interactions
from recsys.explain import (
    Discovery,
    RuleTest,
    discover_rules,
    item_attributes,
    item_odds,
    likes_rule,
    ranker_rule,
)
from recsys.explain.rules.all_users import Discoveries
from recsys.explain.rules.rule import Rule
from recsys.utils.progress import COMPILING, listening

SOME = [3, 5, 8, 13]


@pytest.fixture(scope="module")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="module")
def ease(data):
    return make_ranker("ease").fit(data.matrix, show_progress=False)


def by_hand(data, users, ranker=None, top=50, seed=0):
    """The tests of some users, one call each."""
    attributes, likes = item_attributes(data), data.matrix
    odds, out = item_odds(likes), []
    dense = likes.toarray() > 0
    for u in users:
        row = likes[u]
        others = np.delete(dense, u, axis=0).sum(axis=0)
        out.append((data.user_ids[u], likes_rule(row.indices, attributes, others, odds, seed=seed)))
        if ranker is not None:
            scores = np.asarray(ranker.scores(u, row)).ravel()
            unseen = np.flatnonzero(~dense[u])
            order = unseen[np.argsort(-scores[unseen], kind="stable")]
            out.append((data.user_ids[u], ranker_rule(order, attributes, top, seed=seed)))
    return [(user, test) for user, test in out if test is not None]


def same(one, other):
    return repr(one) == repr(other)  # where nothing is covered a precision is NaN


@pytest.mark.thorough
def test_the_tests_are_those_of_each_user(data, ease):
    found = discover_rules(data, SOME, ranker=ease, top=40, seed=2, level=0.2)
    expected = by_hand(data, SOME, ease, 40, 2)
    assert len(found.found) == len(expected)
    for user, test in expected:
        assert any(one.user == user and same(one.found, test) for one in found.found)
    # Benjamini and Yekutieli, step by step
    p = sorted(test.p_value for _, test in expected)
    m = len(p)
    harmonic = sum(1 / k for k in range(1, m + 1))
    most = max((k for k in range(1, m + 1) if p[k - 1] * m * harmonic <= 0.2 * k), default=0)
    assert [one.found.p_value for one in found.shown] == p[:most]
    sources = [test.source for _, test in expected]
    assert found.tested == {"likes": sources.count("likes"), "ranker": sources.count("ranker")}
    assert (found.searched, found.users, found.drawn, found.items) == (4, 400, False, 300)


@pytest.mark.thorough
def test_users_are_drawn_by_the_seed_and_named_by_their_ids(data):
    one, two = (discover_rules(data, most=3, seed=seed) for seed in (0, 1))
    assert one.drawn and one.searched == two.searched == 3
    assert {d.user for d in one.found} != {d.user for d in two.found}
    assert repr(discover_rules(data, most=3)) == repr(one)
    users = np.flatnonzero(np.isin(data.user_ids, [d.user for d in one.found]))
    for user, test in by_hand(data, users):
        assert any(d.user == user and same(d.found, test) for d in one.found)


def test_ids_of_any_kind_a_user_without_likes_and_an_item_of_nobody():
    table = pd.DataFrame({"genre": [f"g{k % 3}" for k in range(31)]}, index=range(100, 131))
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(12), 14)
    items = np.concatenate([100 + rng.permutation(30)[:14] for _ in range(12)])
    full = Interactions.from_ids(users, items).with_features(items=table)
    bare = Interactions(
        full.users, full.items, np.append(full.user_ids, 99), np.append(full.item_ids, 130),
        item_features=table.reindex([*full.item_ids, 130]),
    )  # fmt: skip
    heard = []
    with listening(lambda step, done, total: step == COMPILING or heard.append((done, total))):
        found = discover_rules(bare, ranker=make_ranker("popularity").fit(bare.matrix))
    assert heard == [(k, 13) for k in range(13)]
    assert found.searched == 13 and all(d.user != 99 for d in found.found)
    assert json.loads(json.dumps(found.as_dict()))["tested"] == found.tested


def rule_test(source="likes", tested=12, hits=9, items=112, covered=19):
    return RuleTest(
        Rule(((0, 1), (2,)), ("Drama", "1990s", "War")), source, 11, items, covered, tested, hits,
        hits / covered, tested / items, 0.4, 0.9, 1e-5,
    )  # fmt: skip


def made(*tests, **more):
    found = tuple(Discovery(f"u{k}", one, 0.01, True) for k, one in enumerate(tests))
    return Discoveries(**{
        "name": "likes.csv", "ranker": None, "top": 0, "attributes": 1, "items": 300, "searched": 7,
        "users": 7, "drawn": False, "tested": {"likes": 6}, "level": 0.05, "dependence": "any",
        "found": found, **more,
    })  # fmt: skip


def test_sentences_count_and_say_what_is_few():
    one = made(rule_test())
    assert one.sentence(one.found[0]) == (
        "u0 likes Drama and 1990s, or War: of 12 likes set aside, 9 follow it; of 100 items not liked, "
        "10 (about 1 in 10). 12 is a small number."
    )
    one = made(
        rule_test("ranker", 20, 1, 121, 1), ranker="ease", top=50, tested={"likes": 6, "ranker": 1}
    )
    assert one.sentence(one.found[0]) == (
        "For u0 ease puts first Drama and 1990s, or War: of 20 items of the first 50 set aside, 1 "
        "follows it; of 101 others, 0 (none)."
    )
    said = " ".join(one.sentences())
    assert "over 1 attribute of 300 items" in said and "all 7 users" in said and "first 50" in said
    assert "6 of 7 rules of likes and 1 of 7 rules of the ranker could be tested" in said
    assert "1 rule found" in said and "at most 5%, however" in said and "nothing to do" in said
    assert "others have fewer than 5 items" in said
    every = made(rule_test(), tested={"likes": 7}).sentences()
    assert "7 of 7 rules of likes could be tested." in every
    some = made(rule_test(), searched=3, drawn=True, dependence="positive", level=0.125).sentences()
    assert "3 of 7 users, drawn at random" in some[1] and "at most 12.5%, if the tests" in some[0]
    assert "No rule found at a level of 5%" in made().sentences()[0]


def test_rules_are_a_table_and_json():
    hidden = Discovery("u9", rule_test(), 0.5, False)
    found = made(rule_test(), rule_test("ranker"), ranker="ease", top=50)
    found = replace(found, found=(*found.found, hidden))
    columns, lines = found.table()
    assert [dict(zip(columns, line, strict=True))["others_hits"] for line in lines] == [10, 10]
    said = json.loads(json.dumps(found.as_dict()))
    assert said["rules"][0]["clauses"] == [["Drama", "1990s"], ["War"]]
    assert said["rules"][1]["text"] == found.sentence(found.found[1])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"level": 1.5}, "level"), ({"dependence": "none"}, "dependence"), ({"top": 0}, "top"),
        ({"most": 0}, "most"), ({"users": [400]}, "not within 0…399"), ({"seed": -1}, "seed"),
        ({"users": ["u0001"]}, "integers"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(data, more, message):
    with pytest.raises(InputError, match=message):
        discover_rules(data, **more)


def test_data_without_attributes_and_a_ranker_of_other_items_are_told(data):
    likes = Interactions.from_ids(["a", "b"], ["x", "y"])
    with pytest.raises(InputError, match="nothing is known of the items .* genres, a year"):
        discover_rules(likes)
    other = make_ranker("popularity").fit(likes.matrix)
    with pytest.raises(InputError, match="knows 2 items, and sample has 300"):
        discover_rules(data, ranker=other)
