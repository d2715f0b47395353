"""FA*IR: the table by exact sums, lists by all orders that the table allows."""

from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import recsys
from recsys.errors import InputError
from recsys.rankers.answers import Recommendations
from recsys.reranking import Fair, Merchandising

SHARES = st.sampled_from([0.05, 0.2, 0.31, 0.5, 0.77, 0.95])


def cumulative(m, n, p):
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(m + 1))


def table(n, p, alpha):
    """The smallest m of each k with P(at most m of k are protected) ≥ α."""
    return [next(m for m in range(k + 1) if cumulative(m, k, p) >= alpha) for k in range(1, n + 1)]


def ranking(protected, N, p, alpha, **more):
    """The list of items 0, 1, … by score, as (ids, whether enough are protected)."""
    items = len(protected)
    found = Recommendations(np.arange(items, dtype=np.int32), np.linspace(1, 0, items, dtype=np.float32))
    rule = Fair(np.array(protected, dtype=bool), p, alpha)
    pinned, others = Merchandising(fair=rule, **more).applied(found, N)
    ids = [*pinned.ids.tolist(), *others.ids.tolist()][:N]
    return ids, rule.met(ids)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 25), SHARES, SHARES)
def test_the_table_is_the_quantiles_of_binomial_distributions(n, p, alpha):
    edges = [cumulative(m, k, p) for k in range(1, n + 1) for m in range(k)]
    assume(all(abs(edge - alpha) > 1e-9 for edge in edges))
    expected = table(n, p, alpha)
    found = Fair(np.zeros(1, bool), p, alpha).minimums(n)
    assert found.tolist() == expected and not found.flags.writeable
    assert (np.diff([0, *expected]) <= 1).all()  # so that one item at a time is enough


def test_the_table_that_the_authors_library_prints():
    """The README of fairsearchcore: k = 20, p = 0.25, α = 0.1, unadjusted."""
    row = "00000000111111222223"
    assert Fair(np.zeros(1, bool), 0.25, 0.1).minimums(20).tolist() == [int(m) for m in row]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 6), SHARES, SHARES)
def test_the_list_is_the_best_of_all_orders_that_the_table_allows(protected, N, p, alpha):
    n, least = min(N, len(protected)), Fair(np.zeros(1, bool), p, alpha).minimums(6)
    allowed = [
        order for order in permutations(range(len(protected)), n)
        if all(sum(protected[i] for i in order[:k]) >= least[k - 1] for k in range(1, n + 1))
    ]  # fmt: skip
    found, met = ranking(protected, N, p, alpha)
    assert met == bool(allowed)
    if allowed:  # orders by score: the first in which no rank could have a better item
        assert found == list(min(allowed))
    else:
        assert sum(protected[i] for i in found) == sum(protected)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 40), SHARES, SHARES)
def test_each_prefix_has_enough_and_each_group_is_in_order(protected, N, p, alpha):
    found, met = ranking(protected, N, p, alpha)
    least = Fair(np.zeros(1, bool), p, alpha).minimums(N)
    assert len(found) == len(set(found)) == min(N, len(protected))
    for kind in (True, False):
        mine = [i for i in found if protected[i] is kind]
        assert mine == [i for i in range(len(protected)) if protected[i] is kind][: len(mine)]
    total, enough = 0, True
    for k, item in enumerate(found):
        total += protected[item]
        enough &= total >= least[k]
        assert total >= min(least[k], sum(protected))
    assert met == enough
    best = list(range(len(found)))
    if Fair(np.array(protected), p, alpha).met(best):
        assert found == best


