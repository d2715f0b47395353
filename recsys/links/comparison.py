"""Link predictors compared on pairs that were held out, and fitted on all links to predict others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.datasets.graphs import Graph
from recsys.errors import FitError, InputError, counted
from recsys.links.base import LinkPredictor, make_link_predictor
from recsys.links.metrics import LinkMetrics, auc_error, link_metrics
from recsys.links.sampling import LinkSplit, sample_negatives, split_objects, split_pairs
from recsys.utils.attempts import Dropped, attempt, check_some_left
from recsys.utils.progress import within
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_choice, check_flag, check_integer, check_real, texts_of

__all__ = [
    "LinkComparison",
    "LinkResult",
    "StrongestLinks",
    "compare_links",
    "fit_on_all_links",
    "split_graph",
    "strongest_links",
]


class LinkResult(NamedTuple):
    """A predictor's metric values on the held-out pairs.

    Attributes
    ----------
    model : str
    metrics : LinkMetrics
    auc_error : float
        Standard error of the AUC (DeLong), pairs taken as independent.
    """

    model: str
    metrics: LinkMetrics
    auc_error: float


class LinkComparison(NamedTuple):
    """Predictors on the same held-out pairs.

    Attributes
    ----------
    links, train, test, test_links : int
        Links of the graph, pairs to fit and to test on, and how many of the latter are links.
    cold : bool
        Whether both ends of the tested pairs are objects that no training pair contains.
    seed : int
    results : tuple of LinkResult
        In the order of the models.
    failed : mapping of str to str
        Why a model could not be evaluated, by its name; it has no result.
    """

    links: int
    train: int
    test: int
    test_links: int
    cold: bool
    seed: int
    results: tuple[LinkResult, ...]
    failed: Mapping[str, str] = MappingProxyType({})

    @property
    def best(self) -> LinkResult:
        """The result of the best AUC, the first of several."""
        return max(self.results, key=lambda result: result.metrics.auc)


class StrongestLinks(NamedTuple):
    """The best scored objects that one object is not linked to.

    Attributes
    ----------
    objects : (n,) int64
        Of the other end, best first.
    scores : (n,) float64
    candidates : int
        Objects that it might be linked to.
    known : (links,) int64
        Those that it is linked to.
    """

    objects: NDArray[np.int64]
    scores: NDArray[np.float64]
    candidates: int
    known: NDArray[np.int64]


def split_graph(
    graph: Graph, *, cold: bool = False, test_size: float = 0.3, ratio: float = 1.0, seed: int = 0
) -> LinkSplit:
    """Return training and test pairs: links held out, or all pairs of objects held out.

    Parameters
    ----------
    graph : Graph
    cold : bool
        Split over objects.
    test_size : float in (0, 1)
    ratio : float
        Training pairs without a link for each link; of the test pairs, too, where `cold`.
    seed : int

    Raises
    ------
    InputError
        If the features are ids only, of which unseen ones say nothing; or too few links are left.
    """
    if check_flag("cold", cold) and graph.by_id:
        raise InputError(
            "nothing is known of these objects but their ids, so nothing can be said of unseen ones: "
            "give features, or hold out pairs"
        )
    cut = split_objects if cold else split_pairs
    split = cut(graph.links, *graph.sizes, test_size=test_size, ratio=ratio, seed=seed)
    for name, labels in (("train", split.train_labels), ("test", split.test_labels)):
        if int(labels.sum()) < 2 or int((labels == 0).sum()) < 2:
            raise InputError(
                f"{counted(int(labels.sum()), 'link')} and "
                f"{counted(int((labels == 0).sum()), 'pair')} without one to {name} on; at least 2 "
                "of each are needed: give more links, or hold out another share"
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
    """Fit predictors on the same training pairs, and measure them on the same held-out ones.

    Parameters
    ----------
    graph : Graph
        Its features are taken as they are: see `Graph.weighted`.
    models : str or list of str
        As `name:key=value,…`; one that is named twice counts once.
    cold, test_size, ratio, seed
        As in `split_graph`.

    Raises
    ------
    InputError
        For no model, or one that is unknown, and as `split_graph`; if every one of several models
        refuses the graph or its parameters.
    FitError
        If all of several models fail for other reasons. One that fails beside others is left out, and
        `LinkComparison.failed` says why; what a single model raises is raised.

    Examples
    --------
    >>> from recsys.data import Interactions
    >>> from recsys.datasets import graph_of, load_dataset
    >>> found = compare_links(graph_of(load_dataset("sample")).weighted(), ["bilinear:max_iter=5"])
    >>> found.best.model, found.best.metrics.auc > 0.6
    ('bilinear:max_iter=5', True)
    """
    check_integer("seed", seed, 0, 2**31 - 1)
    names = list(dict.fromkeys(texts_of("models", models)))
    made = [_made(name) for name in names]
    if not made:
        raise InputError("name at least one link predictor")
    split = split_graph(graph, cold=cold, test_size=test_size, ratio=ratio, seed=seed)
    scores: dict[str, NDArray[np.float64]] = {}
    failed: dict[str, Dropped] = {}
    for k, (name, model) in enumerate(zip(names, made, strict=True)):
        with within(name, k, len(names)):
            scored = partial(_scored, model, graph, split)
            tried = scored() if len(names) == 1 else attempt(scored)
        if isinstance(tried, Dropped):
            failed[name] = tried
        else:
            scores[name] = tried
    check_some_left("no link predictor could be evaluated", names, failed)
    labels = split.test_labels
    results = [
        LinkResult(name, link_metrics(labels, one), auc_error(labels, one))
        for name, one in scores.items()
    ]
    return LinkComparison(
        len(graph.links),
        len(split.train),
        len(split.test),
        int(split.test_labels.sum()),
        cold,
        seed,
        tuple(results),
        {name: one.reason for name, one in failed.items()},
    )


def _scored(model: LinkPredictor, graph: Graph, split: LinkSplit) -> NDArray[np.float64]:
    """Fit a predictor, and return its scores of the pairs to test on."""
    model.fit(graph.A, graph.B, split.train, split.train_labels)
    scores = model.decision_function(graph.A, graph.B, split.test)
    if not np.isfinite(scores).all():
        raise FitError("its scores are not finite numbers")
    return scores


def fit_on_all_links(graph: Graph, model: str, *, ratio: float = 1.0, seed: int = 0) -> LinkPredictor:
    """Return a predictor fitted on every link, and as many pairs without one as `ratio` says.

    Parameters
    ----------
    graph : Graph
    model : str
        As `name:key=value,…`.
    ratio : float
    seed : int

    Raises
    ------
    InputError
        For an unknown model, a ratio that is not above 0, or where fewer pairs have no link.
    """
    check_real("ratio", ratio, 0.0, open_low=True)
    made = _made(model)
    down = sample_negatives(graph.links, *graph.sizes, round(ratio * len(graph.links)), seed + 1)
    labels = np.repeat([1, 0], [len(graph.links), len(down)])
    return made.fit(graph.A, graph.B, np.concatenate([graph.links, down]), labels)


def strongest_links(
    model: LinkPredictor, graph: Graph, index: int, side: str = "left", N: int = 10
) -> StrongestLinks:
    """Return the best scored of the objects that one is not linked to.

    Parameters
    ----------
    model : fitted LinkPredictor
    graph : Graph
    index : int
        Of the object.
    side : "left" or "right"
        Its kind; one and the same where there is one kind.
    N : int ≥ 1

    Raises
    ------
    InputError
        For an object that there is not, another side, or an N below 1.
    """
    check_choice("side", side, ("left", "right"))
    check_integer("N", N, 1)
    one = graph.B is None
    n_left, n_right = graph.sizes
    sizes = (n_left, n_left if n_right is None else n_right)
    own = 0 if side == "left" else 1
    check_integer("index", index, 0, sizes[own] - 1)
    at = graph.links[:, own] == index
    known = graph.links[at, 1 - own]
    if one:
        known = np.concatenate([known, graph.links[graph.links[:, 1 - own] == index, own]])
    free = np.ones(sizes[1 - own], dtype=bool)
    free[known] = False
    if one:
        free[index] = False
    others = np.flatnonzero(free).astype(np.int64)
    if len(others) == 0:
        return StrongestLinks(others, np.empty(0), 0, np.unique(known))
    pairs = np.column_stack([np.full(len(others), index), others])
    if one:
        pairs = np.sort(pairs, axis=1)  # as pairs of objects of one kind are learned from
    elif own == 1:
        pairs = pairs[:, ::-1]
    scores = model.decision_function(graph.A, graph.B, np.ascontiguousarray(pairs))
    best = np.argsort(-scores, kind="stable")[:N]
    return StrongestLinks(others[best], scores[best], len(others), np.unique(known))


def _made(text: str) -> LinkPredictor:
    name, params = parse_spec(text)
    return make_link_predictor(name, **params)
