"""Link predictors compared on pairs that were held out, and fitted on all links to predict others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from recsys.datasets.graphs import Graph
from recsys.errors import InputError
from recsys.links.base import LinkPredictor, make_link_predictor
from recsys.links.sampling import LinkSplit, sample_negatives, split_objects, split_pairs
from recsys.utils.features import real_array
from recsys.utils.progress import within
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_choice, check_flag, check_integer, check_real, texts_of

__all__ = [
    "LinkComparison",
    "LinkMetrics",
    "LinkResult",
    "StrongestLinks",
    "compare_links",
    "fit_on_all_links",
    "link_metrics",
    "split_graph",
    "strongest_links",
]


class LinkMetrics(NamedTuple):
    """AUC, and accuracy, precision and recall at the threshold 0 (NaN without predicted links)."""

    auc: float
    accuracy: float
    precision: float
    recall: float


class LinkResult(NamedTuple):
    """A predictor's metric values on the held-out pairs, and the AUC's standard error (DeLong)."""

    model: str
    metrics: LinkMetrics
    auc_error: float


class LinkComparison(NamedTuple):
    """Predictors on the same pairs, in the order of the models."""

    split: LinkSplit
    results: tuple[LinkResult, ...]

    @property
    def best(self) -> LinkResult:
        """The first result with the best AUC."""
        return max(self.results, key=lambda result: result.metrics.auc)


class StrongestLinks(NamedTuple):
    """The objects with the highest scores among those without a link to one object.

    Attributes
    ----------
    objects : (n,) int64
        Objects of the other end, best first.
    scores : (n,) float64
    candidates : int
        Number of candidates.
    known : (links,) int64
        Objects with a link to it.
    """

    objects: NDArray[np.int64]
    scores: NDArray[np.float64]
    candidates: int
    known: NDArray[np.int64]


def link_metrics(labels: ArrayLike, scores: ArrayLike) -> LinkMetrics:
    """Return AUC, accuracy, precision and recall of scores against labels of 1 (a link) and 0.

    Examples
    --------
    >>> link_metrics([1, 1, 0, 0], [2.0, -1.0, 0.5, -3.0])
    LinkMetrics(auc=0.75, accuracy=0.5, precision=0.5, recall=0.5)
    """
    truth, found = real_array("labels", labels, 1) > 0, real_array("scores", scores, 1, finite=True)
    if len(truth) != len(found):
        raise InputError(f"{len(truth)} labels and {len(found)} scores; pass one of each per pair")
    if truth.all() or not truth.any():
        raise InputError("labels must include links and pairs without a link")
    predicted = found > 0
    return LinkMetrics(
        float(roc_auc_score(truth, found)),
        float(accuracy_score(truth, predicted)),
        float(precision_score(truth, predicted, zero_division=np.nan)),
        float(recall_score(truth, predicted)),
    )


def auc_error(labels: NDArray[np.int8], scores: NDArray[np.float64]) -> float:
    """Return the standard error of the AUC, by ranks (DeLong et al. 1988)."""
    truth = labels == 1
    up, down = int(truth.sum()), int((~truth).sum())
    ranks = rankdata(scores)
    # of each link the share of the others that it is above, and of each other that of links above it
    over = (ranks[truth] - rankdata(scores[truth])) / down
    under = 1.0 - (ranks[~truth] - rankdata(scores[~truth])) / up
    return float(np.sqrt(over.var(ddof=1) / up + under.var(ddof=1) / down))


def split_graph(
    graph: Graph, *, cold: bool = False, test_size: float = 0.3, ratio: float = 1.0, seed: int = 0
) -> LinkSplit:
    """Return training and test pairs, split over links or over objects.

    Parameters
    ----------
    graph : Graph
    cold : bool
        Split over objects.
    test_size : float in (0, 1)
    ratio : float
        Negative pairs per link in training, and in the test if `cold`.
    seed : int
    """
    if check_flag("cold", cold) and graph.by_id:
        raise InputError("unseen objects have no features: add features, or hold out pairs")
    cut = split_objects if cold else split_pairs
    split = cut(graph.links, *graph.sizes, test_size=test_size, ratio=ratio, seed=seed)
    for name, labels in (("train", split.train_labels), ("test", split.test_labels)):
        up = int(labels.sum())
        if min(up, len(labels) - up) < 2:
            raise InputError(
                f"too few pairs to {name} on: {up} links and {len(labels) - up} others; "
                "at least 2 of each are needed. Add links, or change the held-out share"
            )
    return split


def compare_links(
    graph: Graph,
    models: str | Sequence[str],
    *,
    cold: bool = False,
    test_size: float = 0.3,
    ratio: float = 1.0,
    seed: int = 0,
) -> LinkComparison:
    """Fit predictors on the same training pairs and measure them on the same held-out pairs.

    Parameters
    ----------
    graph : Graph
        Graph with its features; `Graph.weighted` scales them.
    models : str or list of str
        Predictors as `name:key=value,…`; duplicates count once.
    cold, test_size, ratio, seed
        As in `split_graph`.

    Examples
    --------
    >>> from recsys.data import Interactions
    >>> from recsys.datasets import graph_of, load_dataset
    >>> graph = graph_of(load_dataset("sample")).weighted()
    >>> comparison = compare_links(graph, ["bilinear:max_iter=5"])
    >>> comparison.best.model, comparison.best.metrics.auc > 0.6
    ('bilinear:max_iter=5', True)
    """
    check_integer("seed", seed, 0, 2**31 - 1)
    names = list(dict.fromkeys(texts_of("models", models)))
    unfitted = [_unfitted(name) for name in names]
    if not names:
        raise InputError("pass at least one link predictor")
    split = split_graph(graph, cold=cold, test_size=test_size, ratio=ratio, seed=seed)
    results = []
    for k, (name, model) in enumerate(zip(names, unfitted, strict=True)):
        with within(name, k, len(names)):
            model.fit(graph.A, graph.B, split.train, split.train_labels)
            scores = model.decision_function(graph.A, graph.B, split.test)
        metrics = link_metrics(split.test_labels, scores)
        results.append(LinkResult(name, metrics, auc_error(split.test_labels, scores)))
    return LinkComparison(split, tuple(results))


def fit_on_all_links(graph: Graph, model: str, *, ratio: float = 1.0, seed: int = 0) -> LinkPredictor:
    """Return a predictor fitted on all links, with `ratio` negative pairs per link.

    Parameters
    ----------
    graph : Graph
    model : str
        As `name:key=value,…`.
    ratio : float
    seed : int
    """
    check_real("ratio", ratio, 0.0, open_low=True)
    unfitted = _unfitted(model)
    down = sample_negatives(graph.links, *graph.sizes, round(ratio * len(graph.links)), seed + 1)
    labels = np.repeat([1, 0], [len(graph.links), len(down)])
    return unfitted.fit(graph.A, graph.B, np.concatenate([graph.links, down]), labels)


def strongest_links(
    model: LinkPredictor, graph: Graph, index: int, side: str = "left", N: int = 10
) -> StrongestLinks:
    """Return the objects with the highest scores among those without a link to one object.

    Parameters
    ----------
    model : fitted LinkPredictor
    graph : Graph
    index : int
        Of the object.
    side : "left" or "right"
        Kind of the object; ignored for graphs of one kind.
    N : int ≥ 1
    """
    check_choice("side", side, ("left", "right"))
    check_integer("N", N, 1)
    one_kind = graph.B is None
    n_left, n_right = graph.sizes
    sizes = (n_left, n_left if n_right is None else n_right)
    own = 0 if side == "left" else 1
    check_integer("index", index, 0, sizes[own] - 1)
    known = graph.links[graph.links[:, own] == index, 1 - own]
    if one_kind:
        known = np.concatenate([known, graph.links[graph.links[:, 1 - own] == index, own]])
    known = np.unique(known)
    others = np.setdiff1d(np.arange(sizes[1 - own]), [*known, index] if one_kind else known)
    if len(others) == 0:
        return StrongestLinks(others, np.empty(0), 0, known)
    pairs = np.column_stack([np.full(len(others), index), others])
    if one_kind:
        pairs = np.sort(pairs, axis=1)  # as pairs of objects of one kind are learned from
    elif own == 1:
        pairs = pairs[:, ::-1]
    scores = model.decision_function(graph.A, graph.B, pairs)
    best = np.argsort(-scores, kind="stable")[:N]
    return StrongestLinks(others[best], scores[best], len(others), known)


def _unfitted(text: str) -> LinkPredictor:
    name, params = parse_spec(text)
    return make_link_predictor(name, **params)
