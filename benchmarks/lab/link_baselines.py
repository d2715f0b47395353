"""Link predictors at their defaults beside common neighbors, resource allocation and Katz.

On ids alone and with features: `python -m benchmarks.lab.link_baselines [GRAPH…]`. A part of the name
after a colon gives the model's parameters, as in `recsys.links.make_link_predictor`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import write_csv
from benchmarks.lab.graphs import load_graph
from recsys.datasets import load_dataset
from recsys.datasets.graphs import Graph, Objects
from recsys.links import compare_links

BASELINES = ("common-neighbors", "resource-allocation", "katz")
MODELS = ("bilinear", "fm", "pairnet")
SEEDS = 3


def blocks(n: int = 400, groups: int = 8) -> Graph:
    """Return a stochastic block model of one kind of objects."""
    rng = np.random.default_rng(0)
    group = rng.integers(groups, size=n)
    chance = np.where(group[:, None] == group, 0.12, 0.01)
    return of_ids(n, None, np.argwhere(np.triu(rng.random((n, n)) < chance, 1)))


def tastes(users: int = 400, items: int = 250, k: int = 6) -> Graph:
    """Return links of two kinds, by products of factors and by popularity."""
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(users, k)), rng.normal(size=(items, k))
    popularity = 1.5 * rng.normal(size=items)
    logits = U @ V.T + popularity + rng.normal(size=users)[:, None] - 6.0
    return of_ids(users, items, np.argwhere(rng.random(logits.shape) < 1 / (1 + np.exp(-logits))))


def liked(name: str, least: float) -> Graph:
    """Return the ratings of at least so much as links."""
    data = load_dataset(name)
    up = np.asarray(data.rating) >= least
    pairs = np.column_stack([data.users, data.items])[up].astype(np.int64)
    return of_ids(data.n_users, data.n_items, pairs)


def of_ids(n_left: int, n_right: int | None, links: np.ndarray) -> Graph:
    ends = [
        Objects.of("object", list(map(str, range(n))), list(map(str, range(n))))
        for n in (n_left, n_right or n_left)
    ]
    B = None if n_right is None else sp.eye(n_right, format="csr")
    return Graph(sp.csr_matrix(sp.eye(n_left)), B, links, *ends, weighting="none", by_id=True)


def known_graph(name: str) -> Graph:
    return load_graph(name, os.environ["RECSYS_DATA"]).weighted()


GRAPHS: dict[str, Callable[[], Graph]] = {
    "blocks": blocks,
    "tastes": tastes,
    "cora": lambda: known_graph("cora"),
    "nips": lambda: known_graph("nips"),
    "movielens": lambda: known_graph("movielens"),
    "filmtrust": lambda: liked("filmtrust", 3.5),
    "ciaodvd": lambda: liked("ciaodvd", 5.0),
}


def main(names: list[str], models: list[str]) -> None:
    """Write the mean AUC of each model over the splits, and how far the best baseline is above."""
    rows = []
    for name in names:
        graph = GRAPHS[name]()
        n_left, n_right = graph.sizes
        alone = of_ids(n_left, n_right, graph.links)
        for kind, one in (("ids", alone), ("features", graph)):
            if kind == "features" and graph.by_id:
                continue
            every = [*BASELINES, *models] if kind == "ids" else models
            found = [compare_links(one, every, seed=seed) for seed in range(SEEDS)]
            aucs = np.array([[result.metrics.auc for result in results] for results in found])
            if kind == "ids":
                best = aucs[:, : len(BASELINES)].max(axis=1)
            for model, values in zip(every, aucs.T, strict=True):
                rows.append((name, kind, model, values.mean(), (values - best).mean()))
                print(*rows[-1], flush=True)
    write_csv("link_baselines", ("graph", "known", "model", "auc", "above the best baseline"), rows)


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen = [name for name in given if name in GRAPHS] or list(GRAPHS)
    main(chosen, [name for name in given if name not in GRAPHS] or list(MODELS))
