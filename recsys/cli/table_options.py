"""The options that say which table of categories a command works on, and reading it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.datasets.categorical import OneHot, list_tables, load_table, read_categorical

TableFile = Annotated[
    Path | None,
    typer.Option("--data", help="ARFF, CSV, TSV or Parquet of categories, or tic-tac-toe, monks-1…3."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="Column of the class; the last by default.")
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", help="The class to describe; the more frequent of two by default."),
]


def load_categories(data: Path, target: str | None, positive: str | None) -> OneHot:
    """Return the table that the options describe; notes about it go to stderr."""
    if not data.exists() and str(data) in list_tables():
        table = load_table(str(data))
    else:
        values = None if positive is None else positive.split("|")
        table = read_categorical(data, target, values)
    for note in table.notes:
        terminal.say(f"note: {data}: {note}")
    return table
