"""What written files hold: no cell that a spreadsheet would run, and nothing a forgotten user liked."""

from __future__ import annotations

import csv
import io
import re
import warnings
from pathlib import Path
from random import Random

import numpy as np

import recsys
from benchmarks.attack.common import Result, cases, workspace

STARTS = (
    "=",
    "+",
    "-",
    "@",
    "\t=",
    "\r=",
    "=cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "+1",
    "=HYPERLINK(1)",
    "'=",
    " =",
)
RUN = ("=", "+", "-", "@", "\t", "\r")  # starts of a cell that a spreadsheet takes for a formula


def ids(random: Random, letter: str, count: int) -> list[str]:
    """Return ids, half of which a spreadsheet would run."""
    return [f"{random.choice(STARTS) if random.random() < 0.5 else ''}{letter}{k}" for k in range(count)]


def table(random: Random) -> recsys.Interactions:
    """Return interactions of users and items with such ids."""
    users, items = ids(random, "u", 20), ids(random, "i", 15)
    pairs = [(user, item) for user in users for item in random.sample(items, 5)]
    columns = (np.array(column, dtype=object) for column in zip(*pairs, strict=True))
    return recsys.Interactions.from_ids(*columns, name="made")


def formulas(path: Path) -> list[str]:
    """Return the cells of a CSV file that a spreadsheet would run; numbers are none."""
    found = []
    # Unless it is quoted, \r ends a line for spreadsheets, which Python's reader refuses.
    with path.open(newline="", encoding="utf-8") as file:
        lines = re.split(r'\r(?=(?:[^"]*"[^"]*")*[^"]*$)', file.read())
    for line in lines:
        for row in csv.reader(io.StringIO(line, newline="")):
            for cell in row:
                try:
                    float(cell)
                except ValueError:
                    found += [cell] * cell.startswith(RUN)
    return found


def written(model: recsys.Recommender, folder: Path) -> str:
    """Write the lists of all users; return what is wrong with them."""
    model.recommend_all(folder / "lists.csv", n=4)
    model.recommend_all(folder / "raw.csv", n=4, raw=True)
    found = formulas(folder / "lists.csv")
    if found:
        return f"a cell that runs: {found[0]!r}"
    return "" if formulas(folder / "raw.csv") else "raw lists hold no such id: nothing was tried"


def forgotten(model: recsys.Recommender, random: Random, folder: Path) -> str:
    """Let users be forgotten and save; return what the file still knows of them."""
    names = random.sample(list(map(str, model.package.user_ids)), 3)
    model.forget(names).save(folder / "model")
    package = recsys.load(folder / "model").package
    rows = package.rows(names)[0]
    left = package.user_items[rows].nnz
    if left:
        return f"{left} likes of {names[0]!r} and others are there"
    lists = package.ranker.recommend(rows, package.user_items[rows], 4).ids
    return "" if (lists == lists[0]).all() else "forgotten users get lists of their own"


def run(seconds: float, seed: int) -> Result:
    result = Result()
    for number, random in cases(seconds, seed):
        name = random.choice(("msdw", "ease", "popularity"))
        with workspace() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = recsys.Recommender(name).fit(table(random))
            fault = written(model, folder)
            result.add(f"case {number}, {name}, formulas", "files", fault)
            fault = forgotten(model, random, folder)
            result.add(f"case {number}, {name}, forgotten users", "files", fault)
    return result
