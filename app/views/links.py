"""Links: predictors of links compared, the strongest predicted links of an object, and why."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import state
from app.charts import explain as explain_charts
from app.charts import links as link_charts
from app.parts import examples
from app.parts.upload import clean, kept_files, say_kept, spooled, uploader
from app.session import ask, between, session
from app.uploads import UploadedFile
from recsys import InputError
from recsys.datasets import load_graph
from recsys.datasets.graphs import WEIGHTINGS, Graph, found_graph, list_graphs
from recsys.datasets.linked_tables import graph_of, read_graph, tell_tables_apart
from recsys.errors import counted
from recsys.links import (
    LINKS,
    LinkComparison,
    LinkPredictor,
    LinkReasons,
    StrongestLinks,
    compare_links,
    fit_on_all_links,
    link_reasons,
    strongest_links,
    usual_link_models,
)
from recsys.links import text as wording
from recsys.utils.export import csv_text
from recsys.utils.spec import parse_spec

INTRO = (
    "Models are fitted on some links, by what is known of the objects, and measured on links they have "
    "not seen. Then see the strongest links of one object that are not known, and the features that "
    "make them."
)
DATASET, TABLES = "dataset", "tables"
GRAPHS = {  # labels; others go by their names
    "cora": "Cora: papers that cite",
    "nips": "NIPS: authors who wrote together",
    "movielens": "MovieLens: users and movies they gave 5",
}
PAIRS, OBJECTS = "pairs", "objects"
SPLITS = {PAIRS: "held-out pairs", OBJECTS: "objects never seen"}
MOST_LINKS = 300_000  # of a graph; more take minutes an epoch
MOST_TABLES = 3
LISTED = 10  # strongest links, and features of one
MOST_NEIGHBOURS = 12  # known ones in the picture
USUAL = "what suits"
SHORT = 20  # letters of a name in the picture


def page() -> None:
    """Show the page."""
    st.header("Links", anchor=False)
    examples.question("links")
    st.caption(INTRO)
    source, key, graph = choose_graph()
    st.text(wording.about_graph(graph))
    for note in graph.notes:
        st.text(f"{note}.")  # it may name columns of anybody's file
    usual = list(usual_link_models(graph))
    names = ask(
        st.multiselect, "Predictors", name=f"links.models.{source}", default=usual,
        options=[*usual, *others(usual), *typed(source, usual)], accept_new_options=True,
        select_all=False, filter_mode="contains", wrap=True,
        help="A name, or a name with parameters: `pairnet:degree=3,n_components=5`.",
    )  # fmt: skip
    cold = OBJECTS == ask(
        st.segmented_control, "Measure on", name="links.split", default=PAIRS, options=list(SPLITS),
        format_func=SPLITS.get, required=True,
        help="Held-out pairs: the objects are known, the links between them are not. Objects never "
        "seen: nothing but their features is known.",
    )  # fmt: skip
    with st.expander("More settings"):
        weighting = ask(
            st.selectbox, "Weight features by", name="links.weighting", default=USUAL,
            options=[USUAL, *WEIGHTINGS],
            help=f"Here what suits is: {graph.weighting}. Unit: each object's features have length 1.",
        )  # fmt: skip
        share = ask(
            st.slider, "Share held out", 0.1, 0.5, step=0.1, name="links.share", default=0.3,
            valid=between(0.1, 0.5),
        )  # fmt: skip
        ratio = ask(
            st.slider, "Pairs without a link for each link", 1, 10, name="links.ratio", default=1,
            valid=between(1, 10),
        )  # fmt: skip
        seed = ask(
            st.number_input, "Seed of the random split", 0, 2**31 - 1, name="links.seed", default=0,
            valid=between(0, 2**31 - 1),
        )  # fmt: skip
    if not names:
        st.info("Choose at least one predictor.")
        return
    how = None if weighting == USUAL else weighting
    settings = {"cold": cold, "test_size": round(share, 2), "ratio": float(ratio), "seed": int(seed)}
    full = ("links", key, tuple(names), how, *settings.values())
    if not asked(full):
        return
    weighted: Graph = state.result(
        ("links-graph", key, how), lambda progress: graph.weighted(how), "Weighting features"
    )
    found: LinkComparison = state.result(
        full,
        lambda progress: compare_links(weighted, names, **settings),
        f"Comparing {counted(len(names), 'predictor')}",
    )
    comparison(found)
    strongest(weighted, (key, how), found, float(ratio), int(seed), source)


def asked(full: tuple[Any, ...]) -> bool:
    """Return whether this comparison was asked for; else show the button that does."""
    here, told = session(), state.digest(full)
    if here.get("links.asked", "") == told:
        return True
    job = state.jobs().find(full)
    if job is not None and job.over and job.error is None:
        return True
    if st.button("Compare", type="primary", icon=":material/play_arrow:"):
        here.set("links.asked", told)
        here.cancelled.discard(full)
        st.rerun()
    examples.empty("links")
    return False


# ---- the graph


def choose_graph() -> tuple[str, tuple[Any, ...], Graph]:
    """Show where the graph comes from and return its source, what identifies it, and itself."""
    options = {DATASET: "users and items of a dataset", **graphs(), TABLES: "my tables"}
    source = ask(
        st.segmented_control, "Graph", name="links.graph", default=DATASET, options=list(options),
        format_func=options.get, required=True,
    )  # fmt: skip
    key: tuple[Any, ...]
    if source == TABLES:
        key, graph = uploaded()
    elif source == DATASET:
        catalogue = state.choose_data()
        own = ask(
            st.checkbox, "Each user and item is a feature of its own, too", name="links.ids",
            default=False,
            help="What one is like beyond what the tables say. It says nothing of objects never seen.",
        )  # fmt: skip
        if len(catalogue.data.users) > MOST_LINKS:
            st.warning(
                f"{len(catalogue.data.users):,} likes; at most {MOST_LINKS:,} here. Choose a smaller "
                "dataset."
            )
            st.stop()
        key = (source, catalogue.key, own)
        graph = state.result(
            ("links-graph", *key), lambda progress: graph_of(catalogue.data, own), "Reading features"
        )
    else:
        key = (source,)
        graph = state.result(
            ("links-graph", *key), lambda progress: load_graph(source), f"Reading {source}"
        )
    if len(graph.links) > MOST_LINKS:
        st.warning(f"{len(graph.links):,} links; at most {MOST_LINKS:,} here: give fewer pairs.")
        st.stop()
    return source, key, graph


def graphs() -> dict[str, str]:
    """Return the graphs of the data folder that are there."""
    names = dict.fromkeys([*GRAPHS, *list_graphs()])
    return {name: GRAPHS.get(name, name) for name in names if found_graph(name) is not None}


def uploaded() -> tuple[tuple[Any, ...], Graph]:
    """Show the upload of tables, and return the graph that they make; stop until there is one."""
    uploader(
        "Tables: pairs of ids, and objects with their features", "links.tables", several=True,
        help="One to three files. Pairs have two columns of ids, a row a link; a table of objects has "
        "the id first, and its features in the other columns. Pairs alone do, too.",
    )  # fmt: skip
    kept = kept_files("links.tables")
    if not kept:
        st.info(
            "Upload a table of pairs: two columns of ids. Add a table of the objects with their "
            "features, or two if each column has objects of its own kind."
        )
        st.stop()
    say_kept(kept, "links.tables")
    key = (TABLES, tuple(file.token for file in kept))
    graph: Graph = state.result(
        ("links-graph", *key), lambda progress: read_tables(kept), "Reading tables"
    )
    return key, graph


def read_tables(files: Sequence[UploadedFile]) -> Graph:
    """Return the graph of uploaded tables; errors name the files as they were uploaded."""
    if len(files) > MOST_TABLES:
        raise InputError(f"{len(files)} files; at most {MOST_TABLES} make a graph: pairs, and objects")
    with ExitStack() as stack:
        paths: dict[Path, str] = {}
        for file in files:
            paths[stack.enter_context(spooled(file.content, file.name))] = file.name
        try:
            return read_graph(*tell_tables_apart(list(paths)))
        except InputError as error:
            text, first = str(error), next(iter(paths.values()))
            for path, name in paths.items():
                if str(path) in text:
                    text, first = text.replace(str(path), name[:60]), name
            raise InputError(clean(text, first)) from error


# ---- what is compared


def others(usual: list[str]) -> list[str]:
    """Return the other predictors that can be fitted here, with their defaults."""
    taken = {parse_spec(one)[0] for one in usual}
    found = ["pairnet:degree=3,n_components=5,max_iter=20"]
    for name in LINKS.names():
        if name in taken or name == "pairnet":
            continue
        try:
            LINKS.get(name)().check_parameters()  # networks need PyTorch
        except InputError:
            continue
        found.append(name)
    return found


def typed(source: str, usual: list[str]) -> list[str]:
    """Return the predictors that were typed."""
    chosen = session().get(f"links.models.{source}", [])
    return [one for one in chosen if one not in usual and one not in others(usual)]


def comparison(found: LinkComparison) -> None:
    """Show the metric values, and what they say."""
    st.subheader("Comparison", anchor=False)
    st.text(wording.headline(found))
    frame = values(found)
    one, two = st.columns(2, gap="large")
    two.dataframe(
        frame[["model", "AUC", "±", "accuracy", "precision", "recall"]],
        hide_index=True, width="stretch",
        column_config={
            name: st.column_config.NumberColumn(name, format="%.4f")
            for name in ("AUC", "±", "accuracy", "precision", "recall")
        },
    )  # fmt: skip
    one.altair_chart(
        link_charts.aucs(frame), width="stretch", alt="AUC of each predictor with its 95% interval"
    )
    for line in wording.verdicts(found):
        st.text(line)
    st.caption(
        "AUC is how often a link has the higher score of a link and a pair without one; 0.5 is chance. "
        "± is a standard error that takes pairs as independent, and those that share an object are not "
        "quite. Accuracy, precision and recall call every score above 0 a link."
    )


def values(found: LinkComparison) -> pd.DataFrame:
    """Return the comparison as a table, the best AUC first."""
    rows = [
        {
            "model": r.model, "AUC": r.metrics.auc, "±": r.auc_error, "accuracy": r.metrics.accuracy,
            "precision": r.metrics.precision, "recall": r.metrics.recall,
            "low": r.metrics.auc - 1.96 * r.auc_error, "high": r.metrics.auc + 1.96 * r.auc_error,
        }
        for r in found.results
    ]  # fmt: skip
    return pd.DataFrame(rows).sort_values("AUC", ascending=False, kind="stable", ignore_index=True)


# ---- the strongest links


def strongest(
    graph: Graph, key: tuple[Any, ...], found: LinkComparison, ratio: float, seed: int, source: str
) -> None:
    """Show the strongest links of one object that are not known, and what makes one of them."""
    st.subheader("Strongest links of one object", anchor=False)
    names = [r.model for r in found.results]
    name = ask(
        st.selectbox, "Predictor", name="links.model", default=found.best.model, options=names,
        help="Fitted on every link this time, the held-out ones included.",
    )  # fmt: skip
    side = "left"
    if graph.B is not None:
        sides = {"left": graph.left.noun, "right": graph.right.noun}
        side = ask(
            st.segmented_control, "Of", name="links.side", default="left", options=list(sides),
            format_func=lambda one: f"{'a' if sides[one][0] not in 'aeio' else 'an'} {sides[one]}",
            required=True,
        )  # fmt: skip
    own, other = (graph.left, graph.right) if side == "left" else (graph.right, graph.left)
    ids = [str(one) for one in own.ids]
    places = {one: k for k, one in enumerate(ids)}
    chosen = ask(
        st.selectbox, own.noun.capitalize(), name=f"links.{side}.{source}",
        default=ids[most_linked(graph, side)], options=ids,
        format_func=lambda one: named(graph, side, places[one]), filter_mode="contains",
    )  # fmt: skip
    model: LinkPredictor = state.result(
        ("links-fit", *key, name, ratio, seed),
        lambda progress: fit_on_all_links(graph, name, ratio=ratio, seed=seed),
        f"Fitting {name} on all links",
    )
    index = places[chosen]
    told = strongest_links(model, graph, index, side, LISTED)
    label = named(graph, side, index)
    st.text(wording.strongest_line(graph, label, side, told))
    far = "right" if side == "left" else "left"
    if told.candidates:
        listed = [named(graph, far, int(k)) for k in told.objects]
        one, two = st.columns([2, 3], gap="large")
        one.dataframe(
            {
                "rank": list(range(1, len(listed) + 1)), other.noun: listed,
                "score": np.round(told.scores, 4),
            },
            hide_index=True, width="stretch",
        )  # fmt: skip
        nodes, edges = neighbourhood(graph, index, side, told)
        two.altair_chart(
            link_charts.network(
                nodes, edges, "Known links (left), predicted (right)",
                "dark" if st.context.theme.type == "dark" else "light",
            ),
            width="stretch", alt=f"{label} with its known and its predicted links",
        )  # fmt: skip
        shown = int((nodes["kind"] == "known link").sum())
        if shown < len(told.known):
            two.caption(f"The picture has {shown} of its {counted(len(told.known), 'known link')}.")
    explained(graph, model, index, side, told, ratio, source)


def explained(
    graph: Graph,
    model: LinkPredictor,
    index: int,
    side: str,
    told: StrongestLinks,
    ratio: float,
    source: str,
) -> None:
    """Show what makes one link: a predicted one first, any other on request."""
    far = "right" if side == "left" else "left"
    other = graph.right if side == "left" else graph.left
    rest = [k for k in range(len(other.ids)) if graph.B is not None or k != index]
    order = list(dict.fromkeys([*map(int, told.objects), *map(int, told.known), *rest]))
    if not order:
        return
    known = set(map(int, told.known))
    places = {str(other.ids[k]): k for k in order}
    chosen = ask(
        st.selectbox, "Explain the link to", name=f"links.to.{source}", default=str(other.ids[order[0]]),
        options=list(places), filter_mode="contains",
        format_func=lambda one: named(graph, far, places[one])
        + (" (linked)" if places[one] in known else ""),
        key=f"links.to {source} {side} {index}",
    )  # fmt: skip
    ends = (index, places[chosen]) if side == "left" else (places[chosen], index)
    if graph.B is None:
        ends = (min(ends), max(ends))  # as pairs of objects of one kind are learned from
    labels = named(graph, "left", ends[0]), named(graph, "right", ends[1])
    found = link_reasons(model, graph.A, graph.B, *ends, LISTED)
    st.text(wording.why(found, *labels))
    proba = float(model.predict_proba(graph.A, graph.B, [ends])[0, 1])
    if line := wording.chance(model, graph, proba, ratio):
        st.text(line)
    rows = bars(found, graph, labels)
    if found.kind == "exact":
        chart = explain_charts.waterfall(rows, "How the score adds up")
    else:
        chart = explain_charts.bars(
            [name for name, *_ in rows],
            [value for *_, value in rows],
            "How far the score falls without each feature",
            "fall of the score",
        )
    st.altair_chart(
        chart, width="stretch", alt=f"What the features add to the score of {labels[0]} and {labels[1]}"
    )
    st.caption(
        "Each bar is what one feature of the first and one of the second add together, in the score's "
        "own units. A combination of more than two features is shared equally by its pairs."
        if found.kind == "exact"
        else "Each bar is by how much the score falls without a feature; they do not sum to the score."
    )
    st.download_button(
        "Download CSV", as_csv(found, graph, labels), "link.csv", "text/csv", icon=":material/download:"
    )


def bars(found: LinkReasons, graph: Graph, labels: tuple[str, str]) -> list[tuple[str, str, float]]:
    """Return the bars that sum to the score, or the changes."""
    if found.kind != "exact":
        ends = (graph.left, graph.right)
        return [
            (f"{ends[end].features[feature]} ({labels[end]})", "part", value)
            for end, feature, value in found.changes
        ]
    rows: list[tuple[str, str, float]] = [("whatever the objects", "base", found.base)]
    for value, label in ((found.left, labels[0]), (found.right, labels[1])):
        if value:
            rows.append((f"{label} alone", "part", value))
    for p, q, value in found.pairs:
        rows.append((f"{graph.left.features[p]} × {graph.right.features[q]}", "part", value))
    if found.unlisted:
        rows.append((counted(found.unlisted, "other pair"), "part", found.others))
    rows.append(("score", "score", found.score))
    return rows


def as_csv(found: LinkReasons, graph: Graph, labels: tuple[str, str]) -> str:
    """Return what makes a link as a table."""
    rows = [(*labels, name, kind, value) for name, kind, value in bars(found, graph, labels)]
    return csv_text(("left", "right", "what", "kind", "adds"), rows)


# ---- the picture


def neighbourhood(
    graph: Graph, index: int, side: str, told: StrongestLinks
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the nodes and the edges of the picture: known links left, predicted ones right.

    Of many known neighbours those with most links among the others shown are drawn.
    """
    far = "right" if side == "left" else "left"
    pairs = {(int(a), int(b)) for a, b in graph.links}
    known = [int(k) for k in told.known]
    predicted = [int(k) for k in told.objects]

    def linked(a: int, b: int) -> bool:
        return graph.B is None and ((a, b) in pairs or (b, a) in pairs)

    if len(known) > MOST_NEIGHBOURS:
        near = {k: sum(linked(k, j) for j in [*known, *predicted] if j != k) for k in known}
        known = sorted(known, key=lambda k: (-near[k], k))[:MOST_NEIGHBOURS]
    scores = {int(k): float(s) for k, s in zip(told.objects, told.scores, strict=True)}
    places = {**on_arc(known, -1.0), **on_arc(predicted, 1.0)}
    nodes = [
        {
            "name": short(named(graph, side, index)), "kind": "this one", "side": "middle", "x": 0.0,
            "y": 0.0, "score": None,
        }
    ]  # fmt: skip
    edges = []
    for kind, group, where in (("known link", known, "left"), ("predicted link", predicted, "right")):
        for k in group:
            x, y = places[k]
            nodes.append(
                {
                    "name": short(named(graph, far, k)), "kind": kind, "side": where, "x": x, "y": y,
                    "score": scores.get(k),
                }
            )  # fmt: skip
            edges.append({"x": 0.0, "y": 0.0, "x2": x, "y2": y, "kind": kind})
    shown = [*known, *predicted]
    for at, a in enumerate(shown):
        for b in shown[at + 1 :]:
            if linked(a, b):
                (x, y), (x2, y2) = places[a], places[b]
                edges.append({"x": x, "y": y, "x2": x2, "y2": y2, "kind": "between them"})
    columns = ["x", "y", "x2", "y2", "kind"]
    return pd.DataFrame(nodes), pd.DataFrame(edges, columns=columns)


def on_arc(group: list[int], sign: float) -> dict[int, tuple[float, float]]:
    """Return positions on a half circle, left (−1) or right (1), from the top to the bottom."""
    down = 1.0 - 2.0 * (np.arange(len(group)) + 0.5) / max(len(group), 1)  # names do not overlap
    out = 0.4 + 0.6 * np.sqrt(1.0 - down**2)
    return {k: (sign * float(x), float(y)) for k, x, y in zip(group, out, down, strict=True)}


def short(name: str) -> str:
    """Return a name that fits beside a point."""
    return name if len(name) <= SHORT else name[: SHORT - 1].rstrip() + "…"


def named(graph: Graph, side: str, index: int) -> str:
    """Return what an object is called."""
    return str((graph.left if side == "left" else graph.right).labels[index])


def most_linked(graph: Graph, side: str) -> int:
    """Return the object of most links, the first of several."""
    ends = graph.links.ravel() if graph.B is None else graph.links[:, 0 if side == "left" else 1]
    return int(np.argmax(np.bincount(ends)))
