"""Text in blocks is the same table as text in one piece, and no line of it vanishes unsaid."""

import gzip

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data import read_interactions
from recsys.data.columns import Columns
from recsys.data.delimited import read_delimited
from recsys.data.readers import read_table
from recsys.data.usable_rows import usable_rows
from recsys.utils import files
from tests.reference import delimited as reference


def outcome(path, block, monkeypatch, **options):
    with monkeypatch.context() as patched:
        patched.setattr(files, "BLOCK", block)
        try:
            cells = read_delimited(path, "rows", **options)
        except InputError as error:
            return str(error)
    rows = list(zip(*(column.tolist() for column in cells.columns), strict=True))
    return cells.names, rows, list(cells.lines), list(cells.ragged), cells.notes


TEXTS = st.text(alphabet=['"', "#", ",", ";", "\n", "\r", " ", "a", "é", "🎬"], max_size=60)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.booleans(), st.sampled_from([1, 2, 3, 7, 64]))
@example('u,i\n#,"x\nu1,i1\nu2,i2\n#",y\n"u3",i3\nu4,i4\n', True, 3)
@example('u,i\n#1,"a, b"\n# a, "b\nc"\n', True, 2)
@example("u,i\r\n\r\n#a,b\r\n", True, 5)
def test_blocks_make_no_difference_and_the_slow_reader_agrees(tmp_path_factory, text, head, block):
    path = tmp_path_factory.mktemp("blocks") / "t.csv"
    text = ("x,y\n" if head else "") + text
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        whole = outcome(path, 1 << 18, patch, separator=",")
        other = outcome(path, block, patch, separator=",")
        # of two faults the one that is met first is told
        assert other == whole or (isinstance(other, str) and isinstance(whole, str))
        loose = [outcome(path, size, patch, separator=",", strict=False) for size in (block, 1 << 18)]
        assert loose[0] == loose[1] or all(isinstance(one, str) for one in loose)
    try:
        header, rows, numbers, comments, hashed = reference.read(text, ",")
    except ValueError:
        assert isinstance(whole, str)
        return
    if not rows:
        assert isinstance(whole, str) and "no rows" in whole
        return
    assert whole[:4] == (header, [tuple(row) for row in rows], numbers, [])
    assert [note.split()[0] for note in whole[4]] == [f"{n}" for n in (comments, hashed) if n]


def test_rows_that_begin_with_a_hash_are_read_and_comments_counted(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("# made by hand\nuser,item,rating\n#1,i1,3\nu2,i1,4\n# half way\n#1,i2,5\n")
    data = read_interactions(path)
    assert set(data.user_ids) == {"#1", "u2"} and len(data.users) == 3
    notes = (
        "1 line that begins with # is a comment: another number of fields than the header",
        "2 rows that begin with # are read: as many fields as the header",
    )
    assert data.notes == notes
    loose, _ = usable_rows(read_table(path, strict=False), Columns("user", "item", "rating"), "r")
    assert loose.notes == notes and set(loose.user_ids) == {"#1", "u2"}
    path.write_text("user,item\n# a\n# b\n" + "u1,i1\n")
    assert read_interactions(path).notes == (
        "2 lines that begin with # are comments: another number of fields than the header",
    )


def test_a_comment_with_an_open_quote_swallows_no_row(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text('user,item\n#,"x\nu1,i1\nu2,i2\n#",y\n"u3",i3\nu4,i4\n')
    data = read_interactions(path)
    assert list(data.user_ids) == ["u1", "u2", "u3", "u4"]
    assert data.notes == (
        "2 lines that begin with # are comments: another number of fields than the header",
    )


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
    monkeypatch.setattr(files, "MOST_LINE", 1_000_000)
    path.write_bytes(gzip.compress(b"user,item\n" + b"a" * 2_000_000, 9))
    with pytest.raises(InputError, match="a line of more than 1,000,000 bytes"):
        read_interactions(path)
    wide = tmp_path / "wide.csv"
    wide.write_text("," * 300_000 + "\n" + "," * 300_000 + "\n")
    with pytest.raises(InputError, match="300,001 columns .* at most 200,000 are read"):
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
        lambda: read_interactions(tmp_path / "r.csv", user_col="nonsense" * 1000),
        lambda: read_interactions("/" + "x" * 5000),
        lambda: read_interactions(tmp_path / ("x" * 200) / ("y" * 200)),
    ):
        with pytest.raises(InputError) as caught:
            refused()
        assert len(str(caught.value)) < 1000
