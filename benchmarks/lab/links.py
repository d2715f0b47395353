"""Link prediction: Tables 3.2 and 3.3 of Atarashi's thesis on NIPS and MovieLens 100K.

NIPS features are word counts scaled to unit length. An author's words are those of the papers that make the
links: whoever wrote a paper together shares its words.

Table 3.2 on MovieLens 100K, as in the thesis: ratings of 5 are links, as many of the others none; half train,
1,000 of the rest choose β (or C), the others test. On NIPS 134 of the rest choose, and PairNets are
symmetrized, HOFM is not, as in the thesis. What is chosen is chosen on the first division. The thesis does not
say for how many epochs it fits: here it is 20 on NIPS and 40 on MovieLens.

Table 3.3 is on NIPS instead of DBLP, with the β and C of Table 3.2 there, and the networks' learning rate,
0.001, 0.002, … 0.009 as in the thesis, by the same 134 pairs. Its networks need PyTorch (`make test-torch` leaves
an environment that has it, `.venv-torch`).

    python -m benchmarks.lab.links [nips] [movielens] [deep] ["deep:HOFM 2"]
"""

from __future__ import annotations

import os
import time
from ast import literal_eval
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.lab.common import Results, arguments
from benchmarks.lab.graphs import load_graph
from recsys.datasets import load_dataset
from recsys.datasets.graphs import Graph
from recsys.links import (
    HONFM,
    ConcatDNN,
    FactorizedBilinear,
    LinkSplit,
    PairDNN,
    PairFactorizationMachine,
    PairNet,
    PairSVM,
    link_metrics,
    sample_negatives,
    split_pairs,
)

MODELS = ("PairSVM", "FBM", "HOFM 2", "HOPairNet 3", "HOFM 3", "HOPairNet 4", "HOFM 4")
PRINTED = {
    "nips": (0.9171, 0.8567, 0.7840, 0.8570, 0.7858, 0.8443, 0.7840),
    "movielens": (0.5972, 0.5951, 0.6318, 0.6239, 0.6362, 0.607, 0.6225),
}
EPOCHS = {"nips": 20, "movielens": 40}
RANK = {"nips": 30, "movielens": 10}
COSTS = {"nips": range(-3, 6), "movielens": range(-4, 1)}  # powers of ten
SPLITS = 3
RATES = tuple(k / 1000 for k in range(1, 10))  # of the networks' interaction layer


def model(label: str) -> Any:
    """Return the class of a model of Table 3.2, with its degree."""
    kind, _, degree = label.partition(" ")
    hofm = partial(PairFactorizationMachine, symmetric=False)
    kinds = {"FBM": FactorizedBilinear, "HOPairNet": PairNet, "HOFM": hofm, "PairSVM": PairSVM}
    return partial(kinds[kind], degree=int(degree)) if degree else kinds[kind]


def tested(model: Any, graph: Graph, split: LinkSplit) -> Any:
    fitted = model.fit(graph.A, graph.B, split.train, split.train_labels)
    return link_metrics(split.test_labels, fitted.decision_function(graph.A, graph.B, split.test))


def rated(seed: int, valid: int = 1000) -> tuple[LinkSplit, LinkSplit]:
    """Split the ratings of MovieLens 100K, 5 or not, in equal numbers: to test on, and to choose by."""
    data = load_dataset("movielens")
    pairs, up = np.column_stack([data.users, data.items]), np.asarray(data.rating) >= 5
    rng = np.random.default_rng(seed)
    down = rng.permutation(np.flatnonzero(~up))[: up.sum()]
    order = rng.permutation(np.concatenate([np.flatnonzero(up), down]))
    cut = len(order) // 2
    train, few, rest = (
        (pairs[part], up[part].astype(np.int8)) for part in np.split(order, [cut, cut + valid])
    )
    return LinkSplit(*train, *rest), LinkSplit(*train, *few)


def coauthors(graph: Graph, seed: int, valid: int = 134) -> tuple[LinkSplit, LinkSplit]:
    """Split the links of NIPS, with as many pairs without one: to test on, and to choose by."""
    split = split_pairs(graph.links, graph.A.shape[0], seed=10 * seed)
    few, rest = np.split(np.random.default_rng(seed).permutation(len(split.test)), [valid])
    train, pairs, labels = (split.train, split.train_labels), split.test, split.test_labels
    return LinkSplit(*train, pairs[rest], labels[rest]), LinkSplit(*train, pairs[few], labels[few])


