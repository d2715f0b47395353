"""`recsys links`: fit and evaluate link predictors on files of features and pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import scipy.sparse as sp
import typer
from numpy.typing import NDArray

from recsys import links as models
from recsys.cli import terminal
from recsys.cli.options import Json, Threads, use_threads
from recsys.data import Interactions, read_features, read_interactions
from recsys.data.encoding import encode_table
from recsys.errors import InputError
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_integer


def links(
    left: Annotated[Path, typer.Option("--left", help="Table of features of the left objects.")],
    pairs: Annotated[Path, typer.Option("--pairs", help="Table of the links: left id, right id.")],
    right: Annotated[
        Path | None, typer.Option("--right", help="Table of the right objects, if they are others.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="NAME[:key=value,…].")] = None,
    left_id: Annotated[str | None, typer.Option("--left-id", help="Its id column.")] = None,
    right_id: Annotated[str | None, typer.Option("--right-id", help="Its id column.")] = None,
    left_col: Annotated[str | None, typer.Option("--left-col", help="Column of --pairs.")] = None,
    right_col: Annotated[str | None, typer.Option("--right-col", help="Column of --pairs.")] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Split over objects: both ends are new.")] = False,
    ratio: Annotated[float, typer.Option("--ratio", help="Pairs without a link for each link.")] = 1.0,
    test_size: Annotated[float, typer.Option("--test-size", help="Share held out.")] = 0.3,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    json: Json = None,
    threads: Threads = None,
) -> None:
    """Compare link predictors on held-out pairs, or on pairs of held-out objects."""
    use_threads(threads)
    check_integer("--seed", seed, 0, 2**31 - 1)
    chosen = [(text, _model(text)) for text in model or ["bilinear", "pairnet:degree=3", "pair-svm"]]
    A, ids = _objects(left, left_id)
    B, others = (None, ids) if right is None else _objects(right, right_id)
    found = read_interactions(pairs, user_col=left_col, item_col=right_col)
    ends = np.column_stack(
        [
            Interactions.lookup("left", ids, list(found.user_ids))[found.users],
            Interactions.lookup("right", others, list(found.item_ids))[found.items],
        ]
    ).astype(np.int64)
    if B is None:
        ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    sizes = (A.shape[0], None if B is None else B.shape[0])
    cut = models.split_objects if cold else models.split_pairs
    split = cut(ends, *sizes, test_size=test_size, ratio=ratio, seed=seed)
    rows = []
    for text, predictor in chosen:
        fitted = predictor.fit(A, B, split.train, split.train_labels)
        figures = models.link_metrics(split.test_labels, fitted.decision_function(A, B, split.test))
        rows.append((text, *figures))
    if json is not None:
        terminal.write_json(
            json,
            {
                "links": len(ends), "train": len(split.train), "test": len(split.test), "cold": cold,
                "seed": seed,
                "results": [{"model": row[0], **models.LinkMetrics(*row[1:])._asdict()} for row in rows],
            },
        )  # fmt: skip
    if json != "-":
        where = "pairs of objects never seen" if cold else "held-out pairs"
        title = f"{len(ends):,} links, {len(split.train):,} pairs train, {len(split.test):,} {where}"
        cells = [(row[0], *(f"{value:.4f}" for value in row[1:])) for row in rows]
        terminal.table(title, ("model", "auc", "accuracy", "precision", "recall"), cells)


def _model(text: str) -> models.LinkPredictor:
    name, params = parse_spec(text)
    return models.make_link_predictor(name, **params)


def _objects(path: Path, id_col: str | None) -> tuple[sp.csr_matrix, NDArray[np.object_]]:
    table = read_features(path, id_col, "item")
    matrix = encode_table(table, numbers="keep").X
    if matrix.shape[1] == 0:
        raise InputError(f"{path} has no feature beside the ids")
    return matrix, table.index.to_numpy(dtype=object)
