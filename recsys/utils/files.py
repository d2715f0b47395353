"""Files that nobody vouches for, read with care, and files of our own, replaced whole or not at all."""

from __future__ import annotations

import errno
import functools
import gzip
import hashlib
import io
import os
import platform
import re
import secrets
import stat
import sys
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # no locks there: only age tells what is left behind
    fcntl = None  # type: ignore[assignment]

from recsys.errors import InputError

MAX_BYTES = 4_000_000_000
BOMB_RATIO, BOMB_BYTES = 200, 10_000_000  # text of likes is packed to a third, not to a 200th
TEMPORARY = ".recsys-tmp"  # ending of a file that is not whole yet
OLD_SECONDS = 24 * 3600.0  # without a write, after which another host's temporary file is left behind
MOST_LABEL = 100  # bytes of a name that a temporary name repeats: a name has at most 255
MOST_ATTEMPTS = 20  # at a temporary file of our own
STDOUT = 1  # the descriptor
MOST_SHOWN = 200  # characters of a path in a message
STRETCH = 1 << 24  # bytes a call writes
BLOCK = 1 << 18  # bytes that are taken apart at once: cells take many times as much memory
MOST_LINE = 50_000_000  # bytes
GZIP_MAGIC = b"\x1f\x8b"
KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF document",
}


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a message, the middle of a long one left out."""
    text = os.fspath(path)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]}…{text[-MOST_SHOWN // 2 :]}"


def is_folder(path: Any) -> bool:
    """Return whether a path names a folder: it ends in a slash, or a folder is there.

    Examples
    --------
    >>> is_folder("top/"), is_folder("top.parquet"), is_folder(".")
    (True, False, True)
    """
    if not isinstance(path, (str, os.PathLike)):
        return False
    text = os.fspath(path)
    ends = (os.sep, os.altsep or os.sep)
    return isinstance(text, str) and (text.endswith(ends) or ("\0" not in text and os.path.isdir(text)))


def check_file(path: Path) -> int:
    """Return the size of a regular, readable file.

    Raises
    ------
    InputError
        If it is absent, a folder, a device or pipe, or unreadable.
    """
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise InputError(f"{shown(path)} is a folder; name a file")
        if not stat.S_ISREG(info.st_mode):
            raise InputError(f"{shown(path)} is not a regular file; name a file on disk")
        with path.open("rb"):
            return info.st_size
    except FileNotFoundError:
        raise InputError(f"{shown(path)} does not exist") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{shown(path)} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def check_growth(path: Path, packed: int, grown: int, max_bytes: int = MAX_BYTES) -> None:
    """Refuse what takes too many bytes once it is unpacked, or like a bomb many more than before.

    Raises
    ------
    InputError
    """
    if grown > max_bytes or grown > max(BOMB_BYTES, BOMB_RATIO * packed):
        raise InputError(
            f"{shown(path)}: {packed:,} bytes of it unpack to more than {grown:,}; refused, as bombs do "
            "so. If it is none, unpack it or write it as CSV"
        )


def read_blocks(path: Path, max_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """Give a file's content in blocks, decompressed if it is gzip.

    Raises
    ------
    InputError
        If it cannot be read, is a broken gzip, or grows beyond `max_bytes` or like a bomb.
    """
    size = check_file(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(GZIP_MAGIC))
            file.seek(0)
            packed = start == GZIP_MAGIC
            if not packed and path.suffix == ".gz" and size:
                raise InputError(f"{shown(path)} is named .gz but is not gzip; rename or compress it")
            if not packed and size > max_bytes:
                raise InputError(f"{shown(path)} has {size:,} bytes; at most {max_bytes:,} are read")
            if packed:  # before anything is made of it
                grown, stream = 0, gzip.GzipFile(fileobj=file)
                while block := stream.read(BLOCK):
                    grown += len(block)
                    # Of what was read so far: a bomb need not be read to its end to be one.
                    check_growth(path, file.tell(), grown, max_bytes)
                file.seek(0)
            whole: Any = gzip.GzipFile(fileobj=file) if packed else file
            while block := whole.read(BLOCK):
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{shown(path)} is a truncated or damaged gzip file: {error}") from None
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be read: {error.strerror or error}") from None


def text_blocks(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Give a file's text with Unix line ends in blocks of whole lines; a byte order mark is dropped.

    Parameters
    ----------
    path : Path
    encoding : str
        In which a line end is the byte it is in ASCII.

    Raises
    ------
    InputError
        If it is no text in `encoding`, or a line has more than `MOST_LINE` bytes; the message names
        the line and the byte.
    """
    lines = 0
    for block in _whole_lines(path):
        if lines == 0:
            _check_kind(path, block)
        if b"\x00" in block:
            line = lines + _line_of(block, block.index(b"\x00"))
            raise InputError(f"{shown(path)}, line {line}: a NUL byte; this is not a text file")
        try:
            text = block.decode("utf-8-sig" if lines == 0 and encoding == "utf-8" else encoding)
        except UnicodeDecodeError as error:
            line = lines + _line_of(block, error.start)
            raise InputError(
                f"{shown(path)}, line {line}: byte 0x{block[error.start]:02x} is not {encoding}; save "
                "it as UTF-8"
            ) from None
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines += text.count("\n")
        yield text


