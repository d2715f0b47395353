"""`recsys links`: compare link predictors on a graph, and say which links they predict, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recsys import links as models
from recsys.cli import terminal
from recsys.cli.options import Count, DataDir, Json, Quiet, Seed, Threads, use_threads
from recsys.datasets import load_dataset, load_graph
from recsys.datasets.graphs import Graph
from recsys.datasets.linked_tables import graph_of, read_graph
from recsys.errors import InputError
from recsys.links import text as wording
from recsys.utils.progress import bar, listening

COLUMNS = ("model", "auc", "±", "accuracy", "precision", "recall")


def links(
    left: Annotated[
        Path | None, typer.Option("--left", help="Table of features of the left objects.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="Table of the links: left id, right id.")
    ] = None,
    right: Annotated[
        Path | None, typer.Option("--right", help="Table of the right objects, if they are others.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", help="A graph of the data folder: nips, cora, movielens.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Users and the items they like, of a named dataset.")
    ] = None,
    data_dir: DataDir = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="NAME[:key=value,…].")] = None,
    left_id: Annotated[str | None, typer.Option("--left-id", help="Its id column.")] = None,
    right_id: Annotated[str | None, typer.Option("--right-id", help="Its id column.")] = None,
    left_col: Annotated[str | None, typer.Option("--left-col", help="Column of --pairs.")] = None,
    right_col: Annotated[str | None, typer.Option("--right-col", help="Column of --pairs.")] = None,
    min_rating: Annotated[
        float | None, typer.Option("--min-rating", help="With --dataset: rated below it is no link.")
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="With --dataset: each object's id is a feature, too.")
    ] = False,
    weighting: Annotated[
        str | None,
        typer.Option(
            "--weighting", help="Features: none, unit length or tf-idf; what suits by default."
        ),
    ] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Split over objects: both ends are new.")] = False,
    ratio: Annotated[float, typer.Option("--ratio", help="Pairs without a link for each link.")] = 1.0,
    test_size: Annotated[float, typer.Option("--test-size", help="Share held out.")] = 0.3,
    of: Annotated[
        str | None, typer.Option("--object", help="An id: print its strongest links that are not known.")
    ] = None,
    side: Annotated[
        str, typer.Option("--side", help="Whether that is a left or a right object.")
    ] = "left",
    to: Annotated[str | None, typer.Option("--to", help="Explain its link to this id instead.")] = None,
    number: Count = 10,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = None,
    threads: Threads = None,
) -> None:
    """Compare link predictors, and list an object's strongest links with what makes them."""
    use_threads(threads)
    if to is not None and of is None:
        raise InputError("--to needs --object: say whose link is explained")
    _check_one_graph(pairs, graph, dataset)
    if pairs is None and any(
        one is not None for one in (left, right, left_id, right_id, left_col, right_col)
    ):
        raise InputError("--left, --right, their ids and columns are for --pairs FILE")
    if dataset is None and (min_rating is not None or ids):
        raise InputError("--min-rating and --ids are for --dataset NAME")
    if graph is not None:
        given = load_graph(graph, data_dir)
    elif dataset is not None:
        data = load_dataset(dataset, data_dir)
        given = graph_of(data if min_rating is None else data.rated(min_rating), ids)
    else:
        assert pairs is not None
        given = read_graph(
            pairs, left, right, left_id=left_id, right_id=right_id, left_col=left_col,
            right_col=right_col,
        )  # fmt: skip
    given = given.weighted(weighting)
    index = None if of is None else _index(given, side, of)
    with bar(not quiet) as progress, listening(progress):
        found = models.compare_links(
            given, model or models.usual_link_models(given), cold=cold, test_size=test_size,
            ratio=ratio, seed=seed,
        )  # fmt: skip
        told = None if index is None else _strongest(
            given, found.best.model, index, side, to, number, ratio, seed
        )  # fmt: skip
    if json is not None:
        terminal.write_json(json, _as_json(given, found, told))
    if json == "-":
        return
    if not quiet:
        for note in given.notes:
            terminal.say(f"note: {note}")
    print(terminal.literal(wording.about_graph(given)))
    print(wording.headline(found))
    rows = [
        (r.model, *(f"{value:.4f}" for value in (r.metrics.auc, r.auc_error, *r.metrics[1:])))
        for r in found.results
    ]
    terminal.table("Link predictors", COLUMNS, rows)
    for line in wording.verdicts(found):
        print(terminal.literal(line))
    if told is not None:
        _print_strongest(told)


