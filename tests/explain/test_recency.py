"""How old likes are: counted one by one, and told in words that are true."""

from datetime import UTC, datetime

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, make_ranker
from recsys.datasets import load_dataset
from recsys.explain import Age, Reasons, ages, because, changes, in_time, reasons, what_if
from recsys.explain.text import ago
from recsys.rankers import fit_package, list_rankers
from recsys.utils.sparse import entries_of, row_of

DAY = 86_400.0


@pytest.fixture(scope="module")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="module")
def package(data):
    return fit_package(make_ranker("ease", recency=0.7), data, show_progress=False)


def calendar_days(first, last):
    return (datetime.fromtimestamp(last, UTC).date() - datetime.fromtimestamp(first, UTC).date()).days


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.integers(0, 19), st.integers(0, 12), min_size=1, max_size=12),
    st.sampled_from(["order", "dates"]),
    st.booleans(),
)
def test_ages_are_counted_one_by_one(likes, kind, back):
    scale, start = (DAY / 2.3, 1.2e9) if kind == "dates" else (1.0, 0.0)
    when = {k: (start + t * scale if t else 0.0) for k, t in likes.items()}
    row = row_of(list(likes), 20)
    times = entries_of(row, np.array([when[k] for k in row.indices]))
    as_of = start + 40 * scale if back else None
    found = ages(row, times, as_of)
    if len(set(when.values())) == 1:
        assert found == {}
        return
    assert set(found) == {k for k, t in when.items() if t > 0}
    for k, age in found.items():
        assert age.newer == sum(t > when[k] for t in when.values())
        assert age.alike == sum(t == when[k] for t in when.values()) - 1
        until = max(when.values()) if as_of is None else as_of
        assert age.days == (calendar_days(when[k], until) if kind == "dates" else None)
        assert bool(age.since) == (kind == "dates" and back)


def test_likes_that_left_the_profile_make_no_other_older():
    times = sp.csr_matrix([[3.0, 1.0, 2.0, 0.0]])
    assert ages(row_of([1, 2], 4), times)[1].newer == 1
    backwards = sp.csr_matrix(([2.0, 1.0], [2, 1], [0, 2]), (1, 4))  # in whichever order they are stored
    assert ages(backwards, backwards) == ages(row_of([1, 2], 4), times)
    assert backwards.indices.tolist() == [2, 1]
    with pytest.raises(InputError, match=r"times are of shape \(2, 4\) for a row of shape \(1, 4\)"):
        ages(row_of([1], 4), sp.vstack([times, times]))


def test_how_long_ago_is_told_in_units_that_have_passed():
    said = {
        (0, 0, 0): "your latest like", (0, 2, 0): "among your latest likes", (1, 0, 0): "1 like ago",
        (7, 0, 0): "7 likes ago", (7, 0, 1): "1 day before your latest like", (7, 0, 13): "13 days before your latest like",
        (7, 0, 14): "2 weeks before your latest like", (7, 0, 69): "9 weeks before your latest like",
        (7, 0, 70): "2 months before your latest like", (7, 0, 729): "24 months before your latest like",
        (7, 0, 730): "2 years before your latest like", (7, 0, 4000): "10 years before your latest like",
    }  # fmt: skip
    for (newer, alike, days), text in said.items():
        assert ago(Age(newer, alike, days)) == text
        assert ago(Age(newer, alike, days), word="rated") == text.replace("like", "rating")
        size = {"day": 1, "week": 7, "month": 30, "year": 365}
        if days:
            number, unit = text.split()[:2]
            assert int(number) * size[unit.removesuffix("s")] <= days
    assert ago(Age(3, 0, None)) == "3 likes ago"
    assert ago(Age(0, 0, 9, "2024-02-01")) == "9 days before 2024-02-01"
    assert ago(Age(0, 0, 0, "2024-02-01")) == "your latest like"


def test_a_sentence_names_what_days_are_counted_to_once():
    titles = np.array(["A", "B", "C"], dtype=object)
    old = {0: Age(3, 0, 9), 1: Age(0, 0, 0), 2: Age(5, 0, 21)}
    found = Reasons("exact", 1.0, 0.0, [(0, 0.5), (1, 0.3), (2, 0.2)], ages=old)
    assert because(titles, found, ratings={1: "4 of 5"}) == (
        "Because you liked A (9 days before your latest like), B [4 of 5] (your latest like) and C (3 weeks before it)."
    )
    some = Reasons("exact", 1.0, 0.0, [(0, 0.5), (1, 0.3)], ages={1: Age(2)})
    assert because(titles, some) == "Because you liked A and B (2 likes ago)."


