"""Counterfactuals of several items against loops that fold in each changed profile by itself."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, make_ranker
from recsys.datasets import load_dataset
from recsys.explain import Steps, into_list, out_of_list, reasons
from recsys.explain.text import falls, rises

R = load_dataset("sample").matrix
ITEMS = R.shape[1]


@pytest.fixture(scope="module", params=["ease", "cf-komd", "als", "slist"])
def model(request):
    data = load_dataset("sample")
    if request.param == "slist":
        from recsys.rankers.catalogue import times_of

        return make_ranker("slist").fit(R, show_progress=False, times=times_of(data))
    return make_ranker(request.param).fit(R, show_progress=False)


def place_of(model, likes, item, out, times=None):
    """The place of an item for somebody with these likes, among all that is neither liked nor out."""
    row = sp.csr_matrix((np.ones(len(likes)), (np.zeros(len(likes), int), likes)), (1, ITEMS))
    row = row.astype(np.float32)
    when = None
    if times is not None:
        when = sp.csr_matrix(([times[k] for k in likes], (np.zeros(len(likes), int), likes)), (1, ITEMS))
    scores = model.scores([0], row, recalculate_user=True, times=when)[0]
    rivals = [k for k in range(ITEMS) if k not in out and k != item]
    better = sum(scores[k] > scores[item] or (scores[k] == scores[item] and k < item) for k in rivals)
    return better + 1, float(scores[item])


def times_for(model, user):
    if not model.reads_times():
        return None
    row = model.times_[user]
    return {int(k): float(t) for k, t in zip(row.indices, row.data, strict=True)}


@pytest.mark.thorough
@pytest.mark.parametrize("user", [3, 57])
def test_an_item_falls_as_each_profile_without_says(model, user):
    likes = R[user].indices.tolist()
    times = times_for(model, user)
    out = {*likes, 7}
    best = int(model.recommend(user, R[user], N=1, filter_items=[7]).ids[0])
    path = out_of_list(model, user, R[user], best, first=3, most=3, leave_out=[7])
    assert path.rank == place_of(model, likes, best, out, times)[0] == 1
    named = [k for k, value in reasons(model, user, R[user], best, 40).items if value > 0]
    left, gone = list(likes), []
    for item, place in zip(path.items, path.ranks, strict=True):
        each = {k: place_of(model, [j for j in left if j != k], best, out, times) for k in named}
        worst = min(each.values(), key=lambda found: (-found[0], found[1]))
        assert each[item][0] == worst[0] == place
        left.remove(item)
        named.remove(item)
        gone.append(item)
        assert all(before <= 3 for before in path.ranks[: len(gone) - 1])
    assert path.reached == (path.ranks[-1] > 3) and (path.reached or len(path.items) == 3)


@pytest.mark.thorough
@pytest.mark.parametrize("user", [3, 57])
def test_an_item_rises_as_each_profile_with_more_says(model, user):
    likes = R[user].indices.tolist()
    times = times_for(model, user)
    item = int(model.recommend(user, R[user], N=40).ids[39])
    offered = [k for k in range(0, ITEMS, 9) if k not in likes and k != item]
    path = into_list(model, user, R[user], item, [*offered, item, likes[0]], goal=5, most=2)
    assert path.rank == place_of(model, likes, item, {*likes}, times)[0]
    have = list(likes)
    for more, place in zip(path.items, path.ranks, strict=True):
        each = {}
        for k in offered:
            if k in have:
                continue
            when = None if times is None else {**times, k: max(times.values()) + 1}
            each[k] = place_of(model, [*have, k], item, {*have, k}, when)
        best = min(found[0] for found in each.values())
        assert each[more][0] == best == place
        have.append(more)
        if times is not None:
            times = {**times, more: max(times.values()) + 1}
    assert path.reached == ((path.ranks or [path.rank])[-1] <= 5)


def test_models_that_take_no_changed_rows_answer_with_the_place_only():
    model = make_ranker("popularity").fit(R, show_progress=False)
    best = int(model.recommend(3, R[3], N=1).ids[0])
    path = out_of_list(model, 3, R[3], best)
    assert path.rank == 1 and not path.items and not path.reached and falls(R[0].indices, path) == ""
    assert into_list(model, 3, R[3], best, range(ITEMS)).reached


def test_one_liked_item_stays_and_wrong_numbers_are_refused():
    model = make_ranker("ease").fit(R, show_progress=False)
    two = sp.csr_matrix(([1.0, 1.0], ([0, 0], [4, 9])), (1, ITEMS), dtype=np.float32)
    best = int(model.recommend(0, two, N=1, recalculate_user=True).ids[0])
    assert len(out_of_list(model, 0, two, best, first=250).items) <= 1
    with pytest.raises(InputError, match="goal"):
        into_list(model, 0, two, best, [1], goal=0)
    with pytest.raises(InputError, match="first"):
        out_of_list(model, 0, two, best, first=0)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (Steps(1, (0,), (11,), 10, True), "Without A it falls from rank 1 to 11, out of the first 10."),
        (
            Steps(1, (0, 1), (2, 3), 10, False),
            "Even without 2 liked items (A and B) it stays among the first 10, at rank 3.",
        ),
        (Steps(4, (), (), 10, False), ""),
    ],
)
def test_falls_reads_as_a_sentence(path, told):
    assert falls(["A", "B"], path) == told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (Steps(14, (0, 1), (6, 1), 1, True), "With A and B liked too it rises from rank 14 to 1."),
        (
            Steps(14, (0,), (6,), 1, False),
            "With A liked too it rises from rank 14 to 6, still short of 1.",
        ),
        (Steps(4, (0,), (4,), 1, False), "With A liked too its score rises, but it stays at rank 4."),
        (Steps(4, (), (), 1, False), ""),
    ],
)
def test_rises_reads_as_a_sentence(path, told):
    assert rises(["A", "B"], path) == told
