"""`recsys explain`: an item's score from the liked items, or a user's scores from other users."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.lists import print_items
from recsys.cli.options import AsOf, Count, History, Json, RankerFile, profile_of, warn_as_of
from recsys.errors import InputError, counted
from recsys.explain import top_formulas
from recsys.rankers import ModelPackage, load_package
from recsys.rankers.catalogue import Profile
from recsys.recommender.answers import Why
from recsys.recommender.explained import explained as why_of
from recsys.utils.validation import check_integer

ROUNDING = 1e-9  # of the score: what sums of shares differ by


def explain(
    ranker: RankerFile,
    item: Annotated[str | None, typer.Option("--item", help="Item id to explain.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="User id.")] = None,
    history: History = None,
    as_of: AsOf = None,
    number: Count = 10,
    people: Annotated[
        bool,
        typer.Option(
            "--people",
            help="Which users of an item together weigh most in the user's scores; with --item "
            "in that one's. Of cf-komd with kernel mc, mc-sum, md or linear, ecf-omd and cf-omd.",
        ),
    ] = False,
    min_support: Annotated[
        int | None,
        typer.Option("--min-support", help="With --people: least number of shared liked items."),
    ] = None,
    formulas: Annotated[
        int,
        typer.Option(
            "--formulas",
            help="How many formulas over users that hold for the item to list, by their weight in the "
            "model: of the same models as --people.",
        ),
    ] = 0,
    changes: Annotated[
        int,
        typer.Option(
            "--changes", help="How many liked items to list without which the item's rank is worst."
        ),
    ] = 0,
    model_rule: Annotated[
        int,
        typer.Option(
            "--model-rule",
            help="For which other users the model puts the item among so many first, a rule over liked "
            "items; and which items it puts there for this user, a rule over attributes of this one. "
            "Both are counted in the model's own lists.",
        ),
    ] = 0,
    json: Json = None,
) -> None:
    """Print what a score comes from: liked items and features; with --people, other users."""
    if (user is None) == (history is None):
        raise InputError("name whom to explain to by exactly one of --user ID and --history ID,ID")
    check_integer("-n", number, 1)
    check_integer("--formulas", formulas, 0)
    check_integer("--changes", changes, 0)
    check_integer("--model-rule", model_rule, 0)
    if people and (formulas or changes or model_rule):
        raise InputError(
            "--formulas, --changes and --model-rule are for an item without --people: leave them out"
        )
    if not people and min_support is not None:
        raise InputError("--min-support is for --people: leave it out")
    if not people and item is None:
        raise InputError("name the item to explain by --item ID, or pass --people")
    package = load_package(ranker, mapped=True)
    index = None if item is None else int(package.items([item])[0])
    asked = profile_of(package, user, history, as_of)
    if index is None or people:
        _print_item_rules(
            package, asked, user or "somebody", index, number,
            1 if min_support is None else min_support, json,
        )  # fmt: skip
        warn_as_of(as_of)
        return
    why = why_of(
        package, asked, package.item_ids[index], number, formulas=formulas, changes=changes,
        model_rule=model_rule,
    )  # fmt: skip
    warn_as_of(as_of)
    if json is not None:
        terminal.write_json(json, why.as_dict())
    if json == "-":
        return
    lines = [
        (name, f"{title} ({age})" if age else title, f"{value:+.4g}")
        for name, title, value, age in why.rows
    ]
    if why.reasons.kind == "nearest":
        _print_nearest(package, why, lines)
    else:
        _print_shares(package, why, lines)
    _print_more(package, why)


def _print_item_rules(
    package: ModelPackage, asked: Profile, user: str, item: int | None, number: int, min_support: int,
    json: str | None,
) -> None:  # fmt: skip
    """Print which sets of users weigh most in a user's scores, or in one item's."""
    found = top_formulas(
        package.ranker, package.user_items, asked.userid, asked.row, item=item, N=number,
        min_support=min_support, exclude=asked.user, times=asked.times,
    )  # fmt: skip
    named, title = ("", "") if item is None else (str(package.item_ids[item]), str(package.titles[item]))
    if json is not None:
        terminal.write_json(json, found.as_dict(user, package.user_ids, named, title))
    if json == "-":
        return
    for sentence in found.sentences(user, title):
        print(terminal.literal(sentence))
    if found.found:
        print("\nThe largest weights first.")
    for one in found.found:
        print(terminal.literal(found.sentence(one, user, package.user_ids)))


def _print_shares(package: ModelPackage, why: Why, lines: list[tuple[str, str, str]]) -> None:
    """Print what adds up to the score, the score last."""
    found = why.reasons
    if found.unlisted:
        lines.append(("", counted(found.unlisted, "other liked item"), f"{found.others:+.4g}"))
    base = "base value"
    if not lines:
        base = "popularity: nothing is liked" if found.unit == "users" else "no liked item is read"
    constant = found.base if abs(found.base) > ROUNDING * abs(found.score) else 0.0
    lines += [("", base, f"{constant:+.4g}"), ("", "score", f"{found.score:.4g}")]
    title = f"Why {why.title}: what adds up to its score"
    print_items(package, lines, ("item_id", "because you like", "adds to the score"), title)


def _print_nearest(package: ModelPackage, why: Why, lines: list[tuple[str, str, str]]) -> None:
    """Print the liked items most similar to the item, of a model whose scores have no shares."""
    found = why.reasons
    if found.unlisted:
        lines.append(("", counted(found.unlisted, "other liked item"), ""))
    title = f"Why {why.title}: the liked items most similar to it"
    print_items(package, lines, ("item_id", "similar to what you like", "similarity"), title)
    print(f"Its score is {found.score:.4g}; {package.ranker.name} has no shares that add up to it.")


def _print_more(package: ModelPackage, why: Why) -> None:
    """Print products of features, the models of a blend, and the rule of other users."""
    if why.multiplied:
        rows = [(name, f"{value:+.4g}") for name, value in why.multiplied]
        title = "The score by features"
        terminal.table(title, ("features", "adds to the score"), rows)
    if why.parts:
        rows = [(name, f"{adds:+.4g}") for name, _, adds in why.parts]
        terminal.table("The score by models", ("model", "adds to the score"), rows)
    if why.rule_text:
        print(
            terminal.literal(f"{why.rule_text} Counted in the data; the model does not use this rule.")
        )
    for line in why.sentences:
        print(terminal.literal(line))
