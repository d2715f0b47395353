"""Uploaded files: their size, their bytes under a name of our own, and what is wrong with them."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from recsys import InputError
from recsys.data.usable_rows import RowCounts

MOST_BYTES = 200_000_000
MOST_TEXT = 400  # characters of an error
MOST_DETAILS = 500  # tables of which details are kept
ENDINGS = (".csv.gz", ".tsv.gz", ".csv", ".tsv", ".parquet", ".xlsx", ".arff", ".gz", ".txt")


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
        self.ending = next((e for e in ENDINGS if name.lower().endswith(e)), ".csv")
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


@dataclass(frozen=True)
class Details:
    """What is known of an uploaded table besides its interactions.

    Attributes
    ----------
    file : str
        Token of the file that it was read from.
    items : str
        Name of the table of items that came with it; "" where none did.
    counts : RowCounts or None
        What became of its rows.
    """

    file: str = ""
    items: str = ""
    counts: RowCounts | None = None

    @property
    def left_out(self) -> int:
        """Rows that could not be read."""
        return 0 if self.counts is None else sum(self.counts.left_out.values())


@st.cache_resource(show_spinner=False)
def _details() -> dict[str, Details]:
    return {}


def keep_details(name: str, found: Details) -> None:
    """Keep what is known of a table by its name in the session, for all sessions."""
    every = _details()
    every[name] = found
    while len(every) > MOST_DETAILS:
        every.pop(next(iter(every)), None)


def details(name: str) -> Details:
    """Return what is known of an uploaded table."""
    return _details().get(name, Details())
