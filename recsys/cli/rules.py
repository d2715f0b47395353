"""`recsys rules`: the rule that a kernel machine follows on a table, or a ranker in its lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from recsys.cli import terminal
from recsys.cli.options import Json, Seed
from recsys.cli.table_options import Positive, TableFile, Target, load_categories
from recsys.errors import InputError, counted
from recsys.explain import measure_rule
from recsys.rankers import load_package
from recsys.recommender import Recommender
from recsys.recommender.model_rules import FIRST
from recsys.utils.memory import check_memory
from recsys.utils.validation import check_integer, check_real


def rules(
    data: TableFile = None,
    target: Target = None,
    positive: Positive = None,
    test_size: Annotated[float, typer.Option("--test-size", help="Share of rows held out.")] = 0.3,
    seed: Seed = 0,
    max_clauses: Annotated[int, typer.Option("--max-clauses")] = 10,
    max_literals: Annotated[int, typer.Option("--max-literals")] = 5,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            help="How long to search for a better rule, and for what no rule exceeds; some tenths of a "
            "second by default, the same work on every machine.",
        ),
    ] = None,
    ranker: Annotated[
        Path | None,
        typer.Option(
            "--ranker",
            help="A file that `recsys fit` wrote: the rule of its list for --user, or of --item.",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="With --ranker: user id.")] = None,
    item: Annotated[str | None, typer.Option("--item", help="With --ranker: item id.")] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", help="With --ranker: so many of a list are put first.")
    ] = FIRST,
    json: Json = None,
) -> None:
    """Print the rule that a kernel machine follows on a table, or a fitted ranker in its lists."""
    if ranker is not None:
        if data is not None:
            raise InputError("pass --ranker FILE or --data FILE, not both")
        _of_ranker(ranker, user, item, number, json)
        return
    if user is not None or item is not None:
        raise InputError(
            "--user and --item are for --ranker FILE: name the model that `recsys fit` wrote"
        )
    if data is None:
        raise InputError(
            "pass --data FILE, a table of categories, or --ranker FILE with --user or --item"
        )
    check_real("--test-size", test_size, 0.0, 0.9, open_low=True)
    check_integer("--seed", seed, 0, 2**32 - 1)
    check_integer("--max-clauses", max_clauses, 1, 100)
    check_integer("--max-literals", max_literals, 1, 20)
    if seconds is not None:
        check_real("--seconds", seconds, 0.0)
    table = load_categories(data, target, positive)
    check_memory(8 * 4 * len(table.y) ** 2, f"a Gram matrix of {len(table.y):,} rows")
    counts = np.bincount(table.y, minlength=2)
    if counts.min() < 4:
        raise InputError(
            f"{data}: only {counts.min()} rows of one class; a held-out part needs at least 4"
        )
    found = measure_rule(
        table.X, table.y, test_size=test_size, seed=seed, max_clauses=max_clauses,
        max_literals=max_literals, names=table.names, seconds=seconds,
    )  # fmt: skip
    rule = found.rule
    if json is not None:
        terminal.write_json(json, {
            "target": table.target, "rule": str(rule), "accuracy": found.accuracy,
            "fidelity": found.fidelity, "majority": found.majority, "rows": found.rows,
            "held_out": found.held_out, "seed": seed, "weight": found.search.weight,
            "bound": found.search.bound, "gap": found.search.gap, "exact": found.search.exact,
            "guarantee": found.guarantee,
            "clauses": [[table.names[k] for k in clause] for clause in rule.clauses],
        })  # fmt: skip
    if json != "-":
        print(f"{table.target} if\n")
        print("  " + terminal.literal(str(rule)).replace(" ∨ ", "\n  ∨ ") + "\n")
        print(found.guarantee)
        learned = f"{counted(found.rows, 'row')} learned from, {found.held_out:,} held out"
        print(f"{learned}; the larger class has {found.majority:.3f}")
        size = f"clauses {len(rule.clauses)}  literals {rule.literals}"
        print(f"accuracy {found.accuracy:.3f}  fidelity {found.fidelity:.3f}  {size}")


def _of_ranker(ranker: Path, user: str | None, item: str | None, number: int, json: str | None) -> None:
    """Print the rule of a ranker's list for a user, or of an item."""
    if (user is None) == (item is None):
        raise InputError("name what the rule is about by exactly one of --user ID and --item ID")
    check_integer("-n", number, 1)
    found = Recommender.of(load_package(ranker)).model_rule(user=user, item=item, n=number)
    if json is not None:
        terminal.write_json(json, found.as_dict())
    if json != "-":
        print(terminal.literal(found.sentence))