def _line_of(block: bytes, position: int) -> int:
    before = block[:position].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return before.count(b"\n") + 1


def _check_kind(path: Path, start: bytes) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{shown(path)} is UTF-16 text; save it as UTF-8")
    for magic, kind in KINDS.items():
        if start.startswith(magic):
            raise InputError(f"{shown(path)} is {kind}, not text")


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Give the blocks of a file, each cut at its last line end."""
    kept: list[bytes] = []
    length = 0
    for block in read_blocks(path):
        # a \r at the very end may be the first half of a line end
        cut = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
        if kept and kept[-1].endswith(b"\r") and not block.startswith(b"\n"):
            yield b"".join(kept)
            kept, length = [], 0
        if cut:
            yield b"".join((*kept, block[:cut]))
            kept, length = [], 0
        if cut < len(block):
            kept.append(block[cut:])
            length += len(block) - cut
        if length > MOST_LINE:
            raise InputError(
                f"{shown(path)} has a line of more than {MOST_LINE:,} bytes; it is no table"
            )
    if kept:
        yield b"".join(kept)


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return a file's text as `text_blocks` gives it, with its errors."""
    return "".join(text_blocks(path, encoding))


# ---- files of our own


class _Target(NamedTuple):
    """Where a file is written: a path with what stands there now, or an open descriptor."""

    path: Path
    old: os.stat_result | None
    through: str | int | None = None


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse at once what `replacing` would refuse in the end.

    Raises
    ------
    InputError
        If `path` is a folder, a device or pipe, or in a folder that is absent or cannot be written.
    """
    try:
        target = _target(path)
        if target.through is None and not target.path.parent.is_dir():
            raise InputError(f"{shown(path)}: the folder {shown(target.path.parent)} does not exist")
        if target.through is None and not os.access(target.path.parent, os.W_OK | os.X_OK):
            raise InputError(f"{shown(path)}: nothing can be written in {shown(target.path.parent)}")
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is what standard output goes to, as /dev/stdout is."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(STDOUT))
    except (OSError, ValueError):
        return False


@contextmanager
def replacing(path: str | os.PathLike[str], sweep: bool = True) -> Iterator[Any]:
    """Give a binary file to write, which takes the place of `path` when the block ends without error.

    A crash leaves the old file or the new one: the new one is written beside it under a temporary
    name, flushed to disk and renamed, and the folder flushed. What a killed process left is swept
    away; what another thread, process or host is writing is not. A link is followed and stays. A new
    file may be read by whom the umask lets, one that replaces another by whom could read that.
    /dev/null, and what standard output goes to, are written to as they are.

    Parameters
    ----------
    path : path
        Of a regular file, or of none yet, in a folder that exists.
    sweep : bool
        Whether the folder is looked through for what was left of this file; who writes many files in it
        does that once, by `sweep_folder`.

    Yields
    ------
    binary file
        Without a buffer: each call to `write` writes all it is given.

    Raises
    ------
    InputError
        If it is no regular file or cannot be written; an old file is then untouched, and nothing else
        is left.
    BrokenPipeError
        If it is standard output and nobody reads it any longer.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "list.csv")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"user,item")
    ...     path.read_bytes()
    b'user,item'
    """
    try:
        target = _target(path)
        if target.through is not None:
            with _through(target.through) as file:
                yield file
            return
        if sweep:
            _sweep(target.path.parent, re.escape(_label(target.path)))
        handle, name = _temporary(target)
        with _Handle(handle) as file:  # closed, and with it unlocked, once it has its own name
            try:
                yield file
                os.fsync(handle)
                if target.old is not None:
                    _take_over(handle, target.old)
                os.replace(name, target.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        folder = os.open(target.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def create(path: str | os.PathLike[str], content: bytes) -> bool:
    """Write a small file where there is none, and return whether this call did.

    Of several calls at once one does.

    Raises
    ------
    InputError
        If it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "job.json")
    ...     create(path, b"one"), create(path, b"other"), path.read_bytes()
    (True, False, b'one')
    """
    try:
        target = _target(path)
        if target.old is not None or target.through is not None:
            return False
        handle, name = _temporary(target)
        with _Handle(handle) as file:
            try:
                file.write(content)
                os.fsync(handle)
                os.link(name, target.path)  # which never takes a place that is taken
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                    raise
                return _create_in_place(target.path, content)  # a file system without links
            finally:
                with suppress(OSError):
                    os.unlink(name)
        return True
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def _create_in_place(path: Path, content: bytes) -> bool:
    try:
        with open(path, "xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def _target(path: str | os.PathLike[str]) -> _Target:
    """Return where a file is written; a link is followed, also one to nothing yet.

    Raises
    ------
    InputError
        If there is anything but a regular file.
    OSError
        If that cannot be found out, as in a loop of links.
    """
    if "\0" in os.fspath(path):
        raise InputError(f"{str(path)[:60]!r} is no name of a file: it holds a NUL")
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return _Target(Path(os.path.realpath(path)), None)
    real = Path(os.path.realpath(path))
    if stat.S_ISDIR(old.st_mode):
        raise InputError(f"{shown(path)} is a folder; name a file")
    if is_stdout(path):
        return _Target(real, old, STDOUT)
    if stat.S_ISREG(old.st_mode):
        return _Target(real, old)
    if str(real) == os.devnull:
        return _Target(real, old, os.devnull)
    raise InputError(f"{shown(path)} is not a regular file; name a file on disk")


class _Handle(io.RawIOBase):
    """An open descriptor as a file whose `write` goes on after a short write."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        left = memoryview(data)
        left = left.cast("B") if left.nbytes else memoryview(b"")  # an empty view cannot be cast
        size = len(left)
        while left:
            left = left[os.write(self.handle, left[:STRETCH]) :]
        self.written += size
        return size

    def tell(self) -> int:
        return self.written  # not asked of the descriptor: a pipe has no position

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self.handle)


