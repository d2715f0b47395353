"""`recsys similar`."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys.cli.lists import print_items
from recsys.cli.options import (
    Count,
    Diversity,
    Filter,
    Only,
    RankerFile,
    Without,
    filters_of,
    item_ids,
)
from recsys.errors import InputError
from recsys.rankers import ModelPackage, load_package
from recsys.recommender.filters import left_out
from recsys.reranking import similar as similar_items
from recsys.utils.validation import check_integer


def similar(
    ranker: RankerFile,
    item: Annotated[str | None, typer.Option("--item", help="Item id.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="User id, for similar users.")] = None,
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    filter_by: Filter = None,
    diversity: Diversity = 0.0,
) -> None:
    """Print the items most similar to one, or the users most similar to one."""
    if (item is None) == (user is None):
        raise InputError("name what is similar to what by exactly one of --item ID and --user ID")
    package = load_package(ranker, mapped=True)
    check_integer("-n", number, 1)
    if user is not None:
        if items or filter_items or filter_by or diversity:
            raise InputError("--items, --filter-items, --filter and --diversity are for --item")
        _similar_users(package, user, number)
        return
    if items is not None and filter_items is not None:
        raise InputError("pass --items or --filter-items, not both")
    index = int(package.items([str(item)])[0])
    ids, scores = similar_items(
        package.ranker, index, number, diversity=diversity,
        item_users=package.user_items.tocsc() if diversity else None,
        filter_items=left_out(
            package, item_ids(package, "--items", items),
            item_ids(package, "--filter-items", filter_items), filters_of(filter_by),
        ),
    )  # fmt: skip
    lines = [
        (place + 1, package.item_ids[i], package.titles[i], f"{score:.4g}")
        for place, (i, score) in enumerate(zip(ids, scores, strict=True))
    ]
    print_items(
        package, lines, ("rank", "item_id", "title", "similarity"), f"Similar to {package.titles[index]}"
    )


def _similar_users(package: ModelPackage, user: str, number: int) -> None:
    index = int(package.rows([user])[0][0])
    ids, scores = package.ranker.similar_users(index, N=number, filter_users=[index])
    lines = [
        (place, package.user_ids[k], f"{score:.4g}")
        for place, (k, score) in enumerate(zip(ids, scores, strict=True), 1)
    ]
    print_items(package, lines, ("rank", "user_id", "similarity"), f"Similar to {user}")