def divided(name: str) -> tuple[Graph, list[LinkSplit], LinkSplit]:
    """Return a graph, the divisions that test, and the one that chooses."""
    graph = load_graph(name, os.environ["RECSYS_DATA"])
    if name == "nips":
        graph = graph._replace(A=sp.csr_matrix(normalize(graph.A)))
    parts = [rated(s) if name == "movielens" else coauthors(graph, s) for s in range(SPLITS)]
    return graph, [test for test, _ in parts], parts[0][1]


def shallow(name: str) -> None:
    """Table 3.2."""
    graph, splits, inner = divided(name)
    common = {"n_components": RANK[name], "max_iter": EPOCHS[name], "tol": 1e-4}
    heads = ("data", "model", "printed", "accuracy", "difference", "auc", "parameters", "seconds")
    results = Results(f"links_table_3_2_{name}", heads, 2)
    for _, label in results.missing([(name, label) for label in MODELS]):
        started = time.process_time()
        if label == "PairSVM":
            options = [partial(PairSVM, C=10.0**k) for k in COSTS[name]]
        else:
            options = [partial(model(label), beta=beta, **common) for beta in (1e-7, 1e-6, 1e-5)]
        make = max(options, key=lambda make: tested(make(), graph, inner).accuracy)
        found = [tested(make(), graph, split) for split in splits]
        value, printed = float(np.mean([f.accuracy for f in found])), PRINTED[name][MODELS.index(label)]
        auc, seconds = float(np.mean([f.auc for f in found])), time.process_time() - started
        results.add((name, label, printed, value, value - printed, auc, str(make.keywords), seconds))


def deep(only: str = "") -> None:
    """Table 3.3's models and 1:100 negatives, on NIPS; `only` the one of this name."""
    graph, splits, inner = divided("nips")
    scaled = graph._replace(A=graph.A * np.sqrt(graph.A.shape[1]) / 10.0)
    shape = {"epochs": 20, "hidden": 200, "dropout": 0.2}
    networks = {
        **{f"HOPairDNN {m}": partial(PairDNN, degree=m, **shape) for m in (2, 3, 4)},
        **{f"HONFM {m}": partial(HONFM, degree=m, **shape) for m in (2, 3, 4)},
        "Concat": partial(ConcatDNN, n_components=200, **shape),
    }
    columns = "model,accuracy,std,auc 1:100,precision 1:100,recall 1:100,seconds".split(",")
    results = Results("links_table_3_3", columns)
    for (label,) in results.missing([(x,) for x in (*networks, *MODELS) if only in ("", x)]):
        started = time.process_time()
        if label in networks:
            data, network = scaled, networks[label]
            rate = max(RATES, key=lambda r: tested(network(learning_rate=r), data, inner).accuracy)
            make = partial(network, learning_rate=rate)
        else:
            shown = Results("links_table_3_2_nips", ()).frame().set_index("model")["parameters"]
            data, make = graph, partial(model(label), **literal_eval(shown[label]))
        rows = []
        for seed, split in enumerate(splits):
            fitted = make().fit(data.A, None, split.train, split.train_labels)
            scores = fitted.decision_function(data.A, None, split.test)
            up = split.test[split.test_labels == 1]
            n = graph.A.shape[0]
            known = np.concatenate([graph.links, split.train])
            down = sample_negatives(known, n, None, 100 * len(up), 10 * seed + 7)
            labels = np.r_[np.ones(len(up)), np.zeros(len(down))]
            wide = link_metrics(labels, fitted.decision_function(data.A, None, np.r_[up, down]))
            accuracy = link_metrics(split.test_labels, scores).accuracy
            rows.append((accuracy, wide.auc, wide.precision, wide.recall))
        accuracy, *others = np.mean(rows, axis=0)
        std = np.std([row[0] for row in rows])
        results.add((label, accuracy, std, *others, time.process_time() - started))


if __name__ == "__main__":
    for what in arguments(usual=("nips", "movielens", "deep")):
        name, _, label = what.partition(":")
        parts = {"nips": partial(shallow, "nips"), "movielens": partial(shallow, "movielens")}
        (parts | {"deep": partial(deep, label)})[name]()
