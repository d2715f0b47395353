"""Small made-up tables in the shapes of public ones, read alike through every interface."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recsys import Interactions, cli
from recsys.data.reading import look, read

SHAPES = Path(__file__).parent / "shapes"
with (SHAPES / "expected.csv").open(encoding="utf-8", newline="") as file:
    EXPECTED = {row["file"]: row for row in csv.DictReader(file)}


def options(row):
    found = json.loads(row["options"] or "{}")
    return {key: value.split(",") if key == "names" else value for key, value in found.items()}


def check(data, row, columns=True):
    got = {"users": data.n_users, "items": data.n_items, "interactions": len(data.users)}
    assert got == {key: int(row[key]) for key in got}
    if columns:
        for role in ("user", "item", "rating", "time"):
            assert (getattr(data.columns, role) or "") == row[role], role
    assert (data.time is not None) == bool(row["time"]) and (data.rating is not None) == bool(
        row["rating"]
    )
    if row["first_time"]:
        assert data.time.min() == float(row["first_time"])
    counts = data.counts
    assert (
        counts.rows == int(row["rows"]) == counts.kept + counts.repeated + sum(counts.left_out.values())
    )
    assert set(counts.left_out) == set(row["left_out"].split())
    assert data.notes[0] == counts.description and counts.description.startswith(
        f"user = {data.columns.user}, "
    )
    assert row["note"] in " | ".join(data.notes)


@pytest.mark.thorough
@pytest.mark.parametrize("shape", EXPECTED)
def test_python_reads_it(shape):
    row = EXPECTED[shape]
    check(Interactions.from_frame(SHAPES / shape, **options(row)), row)


@pytest.mark.thorough
@pytest.mark.parametrize("shape", EXPECTED)
def test_the_page_reads_it(shape):
    row = EXPECTED[shape]
    found = look(SHAPES / shape, 8, **options(row))
    chosen = {
        role: "none" if (k := getattr(found.roles, role)) is None else found.names[k]
        for role in ("user", "item", "rating", "time")
    }
    check(read(SHAPES / shape, interface="page", max_rows=10_000, **chosen, **options(row)), row)


@pytest.mark.thorough
@pytest.mark.parametrize("shape", EXPECTED)
def test_the_command_line_reads_it(shape, tmp_path, capfd):
    row = EXPECTED[shape]
    words = [f"--{key}={','.join(value)}" for key, value in options(row).items()]
    out = tmp_path / "m.recsys"
    code = cli.call(
        [
            "fit",
            "--interactions",
            str(SHAPES / shape),
            "--model",
            "popularity",
            "--out",
            str(out),
            *words,
        ]
    )
    err = capfd.readouterr().err
    assert code == 0, err
    assert f"note: {shape}: user = {row['user']}, item = {row['item']}, time" in err
    assert f"; {int(row['rows'])} rows, {row['interactions']} interactions" in err
    assert row["note"].replace("names=", "--names") in err.replace("\n", " | ")


FRAMES = {
    name: row for name, row in EXPECTED.items() if name.endswith((".csv", ".jsonl")) and "deutsch" not in name
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("shape", FRAMES)
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_read_like_its_file(shape, kind):
    row = FRAMES[shape]
    if shape.endswith(".jsonl"):
        table = pd.DataFrame([json.loads(line) for line in (SHAPES / shape).read_text().splitlines()])
    else:
        told = re.match("read as (.*) text", row["note"])
        encoding = told.group(1) if told else "utf-8-sig"
        first = (SHAPES / shape).read_text(encoding).split("\n")[0]
        table = pd.read_csv(
            SHAPES / shape, sep=";" if ";" in first else ",", encoding=encoding, dtype=str
        )
    if kind == "polars":
        pl = pytest.importorskip("polars")
        table = pl.from_pandas(table)
    elif kind == "pyarrow":
        import pyarrow as pa

        table = pa.Table.from_pandas(table, preserve_index=False)
    data = Interactions.from_frame(table)
    check(data, row | {"note": "" if row["note"].startswith("read as") else row["note"]})


@pytest.mark.thorough
@pytest.mark.parametrize("shape", EXPECTED)
def test_the_same_words_overrule(shape):
    row = EXPECTED[shape]
    if not row["rating"]:
        return
    data = Interactions.from_frame(SHAPES / shape, rating="none", time="none", **options(row))
    assert data.rating is data.time is None and not data.counts.left_out.get("zero")
    assert np.diff(data.matrix.indptr).sum() == int(row["rows"]) - sum(data.counts.left_out.values())
