"""Link predictors compared on held-out pairs, and fitted on all links to predict others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from recsys.datasets.graphs import Graph
from recsys.errors import InputError
from recsys.links.base import LinkPredictor, make_link_predictor
from recsys.links.sampling import sample_negatives, split_objects, split_pairs
from recsys.utils.features import real_array
from recsys.utils.progress import within
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_flag, check_integer, texts_of

RESAMPLES = 200  # of the test pairs


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
