"""False discoveries among the rules of all users, and rules of deployed rankers.

`rule_discoveries.csv`: planted catalogues, where a half of the users, drawn at random, gets a profile of the
same length that follows the items' odds and nothing else. A rule shown for one of them is false. Means
over the catalogues, of the p-values themselves and of Benjamini–Hochberg's and Benjamini–Yekutieli's control.
A rule of somebody who has a taste counts as true, also where it is not that taste.

`rule_discoveries_null.csv`: worlds where nobody has a taste, by a Rasch model whose activities are
log-normal, with attributes of which one is popular with everybody: how often p-values are small.

`rule_discoveries_rankers.csv`: each user's top set against the rest of the catalogue, on the half of the items
that the rule was not learned from. "shuffled" is the ranker's list in a random order: nothing to find.

    python -m benchmarks.lab.rule_discoveries [likes] [null] [rankers]
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import each, write_csv
from recsys import make_ranker
from recsys.datasets import load_dataset, planted_catalogue
from recsys.explain import (
    Attributes,
    RuleTest,
    discover,
    item_attributes,
    item_odds,
    likes_rule,
    ranker_rule,
)

CATALOGUES, LEVELS, TOP, USERS = 5, (0.05, 0.1), 50, 150
CONTROLS = ("none", "positive", "any")


def tasteless(odds: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return a set of so many items, with a probability in proportion to the product of its odds."""
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        c = np.exp(middle) * odds
        low, high = (middle, high) if (c / (1 + c)).sum() < length else (low, middle)
    chance = c / (1 + c)
    while True:
        drawn = np.flatnonzero(rng.random(len(odds)) < chance)
        if len(drawn) == length:
            return drawn


def catalogue(seed: int) -> tuple[list[bool], list[RuleTest | None]]:
    """Return of each user whether there is a taste, and the rule that was tested."""
    data = planted_catalogue(300, 300, seed=9100 + seed).interactions
    rng = np.random.default_rng(seed)
    rows = [data.matrix[u].indices for u in range(data.n_users)]
    odds = np.maximum(item_odds(data.matrix), 1e-6)
    taste = (rng.random(data.n_users) < 0.5).tolist()
    rows = [row if has else tasteless(odds, len(row), rng) for row, has in zip(rows, taste, strict=True)]
    likes = sp.csr_matrix(
        (np.ones(sum(map(len, rows))), np.concatenate(rows), np.r_[0, np.cumsum([*map(len, rows)])]),
        data.matrix.shape,
    )
    counts, attributes = np.asarray(likes.sum(axis=0)).ravel(), item_attributes(data)
    odds, found = item_odds(likes), []
    for u, row in enumerate(rows):
        others = counts.copy()
        others[row] -= 1
        found.append(likes_rule(row, attributes, others, odds, seed=u))
    return taste, found


def likes() -> None:
    made = each(catalogue, [(seed,) for seed in range(CATALOGUES)])
    rows = []
    for level in LEVELS:
        for control in CONTROLS:
            figures = []
            for taste, found in made:
                tested = [u for u, rule in enumerate(found) if rule is not None]
                if control == "none":
                    shown = {u for u in tested if found[u].p_value <= level}
                else:
                    shown = {d.user for d in discover(enumerate(found), level, control) if d.shown}
                false = sum(not taste[u] for u in shown)
                empty = sum(not taste[u] for u in tested)
                real = sum(taste[u] for u in tested)
                figures.append(
                    (len(tested), len(shown), false, false / max(len(shown), 1),
                     false / max(empty, 1), (len(shown) - false) / max(real, 1))
                )  # fmt: skip
            rows.append((level, control, *map(float, np.mean(figures, axis=0))))
            print(rows[-1], flush=True)
    heads = ("tested", "shown", "false", "false_share", "shown_of_no_taste", "shown_of_taste")
    write_csv("rule_discoveries", ("level", "control", *heads), rows)


# users, items, spread of the logarithms of activity, share of items with a hundredth of their odds
WORLDS = (
    (300, 300, 0.5, 0.0),
    (300, 300, 1.0, 0.0),
    (300, 300, 2.0, 0.0),
    (60, 1500, 0.5, 0.8),
    (20, 400, 0.5, 0.0),
)
PEOPLE, REPEATED = 10, 20


def world(users: int, items: int, spread: float, rare: float, seed: int) -> list[float]:
    """Return the p-values of rules of some people who have no taste."""
    rng = np.random.default_rng([users, items, seed])
    X = (rng.random((items, 8)) < 0.2).astype(np.uint8)
    odds = np.exp(-3.0 + 2.5 * X[:, 0] + rng.normal(0, 0.3, items))
    odds[rng.random(items) < rare] *= 0.01
    chance = np.exp(rng.normal(0, spread, users))[:, None] * odds
    liked = rng.random((users, items)) < chance / (1 + chance)
    known, counts = item_odds(liked.astype(np.float32)), liked.sum(axis=0)
    attributes, out = Attributes(X, tuple("abcdefgh")), []
    for u in np.flatnonzero(liked.sum(axis=1) >= 10)[:PEOPLE]:
        found = likes_rule(np.flatnonzero(liked[u]), attributes, counts - liked[u], known, seed=int(u))
        out += [found.p_value] if found is not None else []
    return out


def null() -> None:
    rows = []
    for about in WORLDS:
        p = np.array(sum(each(world, [(*about, seed) for seed in range(REPEATED)]), []))
        rows.append((*about, len(p), *(float(np.mean(p <= level)) for level in (0.05, 0.01, 0.001))))
        print(rows[-1], flush=True)
    heads = ("users", "items", "activity_spread", "rare", "tested", "p_0.05", "p_0.01", "p_0.001")
    write_csv("rule_discoveries_null", heads, rows)


def of_ranker(dataset: str, spec: str) -> tuple:
    data = load_dataset(dataset)
    attributes = item_attributes(data)
    shuffled = spec == "shuffled"
    ranker = make_ranker("ease" if shuffled else spec).fit(data.matrix)
    rng = np.random.default_rng(0)
    found = []
    for u in rng.permutation(data.n_users)[:USERS]:
        row = data.matrix[u]
        scores = np.asarray(ranker.scores(int(u), row)).ravel()
        others = np.setdiff1d(np.arange(data.n_items), row.indices)
        order = others[np.argsort(-scores[others], kind="stable")]
        if shuffled:
            order = rng.permutation(order)
        found.append((int(u), ranker_rule(order, attributes, TOP, seed=int(u))))
    shown = [d.found for d in discover(found, 0.05) if d.shown]

    def mean(values: list[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    return (
        dataset, spec, len(found), sum(rule is not None for _, rule in found), len(shown),
        mean([rule.precision for rule in shown]), mean([rule.base for rule in shown]),
        mean([rule.hits / rule.tested for rule in shown]), mean([rule.fidelity for rule in shown]),
        mean([float(rule.rule.literals) for rule in shown]),
    )  # fmt: skip


def rankers() -> None:
    specs = ("ease", "cf-komd", "msdw", "popularity", "shuffled")
    jobs = [(dataset, spec) for dataset in ("movielens", "movielens-latest-small") for spec in specs]
    rows = each(of_ranker, jobs)
    heads = ("users", "tested", "shown", "precision", "base", "recall", "fidelity", "literals")
    write_csv("rule_discoveries_rankers", ("dataset", "ranker", *heads), rows)


if __name__ == "__main__":
    for what in sys.argv[1:] or ["likes", "null", "rankers"]:
        {"likes": likes, "null": null, "rankers": rankers}[what]()