def _check_one_graph(*given: Path | str | None) -> None:
    if sum(one is not None for one in given) != 1:
        raise InputError(
            "say which graph by exactly one of --pairs FILE, --graph NAME and --dataset NAME"
        )


def _index(graph: Graph, side: str, given: str) -> int:
    from recsys.data import Interactions
    from recsys.utils.validation import check_choice

    check_choice("side", side, ("left", "right"))
    named = graph.left if side == "left" else graph.right
    return int(Interactions.lookup(named.noun, named.ids, [given])[0])


def _strongest(
    graph: Graph, name: str, index: int, side: str, to: str | None, number: int, ratio: float, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the strongest links of an object by the best model, each with the features that make it."""
    other_side = "right" if side == "left" else "left"
    own, other = (graph.left, graph.right) if side == "left" else (graph.right, graph.left)
    fitted = models.fit_on_all_links(graph, name, ratio=ratio, seed=seed)
    found = models.strongest_links(fitted, graph, index, side, number)
    listed = found.objects.tolist() if to is None else [_index(graph, other_side, to)]
    entries = []
    for one in listed:
        ends = (index, one) if side == "left" else (one, index)
        if graph.B is None:
            ends = (min(ends), max(ends))  # as pairs of objects of one kind are learned from
        names = str(graph.left.labels[ends[0]]), str(graph.right.labels[ends[1]])
        reasons = models.link_reasons(fitted, graph.A, graph.B, ends[0], ends[1], number)
        proba = float(fitted.predict_proba(graph.A, graph.B, [ends])[0, 1])
        entries.append(
            {
                "id": str(other.ids[one]), "label": str(other.labels[one]), "score": reasons.score,
                "known": bool(one in found.known), "kind": reasons.kind, "base": reasons.base,
                "left": reasons.left, "right": reasons.right, "others": reasons.others,
                "unlisted": reasons.unlisted,
                "pairs": [
                    {"left": graph.left.features[p], "right": graph.right.features[q], "adds": value}
                    for p, q, value in reasons.pairs
                ],
                "changes": [
                    {
                        "end": ("left", "right")[end], "falls": value,
                        "feature": (graph.left, graph.right)[end].features[feature],
                    }
                    for end, feature, value in reasons.changes
                ],
                "text": wording.why(reasons, *names),
                "chance": wording.chance(fitted, graph, proba, ratio),
            }
        )  # fmt: skip
    return {
        "id": str(own.ids[index]), "label": str(own.labels[index]), "model": name,
        "known": len(found.known), "candidates": found.candidates,
        "text": wording.strongest_line(graph, str(own.labels[index]), side, found), "links": entries,
    }  # fmt: skip


def _as_json(graph: Graph, found: models.LinkComparison, told: dict[str, Any] | None) -> dict[str, Any]:
    results = [
        {
            "model": r.model, **r.metrics._asdict(), "auc_error": r.auc_error,
            "behind": None if r.gap is None else r.gap._asdict(),
        }
        for r in found.results
    ]  # fmt: skip
    out = {
        "links": found.links, "train": found.train, "test": found.test, "test_links": found.test_links,
        "cold": found.cold, "seed": found.seed, "about": wording.about_graph(graph),
        "notes": list(graph.notes), "results": results, "failed": dict(found.failed),
        "verdicts": wording.verdicts(found),
    }  # fmt: skip
    return out if told is None else out | {"object": told}


def _print_strongest(told: dict[str, Any]) -> None:
    print()
    rows = [
        (entry["label"], f"{entry['score']:.4f}", "yes" if entry["known"] else "no")
        for entry in told["links"]
    ]
    print(terminal.literal(told["text"]))
    terminal.table(told["model"], ("object", "score", "known"), rows)
    for entry in told["links"]:
        print(terminal.literal(entry["text"]))
        if entry["chance"]:
            print(terminal.literal(entry["chance"]))
        if entry["pairs"]:
            pairs = [(p["left"], p["right"], f"{p['adds']:+.4f}") for p in entry["pairs"]]
            terminal.table("What the pairs add", ("left feature", "right feature", "adds"), pairs)
        elif entry["changes"]:
            changes = [(c["end"], c["feature"], f"{c['falls']:+.4f}") for c in entry["changes"]]
            terminal.table(
                "What each feature changes", ("end", "feature", "the score falls by"), changes
            )
