"""`recsys explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys.cli.lists import print_items
from recsys.cli.options import AsOf, Count, History, RankerFile, profile_of, warn_as_of
from recsys.errors import InputError, counted
from recsys.explain import Reasons, reasons
from recsys.explain.text import ago
from recsys.rankers import Bundle, load_bundle
from recsys.utils.validation import check_integer

ROUNDING = 1e-9  # of the score: what sums of shares differ by


def explain(
    ranker: RankerFile,
    item: Annotated[str, typer.Option("--item", help="Item id to explain.")],
    user: Annotated[str | None, typer.Option("--user", help="User id.")] = None,
    history: History = None,
    as_of: AsOf = None,
    number: Count = 10,
) -> None:
    """Print which liked items an item's score comes from."""
    if (user is None) == (history is None):
        raise InputError("name whom to explain to by exactly one of --user ID and --history ID,ID")
    bundle = load_bundle(ranker)
    index = int(bundle.items([item])[0])
    asked = profile_of(bundle, user, history, as_of)
    found = reasons(
        bundle.ranker, asked.userid, asked.row, index, check_integer("-n", number, 1),
        times=asked.times, as_of=asked.as_of,
    )  # fmt: skip
    warn_as_of(as_of)
    lines = [
        (bundle.item_ids[i], _titled(bundle, found, i), f"{value:+.4g}") for i, value in found.items
    ]
    if found.kind == "nearest":
        _print_nearest(bundle, index, found, lines)
    else:
        _print_shares(bundle, index, found, lines)


def _titled(bundle: Bundle, found: Reasons, item: int) -> str:
    """Return a liked item's title, with how long ago it was liked where the model ranks by that."""
    title = str(bundle.titles[item])
    return f"{title} ({ago(found.ages[item])})" if item in found.ages else title


def _print_shares(bundle: Bundle, item: int, found: Reasons, lines: list[tuple[str, str, str]]) -> None:
    """Print what adds up to the score, the score last."""
    if found.unlisted:
        lines.append(("", counted(found.unlisted, "other liked item"), f"{found.others:+.4g}"))
    base = "what no liked item adds"
    if not lines:
        base = "popularity: nothing is liked" if found.unit == "people" else "no liked item is read"
    constant = found.base if abs(found.base) > ROUNDING * abs(found.score) else 0.0
    lines += [("", base, f"{constant:+.4g}"), ("", "score", f"{found.score:.4g}")]
    title = f"Why {bundle.titles[item]}: what adds up to its score"
    print_items(bundle, lines, ("item_id", "because you like", "adds to the score"), title)


def _print_nearest(bundle: Bundle, item: int, found: Reasons, lines: list[tuple[str, str, str]]) -> None:
    """Print the liked items most similar to the item, of a model whose scores have no shares."""
    if found.unlisted:
        lines.append(("", counted(found.unlisted, "other liked item"), ""))
    title = f"Why {bundle.titles[item]}: the liked items most similar to it"
    print_items(bundle, lines, ("item_id", "similar to what you like", "similarity"), title)
    print(f"Its score is {found.score:.4g}; {bundle.ranker.name} has no shares that add up to it.")
