"""Negative pairs and splits, predictors compared on held-out pairs, and fitted on all links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from recsys.datasets.graphs import Graph
from recsys.errors import InputError
from recsys.links.base import LinkPredictor, make_link_predictor
from recsys.registry import parse_spec
from recsys.utils.progress import within
from recsys.utils.validation import (
    as_array,
    check_flag,
    check_ids,
    check_integer,
    check_real,
    real_array,
    texts_of,
)

Index = NDArray[np.int64]
RESAMPLES = 200  # of the test pairs


class LinkSplit(NamedTuple):
    """Training and test pairs with labels (1 for a link, 0 for none).

    Attributes
    ----------
    train, test : (pairs, 2) int64
    train_labels, test_labels : (pairs,) int8
    """

    train: Index
    train_labels: NDArray[np.int8]
    test: Index
    test_labels: NDArray[np.int8]


def sample_negatives(
    positives: ArrayLike, n_left: int, n_right: int | None, count: int, seed: int = 0
) -> Index:
    """Return `count` distinct pairs that are not in `positives`, drawn uniformly, (count, 2).

    Parameters
    ----------
    positives : (links, 2) int
    n_left, n_right : int
        Objects of each kind; n_right = None for pairs i < j of one kind.
    count : int
    seed : int
    """
    check_integer("count", count, 0)
    check_integer("seed", seed, 0)
    taken = np.unique(_codes(_checked(positives, n_left, n_right), n_left, n_right))
    total = n_left * n_right if n_right is not None else n_left * (n_left - 1) // 2
    if count > total - len(taken):
        raise InputError(
            f"{count:,} pairs without a link are needed, but only {total - len(taken):,} exist: lower "
            "the ratio, or add objects"
        )
    rng = np.random.default_rng(seed)
    width = n_left if n_right is None else n_right
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        size = 2 * (count - len(drawn)) + 16
        pairs = np.column_stack([rng.integers(n_left, size=size), rng.integers(width, size=size)])
        if n_right is None:
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        codes = _codes(pairs, n_left, n_right)
        codes = np.concatenate([drawn, codes[~np.isin(codes, taken)]])
        _, first = np.unique(codes, return_index=True)
        drawn = codes[np.sort(first)][:count]  # in the order drawn: no bias towards small numbers
    return np.column_stack([drawn // width, drawn % width])


def split_pairs(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    test_size: float = 0.5,
    test_all: bool = False,
    seed: int = 0,
) -> LinkSplit:
    """Split links at random, with as many pairs without a link in each part.

    Repeated links count once, and so do (i, j) and (j, i) for one kind.

    Parameters
    ----------
    positives : (links, 2) int
    n_left, n_right : int
        Objects of each kind; n_right = None for pairs of one kind.
    test_size : float in (0, 1)
    test_all : bool
        Whether to test on all pairs without a link that are not in training.
    seed : int
    """
    links, rng = _distinct(positives, n_left, n_right, test_size, seed)
    links = links[rng.permutation(len(links))]
    train, test = np.split(links, [len(links) - round(test_size * len(links))])
    down = sample_negatives(links, n_left, n_right, len(train), seed + 1)
    taken = np.concatenate([links, down])
    if test_all:
        every = np.ones((n_left, n_left if n_right is None else n_right))
        pairs = np.argwhere(np.triu(every, 1) if n_right is None else every)
        rest = pairs[~np.isin(_codes(pairs, n_left, n_right), _codes(taken, n_left, n_right))]
    else:
        rest = sample_negatives(taken, n_left, n_right, len(test), seed + 2)
    return LinkSplit(*_labelled(train, down), *_labelled(test, rest))


def split_objects(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    test_size: float = 0.3,
    seed: int = 0,
) -> LinkSplit:
    """Split over objects (cold start): tested pairs join two objects that no training pair contains.

    Parameters as in `split_pairs`. Objects of each kind are held out; links between a held-out and
    another object are in neither part.
    """
    links, rng = _distinct(positives, n_left, n_right, test_size, seed)
    out_left = rng.permutation(n_left).argsort() < round(test_size * n_left)
    out_right = out_left
    if n_right is not None:
        out_right = rng.permutation(n_right).argsort() < round(test_size * n_right)
    parts: list[NDArray[Any]] = []
    for k, held in enumerate((False, True)):
        here, there = np.flatnonzero(out_left == held), np.flatnonzero(out_right == held)
        up = links[(out_left[links[:, 0]] == held) & (out_right[links[:, 1]] == held)]
        local = np.column_stack([np.searchsorted(here, up[:, 0]), np.searchsorted(there, up[:, 1])])
        others = None if n_right is None else len(there)
        down = sample_negatives(local, len(here), others, len(up), seed + 1 + k)
        parts += _labelled(up, np.column_stack([here[down[:, 0]], there[down[:, 1]]]))
    return LinkSplit(*parts)


def _checked(positives: ArrayLike, n_left: int, n_right: int | None) -> Index:
    """Return pairs as (pairs, 2) int64, each of objects that there are."""
    check_integer("n_left", n_left, 0)
    width = n_left if n_right is None else check_integer("n_right", n_right, 0)
    pairs = as_array("positives", positives)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"positives must be (pairs, 2) integers, not of shape {pairs.shape}")
    left = check_ids("positives, left object", pairs[:, 0], n_left)
    return np.column_stack([left, check_ids("positives, right object", pairs[:, 1], width)])


def _distinct(
    positives: ArrayLike, n_left: int, n_right: int | None, test_size: float, seed: int
) -> tuple[Index, np.random.Generator]:
    """Return each link once, after checks, and a generator; of one kind (i, i) is no link."""
    check_real("test_size", test_size, 0.0, 1.0, open_low=True)
    check_integer("seed", seed, 0)
    links = _checked(positives, n_left, n_right)
    if n_right is None:
        links = links[links[:, 0] != links[:, 1]]
    _, first = np.unique(_codes(links, n_left, n_right), return_index=True)
    return links[np.sort(first)], np.random.default_rng(seed)


def _codes(pairs: Index, n_left: int, n_right: int | None) -> Index:
    """Return a number for each pair, the same for (i, j) and (j, i) of one kind."""
    if n_right is None:
        pairs = np.sort(pairs, axis=1)
    return np.asarray(pairs[:, 0] * (n_left if n_right is None else n_right) + pairs[:, 1])


def _labelled(up: Index, down: Index) -> tuple[Index, NDArray[np.int8]]:
    labels = np.repeat(np.array([1, 0], dtype=np.int8), [len(up), len(down)])
    return np.concatenate([up, down]), labels


class LinkMetrics(NamedTuple):
    """AUC, and accuracy, precision and recall at the threshold 0 (NaN without predicted links)."""

    auc: float
    accuracy: float
    precision: float
    recall: float


class LinkResult(NamedTuple):
    """A predictor's metric values on the held-out pairs, and the bootstrap error of its AUC."""

    model: str
    metrics: LinkMetrics
    auc_error: float


