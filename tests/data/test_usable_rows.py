"""Rows that can be used and counts of the others, against a loop over the rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data.columns import Columns
from recsys.data.readers import read_table
from recsys.data.usable_rows import FAULTS, usable_rows

CELLS = st.sampled_from(["a", "b", " ", "", "c d"])
RATINGS = st.sampled_from(["1", "5", "3.5", "", "good", "nan", "1_0", "inf"])
TIMES = st.sampled_from(["1", "20", "", "2020-01-02", "2021-03-04", "yesterday"])
ROWS = st.lists(
    st.tuples(CELLS, CELLS, RATINGS, TIMES, st.sampled_from([0, 0, 0, 1, -1])), min_size=1, max_size=12
)


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) and "_" not in text else None


def by_loop(rows):
    """Return for each row its fault, None for a good one; times are of the kind that most are of."""
    from datetime import datetime

    def date(text):
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            return None

    right = [r for r in rows if r[4] == 0]
    dates = sum(date(r[3]) is not None for r in right)
    numbers = sum(number(r[3]) is not None for r in right)
    read = date if dates > numbers else number
    out = []
    for u, i, r, t, wrong in rows:
        if wrong:
            out.append("fields")
        elif not u.strip():
            out.append("user")
        elif not i.strip():
            out.append("item")
        elif number(r) is None:
            out.append("rating")
        elif read(t) is None:
            out.append("time")
        else:
            out.append(None)
    return out


@settings(max_examples=150, deadline=None)
@given(ROWS)
def test_rows_are_counted_by_their_first_fault(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    lines = ["who,what,stars,day"]
    for u, i, r, t, wrong in rows:
        lines.append(",".join([u, i, r, t, "more"][: 4 + wrong]))
    path.write_text("\n".join(lines) + "\n")
    faults = by_loop(rows)
    columns = Columns("who", "what", "stars", "day")
    good = [row for row, fault in zip(rows, faults, strict=True) if fault is None]
    try:
        data, counts = usable_rows(read_table(path, strict=False), columns, "t")
    except InputError as error:
        assert not good and ("can be used" in str(error) or "fields of the header" in str(error))
        return
    wanted = {fault: faults.count(fault) for fault in FAULTS if fault in faults}
    assert counts.left_out == wanted
    assert counts.first == {fault: faults.index(fault) + 2 for fault in wanted}
    pairs = {(u, i) for u, i, *_ in good}
    assert (counts.rows, counts.kept) == (len(rows), len(pairs)) and len(data.users) == len(pairs)
    assert counts.repeated == len(good) - len(pairs)
    assert counts.rows == counts.kept + counts.repeated + sum(counts.left_out.values())
    assert len(counts.sentences()) == len(wanted)
    for sentence, fault in zip(counts.sentences(), wanted, strict=True):
        assert sentence.startswith(f"{wanted[fault]:,} ") and f"line {counts.first[fault]}" in sentence


def test_a_clean_table_is_what_the_strict_reader_reads(tmp_path):
    from recsys.data import read_interactions

    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\na,x,1\na,y,2\nb,x,3\na,x,4\n")
    data, counts = usable_rows(
        read_table(path, strict=False), Columns("user", "item", "rating"), "t.csv"
    )
    strict = read_interactions(path)
    assert (data.matrix != strict.matrix).nnz == 0 and data.rating.tolist() == strict.rating.tolist()
    assert (counts.rows, counts.kept, counts.repeated, counts.left_out) == (4, 3, 1, {})
    assert data.notes == strict.notes


def test_what_no_row_can_be_used_of_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\na,x,good\nb,,bad\n")
    table = read_table(path, strict=False)
    with pytest.raises(
        InputError, match="t: no row can be used: 1 row without an item, 1 row whose rating"
    ):
        usable_rows(table, Columns("user", "item", "rating"), "t")
    with pytest.raises(InputError, match="column 'user' is chosen for two things; choose another"):
        usable_rows(table, Columns("user", "user"), "t")
    path.write_text("user,item,rating\na,x\nb\n")
    with pytest.raises(InputError, match="none of 2 rows has the 3 fields of the header"):
        read_table(path, strict=False)


def test_missing_cells_of_parquet_are_counted(tmp_path):
    import pandas as pd

    path = tmp_path / "t.parquet"
    pd.DataFrame({"u": ["a", None, "b"], "i": ["x", "y", "z"], "r": [1.5, 2.0, None]}).to_parquet(path)
    with pytest.raises(InputError, match="row 2: u is missing"):
        read_table(path)
    data, counts = usable_rows(read_table(path, strict=False), Columns("u", "i", "r"), "t")
    assert counts.left_out == {"user": 1, "rating": 1} and data.rating.tolist() == [1.5]
