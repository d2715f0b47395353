"""`recsys similar`."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys.cli.lists import print_items
from recsys.cli.options import Count, Diversity, Only, RankerFile, Without, ids_of
from recsys.rankers import load_bundle
from recsys.reranking import similar as similar_items
from recsys.utils.validation import check_integer


def similar(
    ranker: RankerFile,
    item: Annotated[str, typer.Option("--item", help="Item id.")],
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    diversity: Diversity = 0.0,
) -> None:
    """Print the items most similar to one."""
    bundle = load_bundle(ranker)
    index = int(bundle.items([item])[0])
    check_integer("-n", number, 1)
    ids, scores = similar_items(
        bundle.ranker, index, number, diversity=diversity,
        item_users=bundle.user_items.tocsc() if diversity else None,
        items=None if items is None else bundle.items(ids_of(items)),
        filter_items=None if filter_items is None else bundle.items(ids_of(filter_items)),
    )  # fmt: skip
    lines = [
        (place + 1, bundle.item_ids[i], bundle.titles[i], f"{score:.4g}")
        for place, (i, score) in enumerate(zip(ids, scores, strict=True))
    ]
    print_items(
        bundle, lines, ("rank", "item_id", "title", "similarity"), f"Similar to {bundle.titles[index]}"
    )