def link_metrics(labels: ArrayLike, scores: ArrayLike) -> LinkMetrics:
    """Return AUC, accuracy, precision and recall of scores against labels of 1 (a link) and 0.

    Examples
    --------
    >>> link_metrics([1, 1, 0, 0], [2.0, -1.0, 0.5, -3.0])
    LinkMetrics(auc=0.75, accuracy=0.5, precision=0.5, recall=0.5)
    """
    truth, values = real_array("labels", labels, 1) > 0, real_array("scores", scores, 1, finite=True)
    if len(truth) != len(values):
        raise InputError(f"{len(truth)} labels and {len(values)} scores; pass one of each per pair")
    if truth.all() or not truth.any():
        raise InputError("labels must include links and pairs without a link")
    predicted = values > 0
    return LinkMetrics(
        float(roc_auc_score(truth, values)),
        float(accuracy_score(truth, predicted)),
        float(precision_score(truth, predicted, zero_division=np.nan)),
        float(recall_score(truth, predicted)),
    )


def auc_error(labels: NDArray[np.int8], scores: NDArray[np.float64]) -> float:
    """Return the standard error of the AUC, by a bootstrap of the links and of the other pairs."""
    rng = np.random.default_rng(0)
    links, others = np.flatnonzero(labels), np.flatnonzero(labels == 0)
    aucs = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([rng.choice(part, len(part)) for part in (links, others)])
        aucs.append(roc_auc_score(labels[rows], scores[rows]))
    return float(np.std(aucs))