@settings(max_examples=80, deadline=None)
@given(st.lists(st.booleans(), min_size=3, max_size=30), st.integers(1, 15), SHARES, st.integers(1, 3))
def test_limits_hold_and_pinned_items_count(protected, N, p, most):
    kinds = [[str(i % 4)] for i in range(len(protected))]
    found, _ = ranking(protected, N, p, 0.1, pinned=[2], at_most=[(kinds.__getitem__, most)])
    assert found[0] == 2 and len(set(found)) == len(found)
    counts = np.bincount([i % 4 for i in found], minlength=4)
    assert counts.max() <= most
    least, has, left = Fair(np.zeros(1, bool), p, 0.1).minimums(N), int(protected[2]), [0, 0, 1, 0]
    for k, item in enumerate(found[1:], 1):  # what is taken is the best that may be
        may = [i for i in range(len(protected)) if i not in found[:k] and left[i % 4] < most]
        mine = [i for i in may if protected[i]]
        assert item == (mine[0] if has < least[k] and mine else may[0])
        has, left[item % 4] = has + protected[item], left[item % 4] + 1


# ---- at the recommender


@pytest.fixture(scope="module")
def data():
    return recsys.load_dataset("sample")


@pytest.fixture(scope="module")
def model(data):
    return recsys.Recommender("ease").fit(data)


FAIR = {"protected": {"genres": ["War"], "year": (None, 1990)}, "p": 0.6}


def test_every_way_to_make_lists_takes_it(model, data, tmp_path, caplog):
    known = data.item_features
    wanted = {
        item for item, genres, year in zip(data.item_ids, known["genres"], known["year"], strict=True)
        if "War" in genres.split("|") and float(year) <= 1990
    }  # fmt: skip
    caplog.set_level("INFO", logger="recsys")
    plain = model.recommend(["u0001", "u0002"], 8, why=False)
    found = model.recommend(["u0001", "u0002"], 8, why=False, fair=FAIR)
    least = table(8, 0.6, 0.1)
    for _, one in found.groupby("user"):
        has = np.cumsum([item in wanted for item in one["item"]])
        assert (has >= least).all()
    assert not plain.equals(found) and "protected group" not in caplog.text
    every = model.recommend_all(n=8, fair=FAIR)
    assert every[every["user"].isin(["u0001", "u0002"])].reset_index(drop=True).equals(found)
    history = model.recommend_history(["m0001"], 8, fair=FAIR)
    assert (np.cumsum([item in wanted for item in history["item"]]) >= least).all()
    unknown = model.recommend("nobody", 8, unknown="popular", fair=FAIR)
    assert (np.cumsum([item in wanted for item in unknown["item"]]) >= least).all()


def test_too_few_are_told(model, data, caplog):
    caplog.set_level("INFO", logger="recsys")
    one = str(data.item_features["title"].iloc[7])
    model.recommend(["u0001", "u0002"], 30, why=False, fair={"protected": {"title": one}, "p": 0.9})
    assert "2 lists have fewer items of the protected group than asked for" in caplog.text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"fair": 3}, "mapping"), ({"fair": {"p": 0.5}}, "mapping such as"), ({"fair": FAIR | {"q": 1}}, "not 'q'"),
        ({"fair": FAIR | {"p": 1.0}}, "fair's p must be above 0"), ({"fair": FAIR | {"alpha": 0}}, "fair's alpha"),
        ({"fair": {"protected": {"brand": 1}}}, "brand"), ({"fair": FAIR, "diversity": 0.5}, "leave one of them out"),
    ],
)  # fmt: skip
def test_wrong_rules_are_refused_in_a_line(model, given, says):
    with pytest.raises(InputError, match=says) as told:
        model.recommend("u0001", **given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("fair", [5, "x", []], ids=str)
def test_a_folder_refuses_what_a_list_refuses(model, tmp_path, fair):
    with pytest.raises(InputError, match="fair must be a mapping such as"):
        model.recommend_all(tmp_path / "top", 3, fair=fair)


@pytest.mark.parametrize(
    "rule", [{"pinned": ["m0001"]}, {"fair": FAIR}, {"at_most": {"genres": 2}}], ids=str
)
def test_a_list_longer_than_the_catalogue_is_all_of_it(model, data, rule):
    found = model.recommend("u0001", 10**12, why=False, **rule)
    assert (
        found["item"].tolist()
        == model.recommend("u0001", data.n_items, why=False, **rule)["item"].tolist()
    )
