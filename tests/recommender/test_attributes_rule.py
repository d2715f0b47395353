"""The model's rule over an item's own attributes: its counts are those of a plain loop over the list."""

from html import escape

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import recsys
from recsys import Interactions
from recsys.rankers import fit_package, make_ranker
from recsys.recommender.model_rules import ITEMS, attributes_rule

DATA = recsys.load_dataset("sample")
RANKERS = [
    "ease", "content",
    *(pytest.param(one, marks=pytest.mark.thorough) for one in ("popularity", "msdw", "fm:iterations=2")),
]  # fmt: skip
FIRST, MOST = 30, 12


def attributes_of(features, item):
    """Return the attributes of an item, from its row of the table."""
    row = features.iloc[item]
    found = set(str(row["genres"]).split("|")) if row["genres"] else set()
    return found | ({f"{int(row['year']) // 10 * 10}s"} if "year" in row else set())


def by_hand(package, user, liked, item, first, names):
    """Return the counts of a rule, by a loop over the items that are not liked."""
    scores = package.ranker.scores(user, package.user_items[user])[0]
    free = [k for k in range(len(package.item_ids)) if k not in liked]
    listed = sorted(free, key=lambda k: (-scores[k], k))[:first]
    support = hits = 0
    for k in free:
        if set(names) <= attributes_of(package.item_features, k):
            support += 1
            hits += k in listed
    return {
        "items": len(free), "listed": len(listed), "support": support, "hits": hits,
        "share": hits / support, "base": len(listed) / len(free),
        "itself": None if item in liked else item in listed,
    }  # fmt: skip


@pytest.fixture(scope="module", params=RANKERS)
def found(request):
    return recsys.Recommender(request.param).fit(DATA)


def test_the_counts_are_those_of_a_loop_over_the_list(found):
    package, shown = found.package, 0
    for user in range(0, DATA.n_users, 9):
        who, row = str(DATA.user_ids[user]), DATA.matrix[user]
        liked = set(row.indices.tolist())
        top = package.ranker.recommend(user, row, N=3).ids.tolist()
        for item in [*top, 5, 77, *sorted(liked)[:1]]:
            rule, reason = attributes_rule(package, user, row, item, FIRST)
            assert (rule is None) == bool(reason)
            if rule is None:
                continue
            shown += 1
            why = found.explain(who, str(DATA.item_ids[item]), model_rule=FIRST)
            told = why.model_rule["attributes"]
            assert told == rule.as_dict(package.ranker.name, FIRST)
            assert set(told["names"]) <= attributes_of(DATA.item_features, item)
            assert 1 <= len(told["names"]) <= 2 and told["support"] >= ITEMS
            wanted = by_hand(package, user, liked, item, FIRST, told["names"])
            assert {name: told[name] for name in wanted} == wanted
            assert told["low"] > told["base"]
            chance = binom.sf(told["hits"] - 1, told["support"], told["low"])  # of so many or more
            assert chance == pytest.approx(0.05)
            assert told["text"] in why.sentences and told["text"] in str(why)
            assert f"<p>{escape(told['text'])}</p>" in why._repr_html_()
            numbers = f"puts {told['hits']} of the {told['support']} items with "
            assert numbers + " and ".join(told["names"]) in told["text"]
            own = {True: "list, this one too, and", False: "list, not this one, and", None: "list, and"}
            assert own[told["itself"]] in told["text"]
            assert f"{told['listed']} of all {told['items']} (" in told["text"]
            sure = binom.sf(told["tested_hits"] - 1, told["tested"], told["tested_low"])
            assert sure == pytest.approx(0.05) and told["tested"] < told["support"]
            assert f"at least {int(100 * told['tested_low'])}% of such items." in told["text"]
            if shown == MOST:
                return
    raise AssertionError("the lists show too few rules to test anything")


def test_a_history_has_the_rule_of_its_own_list():
    model = recsys.Recommender("content").fit(DATA)
    user, item = with_a_rule(model)
    history = [str(DATA.item_ids[k]) for k in DATA.matrix[user].indices]
    told = model.explain_history(history, item, model_rule=FIRST).model_rule["attributes"]
    known = model.explain(str(DATA.user_ids[user]), item, model_rule=FIRST).model_rule["attributes"]
    assert told == known
    why = model.explain(str(DATA.user_ids[user]), item, model_rule=DATA.n_items)
    assert why.notes[-1].startswith("no rule over attributes: no one or two attributes of this item")


def with_a_rule(model, first=FIRST):
    """Return a user and the id of one of the first three items, for which there is a rule."""
    for user in range(DATA.n_users):
        row = DATA.matrix[user]
        for item in model.ranker.recommend(user, row, N=3).ids:
            if attributes_rule(model.package, user, row, int(item), first)[0] is not None:
                return user, str(DATA.item_ids[item])
    raise AssertionError("no list has a rule")


