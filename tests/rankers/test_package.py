"""Packages and profiles: who liked what, and when."""

from dataclasses import replace

import numpy as np
import pytest

from recsys import CapabilityError, InputError, make_ranker
from recsys.data import Interactions
from recsys.rankers import fit_package, load_package

USERS = ["ada"] * 4 + ["bob"] * 2 + ["cy"]
ITEMS = ["d", "a", "c", "b", "b", "a", "d"]
DAYS = ["2024-01-05", "2024-01-01", "2024-03-01", "2024-01-05", "2024-02-01", "2023-12-24", "2024-02-29"]
SECONDS = np.array(DAYS, dtype="datetime64[s]").astype(np.float64)


def package_of(times=SECONDS, ranker="ease"):
    data = Interactions.from_ids(USERS, ITEMS, time=times)
    return fit_package(make_ranker(ranker), data, show_progress=False)


def liked(package, profile):
    """Return {item id: time} of a profile."""
    return {
        str(package.item_ids[k]): t for k, t in zip(profile.row.indices, profile.times.data, strict=True)
    }


def test_a_package_keeps_when_each_like_happened_and_its_file_too(tmp_path):
    package = package_of()
    package.save(tmp_path / "m")
    for one in (package, load_package(tmp_path / "m")):
        assert (one.times.indices == one.user_items.indices).all()
        for user in set(USERS):
            mine = {i: t for u, i, t in zip(USERS, ITEMS, SECONDS, strict=True) if u == user}
            assert liked(one, one.profile(user)) == mine
    untimed = package_of(None)
    untimed.save(tmp_path / "m")
    assert load_package(tmp_path / "m").times is None
    assert untimed.profile("ada").times is None


def test_unknown_times_are_kept_as_the_oldest(tmp_path):
    data = Interactions.from_ids(["u"] * 3, ["a", "b", "c"], time=[3.0, -np.inf, 1.0])
    package = fit_package(make_ranker("ease"), data, show_progress=False)
    package.save(tmp_path / "m")
    package = load_package(tmp_path / "m")
    assert liked(package, package.profile("u")) == {"a": 3.0, "b": 0.0, "c": 1.0}


def test_a_user_as_fitted_is_not_folded_in():
    profile = package_of().profile("bob")
    assert not profile.fold_in and profile.options["times"] is None and profile.times.nnz == 2


def test_a_history_is_in_order_or_has_times():
    package = package_of()
    assert liked(package, package.profile(history=["c", "a", "d"])) == {"c": 1.0, "a": 2.0, "d": 3.0}
    times = ["2024-01-02", 5, "7"]
    assert liked(package, package.profile(history=["c", "a", "d"], times=times)) == {
        "c": SECONDS[1] + 86_400,
        "a": 5.0,
        "d": 7.0,
    }
    found = package.profile(history=["c", "nope", "d"], skip_unknown=True)
    assert found.unknown == ("nope",) and liked(package, found) == {"c": 1.0, "d": 3.0}
    empty = package.profile(history=[])
    assert empty.row.nnz == empty.times.nnz == 0
    assert package_of(None).profile(history=["a"]).times.data.tolist() == [1.0], "its order is known"


def test_a_history_has_weights_for_a_ranker_that_takes_them():
    package = package_of(ranker="cosine")
    found = package.profile(history=["d", "nope", "a"], weights=[4, 9, 0.5], skip_unknown=True)
    much = {str(package.item_ids[k]): w for k, w in zip(found.row.indices, found.row.data, strict=True)}
    assert much == {"d": 4.0, "a": 0.5} and liked(package, found) == {"d": 1.0, "a": 3.0}
    assert package.profile(history=["d", "a"]).row.data.tolist() == [1.0, 1.0]
    for weights, text in (
        ([1], "weights must be a list of 2, one per item of the history"),
        (
            [1, 0],
            "weight of item 'd' must be a finite number of at least 1e-09 and at most 1e\\+09, not 0",
        ),
        ([1, 1e-50], "weight of item 'd' must be .*, not 1e-50"),
        ([1e39, 1], "weight of item 'a' must be .*, not 1e\\+39"),
        (3, "weights must be a list of 2, one per item of the history"),
        ([np.nan, 1], "weight of item 'a' must be .*, not nan"),
        (["1", 1], "weight of item 'a' must be .*, not '1'"),
    ):
        with pytest.raises(InputError, match=f"^{text}$"):
            package.profile(history=["a", "d"], weights=weights)
    with pytest.raises(InputError, match="^ease does not use weights: leave them out"):
        package_of().profile(history=["a"], weights=[2])


REFUSED = {
    "twice": ({"history": ["a", "b", "a"]}, "item 'a' is in the history twice: list each item once"),
    "unknown twice": ({"history": ["x", "x"]}, "item 'x' is in the history twice"),
    "lengths": ({"history": ["a", "b"], "times": [1]}, "times must be a list of 2, one per item"),
    "no time": (
        {"history": ["a"], "times": ["x"]},
        "time of item 'a', 'x' is not a time: use a number or an ISO date",
    ),
    "NaN": ({"history": ["a"], "times": [np.nan]}, "time of item 'a', nan is not a time"),
    "negative": ({"history": ["a"], "times": [-1.0]}, "time of item 'a', -1.0 is before 1970"),
    "times of a user": ({"user": "ada", "times": [1]}, "times and weights need a history"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_profile_is_refused_in_one_line(case):
    given, text = REFUSED[case]
    with pytest.raises(InputError) as caught:
        package_of().profile(**given)
    assert str(caught.value).startswith(text) and "\n" not in str(caught.value)


def test_a_history_is_for_a_ranker_that_folds_in():
    fixed = replace(package_of(), ranker=make_ranker("bpr"))
    with pytest.raises(CapabilityError, match="bpr cannot rank a history"):
        fixed.profile(history=["a"])
