"""Lists of 500 users with reasons and without, and one explanation, by each ranker, on 60,000 made-up items.

    python -m benchmarks.reasons [RANKER …]

Rankers that take minutes to fit are set smaller, which the column `model` says. CPU seconds, the least of three
turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import recsys
from benchmarks.lab.common import Results, arguments

SEED, ITEMS, LIKES = 3, 60_000, 150_000
USERS, EXPLAINED, TURNS = 500, 20, 3
COLUMNS = ("ranker", "model", "without", "with", "ratio", "one explanation, ms")
SMALLER = {
    "all-subsets": "iterations=1",
    "als": "iterations=5",
    "blend": "models=ease:top_k=50+cf-komd+als",
    "bpr": "iterations=5",
    "ease": "top_k=50",
    "hofm": "factors=6,iterations=1",
    "lmf": "iterations=5",
    "pairnet": "factors=6,iterations=2",
    "slim": "top_k=50,iterations=5",
}
LEFT_OUT = {
    "auto": "a blend of others",
    "content": "needs item features",
    "honfm": "minutes of PyTorch",
    "pair-dnn": "minutes of PyTorch",
    "pair-svm": "stores features × items",
}


def made_up() -> recsys.Interactions:
    """Return likes with long tails of users and of items, a fiftieth of the likes of one user at most."""
    rng = np.random.default_rng(SEED)
    activity = rng.pareto(1.5, 2_500) + 1
    activity = np.minimum(activity, 0.02 * activity.sum())
    users = rng.choice(len(activity), LIKES, p=activity / activity.sum())
    items = (ITEMS * rng.random(LIKES) ** 3).astype(int)
    table = pd.DataFrame({"user": users, "item": items}).astype(str).drop_duplicates()
    return recsys.Interactions.from_frame(table, user="user", item="item")


def seconds(function: Callable[[], Any]) -> float:
    """Return the least processor seconds of some calls."""
    out = []
    for _ in range(TURNS):
        started = time.process_time()
        function()
        out.append(time.process_time() - started)
    return min(out)


def measured(name: str, data: recsys.Interactions) -> tuple[Any, ...]:
    """Return a ranker's row."""
    spec = name + (":" + SMALLER[name] if name in SMALLER else "")
    model = recsys.Recommender(spec).fit(data)
    rng = np.random.default_rng(1)
    users = rng.choice(model.user_ids, USERS, replace=False).tolist()
    tops = model.recommend(users, n=10, why=True)  # compiles
    without, reasons = (
        seconds(lambda why=why: model.recommend(users, n=10, why=why)) for why in (False, True)
    )
    pairs = tops[tops["rank"] == 1][["user", "item"]].to_numpy()[:EXPLAINED]
    one = seconds(lambda: [model.explain(user, item) for user, item in pairs]) / len(pairs)
    return name, spec, without, reasons, reasons / without, 1000 * one


def main() -> None:
    results = Results("reasons", COLUMNS)
    names = [
        (name,) for name in arguments(name for name in recsys.list_rankers() if name not in LEFT_OUT)
    ]
    data = made_up()
    for (name,) in results.missing(names):
        results.add(measured(name, data))


if __name__ == "__main__":
    main()
