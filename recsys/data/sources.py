"""A file's bytes as UTF-8 text: unpacked, bounded and decoded as they are read."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
import threading
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recsys.errors import InputError
from recsys.utils.files import KINDS, MAX_BYTES, check_file, check_growth, shown
from recsys.utils.progress import report

BLOCK = 1 << 20  # bytes that are unpacked at once
MOST_WAIT = 10  # seconds for a thread of pyarrow's to end
HEAD = 1 << 18  # bytes that the format of a table is decided by
MAGIC = {
    b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst",
    b"PK\x03\x04": "zip",
}  # fmt: skip
ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zst", ".zip": "zip"}
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
BY_ONE = {"cp1252": "cp1252", "cp1250": "cp1250"}  # of one byte a letter, in the order of preference
DAMAGED = (
    EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, RuntimeError,
    NotImplementedError,
)  # fmt: skip

FOREIGN = re.compile(rb"(?<![A-Za-z\x80-\xff])[\x80-\xff]{3,}(?![A-Za-z\x80-\xff])")  # words
OTHER_ALPHABETS = ("cp1251", "koi8-r", "cp1253")


class Source:
    """The text of a file, plain or packed.

    Its `packing` is one of `ENDINGS`' values or "", its `notes` say what was decided and is not usual,
    and its `position` is how many of the bytes were read last.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path, self.size, self.packing, self.encoding = path, check_file(path), "", "utf-8"
        self.position = 0
        with self._errors(), path.open("rb") as file:
            start = file.read(8)
        self.packing = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "")
        ending = ENDINGS.get(path.suffix.lower(), "")
        if ending and ending != self.packing and self.size:
            raise InputError(
                f"{shown(path)} is named {path.suffix} but is not {ending}; rename or compress it"
            )
        if not self.packing and self.size > MAX_BYTES:
            raise InputError(f"{shown(path)} has {self.size:,} bytes; at most {MAX_BYTES:,} are read")
        self.notes: tuple[str, ...] = ()
        self._raw_head = b""
        for block in self.raw():
            self._raw_head += block
            if len(self._raw_head) >= HEAD:
                break
        for magic, kind in KINDS.items():
            if self._raw_head.startswith(magic):
                raise InputError(f"{shown(path)} is {kind}, not text")
        self.encoding = self._known(encoding) if encoding else self._encoding_of(self._raw_head)
        if encoding is None and self.encoding != "utf-8":
            self.notes = (f"read as {self.encoding} text",)

    def raw(self) -> Iterator[bytes]:
        """Give the unpacked bytes in blocks."""
        grown = 0
        with self._errors(), self.path.open("rb") as file, self._unpacked(file) as stream:
            while block := stream.read(BLOCK):
                grown += len(block)
                self.position = file.tell()
                if self.packing:
                    # of what was read so far: a bomb need not be read to its end to be one
                    check_growth(self.path, self.position if self.packing != "zip" else self.size, grown)
                report(f"reading {self.path.name}", self.position, self.size)
                yield block

    def blocks(self) -> Iterator[bytes]:
        """Give the text in blocks of UTF-8 bytes, without a byte order mark."""
        if self.encoding == "utf-8":
            first = True
            for block in self.raw():
                yield block.removeprefix(codecs.BOM_UTF8) if first else block
                first = False
            return
        decoder, place = codecs.getincrementaldecoder(self.encoding)(), 0
        for block in self.raw():
            try:
                yield decoder.decode(block).encode("utf-8")
            except UnicodeError:
                raise self._not_text(place) from None
            place += len(block)
        try:
            yield decoder.decode(b"", True).encode("utf-8")
        except UnicodeError:
            raise self._not_text(place) from None

    def head(self, most: int = HEAD) -> tuple[str, bool]:
        """Return the text that the file begins with, line ends as Unix has them, and if it is all."""
        parts, left, whole = [], most, True
        for block in self.blocks():
            parts.append(block[:left])
            if len(block) > left:
                whole = False
                break
            left -= len(block)
        text = b"".join(parts)
        if b"\0" in text:
            line = text[: text.index(b"\0")].count(b"\n") + 1
            raise InputError(f"{shown(self.path)}, line {line}: a NUL byte; this is not a text file")
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            found = decoder.decode(text, whole)
        except UnicodeDecodeError as error:
            raise self._not_text(error.start) from None
        found = found.replace("\r\n", "\n").replace("\r", "\n")
        return (found if whole else found[: found.rfind("\n") + 1] or found), whole

    def redecided(self) -> Source:
        """Return the source in the encoding that fits it all, where the beginning did not tell."""
        decoder, place, letters = codecs.getincrementaldecoder("utf-8")(), 0, False
        for block in self.raw():
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                letters = letters or not block[: error.start].isascii()
                if letters:
                    raise self._not_text(place + error.start) from None
                self.encoding = self._legacy(block)
                self.notes = (f"read as {self.encoding} text",)
                return self
            letters = letters or not text.isascii()
            place += len(block)
        raise self._not_text(place)

    def _encoding_of(self, start: bytes) -> str:
        for mark, name in MARKS:
            if start.startswith(mark):
                return name
        if start[1:200:2].count(0) > 50 or (
            0 < len(start) < 200 and start[1::2].count(0) > len(start) / 4
        ):
            return "utf-16-le"
        if start[0:200:2].count(0) > 50:
            return "utf-16-be"
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start)
        except UnicodeDecodeError as error:
            if not start[: error.start].isascii():
                raise self._not_text(error.start) from None
            return self._legacy(start)
        return "utf-8"

    def _legacy(self, start: bytes) -> str:
        """Return the encoding of one byte a letter in which most of what is not ASCII is letters.

        Where hardly a word with other letters has ASCII letters, it is one for Cyrillic or Greek: the
        one in which the fewest capitals stand within words.
        """
        words = b"".join(FOREIGN.findall(start))
        if len(words) > 0.9 * len(start.translate(None, bytes(range(128)))):
            within = {name: _capitals_within(start, name) for name in OTHER_ALPHABETS}
            return min(within, key=lambda name: within[name])
        found: dict[str, int] = {}
        for name in BY_ONE:
            try:
                text = start.decode(name)
            except UnicodeDecodeError:
                continue
            found[name] = sum(map(str.isalpha, text)) - 2 * sum(one in _UNUSUAL[name] for one in text)
            if name == "cp1252":  # no language written in it has both kinds, Czech in cp1250 has
                found[name] -= 2 * min(sum(one in kind for one in text) for kind in ("ìø", "áíý"))
        return max(found, key=lambda name: found[name]) if found else "latin-1"

    def _known(self, encoding: str) -> str:
        try:
            name = codecs.lookup(encoding).name
            "".encode(name)
        except (LookupError, TypeError):
            raise InputError(
                f"encoding {encoding[:40]!r} is unknown; utf-8, cp1252 and utf-16 are"
            ) from None
        return "utf-8" if name in ("utf-8-sig", "utf-8", "ascii") else name

    def _not_text(self, place: int) -> InputError:
        """Return the error for the first byte after an offset that is not text."""
        decoder, line, seen = codecs.getincrementaldecoder(self.encoding)(), 1, 0
        for block in self.raw():
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                line += block[: error.start].count(b"\n")
                bad = block[error.start] if error.start < len(block) else 0
                return InputError(
                    f"{shown(self.path)}, line {line}: byte 0x{bad:02x} is not {self.encoding}; "
                    "name the encoding of the file, or save it as UTF-8"
                )
            except UnicodeError:
                break
            line += block.count(b"\n")
            seen += len(block)
        return InputError(
            f"{shown(self.path)} is no {self.encoding} text; name its encoding, or save it as UTF-8"
        )

    @contextmanager
    def _unpacked(self, file: Any) -> Iterator[Any]:
        if self.packing == "gzip":
            yield gzip.GzipFile(fileobj=file)
        elif self.packing == "bz2":
            yield bz2.BZ2File(file)
        elif self.packing == "xz":
            yield lzma.LZMAFile(file)
        elif self.packing == "zst":
            import pyarrow as pa

            yield pa.CompressedInputStream(file, "zstd")
        elif self.packing == "zip":
            with zipfile.ZipFile(file) as archive:
                yield archive.open(self._table_of(archive))
        else:
            yield file

    def _table_of(self, archive: zipfile.ZipFile) -> str:
        names = [
            part.filename for part in archive.infolist()
            if not part.is_dir() and not part.filename.startswith("__MACOSX/")
        ]  # fmt: skip
        if len(names) != 1:
            shown_names = ", ".join(name[:40] for name in names[:5])
            raise InputError(
                f"{shown(self.path)} holds {len(names)} files ({shown_names}); a zip archive with one "
                "table is read: unpack it, and name the table"
            )
        return names[0]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except (*DAMAGED, OSError) as error:
            # bz2 and zstd raise an OSError without a number
            if isinstance(error, DAMAGED) or (self.packing and getattr(error, "errno", None) is None):
                raise InputError(
                    f"{shown(self.path)} is a truncated or damaged {self.packing} file: "
                    f"{str(error)[:120]}"
                ) from None
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{shown(self.path)} cannot be read: {why}") from None


