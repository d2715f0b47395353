"""Rules of taste: how often a planted one is recovered, how precise shown ones are, how fast.

Run as `python -m benchmarks.planted_rules` from the root. The catalogues' seeds were not used
while the search was developed. A decision tree of as many leaves reads its positive paths as a
rule from the same items and sampled others; the oracle tries every rule of two clauses of two
attributes at most and keeps the one that saves most bits.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks.lab.common import write_csv
from recsys import make_ranker
from recsys.datasets import load_dataset, planted_catalogue
from recsys.explain import Rule, item_attributes, item_rule, reasons, taste_rule
from recsys.explain.rules.rule import tidy

SEEDS = (9001, 9002, 9003, 9004)


def truth(text: str, names: tuple[str, ...]) -> Rule:
    at = {name: k for k, name in enumerate(names)}
    return tidy([[at[part.strip()] for part in clause.split("&")] for clause in text.split("|")], names)


def tree(X: np.ndarray, items: np.ndarray, popularity: np.ndarray, seed: int) -> Rule:
    """Return the literals that are true on a tree's positive paths, as a rule."""
    rng = np.random.default_rng(seed)
    keys = rng.exponential(size=len(X)) / (popularity + 0.5)
    keys[items] = np.inf
    others = np.argsort(keys)[: min(300, len(X) - len(items))]
    rows = np.concatenate([items, others])
    y = np.r_[np.ones(len(items)), np.zeros(len(others))]
    fitted = (
        DecisionTreeClassifier(max_leaf_nodes=4, class_weight="balanced", random_state=seed)
        .fit(X[rows], y)
        .tree_
    )
    clauses = []

    def walk(node: int, true: list[int]) -> None:
        if fitted.children_left[node] < 0:
            if fitted.value[node][0].argmax() == 1 and true:
                clauses.append(true)
            return
        walk(fitted.children_left[node], true)
        walk(fitted.children_right[node], [*true, int(fitted.feature[node])])

    walk(0, [])
    return tidy(clauses)


def oracle(X: np.ndarray, items: np.ndarray, popularity: np.ndarray) -> Rule:
    """Return the rule of at most two clauses of two attributes that saves most bits."""
    n, m = X.shape[1], len(items)
    pool = [c for size in (1, 2) for c in combinations(range(n), size)]
    covers = np.array([X[:, c].all(axis=1) for c in pool])
    weight = popularity + 0.5
    weight = weight / weight.sum()
    cost = np.array([len(c) * (1 + np.log2(n)) for c in pool])
    best, found = -np.inf, (0, 0)
    for a in range(len(pool)):
        both = covers[a] | covers[a:]
        k, share = both[:, items].sum(axis=1), both @ weight
        p = np.clip(k / m, 1e-9, 1 - 1e-9)
        share = np.clip(share, 1e-9, 1 - 1e-9)
        bits = k * np.log2(p / share) + (m - k) * np.log2((1 - p) / (1 - share)) - cost[a] - cost[a:]
        bits[0] += cost[a]
        bits[k / m <= share] = -np.inf
        if bits.max() > best:
            best, found = float(bits.max()), (a, a + int(bits.argmax()))
    return tidy([pool[k] for k in found])


def planted() -> None:
    rows = []
    for seed in SEEDS:
        made = planted_catalogue(300, 300, off_rule=0.27, seed=seed)
        data = made.interactions
        attributes, R = item_attributes(data, 1), data.matrix
        popularity = np.bincount(R.indices, minlength=R.shape[1]).astype(float)
        for user in range(R.shape[0]):
            items = R[user].indices
            if len(items) < 20:
                continue
            try:
                real = truth(made.rules[user], attributes.names)
            except KeyError:
                continue  # an attribute that no item has
            others = popularity - np.isin(np.arange(len(popularity)), items)
            shown = taste_rule(items, attributes, others, held_out=0.0, seed=user)
            assert shown is not None
            for method, rule in (
                ("ours", shown.rule),
                ("tree", tree(attributes.X, items, others, user)),
                ("oracle", oracle(attributes.X, items, others)),
            ):
                a, b = rule.covers(attributes.X), real.covers(attributes.X)
                rows.append((
                    seed, made.off_rule, len(attributes) - len({f for c in real.clauses for f in c}), user, method, rule == real,
                    bool(rule.clauses) and rule.implies(real), real.implies(rule), bool((~b | a).all()),
                    float((a & b).sum() / max((a | b).sum(), 1)), shown.shown if method == "ours" else "",
                ))  # fmt: skip
    columns = (
        "seed",
        "off_rule",
        "distractors",
        "user",
        "method",
        "equal",
        "implies_planted",
        "implied_by_planted",
        "covers_planted_items",
        "overlap",
        "shown",
    )
    write_csv("planted_rules", columns, rows)
    out = []
    for method in ("ours", "tree", "oracle"):
        mine = [row for row in rows if row[4] == method]
        out.append(
            (method, len(mine), *(float(np.mean([row[k] for row in mine])) for k in (5, 6, 7, 8, 9)))
        )
        print(out[-1])
    write_csv(
        "planted_rules_rates",
        (
            "method",
            "users",
            "equal",
            "implies_planted",
            "implied_by_planted",
            "covers_planted_items",
            "overlap",
        ),
        out,
    )
    print(
        "least off-rule share",
        min(row[1] for row in rows),
        "fewest distractors",
        min(row[2] for row in rows),
    )


def movielens() -> None:
    data = load_dataset("movielens")
    attributes, R = item_attributes(data), data.matrix
    popularity = np.bincount(R.indices, minlength=R.shape[1]).astype(float)
    found = []
    started = time.perf_counter()
    for user in range(R.shape[0]):
        items = R[user].indices
        if len(items) >= 20:
            others = popularity - np.isin(np.arange(len(popularity)), items)
            found.append(taste_rule(items, attributes, others, seed=user))
    each = (time.perf_counter() - started) / len(found)
    shown = [f for f in found if f is not None and f.shown]
    row = (
        len(found), len(shown) / len(found), float(np.mean([f.precision for f in shown])), float(np.mean([f.base for f in shown])),
        float(np.mean([f.precision / f.base for f in shown])), float(np.mean([f.fidelity for f in shown])), 1000 * each,
    )  # fmt: skip
    print(row)
    write_csv(
        "taste_movielens",
        ("users", "shown", "precision", "base", "mean_lift", "fidelity", "milliseconds"),
        [row],
    )


def latency() -> None:
    data = load_dataset("movielens-1m")
    R = data.matrix
    rows = []
    for name in ("cf-komd", "ease", "msdw", "als"):
        model = make_ranker(name).fit(R, show_progress=False)
        times = []
        for user in range(0, 6000, 60):
            row = R[user]
            item = int(model.recommend(user, row, N=1)[0][0])
            started = time.perf_counter()
            reasons(model, user, row, item)
            item_rule(R, row.indices, item, exclude=user)
            times.append(1000 * (time.perf_counter() - started))
        rows.append(
            (
                name,
                float(np.median(times[1:])),
                float(np.percentile(times[1:], 99)),
                float(max(times[1:])),
            )
        )
        print(rows[-1])
    write_csv("explain_latency", ("model", "median_ms", "p99_ms", "max_ms"), rows)


if __name__ == "__main__":
    planted()
    movielens()
    latency()
