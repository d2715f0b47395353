"""Candidates for each user in one call."""

import pandas as pd
import pytest

from recsys import InputError, Recommender, load_dataset


@pytest.fixture(scope="module")
def model():
    return Recommender("ease").fit(load_dataset("sample"))


def test_each_user_gets_items_among_the_own_candidates(model):
    users, items = model.user_ids[:5].tolist(), model.item_ids.tolist()
    asked = {user: items[k : k + 40] for k, user in enumerate(users)}
    found = model.recommend(users, n=4, items=asked)
    alone = pd.concat(
        [model.recommend(user, n=4, items=asked[user]) for user in users], ignore_index=True
    )
    pd.testing.assert_frame_equal(found, alone)
    for user, rows in found.groupby("user"):
        assert set(rows["item"]) <= set(asked[user]) and rows["score"].is_monotonic_decreasing


def test_users_who_are_not_known_get_popular_items_among_theirs(model):
    known, items = model.user_ids[0], model.item_ids.tolist()
    asked = {known: items[:50], "nobody": items[50:60]}
    found = model.recommend([known, "nobody"], n=3, items=asked, unknown="popular")
    assert set(found[found["user"] == "nobody"]["item"]) <= set(items[50:60])
    assert found["source"].tolist() == ["model"] * 3 + ["popular"] * 3
    skipped = model.recommend([known, "nobody"], n=3, items=asked, unknown="skip")
    assert set(skipped["user"]) == {known}


def test_an_error_names_the_user(model):
    one, other = model.user_ids[:2].tolist()
    for wrong, told in ((["nothing"], "unknown item id 'nothing'"), ([], "no item passes items")):
        with pytest.raises(InputError, match=f"user {other!r}: {told}"):
            model.recommend([one, other], items={one: model.item_ids[:5].tolist(), other: wrong})


def test_a_user_without_candidates_is_refused(model):
    one, other = model.user_ids[:2].tolist()
    with pytest.raises(InputError, match=f"items has no candidates for user {other!r}"):
        model.recommend([one, other], items={one: model.item_ids[:5].tolist()})
