"""Categorical tables, one-hot: tic-tac-toe and MONK's problems.

Every column becomes one 0/1 feature a value, named `column=value`. Rows with a missing value (`?` or
empty) are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.features import encode_table
from recsys.errors import DatasetError, InputError
from recsys.registry import did_you_mean

MISSING = ("?", "")


@dataclass(frozen=True)
class OneHot:
    """A two-class table over 0/1 features."""

    X: NDArray[np.uint8]  # (rows, features)
    y: NDArray[np.int64]  # (rows,), 1 for the positive class
    names: tuple[str, ...]  # of features, `column=value`
    target: str  # what y = 1 means, `column=value`
    notes: tuple[str, ...] = field(default=())


def encode(
    names: list[str],
    rows: list[list[str]],
    target: str | None,
    positive: str | Sequence[str] | None,
    source: str,
) -> OneHot:
    """Encode rows of categories.

    `target` is the class column, by default the last one. `positive` is the value, or values, of the
    positive class; by default the more frequent of two values. `source` names the table in messages.
    """
    target = names[-1] if target is None else target
    column = names.index(target)
    cells = np.array(rows, dtype=object).reshape(len(rows), len(names))
    known = ~np.isin(cells, MISSING).any(axis=1)
    label, dropped = cells[known, column], int((~known).sum())
    if positive is None:
        values, counts = np.unique(label, return_counts=True)
        positive = str(values[np.argmax(counts)])
    chosen = [positive] if isinstance(positive, str) else list(positive)
    y = np.isin(label, chosen).astype(np.int64)
    if len(np.unique(y)) < 2:
        raise InputError(f"{source}: some rows must be {target}={'|'.join(chosen)}, and some not")
    table = pd.DataFrame(cells[known], columns=names).drop(columns=target)
    encoded = encode_table(table, numbers="values", separator=None)
    note = f"rows with a missing value, dropped: {dropped:,} of {len(rows):,}"
    X = encoded.X.toarray().astype(np.uint8)
    return OneHot(X, y, encoded.names, f"{target}={'|'.join(chosen)}", (note,) if dropped else ())


def tic_tac_toe() -> OneHot:
    """Return all 958 boards at which a game that x began may end; positive: x has won."""
    squares = [
        f"{row}-{column}"
        for row in ("top", "middle", "bottom")
        for column in ("left", "middle", "right")
    ]
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    ends: dict[str, bool] = {}

    def play(board: str, player: str) -> None:
        for k in range(9):
            if board[k] == "b":
                after = board[:k] + player + board[k + 1 :]
                won = any(all(after[s] == player for s in line) for line in lines)
                if won or "b" not in after:
                    ends[after] = won and player == "x"
                else:
                    play(after, "o" if player == "x" else "x")

    play("b" * 9, "x")
    rows = [[*board, "positive" if ends[board] else "negative"] for board in sorted(ends)]
    return encode([*squares, "class"], rows, "class", "positive", "tic-tac-toe")


def monks(number: int) -> OneHot:
    """Return MONK's problem 1, 2 or 3 over all 432 robots, without the noise of 3's training half."""
    sizes = (3, 3, 2, 3, 4, 2)
    names = ("head_shape", "body_shape", "is_smiling", "holding", "jacket_color", "has_tie")
    rows = []
    for a in product(*(range(1, size + 1) for size in sizes)):
        if number == 1:
            positive = a[0] == a[1] or a[4] == 1
        elif number == 2:
            positive = sum(value == 1 for value in a) == 2
        else:
            positive = (a[4] == 3 and a[3] == 1) or (a[4] != 4 and a[1] != 3)
        rows.append([*map(str, a), str(int(positive))])
    return encode([*names, "class"], rows, "class", "1", f"monks-{number}")


TABLES: dict[str, Callable[[], OneHot]] = {
    "tic-tac-toe": tic_tac_toe,
    **{f"monks-{number}": partial(monks, number) for number in (1, 2, 3)},
}


def list_tables() -> list[str]:
    """Return the names of all tables."""
    return sorted(TABLES)


def load_table(name: str) -> OneHot:
    """Return a generated table of Boolean learning, one of `list_tables()`."""
    if not isinstance(name, str) or name not in list_tables():
        raise DatasetError(f"unknown table {name!r}: {did_you_mean(str(name), list_tables())}")
    return TABLES[name]()
