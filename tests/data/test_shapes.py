"""Small made-up tables in the shapes of public ones."""

import csv
import json
from pathlib import Path

import pytest

from recsys import Interactions

SHAPES = Path(__file__).parent / "shapes"
with (SHAPES / "expected.csv").open(encoding="utf-8", newline="") as file:
    EXPECTED = {row["file"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("shape", EXPECTED)
def test_it_is_read(shape):
    row = EXPECTED[shape]
    options = json.loads(row["options"] or "{}")
    if "names" in options:
        options["names"] = options["names"].split(",")
    data = Interactions.from_frame(SHAPES / shape, **options)
    sizes = data.n_users, data.n_items, len(data.users)
    assert sizes == (int(row["users"]), int(row["items"]), int(row["interactions"]))
    for role in ("user", "item", "rating", "time"):
        assert (getattr(data.columns, role) or "") == row[role], role
        if role in ("rating", "time"):
            assert (getattr(data, role) is not None) == bool(row[role])
    if row["first_time"]:
        assert data.time.min() == float(row["first_time"])
    assert data.notes[0].startswith(f"user = {row['user']}, item = {row['item']}, time")


@pytest.mark.parametrize("shape", [name for name, row in EXPECTED.items() if row["rating"]])
def test_declined_columns_are_not_read_and_not_spoken_of(shape):
    row = EXPECTED[shape]
    options = json.loads(row["options"] or "{}")
    if "names" in options:
        options["names"] = options["names"].split(",")
    data = Interactions.from_frame(SHAPES / shape, rating="none", time="none", **options)
    assert data.rating is data.time is None
    assert not any(row["rating"] in note for note in data.notes[1:] if "merged" not in note)
