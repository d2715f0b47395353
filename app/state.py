"""What pages share: the chosen dataset, fitted rankers, and waiting for what takes long."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st
from streamlit import runtime

from app.catalogues import GRADES, Catalogue, catalogue_of, datasets, usual_threshold
from app.jobs import CANCELLED, Job, Jobs, Progress, size_of
from app.parts.words import escaped
from app.session import SAMPLE, Session, ask, between, session
from app.store import Store
from app.uploads import UploadedFile, UploadedTable
from recsys.data.interactions import Interactions
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.rankers.registry import ranker_of

PATIENCE = 1.2  # seconds a page waits before it shows progress instead
UPLOAD = "upload-"  # before the token of an uploaded dataset
MOST_FILES = 750_000_000  # bytes of all uploaded files
MOST_TABLES = 750_000_000  # bytes of all tables that were read from them
LETTERS = 24  # of a token: it cannot be guessed
COMPARING = "evaluation"  # kind of the jobs of the page Compare
Work = Callable[[Progress], Any]
Key = tuple[Any, ...]


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Return the jobs of all sessions of this process."""
    return Jobs(alive=_alive)


def _alive(session_id: str) -> bool:
    """Return whether a browser still shows this session."""
    return not runtime.exists() or runtime.get_instance().is_active_session(session_id)


# ---- uploads: kept for the process, so that a reload of a page finds them


@st.cache_resource(show_spinner=False)
def files() -> Store[UploadedFile]:
    """Return the uploaded files of all sessions of this process, by token."""
    return Store(MOST_FILES)


@st.cache_resource(show_spinner=False)
def tables() -> Store[UploadedTable]:
    """Return the uploaded tables of all sessions of this process, by their names as datasets."""
    return Store(MOST_TABLES)


def keep_file(name: str, content: bytes) -> str:
    """Keep an uploaded file, and return the token to find it by, which follows from the content."""
    digest = hashlib.sha256(name.encode() + b"\0")
    digest.update(content)
    token = digest.hexdigest()[:LETTERS]
    files().keep(token, UploadedFile(token, name, content), len(content))
    return token


def keep_table(table: UploadedTable, told: str) -> str:
    """Keep an uploaded table, and return its name as a dataset.

    Parameters
    ----------
    told : str
        What identifies it besides its name: the file's token and the columns.
    """
    digest = hashlib.sha256(f"{table.data.name}\0{told}".encode())
    name = UPLOAD + digest.hexdigest()[:LETTERS]
    tables().keep(name, table, size_of(table.data))
    return name


def use_table(table: UploadedTable, told: str) -> None:
    """Keep an uploaded table, and make it the dataset that is chosen."""
    name = keep_table(table, told)
    here = session()
    here.set("data", name)
    own = here.get("uploads", [])
    here.set("uploads", [name, *(one for one in own if one != name)])


# ---- the dataset


def choose_data() -> Catalogue:
    """Show the dataset's selector beside the page and return the chosen one, waiting for it to load."""
    return catalogue(choose_dataset())


def choose_dataset() -> str:
    """Show the dataset's selector beside the page, its name under the heading, and return that name."""
    here = session()
    chosen = here.get("data", SAMPLE)
    own = dict.fromkeys([*here.get("uploads", []), chosen])
    found = {one: table for one in own if (table := tables().find(one)) is not None}
    if chosen.startswith(UPLOAD) and chosen not in found:
        st.warning("The uploaded table is no longer here: upload it again on the page Data.")
        here.set("data", SAMPLE)
    elif chosen not in [*found, *datasets()]:
        st.warning(f"The dataset {escaped(chosen)} is not here: the sample is shown.")
        here.set("data", SAMPLE)
    with st.sidebar:
        name: str = ask(
            st.selectbox,
            "Dataset",
            name="data",
            default=SAMPLE,
            options=[*found, *datasets()],
            format_func=lambda one: (
                f"{found[one].data.name} (uploaded)" if one in found else dataset_label(one)
            ),
            filter_mode="contains",
        )
    example = ", an example" if name == SAMPLE else ""
    st.caption(f"Dataset: {escaped(title_of(name))}{example}")
    return name


def catalogue(name: str) -> Catalogue:
    """Return a dataset with what pages derive from it, waiting for it to load."""
    key: Key
    table = tables().find(name)
    if table is not None:
        key, data = ("upload", name), table.data
    else:
        key = ("dataset", name)
        data = result(("data", key), lambda progress: load_dataset(name), f"Reading {name}")
    least = None if data.rating is None else choose_threshold(data)
    full = key if least is None else (*key, least)
    text = f"Preparing {data.name}"
    made: Catalogue = result(("catalogue", full), lambda progress: catalogue_of(full, data, least), text)
    return made


def title_of(name: str) -> str:
    """Return what a heading calls a dataset, an uploaded one among them."""
    table = tables().find(name)
    return dataset_label(name) if table is None else f"{table.data.name} (uploaded)"


def dataset_label(name: str) -> str:
    """Return a dataset's name as it is offered."""
    return "sample (invented films)" if name == SAMPLE else name


