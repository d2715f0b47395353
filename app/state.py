"""What pages share: the chosen dataset, fitted rankers, and waiting for what takes long."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray
from streamlit import runtime

from app.catalogues import GRADES, Catalogue, catalogue_of, datasets, usual_threshold
from app.jobs import CANCELLED, Job, Jobs, Progress
from app.parts.words import escaped
from app.session import SAMPLE, Session, ask, between, session
from app.uploads import Uploads
from recsys import make_ranker
from recsys.data.interactions import Interactions
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.rankers.answers import Recommendations
from recsys.reranking import DISLIKE_WEIGHT, rerank
from recsys.utils.spec import parse_spec
from recsys.utils.topn import all_but

PATIENCE = 1.2  # seconds a page waits before it shows progress instead
UPLOAD = "upload-"  # before the token of an uploaded dataset
Work = Callable[[Progress], Any]
Key = tuple[Any, ...]


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Return the jobs of all sessions of this process."""
    return Jobs(alive=_alive)


def _alive(session_id: str) -> bool:
    """Return whether a browser still shows this session."""
    return not runtime.exists() or runtime.get_instance().is_active_session(session_id)


@st.cache_resource(show_spinner=False)
def uploads() -> Uploads:
    """Return the uploads of all sessions of this process."""
    return Uploads()


# ---- uploads


def keep_upload(name: str, content: bytes) -> str:
    """Keep an uploaded file over a reload, and return the token to find it by."""
    return uploads().keep(name, content)


def upload(token: str) -> tuple[str, bytes] | None:
    """Return the name and the bytes of a kept file, or None where it is gone."""
    return uploads().find(token)


def use_table(data: Interactions, told: str) -> str:
    """Make an uploaded table a dataset, and the one that is chosen; returns its name in the session.

    Parameters
    ----------
    told : str
        What identifies it: the file's digest and the columns.
    """
    name = UPLOAD + uploads().keep(data.name, data, told)
    here = session()
    here.set("data", name)
    own = here.get("uploads", [])
    here.set("uploads", [name, *(one for one in own if one != name)])
    return name


# ---- the dataset


def choose_data() -> Catalogue:
    """Show the dataset's selector beside the page and return the chosen one, waiting for it to load."""
    return catalogue(choose_dataset())


def choose_dataset() -> str:
    """Show the dataset's selector beside the page, and return the name of the chosen one."""
    here = session()
    chosen = here.get("data", SAMPLE)
    own = [one for one in dict.fromkeys([*here.get("uploads", []), chosen]) if one.startswith(UPLOAD)]
    found = {one: kept for one in own if (kept := uploads().find(one.removeprefix(UPLOAD))) is not None}
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
                f"{found[one][0]} (uploaded)" if one in found else dataset_label(one)
            ),
            filter_mode="contains",
        )
    return name


def catalogue(name: str) -> Catalogue:
    """Return a dataset with what pages derive from it, waiting for it to load."""
    key: Key
    kept = uploads().find(name.removeprefix(UPLOAD)) if name.startswith(UPLOAD) else None
    if kept is not None:
        key, data = ("upload", name), kept[1]
    else:
        key = ("dataset", name)
        data = result(("data", key), lambda progress: load_dataset(name), f"Reading {name}")
    least = None if data.rating is None else choose_threshold(data)
    full = key if least is None else (*key, least)
    text = f"Preparing {data.name}"
    made: Catalogue = result(("catalogue", full), lambda progress: catalogue_of(full, data, least), text)
    return made


def dataset_label(name: str) -> str:
    """Return a dataset's name as a person chooses it."""
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


def ranker(catalogue: Catalogue, spec: str) -> Any:
    """Return the ranker of a specification fitted on a catalogue, fitting it once for everybody."""
    key, fit = fitting(catalogue, spec)
    return result(key, fit, f"Fitting {spec}")


def fitting(catalogue: Catalogue, spec: str) -> tuple[Key, Work]:
    """Return the key and the work of fitting a ranker on a catalogue."""

    def fit(progress: Progress) -> Any:
        name, params = parse_spec(spec)
        known = SideInformation(catalogue.data)
        made = make_ranker(name, **params)
        return made.fit(catalogue.matrix, show_progress=False, **known.of(made))

    return ("ranker", catalogue.key, spec), fit


def result(key: Key, work: Work, text: str) -> Any:
    """Return what a job makes; until it has, show its progress and end this run of the page.

    One such job a session: asking for another one leaves the one before, which is cancelled when
    nobody else waits for it.
    """
    here = session()
    if key in here.cancelled:
        _cancelled(key, text)
        st.stop()
    job = jobs().get(key, work, text, here.id, here.browser)
    if not job.wait(0) and here.awaited not in (None, key):
        jobs().leave(here.awaited, here.id)  # the page waits for this one now
    if not job.over:
        here.awaited, here.awaited_on = key, here.page
    if not settled(job, key, text):
        st.stop()
    if here.awaited == key:
        here.awaited = None
    return job.result


def run(key: Key, work: Work, text: str) -> Job:
    """Start a job that the page does not wait for, or find it: one a kind (the key's first word)."""
    here = session()
    before = here.background.get(key[0])
    if before not in (None, key):
        jobs().leave(before, here.id)
    here.background[key[0]] = key
    here.cancelled.discard(key)
    return jobs().get(key, work, text, here.id, here.browser)


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
    """Cancel a job for this session: it stops when nobody else waits for it."""
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
    shown = here.awaited if here.awaited_on == here.page else None  # the page itself shows it
    running = {k: j for k, j in jobs().of(here.id, here.browser).items() if k != shown}
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


# ---- lists


def check_able(model: Any, user: int | None) -> None:
    """End this run of the page with a sentence where a model cannot rank for a built profile."""
    if user is None and "fold-in" not in model.capabilities:
        st.warning(
            f"{model.name} knows only the people that it was fitted on: choose a user, or another model."
        )
        st.stop()


def recommend(
    model: Any,
    user: int | None,
    row: sp.csr_matrix,
    N: int,
    items: NDArray[np.int64] | None = None,
    without: NDArray[np.int64] | None = None,
    dislikes: Sequence[int] = (),
    times: sp.csr_matrix | None = None,
) -> Recommendations:
    """Return the best items for a user, or for a profile where user is None; `times` are the row's.

    `without` is left out; so are the dislikes, and what goes with them is lowered.
    """
    fold = "fold-in" in model.capabilities
    left_out = all_but(row.shape[1], items)  # what the profile holds is left out of the items, too
    if without is not None:
        left_out = without if left_out is None else np.union1d(left_out, without)
    return rerank(
        model, user or 0, row, N, dislikes=dislikes, dislike_weight=DISLIKE_WEIGHT if fold else 0.0,
        recalculate_user=fold, filter_items=left_out, times=times,
    )  # fmt: skip


def digest(*parts: Any) -> str:
    """Return a short name of what something depends on."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
