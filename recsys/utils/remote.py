"""Files of object storage, by their URLs: fetched once to this machine."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock

from recsys.errors import InputError
from recsys.utils.atomic import STRETCH, replacing, sweep_folder
from recsys.utils.extras import install_hint
from recsys.utils.files import shown

# A Path has one slash where the text had two.
URL = re.compile(r"([a-z][a-z0-9+.-]+)(?:://|:/(?!/))(.+)", re.DOTALL)
CHANGES = ("ETag", "Content-MD5", "Digest", "Last-Modified")  # headers that tell a file from a later one
FOLDER = "RECSYS_MODEL_CACHE"  # environment variable: where fetched files are kept


def url_of(path: Any) -> str | None:
    """Return the URL that a path is, or None: whatever is there on this machine is none.

    >>> from pathlib import Path
    >>> url_of("s3://bucket/m.recsys"), url_of(Path("s3://bucket/m.recsys")), url_of("folder/m.recsys")
    ('s3://bucket/m.recsys', 's3://bucket/m.recsys', None)
    """
    if not isinstance(path, (str, os.PathLike)):
        return None
    text = os.fspath(path)
    match = URL.fullmatch(text) if isinstance(text, str) else None
    if match is None or os.path.lexists(text):
        return None
    cut = match[1] == "file" and "://" not in text  # of three slashes one is left
    return f"{match[1]}://{'/' if cut else ''}{match[2]}"


def plain_url(url: str) -> str:
    """Return a URL for a message, without credentials before an @ and without a query.

    >>> plain_url("https://me:secret@host/m.recsys?signature=abc"), plain_url("s3://bucket/m.recsys")
    ('https://…@host/m.recsys?…', 's3://bucket/m.recsys')
    """
    kind, address, rest = url.partition("://")
    if not address:
        return shown(url)
    rest, query, _ = rest.partition("?")
    before, at, host = rest.rpartition("@")
    return shown(f"{kind}://{'…@' if at else ''}{host}{'?…' if query else ''}")


def fetched(path: Any, check: Callable[[Path], Any] | None = None) -> Any:
    """Return the path itself, or of a URL the path of a local copy.

    A copy is kept for as long as the file is what it was, and is there whole or not at all; processes
    that ask for one file at once fetch it once. It is in the folder that RECSYS_MODEL_CACHE names, or
    in the user's cache. Of a server that does not tell whether a file has changed it is fetched every
    time. `check` refuses what was fetched before it is kept.
    """
    url = url_of(path)
    if url is None:
        return path
    try:
        import fsspec
    except ImportError:
        raise InputError(f"{plain_url(url)} needs fsspec: {install_hint('dask')}") from None
    try:
        system, inner = fsspec.core.url_to_fs(url)
        state = _state(system, inner)
    except ImportError as error:
        raise InputError(f"{plain_url(url)} needs another package: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{plain_url(url)} is not a file") from None
    except Exception as error:  # each storage has its own
        raise _unreadable(url, error) from None
    folder = _folder()
    which = hashlib.sha256(url.encode()).hexdigest()[:32]
    copy = folder / f"{which}-{hashlib.sha256((state or '').encode()).hexdigest()[:32]}.recsys"
    with filelock.FileLock(folder / f"{which}.lock"):
        if state is None or not copy.exists():
            sweep_folder(folder)
            _fetch(system, inner, url, copy, check)
            for old in folder.glob(f"{which}-*.recsys"):
                if old != copy:
                    with suppress(OSError):
                        old.unlink()  # processes that have mapped it keep it
    return copy


def _state(system: Any, inner: str) -> str | None:
    """Return a token that changes with the file; None if the storage has none."""
    with suppress(Exception):
        system.invalidate_cache()  # of listings: another process may have written meanwhile
    kinds = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    if not {"http", "https"} & set(kinds):
        return str(system.ukey(inner))
    told = system.info(inner)  # its key is made of the address alone
    found = [str(told.get(name, "")) for name in CHANGES]
    return "\n".join([*found, str(told.get("size"))]) if any(found) else None


def _fetch(system: Any, inner: str, url: str, copy: Path, check: Callable[[Path], Any] | None) -> None:
    new = copy.with_suffix(".new")  # of who holds the lock
    try:
        with system.open(inner, "rb") as source, replacing(new) as target:
            while block := source.read(STRETCH):
                target.write(block)
    except InputError:
        raise
    except Exception as error:
        raise _unreadable(url, error) from None
    try:
        if check is not None:
            check(new)
        os.replace(new, copy)
    except InputError as error:
        raise type(error)(str(error).replace(shown(new), plain_url(url))) from None
    except OSError as error:
        raise _unreadable(url, error) from None
    finally:
        with suppress(OSError):
            new.unlink()


def _unreadable(url: str, error: Exception) -> InputError:
    why = " ".join(str(error).split()).replace(url, plain_url(url))
    rest, _, query = url.partition("://")[2].partition("?")
    for secret in (query, rest.rpartition("@")[0]):
        why = why.replace(secret, "…") if secret else why
    return InputError(f"{plain_url(url)} cannot be read: {type(error).__name__}: {why[:300]}")


def _folder() -> Path:
    import platformdirs

    given = os.environ.get(FOLDER)
    folder = Path(given) if given else Path(platformdirs.user_cache_dir("recsys")) / "models"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InputError(
            f"{shown(folder)}: copies cannot be kept there ({error.strerror or error}); {FOLDER} names "
            "another folder"
        ) from None
