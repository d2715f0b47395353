"""From a folder of Parquet to everybody's lists, by two commands."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from recsys import InputError
from recsys.cli import app
from recsys.rankers import load_ranker
from tests.partitioned.test_fit import likes, matrix_of, write


@pytest.fixture
def fitted(tmp_path):
    data = write(tmp_path / "data", *likes(text=True))
    line = ["fit", "--partitions", str(data), "--user-col", "who", "--item-col", "what"]
    line += ["--work", str(tmp_path / "w"), "--memory", "1GB", "--out", str(tmp_path / "m")]
    found = CliRunner().invoke(app, [*line, "--no-keep-users"])
    assert found.exit_code == 0, found.output
    assert "without its users: recsys recommend --ranker" in found.output
    return line


def recommend(tmp_path, *more):
    line = ["recommend", "--ranker", str(tmp_path / "m"), "--all", *more]
    return CliRunner().invoke(app, line)


@pytest.mark.thorough
def test_lists_of_a_ranker_without_users(tmp_path, fitted):
    top = tmp_path / "top"
    how = ("--work", str(tmp_path / "w"), "--out", f"{top}/", "-n", "3", "--block", "25")
    found = recommend(tmp_path, *how)
    assert found.exit_code == 0, found.output
    assert "3 parts written, 0 there before; lists of 60 users" in found.stderr
    names, known, matrix = matrix_of(tmp_path / "w")
    expected = load_ranker(tmp_path / "m").recommend(np.arange(60), matrix, N=3)
    table = pd.read_parquet(top)
    assert table.user_id.tolist() == [name for name in names for _ in range(3)]
    assert table.item_id.tolist() == [known[i] for i in expected.ids.ravel()]
    again = recommend(tmp_path, *how)
    assert "0 parts written, 3 there before" in again.stderr
    error = recommend(tmp_path, *how[:4], "-n", "4", *how[6:]).exception
    assert isinstance(error, InputError) and "n is 3 there, 4 here" in str(error)


def test_what_does_not_go_together_is_told(tmp_path, fitted):
    work, out = ("--work", str(tmp_path / "w")), ("--out", f"{tmp_path}/top/")
    for more, told in (
        (out, "--work FOLDER --out top/` makes their lists, or fit it with --keep-users"),
        (work, "--work is for lists of all users in a folder: --all --out top/"),
        ((*work, "--out", str(tmp_path / "a.csv")), "--work is for lists of all users"),
        ((*work, *out, "--items", "a"), "made without --items: leave it out, or fit with --keep-users"),
        ((*work, *out, "--raw", "--threads", "2"), "without --raw, --threads: leave them out"),
        ((*work, *out, "--fair-p", "0.3"), "made without --fair-p: leave it out"),
        (("--work", str(tmp_path / "data"), *out), "is no work folder of `recsys fit --partitions`"),
    ):
        error = recommend(tmp_path, *more).exception
        assert told in str(error)
        assert "\n" not in str(error)
    error = CliRunner().invoke(app, ["fit", "--out", "m", "--keep-users"]).exception
    assert isinstance(error, InputError) and "go with --partitions" in str(error)


@pytest.mark.thorough
def test_a_ranker_of_other_rows_of_that_size_is_refused(tmp_path, fitted):
    """Weights tell nothing of the rows: the file does."""
    users, items = likes(text=True)
    other = write(tmp_path / "other", users[::-1], [*items[1:], items[0]])
    line = [str(other) if word == str(tmp_path / "data") else word for word in fitted]
    line[line.index(str(tmp_path / "w"))] = str(tmp_path / "w2")
    assert CliRunner().invoke(app, [*line, "--model", "ease:top_k=3"]).exit_code == 0
    found = recommend(tmp_path, "--work", str(tmp_path / "w"), "--out", f"{tmp_path}/top/")
    assert isinstance(found.exception, InputError)
    assert "was not fitted on the rows of" in str(found.exception)
