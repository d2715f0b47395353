"""Uploaded files: the first rows, the roles of the columns, and the table of interactions."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from recsys import InputError, Interactions
from recsys.data.columns import find_columns, title_column
from recsys.data.reading import feature
from recsys.data.tables import read_table

SHOWN = 8  # rows of the preview
MOST_BYTES = 200_000_000
MOST_TABLES = 12  # of all visitors
MOST_TEXT = 300  # characters of an error
TYPES = [
    "csv",
    "tsv",
    "txt",
    "dat",
    "data",
    "json",
    "jsonl",
    "gz",
    "bz2",
    "xz",
    "zst",
    "zip",
    "parquet",
    "xlsx",
]
ENDINGS = (".csv.gz", ".tsv.gz", *(f".{kind}" for kind in TYPES), ".arff")
PAGE = re.compile(rb"^\s*(<!doctype html|<html|<head)", re.IGNORECASE)


@st.cache_resource(show_spinner=False)
def tables() -> OrderedDict[str, Interactions]:
    """Return the uploaded tables of this process by token: a reload of a page finds its own."""
    return OrderedDict()


def keep(data: Interactions, *identity: object) -> str:
    """Keep a table, and return its name as a dataset, which cannot be guessed."""
    token = "upload-" + hashlib.sha256(repr(identity).encode()).hexdigest()[:24]
    tables()[token] = data
    tables().move_to_end(token)
    while len(tables()) > MOST_TABLES:
        tables().popitem(last=False)
    return token


@dataclass(frozen=True)
class Preview:
    """The first rows of a file, and the columns whose roles are sure: role to name."""

    rows: pd.DataFrame
    roles: dict[str, str]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.rows.columns]


@contextmanager
def saved(content: bytes, name: str, sheet: str | None = None) -> Iterator[Path]:
    """Write an upload to a temporary file of our own name; of a workbook one sheet, as CSV."""
    ending = next((e for e in ENDINGS if name.lower().endswith(e)), ".csv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"upload{ending}")
        path.write_bytes(content)
        try:
            if sheet is not None:
                frame = pd.read_excel(path, sheet_name=sheet, engine="calamine")
                path = path.with_suffix(".csv")
                frame.to_csv(path, index=False)
            yield path
        except InputError as error:
            raise InputError(clean(str(error), name)) from None


def clean(message: str, name: str) -> str:
    """Return an error with the upload's name instead of the temporary path."""
    text = re.sub(
        r"\S*[/\\]upload\.[a-z0-9.]*[a-z0-9]", lambda match: name[:60], " ".join(message.split())
    )
    text = text if text.startswith(name[:60]) else f"{name[:60]}: {text}"
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT].rsplit(" ", 1)[0] + " …"


def content_of(file: Any) -> bytes:
    """Return the bytes of an upload."""
    if file.size == 0:
        raise InputError(f"{file.name}: the file is empty")
    if file.size > MOST_BYTES:
        raise InputError(f"{file.name}: {file.size / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f} MB")
    content: bytes = file.getvalue()
    if PAGE.match(content[:200]):
        raise InputError(
            f"{file.name}: this is a web page, not a table. Was it saved from a login page?"
        )
    return content


@st.cache_data(max_entries=8, show_spinner=False)
def sheets(content: bytes, name: str) -> list[str]:
    """Return the names of a workbook's sheets that may be tables; none for other files."""
    if not name.lower().endswith(".xlsx"):
        return []
    with saved(content, name) as path:
        try:
            frames = pd.read_excel(path, sheet_name=None, nrows=2, engine="calamine")
            return [str(sheet) for sheet, frame in frames.items() if len(frame) and frame.shape[1] > 1]
        except Exception:  # noqa: BLE001 - whatever calamine says of a broken workbook
            raise InputError(f"{name[:60]}: this is not a workbook that can be read") from None


@st.cache_data(max_entries=8, show_spinner="Reading the first rows")
def preview(content: bytes, name: str, sheet: str | None, form: dict[str, Any]) -> Preview:
    """Return the first rows of an upload, and the roles that its columns' names tell."""
    with saved(content, name, sheet) as path:
        table = read_table(path, **form)
        cells = table.columns(table.names)
        first = {name: column[:SHOWN].to_pylist() for name, column in cells.items()}
    if len(table.names) < 2:
        raise InputError(f"{name[:60]}: one column only; a column of users and one of items are needed")
    rows = pd.DataFrame(first, dtype=object).fillna("").astype(str)
    roles: dict[str, str] = {}
    for role, found in find_columns(list(rows.columns)).items() if table.named else ():
        if found and found[0] not in roles.values():
            roles[role] = found[0]
    free = [name for name in rows.columns if name not in roles.values()]
    if title := title_column(free):
        roles["title"] = str(title)
    return Preview(rows, roles)


def frame(content: bytes, name: str) -> pd.DataFrame:
    """Return an upload as a table whose columns are numbers or texts, also with decimal commas."""
    with saved(content, name) as path:
        table = read_table(path)
        return pd.DataFrame({name: feature(cells) for name, cells in table.columns(table.names).items()})


@st.cache_resource(max_entries=4, show_spinner="Reading the rows")
def read(
    content: bytes,
    name: str,
    sheet: str | None,
    form: dict[str, Any],
    roles: dict[str, str],
    items: tuple[bytes, str] | None = None,
) -> Interactions:
    """Return the interactions of an upload, with its titles and with an uploaded table of items."""
    columns: dict[str, Any] = {role: column for role, column in roles.items() if role != "title"}
    with ExitStack() as stack:
        path = stack.enter_context(saved(content, name, sheet))
        if items is not None:
            columns["items"] = stack.enter_context(saved(*items))
        data = Interactions.from_frame(path, name=name[:60], **columns, **form)
        if "title" in roles and items is None:
            data = data.with_features(items=titles_of(path, roles, form))
    return data


def titles_of(path: Path, roles: dict[str, str], form: dict[str, Any]) -> pd.DataFrame:
    """Return the most frequent title of each item, read as pairs of items and titles."""
    pairs = Interactions.from_frame(
        path, user=roles["item"], item=roles["title"], duplicates="count", **form
    )
    frame = pd.DataFrame({"item": pairs.user_ids[pairs.users], "title": pairs.item_ids[pairs.items]})
    if pairs.weight is not None:
        frame = frame.iloc[(-pairs.weight).argsort(kind="stable")]
    return frame.drop_duplicates("item").set_index("item")