def compare_links(
    graph: Graph, models: str | Sequence[str], *, cold: bool = False, seed: int = 0
) -> list[LinkResult]:
    """Fit predictors on the same training pairs and measure them on the same held-out pairs.

    30% of the links, or of the objects, are held out; each part has one pair without a link per link.

    Parameters
    ----------
    graph : Graph
        Graph with its features; `Graph.weighted` scales them.
    models : str or list of str
        Predictors as `name:key=value,…`; duplicates count once.
    cold : bool
        Whether to hold out objects: of those tested only the features are known.
    seed : int

    Examples
    --------
    >>> from recsys.datasets import graph_of, load_dataset
    >>> graph = graph_of(load_dataset("sample")).weighted()
    >>> (result,) = compare_links(graph, "bilinear:max_iter=5")
    >>> result.model, result.metrics.auc > 0.6
    ('bilinear:max_iter=5', True)
    """
    check_integer("seed", seed, 0, 2**31 - 1)
    names = list(dict.fromkeys(texts_of("models", models)))
    unfitted = [_unfitted(name) for name in names]
    if check_flag("cold", cold) and graph.by_id:
        raise InputError("unseen objects have no features: add features, or hold out pairs")
    split = (split_objects if cold else split_pairs)(graph.links, *graph.sizes, test_size=0.3, seed=seed)
    if min(np.bincount(y, minlength=2).min() for y in (split.train_labels, split.test_labels)) < 2:
        raise InputError(
            "too few links: training and test need two links and two pairs without a link each"
        )
    results = []
    for k, (name, model) in enumerate(zip(names, unfitted, strict=True)):
        with within(name, k, len(names)):
            model.fit(graph.A, graph.B, split.train, split.train_labels)
            scores = model.decision_function(graph.A, graph.B, split.test)
        metrics = link_metrics(split.test_labels, scores)
        results.append(LinkResult(name, metrics, auc_error(split.test_labels, scores)))
    return results


def fit_on_all_links(graph: Graph, model: str, *, seed: int = 0) -> LinkPredictor:
    """Return a predictor, `name:key=value,…`, fitted on all links and as many pairs without a link."""
    unfitted = _unfitted(model)
    down = sample_negatives(graph.links, *graph.sizes, len(graph.links), seed + 1)
    labels = np.repeat([1, 0], [len(graph.links), len(down)])
    return unfitted.fit(graph.A, graph.B, np.concatenate([graph.links, down]), labels)


def strongest_links(
    model: LinkPredictor, graph: Graph, index: int, N: int = 10
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the N best right objects of a left object, without those linked to it, and their scores.

    For objects of one kind, either end of a link counts.
    """
    check_integer("N", N, 1)
    n_left, n_right = graph.sizes
    check_integer("index", index, 0, n_left - 1)
    known = graph.links[graph.links[:, 0] == index, 1]
    if n_right is None:
        known = np.concatenate([known, graph.links[graph.links[:, 1] == index, 0], [index]])
    others = np.setdiff1d(np.arange(n_right or n_left), known)
    if len(others) == 0:
        return others, np.empty(0)
    pairs = np.column_stack([np.full(len(others), index), others])
    if n_right is None:
        pairs.sort(axis=1)  # training pairs of one kind are i < j
    scores = model.decision_function(graph.A, graph.B, pairs)
    best = np.argsort(-scores, kind="stable")[:N]
    return others[best], scores[best]


def _unfitted(text: str) -> LinkPredictor:
    name, params = parse_spec(text)
    return make_link_predictor(name, **params)
