"""Link predictors at their defaults beside baselines that use the known links alone.

Objects of NIPS, Cora and the made-up `blocks` are of one kind; MovieLens (ratings of 5), FilmTrust, CiaoDVD and
the made-up `tastes` join two kinds. Their features are their ids, or their ids and their own ones. A value is
the mean of five splits with its standard error; `behind` is its distance to the best baseline.

    python -m benchmarks.lab.link_predictors [GRAPH…]
"""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import Results, arguments
from benchmarks.lab.graphs import load_graph
from recsys.datasets import load_dataset
from recsys.datasets.graphs import Graph, Objects
from recsys.links import compare_links

BASELINES = ["common-neighbors", "resource-allocation", "katz"]
MODELS = ["bilinear", "fm", "pairnet"]
GRAPHS = ("nips", "cora", "movielens", "filmtrust", "ciaodvd", "blocks", "tastes")
PLAIN = ("filmtrust", "ciaodvd")  # without features of objects


def graph_by(links: np.ndarray, A: sp.csr_matrix, B: sp.csr_matrix | None = None) -> Graph:
    unnamed = Objects.of("object", (), ())
    return Graph(A, B, links.astype(np.int64), unnamed, unnamed)


def ones(columns: np.ndarray) -> sp.csr_matrix:
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns.ravel())))


def blocks(n: int = 600, groups: int = 6) -> Graph:
    """Draw links, ten times as likely in a group, and three words, half of them of the group."""
    rng = np.random.default_rng(0)
    group = rng.integers(groups, size=n)
    chance = np.where(group[:, None] == group, 0.10, 0.01)
    own = 10 * group[:, None] + rng.integers(10, size=(n, 3))
    words = np.where(rng.random((n, 3)) < 0.5, own, rng.integers(10 * groups, size=(n, 3)))
    return graph_by(np.argwhere(np.triu(rng.random((n, n)) < chance, 1)), ones(words))


def tastes(n: int = 500, m: int = 300) -> Graph:
    """Draw the links of users and items by four hidden numbers, of which noisy signs are the features."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(n, 4)), rng.normal(size=(m, 4))
    score = left @ right.T + rng.normal(size=m) + rng.logistic(size=(n, m))
    signs = (ones(2 * np.arange(4) + (X + rng.normal(size=X.shape) > 0)) for X in (left, right))
    return graph_by(np.argwhere(score > np.quantile(score, 0.97)), *signs)


def cora(folder: Path) -> Graph:
    lines = (folder / "cora.features.txt").read_text().splitlines()
    words = [np.array(line.split(), dtype=int) for line in lines]
    rows = np.repeat(np.arange(len(words)), [len(line) for line in words])
    A = sp.csr_matrix((np.ones(len(rows)), (rows, np.concatenate(words))))
    return graph_by(np.loadtxt(folder / "cora.edges.txt", dtype=int), A)


def load(name: str, features: bool) -> Graph:
    """Return a graph whose objects have their ids as features, beside their own ones if wanted."""
    folder = Path(os.environ["RECSYS_DATA"])
    if name in PLAIN:
        data = load_dataset(name, folder)
        none = (sp.csr_matrix((count, 1)) for count in (data.n_users, data.n_items))
        graph = graph_by(np.column_stack([data.users, data.items]), *none)
    else:
        made = {"blocks": blocks, "tastes": tastes, "cora": lambda: cora(folder / "cora")}
        graph = made[name]() if name in made else load_graph(name, folder)
    ends = graph.weighted()[:2]
    A, B = (X if X is None else sp.hstack([X * features, sp.eye(X.shape[0])]) for X in ends)
    return graph._replace(A=A, B=B)


if __name__ == "__main__":
    results = Results("link_predictors", ("graph", "features", "model", "auc", "error", "behind"), 2)
    keys = [(x, y) for x in arguments(GRAPHS) for y in ("ids", "both") if y == "ids" or x not in PLAIN]
    for name, kind in results.missing(keys):
        graph = load(name, kind == "both")
        runs = [compare_links(graph, BASELINES + MODELS, seed=seed) for seed in range(5)]
        aucs = np.array([[result.metrics.auc for result in run] for run in runs])
        best = aucs.mean(axis=0)[: len(BASELINES)].max()
        for model, values in zip(BASELINES + MODELS, aucs.T, strict=True):
            auc, error = float(values.mean()), float(values.std(ddof=1) / 5**0.5)
            results.add((name, kind, model, auc, error, float(best - auc)))