# Letters of an encoding that languages written in it hardly use, inside of other languages' words.
_UNUSUAL = {"cp1252": "ŸœŒ", "cp1250": "ŔŕŹĽľĹĺ"}


def _capitals_within(start: bytes, encoding: str) -> int:
    """Return how many small letters are before a capital, and how many bytes are no letters at all."""
    text = start.decode(encoding, "replace")
    pairs = zip(text, text[1:], strict=False)
    return sum(one.islower() and two.isupper() for one, two in pairs) + text.count("\ufffd")


class Stream(io.RawIOBase):
    """Blocks of bytes as a file that a library reads."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._kept = blocks, b""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer than asked for at the end only."""
        parts, length = [self._kept], len(self._kept)
        while size < 0 or length < size:
            block = next(self._blocks, None)
            if block is None:
                break
            parts.append(block)
            length += len(block)
        whole = b"".join(parts)
        out, self._kept = (whole, b"") if size < 0 else (whole[:size], whole[size:])
        return out

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class Lent:
    """What pyarrow's threads call while a table is read, and a wait until they no longer do.

    Such a thread may be in Python when a read has failed and the interpreter shuts down, which aborts
    the process (apache/arrow#34314). pyarrow has no call that waits for it, but drops its references.
    """

    def __init__(self) -> None:
        self._ended = False
        self._failed: Exception | None = None
        self._dropped: list[threading.Event] = []

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of which pyarrow has the only reference."""
        return self._watched(function)

    def file(self, blocks: Iterator[bytes]) -> Any:
        """Return blocks as a file, which ends where they fail: leaving the block raises their error."""
        import pyarrow as pa

        # buffered, what is read is copied to memory of pyarrow's: to free Python's takes Python
        return pa.input_stream(self._watched(Stream(self._guarded(blocks))), buffer_size=BLOCK)

    def _watched(self, thing: Any) -> Any:
        self._dropped.append(threading.Event())
        weakref.finalize(thing, self._dropped[-1].set).atexit = False
        return thing

    def _guarded(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            while not self._ended and (block := next(blocks, None)) is not None:
                yield block
        except Exception as error:
            self._failed = error

    def __enter__(self) -> Lent:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        for event in self._dropped:
            event.wait(MOST_WAIT)
        if self._failed is not None:
            raise self._failed from None


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return a file's text, plain or packed, with line ends as Unix has them, in the encoding it has."""
    return Source(path, encoding).head(sys.maxsize)[0]


def lines_of(source: Source) -> Iterator[str]:
    """Give the lines of a text, each with a Unix line end but for the last."""
    yield from io.TextIOWrapper(io.BufferedReader(Stream(source.blocks())), "utf-8")
