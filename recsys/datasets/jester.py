"""Jester 1: ratings of 100 jokes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recsys.data.interactions import Interactions
from recsys.data.tables import read_text
from recsys.datasets.base import dataset


@dataset("jester", "Jester 1, positive ratings", files=("jester-data-1.csv.gz",))
def read_jester(folder: Path) -> Interactions:
    """Take positive ratings as interactions, then the users with 1 to 89 of them (thesis, 3.2.2).

    The thesis speaks of users with more than 90 *ratings*; its Table 3.3 (24,430 users, density
    42.24%) comes out only if they are counted after binarising. Users are named by the line
    of the file, jokes by the column; a user's rows are in the order of the columns, which
    is no order in time.
    """
    text = read_text(folder / "jester-data-1.csv.gz")
    rows = np.array([line.split(",") for line in text.split("\n") if line], dtype=np.float64)
    likes = (rows[:, 1:] > 0) & (rows[:, 1:] < 99)  # 99 stands for no rating
    count = likes.sum(axis=1)
    kept = np.flatnonzero((count > 0) & (count < 90))
    user, item = np.nonzero(likes[kept])
    return Interactions.from_ids(
        (kept[user] + 1).astype(str).astype(object),
        (item + 1).astype(str).astype(object),
        rows[kept[user], item + 1],
        notes=(
            f"{int((count >= 90).sum()):,} users who like 90 jokes or more and "
            f"{int((count == 0).sum()):,} who like none left out, as the thesis does",
        ),
    )
