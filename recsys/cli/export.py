"""`recsys export`: vectors of users and items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli.options import RankerFile, writable
from recsys.embeddings import embeddings, export_embeddings
from recsys.errors import InputError
from recsys.rankers import load_package

ENDINGS = ".npy or .parquet"


def export(
    ranker: RankerFile,
    users: Annotated[
        Path | None, typer.Option("--users-out", help=f"User vectors, {ENDINGS}.", callback=writable)
    ] = None,
    items: Annotated[
        Path | None, typer.Option("--items-out", help=f"Item vectors, {ENDINGS}.", callback=writable)
    ] = None,
    factors: Annotated[int, typer.Option(help="Rank, for models without vectors.")] = 64,
) -> None:
    """Write user and item vectors whose inner products are the scores."""
    if users is None and items is None:
        raise InputError("name a file to write with --users-out or --items-out")
    for target in (users, items):
        if target is not None and target.suffix not in (".npy", ".parquet"):
            raise InputError(f"{target}: the ending must be {ENDINGS}")
    package = load_package(ranker)
    vectors = embeddings(package.ranker, package.user_items, factors)
    for target, ids, rows in (
        (users, package.user_ids, vectors.users),
        (items, package.item_ids, vectors.items),
    ):
        if target is not None:
            export_embeddings(target, ids, rows)
    print(f"vector length: {vectors.items.shape[1]}, relative error of the scores: {vectors.error:.2%}")