def planted(items, popular, genres, liked=()):
    """Return a fitted popularity ranker with users who like the popular items; the first likes `liked`."""
    rows = [("u0", k) for k in liked] + [
        (f"u{1 + u}", k) for k in range(items) for u in range(popular[k])
    ]
    table = pd.DataFrame({"item_id": range(items), "genres": genres})
    data = Interactions.from_frame(
        pd.DataFrame(rows, columns=["user_id", "item_id"]), user="user_id", item="item_id", items=table
    )
    return fit_package(make_ranker("popularity"), data, show_progress=False)


def index(package, item):
    return package.item_index[str(item)]


def test_a_planted_pair_of_attributes_is_found():
    """Neither of the two is enough: 12 items have both and are the first, many have one of them."""
    genres = ["War|Old"] * 12 + ["War"] * 40 + ["Old"] * 40 + ["Drama"] * 40
    popular = [9] * 12 + [2] * 120
    package = planted(132, popular, genres, liked=(131,))
    user = package.user_index["u0"]
    rule, why = attributes_rule(package, user, package.user_items[user], index(package, 0), 12)
    assert why == "" and set(rule.names) == {"War", "Old"}
    assert (rule.counts.support, rule.counts.hits, rule.items, rule.listed) == (12, 12, 131, 12)
    assert rule.itself
    rule, why = attributes_rule(package, user, package.user_items[user], index(package, 100), 12)
    assert rule is None and "no one or two attributes of this item" in why  # Drama comes last
    row = sp.csr_matrix(
        np.isin(np.arange(132), [index(package, k) for k in (0, 131)])[None], dtype=np.float32
    )
    rule, _ = attributes_rule(package, 0, row, index(package, 0), 11, fold_in=True)
    assert rule.itself is None and (rule.counts.support, rule.counts.hits) == (11, 11)  # it is liked
    assert "first 11 of this list, and 11 of all 130" in rule.as_dict("popularity", 11)["text"]


def test_of_equal_scores_the_items_are_counted_that_the_list_has():
    """All have one user; the first ten of 60 are chosen by index, and are the ones with War."""
    package = planted(60, [1] * 60, ["War"] * 10 + ["Drama"] * 50)
    history = package.profile(history=["59"])
    for first in (8, 10, 15):
        found, _ = attributes_rule(package, 0, history.row, index(package, 3), first, fold_in=True)
        listed = package.ranker.recommend(0, history.row, N=first, recalculate_user=True).ids
        wars = [index(package, k) for k in range(10)]
        assert found.names == ("War",) and found.counts.support == 10
        assert found.counts.hits == len(set(wars) & set(listed.tolist()))
        assert found.itself == (index(package, 3) in listed)


def test_where_there_is_no_rule_a_note_says_why():
    genres = ["War"] * 10 + ["Drama"] * 49 + [""]
    package = planted(60, [3] * 10 + [1] * 50, genres, liked=(58,))
    user = package.user_index["u0"]
    row = package.user_items[user]
    rule, why = attributes_rule(package, user, row, index(package, 59), 10)
    assert rule is None and why == "this item has none"
    for first in (59, 60, 1000):  # everything is among the first
        rule, why = attributes_rule(package, user, row, index(package, 0), first)
        assert rule is None and "of 59 items that could be recommended" in why
    most = [k for k in range(60) if k != index(package, 0)]
    rule, why = attributes_rule(package, user, row, index(package, 0), 1, leave_out=most)
    assert rule is None and "of 1 item that could be recommended" in why
    rule, why = attributes_rule(package, user, row, index(package, 0), 1, leave_out=range(60))
    assert rule is None and "of 0 items that could be recommended" in why
    with pytest.raises(recsys.InputError, match="n must be"):
        attributes_rule(package, user, row, 0, 0)
    rule, why = attributes_rule(
        package, user, sp.csr_matrix((1, 60), dtype=np.float32), 0, 10, fold_in=True
    )
    assert rule is None and why == "the list is of popular items"
    plain = recsys.Recommender("ease").fit(Interactions.from_ids(["a", "a", "b"], ["x", "y", "y"]))
    assert not [one for one in plain.explain("b", "x", model_rule=3).notes if "attributes" in one]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(2, 60), st.integers(1, 70), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_whatever_the_catalogue_the_counts_are_right(items, first, follows, seed):
    """Popularity with many equal scores, which the attributes say more or less about."""
    rng = np.random.default_rng(seed)
    sets = [
        set(rng.choice(["War", "Old", "Drama", "New"], rng.integers(0, 4), False)) for _ in range(items)
    ]
    popular = [
        int(rng.integers(1, 4) + (5 if "War" in one and rng.random() < follows else 0)) for one in sets
    ]
    liked = rng.choice(items, rng.integers(1, items), replace=False).tolist()
    package = planted(items, popular, ["|".join(sorted(one)) for one in sets], liked)
    user, item = package.user_index["u0"], int(rng.integers(items))
    row = package.user_items[user]
    found, why = attributes_rule(package, user, row, item, first)
    assert (found is None) == bool(why)
    if found is None:
        return
    told = found.as_dict("popularity", first)
    assert set(told["names"]) <= attributes_of(package.item_features, item)
    wanted = by_hand(package, user, set(row.indices.tolist()), item, first, told["names"])
    assert {name: told[name] for name in wanted} == wanted
    assert told["low"] > told["base"] and told["support"] >= ITEMS