def choose_threshold(data: Interactions) -> float:
    """Show from which rating on a pair counts as liked, and return it."""
    assert data.rating is not None
    grades = [float(grade) for grade in np.unique(data.rating)]
    usual, label = usual_threshold(data.rating), "Counts as liked: rated at least"
    low, top = grades[0], grades[-1]
    with st.sidebar:
        if len(grades) > GRADES:
            valid = between(low, top)
            return float(ask(st.number_input, label, low, top, name="least", default=usual, valid=valid))
        return float(
            ask(
                st.selectbox,
                label,
                name="least",
                default=usual,
                options=grades,
                format_func=lambda g: f"{g:g} of {top:g}" + (" (every rating)" if g == low else ""),
            )
        )


# ---- what takes long


def ranker(catalogue: Catalogue, spec: str, meanwhile: Callable[[], None] | None = None) -> Any:
    """Return the ranker of a specification fitted on a catalogue, fitting it once for all sessions.

    Until it is fitted, `meanwhile` shows something else below the progress.
    """
    key, fit = fitting(catalogue, spec)
    return result(key, fit, f"Fitting {spec}", meanwhile)


def fitting(catalogue: Catalogue, spec: str) -> tuple[Key, Work]:
    """Return the key and the work of fitting a ranker on a catalogue."""

    def fit(progress: Progress) -> Any:
        known = SideInformation(catalogue.data)
        made = ranker_of(spec)
        return made.fit(catalogue.matrix, show_progress=False, **known.of(made))

    return ("ranker", catalogue.key, spec), fit


def result(key: Key, work: Work, text: str, meanwhile: Callable[[], None] | None = None) -> Any:
    """Return what a job makes; until it has, show its progress and end this run of the page.

    One such job a session: asking for another one leaves the one before, which is cancelled when
    no other session waits for it. Below the progress, or below what says that the job was cancelled,
    `meanwhile` is shown.
    """
    here = session()
    if key in here.cancelled:
        _cancelled(key, text)
        if meanwhile is not None:
            meanwhile()
        st.stop()
    job = jobs().get(key, work, text, here.id, here.browser)
    if not job.wait(0) and here.awaited not in (None, key):
        jobs().leave(here.awaited, here.id)  # the page waits for this one now
    if not job.over:
        here.awaited, here.awaited_on = key, here.page
    if not settled(job, key, text):
        if meanwhile is not None and job.error in (None, CANCELLED):
            meanwhile()
        st.stop()
    if here.awaited == key:
        here.awaited = None
    return job.result


def run(key: Key, work: Work, text: str, delay: float = 0.0) -> Job:
    """Start a job that the page does not wait for, or find it: one a kind (the key's first word).

    It waits `delay` seconds before it works.
    """
    here = session()
    before = here.background.get(key[0])
    if before not in (None, key):
        jobs().leave(before, here.id)
    here.background[key[0]] = key
    here.cancelled.discard(key)
    return jobs().get(key, work, text, here.id, here.browser, delay)


def settled(job: Job, key: Key, text: str) -> bool:
    """Return whether a job has a result; else show its progress or its error."""
    if not job.wait(PATIENCE):
        waiting(job, key, text)
        return False
    if job.error == CANCELLED:
        _cancelled(key, text)
        return False
    if job.error is not None:
        jobs().forget(key)
        st.error(escaped(job.error))
        return False
    return True


@st.fragment(run_every=0.7)
def waiting(job: Job, key: Key, text: str) -> None:
    """Show a job's progress and the way out, and run the page again when it has ended."""
    if job.over:
        st.rerun()
    st.progress(job.share, text=told(job, text))
    if st.button("Cancel", key=f"cancel {key}"):
        cancel(key)
        st.rerun()


def told(job: Job, text: str) -> str:
    """Return where a job is: its step, how long it has run, and how long it may still take."""
    parts = [f"{text}: {job.step}" if job.step else f"{text} …"]
    parts.append(f"{job.seconds:.0f} s")
    if job.left is not None:
        parts.append(f"about {max(job.left, 1):.0f} s left")
    return escaped(" · ".join(parts))


def cancel(key: Key) -> None:
    """Cancel a job for this session: it stops when no other session waits for it."""
    here = session()
    here.cancelled.add(key)
    jobs().leave(key, here.id)


def _cancelled(key: Key, text: str) -> None:
    """Say that a job was cancelled, and offer to begin it anew."""
    here = session()
    here.cancelled.add(key)
    st.info(f"{escaped(text)}: cancelled. Choose something else, or begin again.")
    if st.button("Begin again", key=f"again {key}"):
        here.cancelled.discard(key)
        st.rerun()


def tray() -> None:
    """Show, on every page, what runs for this session besides what the page waits for."""
    here = session()
    # The page itself shows these.
    shown = [here.awaited if here.awaited_on == here.page else None]
    if here.page == "Compare":
        shown.append((COMPARING, here.get("evaluate.running", "")))
    running = {k: j for k, j in jobs().of(here.id, here.browser).items() if k not in shown}
    if running:
        with st.sidebar:
            _tray(here, frozenset(running))


@st.fragment(run_every=1.0)
def _tray(here: Session, keys: frozenset[Key]) -> None:
    running = jobs().of(here.id, here.browser)
    if not keys <= running.keys():
        st.rerun()
    st.caption("Running")
    for key in sorted(keys, key=str):
        st.progress(running[key].share, text=told(running[key], running[key].text))
        if st.button("Cancel", key=f"tray {key}"):
            cancel(key)
            st.rerun()


def digest(*parts: Any) -> str:
    """Return a short name of what something depends on."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