def test_every_age_in_a_sentence_is_the_profiles(package, data):
    """Each '(n likes ago)' and '(n days before …)' of many sentences, against the rows of the data."""
    titles = np.array([f"<{k}>" for k in range(data.n_items)], dtype=object)
    checked = {"ago": 0, "day": 0, "latest": 0}
    for user in range(0, 400, 9):
        mine = {
            int(i): t for u, i, t in zip(data.users, data.items, data.time, strict=True) if u == user
        }
        last = max(mine.values())
        profile = package.profile(str(data.user_ids[user]))
        best = int(package.ranker.recommend(user, profile.row, N=1).ids[0])
        found = reasons(package.ranker, user, profile.row, best, times=profile.times)
        assert found == reasons(package.ranker, user, profile.row, best), "fitted times are known"
        text = because(titles, found)
        for part in text.split("<")[1:]:
            item, said = int(part.split(">")[0]), part.split("(")[1].split(")")[0]
            newer = sum(t > mine[item] for t in mine.values())
            days = calendar_days(mine[item], last)
            if said == "your latest like":
                assert newer == 0
                checked["latest"] += 1
            elif said.endswith(" ago"):
                assert int(said.split()[0]) == newer and days == 0
                checked["ago"] += 1
            else:
                number, unit = said.split()[:2]
                size = {"day": 1, "week": 7, "month": 30, "year": 365}[unit.removesuffix("s")]
                assert days // size == int(number) > 0
                checked["day"] += 1
    assert all(checked.values()), checked


def test_nothing_is_said_of_time_where_it_does_not_count(data):
    still = fit_package(make_ranker("ease"), data, show_progress=False)
    profile = still.profile("u0001")
    assert (
        not in_time(still.ranker)
        and reasons(still.ranker, 0, profile.row, 5, times=profile.times).ages == {}
    )
    moving = make_ranker("ease", recency=1.0).fit(data.matrix, show_progress=False)
    assert in_time(moving) and reasons(moving, 0, profile.row, 5).ages == {}, "nothing is known of when"
    constant = entries_of(profile.row, np.zeros(profile.row.nnz))
    assert reasons(moving, 0, profile.row, 5, times=constant).ages == {}


def test_models_in_time_are_those_whose_scores_change_with_it(data):
    known = data.matrix, fit_package(make_ranker("popularity"), data, show_progress=False).times
    matrix, times = known
    row = matrix[3]
    when, alike = times[3], entries_of(row, np.zeros(row.nnz))
    seen = set()
    for name in ("ease", "msdw", "slim", "cf-komd", "popularity", "slist"):
        if name not in list_rankers():
            continue
        for params in ({}, {"recency": 0.5}):
            if params and "recency" not in make_ranker(name).get_params():
                continue
            ranker = make_ranker(name, **params).fit(matrix, show_progress=False, times=times)
            with_, without = (
                ranker.scores(3, row, "fold-in" in ranker.capabilities, times=t) for t in (when, alike)
            )
            assert in_time(ranker) == (with_ != without).any(), (name, params)
            seen.add(in_time(ranker))
    assert seen == {True, False}


def test_shares_in_time_sum_to_the_score(package):
    for user in range(0, 400, 37):
        profile = package.profile(str(package.user_ids[user]))
        for item in (3, 50, 200):
            found = reasons(
                package.ranker, user, profile.row, item, profile.row.nnz, times=profile.times
            )
            assert sum(v for _, v in found.items) + found.bias == pytest.approx(found.score, abs=1e-5)
            score = package.ranker.scores(user, profile.row, times=profile.times)[0, item]
            assert found.score == pytest.approx(float(score), abs=1e-5)


@pytest.mark.parametrize("user", [2, 111])
def test_leaving_a_like_out_is_rescoring_the_others_with_their_times(package, user):
    profile = package.profile(str(package.user_ids[user]))
    row, when = profile.row, profile.when
    item = int(package.ranker.recommend(user, row, N=1).ids[0])
    found = what_if(package.ranker, user, row, item, times=profile.times)
    assert found == what_if(package.ranker, user, row, item), "fitted times are known"
    assert found.rank == 1 and len(found.tried) == row.nnz
    assert changes(package.ranker, user, row, item, 2, times=profile.times) == list(found.tried[:2])
    for change in found.tried:
        left = row.indices != change.without
        less = row_of(row.indices[left], row.shape[1])
        scores = package.ranker.scores(0, less, True, times=entries_of(less, when[left]))[0]
        assert change.score == pytest.approx(float(scores[item]), abs=1e-6)
        free = np.setdiff1d(np.arange(row.shape[1]), row.indices)
        better = [k for k in free if (-scores[k], k) < (-scores[item], item)]
        assert change.rank == len(better) + 1
    general = what_if(package.ranker, user, row, item, times=entries_of(row, np.zeros(row.nnz)))
    assert general.score != found.score


def test_times_of_another_shape_are_refused(package):
    profile = package.profile("u0001")
    for wrong in (profile.times[:, :-1], package.times[:2]):
        for asked in (reasons, what_if):
            with pytest.raises(InputError, match="times are of shape"):
                asked(package.ranker, 0, profile.row, 5, times=wrong)
