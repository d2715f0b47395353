import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.lab.boolean_tables import list_tables, load_table, read_arff
from benchmarks.lab.common import artificial_dnf
from recsys import DatasetError, InputError
from recsys.datasets import categorical

FOLDER = Path(os.environ.get("RECSYS_DATA", "/nowhere")) / "categorical"
SHAPES = {  # Table 3.1; spect has a feature less, two tables' classes are grouped otherwise
    "house-votes": (232, 32, 0.534),
    "kr-vs-kp": (3196, 73, 0.522),
    "monks-1": (432, 17, 0.5),
    "monks-2": (432, 17, 0.329),
    "monks-3": (432, 17, 0.528),
    "promoters": (106, 228, 0.5),
    "soybean": (266, 97, 0.526),
    "spect": (267, 44, 0.794),
    "splice": (3175, 240, 0.481),
    "tic-tac-toe": (958, 27, 0.653),
    "primary-tumor": (339, 34, 0.448),
    "dna": (2000, 180, 0.4745),
}
ONES = {
    "house-votes": 16,
    "kr-vs-kp": 36,
    "monks-1": 6,
    "monks-2": 6,
    "monks-3": 6,
    "promoters": 57,
    "soybean": 35,
    "spect": 22,
    "splice": 60,
    "tic-tac-toe": 9,
    "primary-tumor": 15,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list_tables())
def test_tables_have_the_shapes_of_table_3_1(name):
    generated = name in ("tic-tac-toe", "monks-1", "monks-2", "monks-3")
    if not generated and not FOLDER.is_dir():
        pytest.skip("the real tables are not here")
    table = load_table(name, FOLDER)
    rows, features, share = SHAPES[name]
    assert table.X.shape == (rows, features) and len(table.names) == features
    assert abs(table.y.mean() - share) < 0.001
    ones = table.X.sum(axis=1)
    if name == "dna":
        assert (ones[0], ones.min(), ones.max()) == (47, 16, 60)
    else:
        assert len(set(ones)) == 1, "one value a column"
        assert ones[0] == ONES[name]


def test_monks_equal_the_official_files():
    if not FOLDER.is_dir():
        pytest.skip("the real tables are not here")
    for number in (1, 2, 3):
        table = load_table(f"monks-{number}", FOLDER)
        ours = {tuple(np.flatnonzero(x)): y for x, y in zip(table.X, table.y, strict=True)}
        for line in (FOLDER / f"monks-{number}.test").read_text().split("\n"):
            if not line.strip():
                continue
            label, *values = line.split()[:7]
            names = ("head_shape", "body_shape", "is_smiling", "holding", "jacket_color", "has_tie")
            ones = [table.names.index(f"{n}={v}") for n, v in zip(names, values, strict=True)]
            assert ours[tuple(sorted(ones))] == int(label)


@pytest.mark.slow
def test_tic_tac_toe_equals_the_official_file():
    if not FOLDER.is_dir():
        pytest.skip("the real tables are not here")
    ours, theirs = (
        load_table("tic-tac-toe", FOLDER),
        categorical.encode(*read_arff(FOLDER / "tic-tac-toe.arff"), None, "positive", "tic-tac-toe"),
    )
    assert theirs.X.shape == ours.X.shape
    theirs_rows = {(tuple(x), y) for x, y in zip(theirs.X, theirs.y, strict=True)}
    assert {(tuple(x), y) for x, y in zip(ours.X, ours.y, strict=True)} == theirs_rows


def test_one_hot_drops_and_counts_rows_with_missing_values():
    rows = [list(row) for row in ("x1+", "?1-", "y -", "y2-", "x2-")]
    rows[2][1] = ""
    table = categorical.encode(["a", "b", "c"], rows, None, None, "t")
    assert table.names == ("a=x", "a=y", "b=1", "b=2")
    assert table.X.tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]]
    assert table.y.tolist() == [0, 1, 1] and table.target == "c=-"
    assert table.notes == ("rows with a missing value, dropped: 2 of 5",)
    for positive in ("/", ["+", "-"]):
        with pytest.raises(InputError, match="t: some rows must be c="):
            categorical.encode(["a", "b", "c"], rows, "c", positive, "t")


ARFF = "% a comment\n@relation r\n@attribute 'the a' {x,y}\n@attribute b {1,2}\n@data\n'x',1\ny, 2\n"


def test_arff_with_quoted_names(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(ARFF)
    assert categorical.encode(*read_arff(path), None, "2", "t").names == ("the a=x", "the a=y")


@pytest.mark.parametrize(
    ("text", "message"),
    [("@relation r\n", "no ARFF table"), (ARFF + "x\n", "line 8: 1 values for 2 attributes")],
)
def test_bad_arff_names_the_line(tmp_path, text, message):
    path = tmp_path / "t.arff"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_arff(path)


def test_unknown_and_absent_tables():
    with pytest.raises(DatasetError, match="did you mean 'monks-1'"):
        categorical.load_table("monks1")
    with pytest.raises(DatasetError, match="put kr-vs-kp.arff there"):
        load_table("kr-vs-kp", "/nowhere")


def test_dna_is_looked_for_beside_and_in_its_collection(tmp_path):
    text = "1 2:1 180:1\n3 1:1\n2 5:1.0\n"
    folder = tmp_path / "categorical"
    folder.mkdir()
    with pytest.raises(DatasetError, match="put dna.scale.gz there"):
        load_table("dna", folder)
    (tmp_path / "libsvm").mkdir()
    with gzip.open(tmp_path / "libsvm" / "dna.scale.gz", "wt") as file:
        file.write(text)
    table = load_table("dna", folder)
    assert table.y.tolist() == [1, 0, 1] and table.target == "class=1|2"
    assert [np.flatnonzero(x).tolist() for x in table.X] == [[1, 179], [0], [4]]
    (folder / "dna.scale").write_text("3 7:1\n1 7:1\n")
    assert load_table("dna", folder).y.tolist() == [0, 1]


def test_artificial_tables_follow_their_formula():
    table, rule = artificial_dnf(3, 3, rows=200, seed=1)
    truth = np.any([table.X[:, clause].all(axis=1) for clause in rule], axis=0)
    np.testing.assert_array_equal(truth, table.y == 1)
    assert set(table.X.sum(axis=1)) == {10}
    again = artificial_dnf(3, 3, rows=200, seed=1)
    np.testing.assert_array_equal(again[0].X, table.X)
