"""`recsys export`: vectors of users and items, or an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.adapters.onnx import export_onnx
from recsys.cli.options import RankerFile
from recsys.embeddings import embeddings, export_embeddings
from recsys.errors import InputError
from recsys.rankers import load_package


def export(
    ranker: RankerFile,
    users: Annotated[
        Path | None, typer.Option("--users-out", help=".npy or .parquet of the users' vectors.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option("--items-out", help=".npy or .parquet of the items' vectors.")
    ] = None,
    factors: Annotated[
        int, typer.Option("--factors", help="Rank, for models without vectors of their own.")
    ] = 64,
    onnx: Annotated[
        Path | None,
        typer.Option("--onnx", help="ONNX file from rows to scores, of item-item rankers."),
    ] = None,
) -> None:
    """Write vectors whose inner products are the scores, or an ONNX file from rows to scores."""
    if users is None and items is None and onnx is None:
        raise InputError("name a file to write with --users-out, --items-out or --onnx")
    package = load_package(ranker)
    if onnx is not None:
        print(f"{export_onnx(onnx, package.ranker, package.item_ids)}: from rows to scores")
    if users is None and items is None:
        return
    found = embeddings(package.ranker, package.user_items, factors)
    for target, ids, vectors in (
        (users, package.user_ids, found.users), (items, package.item_ids, found.items),
    ):  # fmt: skip
        if target is not None:
            export_embeddings(target, ids, vectors)
    print(f"{found.items.shape[1]} numbers a vector; they miss {found.error:.2%} of the scores")