def _through(where: str | int) -> _Handle:
    """Return an open device, or a descriptor that stays open after this one is closed."""
    if isinstance(where, str):
        return _Handle(os.open(where, os.O_WRONLY | os.O_CLOEXEC))
    if sys.stdout is not None:
        sys.stdout.flush()  # what was printed before comes before
    return _Handle(os.dup(where))


def _label(target: Path) -> str:
    """Return what a temporary name repeats of a name: all of it, or its digest where it is long."""
    name = os.fsencode(target.name)
    return target.name if len(name) <= MOST_LABEL else hashlib.sha256(name).hexdigest()[:32]


@functools.cache
def _host() -> str:
    """Return 16 hexadecimal digits for the running system, shared by its containers.

    Locks of files are seen by all that share it, and perhaps by nobody else.
    """
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        told = f"{platform.node()} {uuid.getnode()}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _temporary(target: _Target) -> tuple[int, str]:
    """Open a new file beside the target, locked as long as it is written, and return its name."""
    # where a file is replaced, nobody else reads the new one before it has the old one's mode
    mode = 0o666 if target.old is None else 0o600
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(MOST_ATTEMPTS):
        name = f".{_label(target.path)}.{_host()}.{secrets.token_hex(8)}{TEMPORARY}"
        path = os.path.join(target.path.parent, name)
        handle = os.open(path, flags, mode)
        # somebody who sweeps may have come between; that one has removed it
        if _lock(handle) is not False and os.path.exists(path):
            return handle, path
        os.close(handle)
        with suppress(OSError):
            os.unlink(path)
    raise InputError(f"{shown(target.path)} cannot be written: its temporary files are taken away")


def _lock(handle: int) -> bool | None:
    """Lock a file; False where another one has, None where there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):
        return None
    return True


def _take_over(handle: int, old: os.stat_result) -> None:
    """Give a new file the mode and, where that is allowed, the owners of the one that it replaces."""
    mode, new = stat.S_IMODE(old.st_mode) & 0o777, os.fstat(handle)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.fchown(handle, old.st_uid, old.st_gid)
        except OSError:
            try:
                os.fchown(handle, -1, old.st_gid)
            except OSError:
                mode &= 0o707  # not for another group
    os.fchmod(handle, mode)


def sweep_folder(folder: Path) -> None:
    """Remove what killed processes left of any file in a folder; what is being written stays.

    Raises
    ------
    InputError
        If the folder cannot be looked through.
    """
    try:
        _sweep(folder, ".+")
    except OSError as error:
        raise InputError(f"{shown(folder)} cannot be read: {error.strerror or error}") from error


def _sweep(folder: Path, label: str) -> None:
    """Remove what killed processes left of targets whose label this expression matches.

    A file that is being written is locked. Locks of other hosts may not be seen here: what these
    left goes once it is a day old.
    """
    names = re.compile(rf"\.{label}\.([0-9a-f]{{16}})\.[0-9a-f]{{16}}{re.escape(TEMPORARY)}")
    with os.scandir(folder) as entries:
        found = [(entry.path, match[1]) for entry in entries if (match := names.fullmatch(entry.name))]
    for path, host in found:
        with suppress(OSError):  # another one sweeps, too, or it is not ours
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if _left_behind(handle, host):
                    os.unlink(path)
            finally:
                os.close(handle)


def _left_behind(handle: int, host: str) -> bool:
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
        return False
    locked = _lock(handle)
    if locked is False:
        return False
    return (locked is True and host == _host()) or time.time() - info.st_mtime > OLD_SECONDS
