"""Sentences about predicted links for users, each with the counts it states."""

from __future__ import annotations

from recsys.datasets.graphs import Graph
from recsys.errors import counted
from recsys.links.base import LinkPredictor
from recsys.links.comparison import LinkComparison, StrongestLinks
from recsys.links.reasons import LinkReasons

__all__ = ["about_graph", "chance", "headline", "strongest_line", "verdicts", "why"]


def about_graph(graph: Graph) -> str:
    """Return how large a graph is.

    Examples
    --------
    >>> from recsys.data import Interactions
    >>> from recsys.datasets import graph_of
    >>> likes = Interactions.from_ids(["ada", "bob", "ada"], ["tea", "tea", "milk"])
    >>> about_graph(graph_of(likes))
    '2 users with 2 features, 2 items with 2 features, 3 links: 75% of the pairs.'
    """
    n = graph.A.shape[0]
    text = f"{counted(n, graph.left.noun)} with {counted(graph.A.shape[1], 'feature')}"
    if graph.B is not None:
        m = graph.B.shape[0]
        text += f", {counted(m, graph.right.noun)} with {counted(graph.B.shape[1], 'feature')}"
    return f"{text}, {counted(len(graph.links), 'link')}: {_share(graph)} of the pairs."


def headline(found: LinkComparison) -> str:
    """Return sentences on the data of a comparison."""
    where = "pairs of objects never seen" if found.cold else "held-out pairs"
    are = "is a link" if found.test_links == 1 else "are links"
    return (
        f"{counted(found.links, 'link')}: fitted on {counted(found.train, 'pair')}, measured on "
        f"{found.test:,} {where}, of which {found.test_links:,} {are}."
    )


def verdicts(found: LinkComparison) -> list[str]:
    """Return sentences on the AUCs: what the best one means, and whether it is better than the others.

    Models that failed come first, each with its reason.

    >>> from recsys.links import AucGap, LinkMetrics, LinkResult
    >>> best = LinkResult("fm", LinkMetrics(0.9, 0.8, 0.8, 0.8), auc_error=0.01, gap=None)
    >>> gap = AucGap(0.1, low=0.05, high=0.15, differs_clearly=True)
    >>> other = LinkResult("bilinear", LinkMetrics(0.8, 0.7, 0.7, 0.7), auc_error=0.02, gap=gap)
    >>> verdicts(LinkComparison(10, 14, 6, 3, cold=False, seed=0, results=(best, other)))[1]
    'fm is better than bilinear by 0.1000 in AUC, 95% interval [0.0500, 0.1500].'
    """
    best = found.best
    auc = best.metrics.auc
    lines = [f"{name} could not be evaluated: {reason}" for name, reason in found.failed.items()]
    lines += [
        f"{best.model} has the best AUC, {auc:.4f} ± {best.auc_error:.4f}: of a link and a pair without "
        f"one, it scores the link higher {auc:.1%} of the time."
    ]
    others = [(r.model, r.gap) for r in found.results if r.gap is not None]
    for name, gap in sorted(others, key=lambda one: one[1].difference):
        interval = f"95% interval [{_decimal(gap.low)}, {_decimal(gap.high)}]"
        if gap.differs_clearly:
            lines.append(
                f"{best.model} is better than {name} by {_decimal(gap.difference)} in AUC, {interval}."
            )
        else:
            lines.append(
                f"{best.model} and {name} do not differ clearly: the first has "
                f"{_decimal(gap.difference)} more AUC, {interval}."
            )
    return lines


def strongest_line(graph: Graph, name: str, side: str, found: StrongestLinks) -> str:
    """Return how many links an object of a name at one side has, and among how many others was searched.

    >>> from recsys.data import Interactions
    >>> from recsys.datasets import graph_of
    >>> graph = graph_of(Interactions.from_ids(["ada", "bob", "ada"], ["tea", "tea", "milk"]))
    >>> strongest_line(graph, "bob", "left", StrongestLinks([1], [0.5], candidates=1, known=[0]))
    'bob has 1 link; the best of the 1 other item it is not linked to:'
    """
    other = graph.right if side == "left" else graph.left
    if found.candidates == 0:
        return f"{name} is linked to every {other.noun}: there is nothing to predict."
    return (
        f"{name} has {counted(len(found.known), 'link')}; the best of the "
        f"{counted(found.candidates, 'other ' + other.noun)} it is not linked to:"
    )


def why(found: LinkReasons, left: str, right: str) -> str:
    """Return the decomposition of a score in the listed numbers; `left` and `right` are names."""
    if found.kind != "exact":
        return (
            f"The score of {left} and {right} is {found.score:.4f}. This model is no sum over pairs of "
            "features: each number says by how much the score falls without one feature."
        )
    listed = sum(value for *_, value in found.pairs)
    parts = [f"{found.base:.4f} whatever the objects"]
    if found.left or found.right:
        parts.append(f"{found.left:.4f} from {left} alone and {found.right:.4f} from {right} alone")
    if found.pairs:
        parts.append(f"{listed:.4f} from {_listed(len(found.pairs))}")
    if found.unlisted:
        parts.append(f"{found.others:.4f} from {counted(found.unlisted, 'other pair')}")
    if not found.pairs:
        parts.append("nothing from pairs of features")
    return f"The score of {left} and {right} is {found.score:.4f}: {', '.join(parts)}."


def chance(model: LinkPredictor, graph: Graph, proba: float, ratio: float = 1.0) -> str:
    """Return the probability of a link, for models that were fitted to give one; else an empty text.

    `ratio` is the number of pairs without a link for each link that it was fitted on.
    """
    if getattr(model, "loss", None) != "logistic" and not hasattr(model, "dropout"):
        return ""
    among = "as many pairs without one" if ratio == 1 else f"{ratio:g} times as many pairs without one"
    chance = f"That is a chance of {proba:.1%} among links and {among}"
    return f"{chance}; of all pairs {_share(graph)} are links."


def _share(graph: Graph) -> str:
    """Return how many of all pairs are links."""
    n, m = graph.sizes
    return f"{100.0 * len(graph.links) / (n * (n - 1) / 2 if m is None else n * m):.2g}%"


def _decimal(value: float) -> str:
    """Return four decimals, or two significant digits of what these would round to 0."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.1e}"


def _listed(number: int) -> str:
    return "the pair of features below" if number == 1 else f"the {number:,} pairs of features below"
