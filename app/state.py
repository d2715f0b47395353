"""What pages share: the chosen dataset, fitted rankers, and waiting for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app.jobs import Job, Jobs
from recsys import make_ranker
from recsys.data import Interactions, load_dataset
from recsys.data.datasets import DATASETS
from recsys.explain import Attributes, item_attributes
from recsys.rankers import parse_spec, prepare
from recsys.topn import all_but

MODELS = (
    "auto", "cf-komd:kernel=md,degree=2", "cf-komd:kernel=mc,degree=2", "ease", "msdw", "slim", "als",
    "bpr", "ecf-omd", "fm", "hofm", "bilinear", "pairnet", "cf-gram", "popularity",
)  # fmt: skip
PATIENCE = 1.5  # seconds a page waits before it shows progress instead


@dataclass(frozen=True)
class Catalogue:
    """A dataset with what pages derive from it once. Nobody changes it.

    Attributes
    ----------
    key : tuple
        Identifies the data: ("dataset", name) or ("upload", digest).
    """

    key: tuple[str, str]
    data: Interactions
    matrix: sp.csr_matrix
    titles: NDArray[np.object_]
    labels: tuple[str, ...]
    attributes: Attributes
    popularity: NDArray[np.float64]
    years: NDArray[np.float64]

    def row(self, items: list[int]) -> sp.csr_matrix:
        """Return a profile of these items as one row."""
        found = np.unique(np.asarray(items, dtype=np.int32))
        data = np.ones(len(found), np.float32)
        return sp.csr_matrix((data, found, [0, len(found)]), (1, self.matrix.shape[1]))


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Return the jobs of all sessions of this process."""
    return Jobs()


def datasets() -> list[str]:
    """Return the datasets that can be used without a download, the embedded one first."""
    ready = [
        n for n in DATASETS.names() if not DATASETS.get(n).where().startswith(("on first", "needs"))
    ]
    return ["sample", *(name for name in ready if name != "sample")]


def catalogue_of(key: tuple[str, str], data: Interactions) -> Catalogue:
    """Derive what pages need."""
    import pandas as pd

    matrix = data.matrix
    years = np.full(data.n_items, np.nan)
    if data.item_features is not None and "year" in data.item_features:
        years = pd.to_numeric(data.item_features["year"], errors="coerce").to_numpy(np.float64)
    titles = data.titles
    seen: dict[str, int] = {}
    labels = []
    for k, title in enumerate(titles):
        seen[str(title)] = seen.get(str(title), 0) + 1
        labels.append(str(title) if seen[str(title)] == 1 else f"{title} [{data.item_ids[k]}]")
    popularity = np.bincount(matrix.indices, minlength=data.n_items).astype(np.float64)
    return Catalogue(key, data, matrix, titles, tuple(labels), item_attributes(data), popularity, years)


def choose_data() -> Catalogue:
    """Show the dataset's selector and return the chosen one, waiting for it to load."""
    options = datasets()
    uploaded = st.session_state.get("uploaded")
    if uploaded is not None:
        options = [f"upload: {uploaded[1].name}", *options]
    current = st.session_state.get("dataset", options[0])
    index = options.index(current) if current in options else 0
    name = st.selectbox("Dataset", options, index=index)
    st.session_state["dataset"] = name
    if uploaded is not None and name == options[0]:
        key, data = uploaded
        job = jobs().get(("catalogue", key), lambda progress: catalogue_of(key, data))
    else:
        key = ("dataset", name)
        job = jobs().get(("catalogue", key), lambda progress: catalogue_of(key, load_dataset(name)))
    return ready(job, ("catalogue", key), f"Reading {name}")


def choose_model(label: str = "Model", index: int = 0, key: str | None = None) -> str:
    """Show a model's selector and return its specification."""
    return st.selectbox(label, MODELS, index=index, key=key)


def ranker(catalogue: Catalogue, spec: str) -> Any:
    """Return the ranker of a specification fitted on a catalogue, fitting it once for everybody."""

    def fit(progress: Any) -> Any:
        name, params = parse_spec(spec)
        ranker = prepare(make_ranker(name, **params), catalogue.data)
        return ranker.fit(catalogue.matrix, show_progress=False)

    key = ("ranker", catalogue.key, spec)
    return ready(jobs().get(key, fit), key, f"Fitting {spec}")


def ready(job: Job, key: tuple, text: str) -> Any:
    """Return a job's result; until there is one, show progress and end this run of the page."""
    if not settled(job, key, text):
        st.stop()
    return job.result


def settled(job: Job, key: tuple, text: str) -> bool:
    """Return whether a job has a result; else show its progress or its error."""
    if not job.wait(PATIENCE):
        waiting(job, text)
        return False
    if job.error is not None:
        jobs().forget(key)
        st.error(job.error)
        return False
    return True


@st.fragment(run_every=0.7)
def waiting(job: Job, text: str) -> None:
    """Show a job's progress, and run the page again when it has ended."""
    if job.over:
        st.rerun()
    share = job.done / job.total if job.total else 0.0
    st.progress(min(share, 1.0), text=f"{text} … {job.text if job.total else ''}")


def recommend(
    model: Any, user: int | None, row: sp.csr_matrix, N: int, items: NDArray[np.int64] | None = None
) -> Any:
    """Return (ids, scores) for a user, or for a profile where user is None."""
    fold = "fold-in" in model.capabilities
    others = all_but(row.shape[1], items)  # what the profile holds is left out of the items, too
    return model.recommend(user or 0, row, N=N, recalculate_user=fold, filter_items=others)
