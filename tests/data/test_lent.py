"""What pyarrow's threads call: it is released when a read ends, however it ends."""

import gzip

import pyarrow as pa
import pytest

from recsys.data import read_interactions, sources
from recsys.errors import InputError

ROWS = b"".join(b"u%d,i%d\n" % (k % 97, k % 89) for k in range(200_000))
RAGGED = b"".join(b"u%d,i%d\n1,2,3\n" % (k % 97, k % 89) for k in range(50_000))
LINES = b"".join(b'{"user": "u%d", "item": "i%d"}\n' % (k % 97, k % 89) for k in range(60_000))
FILES = {
    "fine.csv.gz": gzip.compress(b"user,item\n" + ROWS),
    "cut.csv.gz": gzip.compress(b"user,item\n" + ROWS)[:-1000],
    "ragged.csv": b"user,item\n" + RAGGED,
    "quote.csv": b'user,item\n"a,b\n' + ROWS * 8,
    "late.csv": b"user,item\n" + ROWS + b"\xc3\xa9,b\n" + ROWS + b"\xff,b\n" + ROWS,
    "fine.jsonl": LINES,
    "cut.jsonl.gz": gzip.compress(LINES)[:-1000],
    "bad.jsonl": LINES + b"{no\n" + LINES,
}


@pytest.mark.thorough
@pytest.mark.parametrize("max_rows", [None, 10_000])
@pytest.mark.parametrize("name", FILES)
def test_what_is_lent_is_released_at_the_end(tmp_path, monkeypatch, name, max_rows):
    (tmp_path / name).write_bytes(FILES[name])
    lent = []
    begin = sources.Lent.__init__
    monkeypatch.setattr(sources.Lent, "__init__", lambda self: (begin(self), lent.append(self))[0])
    refused = True
    try:
        read_interactions(tmp_path / name, max_rows=max_rows)
        refused = False
    except InputError:
        pass
    assert refused == (max_rows is not None or name not in ("fine.csv.gz", "quote.csv", "fine.jsonl"))
    assert lent and all(one._dropped for one in lent)
    assert all(event.is_set() for one in lent for event in one._dropped)


def test_what_pyarrow_keeps_of_a_file_is_its_own_copy():
    """A thread that frees Python's bytes while the interpreter shuts down aborts the process."""
    with sources.Lent() as lent:
        file = lent.file(iter([b"x" * sources.BLOCK] * 3))
        before = pa.total_allocated_bytes()
        kept = file.read_buffer(2 * sources.BLOCK)
        assert kept.size == 2 * sources.BLOCK and pa.total_allocated_bytes() - before >= kept.size
        del file


def test_a_file_ends_where_its_blocks_fail_and_the_error_comes_at_the_end():
    def blocks():
        yield b"a" * 10
        raise InputError("damaged")

    with pytest.raises(InputError, match="damaged"), sources.Lent() as lent:
        assert lent.file(blocks()).read() == b"a" * 10
