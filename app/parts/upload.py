"""Uploaded files: their size, their bytes under a name of our own, and what is wrong with them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from recsys import InputError

MOST_BYTES = 200_000_000
MOST_TEXT = 400  # characters of an error


def limited(file: Any) -> bytes:
    """Return an upload's bytes, refusing empty and oversized ones."""
    if file.size == 0:
        raise InputError("the file is empty")
    if file.size > MOST_BYTES:
        raise InputError(
            f"the file has {file.size / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f} MB are read"
        )
    return file.getvalue()


class spooled:  # noqa: N801 - used like contextlib's lower-case managers
    """A temporary file of our own name; only the ending comes from the upload."""

    def __init__(self, content: bytes, name: str) -> None:
        known = (".csv.gz", ".tsv.gz", ".csv", ".tsv", ".parquet", ".gz", ".txt")
        self.ending = next((e for e in known if name.lower().endswith(e)), ".csv")
        self.content = content

    def __enter__(self) -> Path:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / f"upload{self.ending}"
        path.write_bytes(self.content)
        return path

    def __exit__(self, *error: object) -> None:
        self.folder.cleanup()


def clean(message: str, name: str) -> str:
    """Return a reader's message with the upload's name instead of the temporary path.

    A longer one ends at a word, with an ellipsis.
    """
    shown = name[:60]
    text = re.sub(r"\S*[/\\]upload\.[a-z.]*[a-z]", lambda found: shown, " ".join(message.split()))
    text = text if text.startswith(shown) else f"{shown}: {text}"
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT].rsplit(" ", 1)[0].rstrip(",;") + " …"
