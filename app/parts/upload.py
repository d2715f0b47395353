"""Uploaded files: kept over a reload, read under a name of our own, and what is wrong with them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app import state
from app.parts.words import escaped
from app.session import session
from app.uploads import UploadedFile
from recsys import InputError

MOST_BYTES = 200_000_000
MOST_TEXT = 400  # characters of an error
TYPES = (
    "csv", "tsv", "txt", "dat", "data", "json", "jsonl", "gz", "bz2", "xz", "zst", "zip",
    "parquet", "xlsx",
)  # fmt: skip  # of tables, as an uploader offers them
ENDINGS = (
    ".bz2",
    ".xz",
    ".zst",
    ".zip",
    ".csv.gz",
    ".tsv.gz",
    ".csv",
    ".tsv",
    ".parquet",
    ".xlsx",
    ".arff",
    ".gz",
    ".txt",
)


# ---- files that are kept


def uploader(
    label: str,
    name: str,
    types: Sequence[str] = TYPES,
    *,
    several: bool = False,
    help: str | None = None,
    forgets: Sequence[str] = (),
) -> None:
    """Show an uploader, and why its last file was refused.

    A file is kept as soon as it is uploaded and forgotten when it is taken away; `kept_files` returns
    it. Files that come later replace the earlier ones.

    Parameters
    ----------
    label : str
    name : str
        Of the choice in the session that holds the token, or a list of tokens.
    types : sequence of str
    several : bool
        Whether there may be more than one file.
    help : str, optional
    forgets : sequence of str
        Choices that belong to the file, and go back to their defaults with another one.
    """
    key = _key(name)
    st.file_uploader(
        label, type=list(types), accept_multiple_files=several, key=key, help=help,
        on_change=_changed, args=(key, name, tuple(forgets)),
    )  # fmt: skip
    refused = st.session_state.pop(f"refused {name}", None)
    if refused:
        st.error(escaped(refused))


def kept_files(name: str) -> list[UploadedFile]:
    """Return the files that are kept under a choice of the session, none where one is gone.

    A server keeps files as long as it runs and has room for them: where one is gone it is said so, and
    the rest is forgotten, for it would be taken for the whole.
    """
    chosen = session().get(name, [])
    tokens = [str(one) for one in chosen] if isinstance(chosen, list | tuple) else [str(chosen)]
    tokens = [token for token in tokens if token]
    found = [file for token in tokens if (file := state.files().find(token)) is not None]
    if len(found) == len(tokens):
        return found
    session().forget(name)
    st.warning(
        "The uploaded file is no longer here: upload it again."
        if len(tokens) == 1
        else "Not all of the uploaded files are here any longer: upload them again."
    )
    return []


def say_kept(files: Sequence[UploadedFile], *names: str, told: str = "") -> None:
    """Name the files that are kept, and offer to forget them with these choices of the session."""
    several = len(files) > 1
    listed = ", ".join(file.name for file in files)
    st.text(told or (f"Files: {listed}" if several else f"File: {listed}"))
    st.button(
        "Forget them" if several else "Forget it", on_click=_forget, args=names, key=f"forget {names[0]}"
    )


def _key(name: str) -> str:
    """Return the key of an uploader: another one each time that its file is forgotten.

    Nothing but a new uploader is empty again.
    """
    return f"upload {name} {st.session_state.get(f'forgotten {name}', 0)}"


def _changed(key: str, name: str, forgets: Sequence[str]) -> None:
    given, here = st.session_state.get(key), session()
    for one in (name, *forgets):
        here.forget(one)
    tokens = []
    for file in given if isinstance(given, list) else [given] if given is not None else []:
        try:
            tokens.append(state.keep_file(file.name, limited(file)))
        except InputError as error:
            st.session_state[f"refused {name}"] = clean(str(error), file.name)
            return
    if tokens:
        here.set(name, tokens if isinstance(given, list) else tokens[0])


def _forget(*names: str) -> None:
    for name in names:
        session().forget(name)
        st.session_state[f"forgotten {name}"] = st.session_state.get(f"forgotten {name}", 0) + 1


# ---- what is read of them


def limited(file: Any) -> bytes:
    """Return an upload's bytes, refusing empty and oversized ones."""
    if file.size == 0:
        raise InputError("the file is empty")
    if file.size > MOST_BYTES:
        raise InputError(
            f"the file has {file.size / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f} MB are read"
        )
    return file.getvalue()


class spooled:
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
    text = re.sub(r"\S*[/\\]upload\.[a-z.0-9]*[a-z0-9]", lambda found: shown, " ".join(message.split()))
    text = text if text.startswith(shown) else f"{shown}: {text}"
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT].rsplit(" ", 1)[0].rstrip(",;") + " …"
