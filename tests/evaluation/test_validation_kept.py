"""leave-one-out:validation=kept: the item before the last is in the input, and no model is fitted on it."""

import numpy as np
import pytest

from recsys import evaluate, make_ranker
from recsys.data import Interactions, split
from recsys.data.side_information import SideInformation
from recsys.evaluation.metrics import METRICS

KEPT = "leave-one-out:validation=kept"


def drawn(seed, with_times=True):
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, [25, 18], (180, 2)), axis=0)
    rng.shuffle(pairs)
    time = rng.integers(0, 40, len(pairs)).astype(float) if with_times else None
    names = [
        np.array([f"{kind}{k:02d}" for k in range(n)], dtype=object)
        for kind, n in (("u", 25), ("i", 18))
    ]
    users, items = pairs.T
    return Interactions(users, items, *names, time=time, name="drawn")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_times", [True, False])
def test_the_fold_by_brute_force(seed, with_times):
    data = drawn(seed, with_times)
    (fold,), (plain,) = list(split(data, KEPT, seed=seed)), list(split(data, "leave-one-out", seed=seed))
    assert (fold.test != plain.test).nnz == 0 and (fold.train != plain.train).nnz == 0
    kept = fold.train - fold.fitted
    assert kept.min() >= 0
    for user in range(data.n_users):
        mine = np.flatnonzero(data.users == user)
        assert kept[user].nnz == (len(mine) > 2)
        if with_times and len(mine) > 2:
            times = {item: t for item, t in zip(data.items[mine], data.time[mine], strict=True)}
            (second,), (last,) = kept[user].indices, fold.test[user].indices
            others = [times[item] for item in fold.fitted[user].indices]
            assert max(others) <= times[second] <= times[last]


@pytest.mark.parametrize(
    "spec",
    [
        ("ease", {}),
        ("cf-komd", {"recency": 1.0}),
        ("slist", {}),
        ("als", {"factors": 4, "iterations": 3}),
    ],
)
def test_evaluate_fits_on_less_than_it_gives(spec):
    name, params = spec
    data = drawn(0)
    report = evaluate(
        data, {name: make_ranker(name, **params)}, protocol=KEPT, metrics=["ndcg@5"], seed=3
    )
    fold = next(split(data, KEPT, seed=3))
    times = SideInformation(data, KEPT).times
    model = make_ranker(name, **params)
    known = {"times": times.multiply(fold.fitted != 0).tocsr()} if "times" in model.wanted() else {}
    model.fit(fold.fitted, show_progress=False, **known)
    asked = {"times": times.multiply(fold.train != 0).tocsr()[fold.users]} if known else {}
    scores = model.scores(fold.users, fold.train[fold.users], **asked)
    gains = []
    for row, user in enumerate(fold.users):
        (target,) = fold.test[user].indices
        rest = np.setdiff1d(np.arange(data.n_items), fold.train[user].indices)
        above = (scores[row, rest] > scores[row, target]).sum()
        equal = (scores[row, rest] == scores[row, target]).sum()
        at = np.arange(above, above + equal)
        gains.append(np.where(at < 5, 1 / np.log2(at + 2.0), 0.0).mean())
    assert "ndcg" in METRICS
    assert report.results[0].metrics["ndcg@5"].mean == pytest.approx(np.mean(gains), abs=1e-6)
