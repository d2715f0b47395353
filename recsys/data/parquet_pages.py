"""What the pages of a Parquet file unpack to, as they say themselves.

The totals at a file's end are not what its reader goes by: each page has a header with its own sizes,
and memory is taken for what that says. Headers are structs in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

MOST_PAGES = 1_000_000
FIRST_READ, MOST_READ = 1 << 12, 1 << 24  # bytes: a header holds statistics, which may be long
MOST_DEPTH = 16
UNPACKED, PACKED = 2, 3  # fields of a header
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


def unpacked_bytes(path: Path, chunks: Iterable[tuple[int, int]]) -> int:
    """Return the sum of the unpacked sizes of all pages.

    Parameters
    ----------
    path : Path
    chunks : iterable of (int, int)
        Where each begins, and how many bytes it has.

    Raises
    ------
    ValueError
        If there are no pages there, or too many.
    """
    total = pages = 0
    with path.open("rb") as file:
        for start, length in chunks:
            place, end = start, start + length
            while place < end:
                read = FIRST_READ
                while True:
                    file.seek(place)
                    data = file.read(read)
                    try:
                        header = _Struct(data)
                        break
                    except IndexError:
                        if len(data) < read or read >= MOST_READ:
                            raise ValueError("a page without a header") from None
                        read *= 8
                unpacked, packed = header.numbers.get(UNPACKED, -1), header.numbers.get(PACKED, -1)
                pages += 1
                if unpacked < 0 or packed < 0 or pages > MOST_PAGES:
                    raise ValueError("pages of no size, or too many")
                total += unpacked
                place += header.length + packed
    return total


class _Struct:
    """The whole numbers of a struct, and its length.

    Raises
    ------
    IndexError
        If it goes on beyond the data.
    ValueError
        If it is none.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.length = 0
        self.numbers: dict[int, int] = {}
        self._struct(self.numbers, 0)

    def _byte(self) -> int:
        self.length += 1
        return self.data[self.length - 1]

    def _inside(self) -> None:
        """Stop where a count promises more than there is."""
        if self.length > len(self.data):
            raise IndexError(self.length)

    def _unsigned(self) -> int:
        out = shift = 0
        while True:
            byte = self._byte()
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
            shift += 7
            if shift > 63:
                raise ValueError("a number of too many bytes")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)

    def _struct(self, numbers: dict[int, int], depth: int) -> None:
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._signed()
            kind = head & 0x0F
            if kind in (I16, I32, I64):
                numbers[field] = self._signed()
            elif kind not in (TRUE, FALSE):  # the kind is the value
                self._skip(kind, depth)

    def _skip(self, kind: int, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise ValueError("structs in structs")
        if kind in (TRUE, FALSE, BYTE):  # of a list: one byte each
            self.length += 1
        elif kind in (I16, I32, I64):
            self._unsigned()
        elif kind == DOUBLE:
            self.length += 8
        elif kind == BINARY:
            size = self._unsigned()
            self.length += size
        elif kind == STRUCT:
            self._struct({}, depth + 1)
        elif kind in (LIST, SET):
            head = self._byte()
            size = self._unsigned() if head >> 4 == 15 else head >> 4
            for _ in range(size):
                self._skip(head & 0x0F, depth + 1)
                self._inside()
        elif kind == MAP:
            size = self._unsigned()
            kinds = self._byte() if size else 0
            for _ in range(size):
                self._skip(kinds >> 4, depth + 1)
                self._skip(kinds & 0x0F, depth + 1)
                self._inside()
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
