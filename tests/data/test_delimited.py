"""Delimited text: what divides it, what is a comment, and what is too much."""

import gzip

import pytest

from recsys import InputError
from recsys.data import delimited, read_interactions
from recsys.data.readers import read_table


def test_rows_that_begin_with_a_hash_are_read_and_comments_counted(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("# made by hand\nuser,item,rating\n#1,i1,3\nu2,i1,4\n# half way\n#1,i2,5\n")
    data = read_interactions(path)
    assert set(data.user_ids) == {"#1", "u2"} and len(data.users) == 3
    assert (
        "1 line that begins with # is a comment: another number of fields than the header" in data.notes
    )
    path.write_text("user,item\n# a\n# b\n" + "u1,i1\n")
    notes = read_interactions(path).notes
    assert "2 lines that begin with # are comments: another number of fields than the header" in notes


SEPARATORS = {
    "a bar in a name": ("user,item,a|b\n1,2,3\n", ",", ["user", "item", "a|b"]),
    "a semicolon in a name": ("user,item,a;b\n1,2,3\n", ",", ["user", "item", "a;b"]),
    "in a quoted name": ('user,item,"a;b|c"\n1,2,3\n', ",", ["user", "item", "a;b|c"]),
    "commas among semicolons": ("user;item;a,b\n1;2;3,5\n", ";", ["user", "item", "a,b"]),
    "a tab": ("user\titem\ta,b\n1\t2\t3\n", "\t", ["user", "item", "a,b"]),
    "bars": ("user|item\n1|2\n", "|", ["user", "item"]),
    "double colons": ("user::item\n1::2\n", "::", ["user", "item"]),
    "after comments": ("#a;b\nuser,item\n#c\n1,2\n", ",", ["user", "item"]),
}


@pytest.mark.parametrize("case", SEPARATORS)
def test_the_separator_is_what_parts_header_and_rows_alike(tmp_path, case):
    text, _, names = SEPARATORS[case]
    (tmp_path / "r.csv").write_text(text)
    assert read_table(tmp_path / "r.csv").names == names
    assert read_interactions(tmp_path / "r.csv").user_ids.tolist() == ["1"]


def test_bombs_of_text_are_refused_and_long_lines_too(tmp_path, monkeypatch):
    path = tmp_path / "r.csv.gz"
    path.write_bytes(gzip.compress(b"user,item\n" + b"a,b\n" * 3_000_000, 9))
    with pytest.raises(InputError, match=r"11,\d+ bytes of it unpack to more than 10,\d+,\d+; refused"):
        read_interactions(path)
    monkeypatch.setattr(delimited, "BLOCK", 1_000_000)
    path.write_bytes(gzip.compress(b"user,item\n" + b"a" * 2_500_000, 9))
    with pytest.raises(InputError, match="a line of more than 1,000,000 bytes"):
        read_interactions(path)
    wide = tmp_path / "wide.csv"
    wide.write_text("," * 300_000 + "\n" + "," * 300_000 + "\n")
    with pytest.raises(InputError, match=r"\d+ columns .* at most 200,000 are read"):
        read_interactions(wide)


def test_rows_beyond_a_limit_are_refused(tmp_path):
    (tmp_path / "r.csv").write_text("user,item\n" + "a,b\n" * 10)
    assert len(read_table(tmp_path / "r.csv", max_rows=10)) == 10
    with pytest.raises(InputError, match="more than 9 rows; at most so many are read"):
        read_table(tmp_path / "r.csv", max_rows=9)


def test_a_disk_that_fails_is_no_fault_of_ours(tmp_path):
    for path in ("/proc/self/mem",):
        with pytest.raises(InputError, match="cannot be read: Input/output error"):
            read_interactions(path)


def test_messages_are_short_whatever_is_given(tmp_path):
    (tmp_path / "r.csv").write_text(
        ",".join(f"c{k}" for k in range(5000)) + "\n" + ",".join("1" * 5000) + "\n"
    )
    for refused in (
        lambda: read_interactions(tmp_path / "r.csv", user="nonsense" * 1000),
        lambda: read_interactions("/" + "x" * 5000),
        lambda: read_interactions(tmp_path / ("x" * 200) / ("y" * 200)),
    ):
        with pytest.raises(InputError) as caught:
            refused()
        assert len(str(caught.value)) < 1000
