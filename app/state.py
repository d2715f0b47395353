"""What pages share: the chosen dataset, fitted rankers, and waiting for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app.jobs import Job, Jobs
from app.parts.titles import natural
from recsys import make_ranker
from recsys.data import Interactions
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.datasets.base import DATASETS
from recsys.explain import Attributes, item_attributes
from recsys.rankers.answers import Recommendations
from recsys.rankers.catalogue import Profile, times_of
from recsys.reranking import DISLIKE_WEIGHT, rerank
from recsys.utils.dates import dated
from recsys.utils.spec import parse_spec
from recsys.utils.topn import all_but

PATIENCE = 1.5  # seconds a page waits before it shows progress instead
GRADES = 20  # different ratings at most that are taken for a scale; more are counts or a dial
LIKED = 0.75  # of the way from the lowest rating to the highest: 4 on 1…5, as usual on MovieLens


@dataclass(frozen=True)
class Catalogue:
    """A dataset with what pages derive from it once. Nobody changes it.

    Attributes
    ----------
    key : tuple
        Identifies the data: ("dataset", name) or ("upload", digest), and the threshold where the
        data have ratings.
    data : Interactions
        What counts as liked.
    times : (users, items) float64 CSR or None
        When each like of `matrix` happened, of its pattern; 0 is unknown.
    dated : bool
        Whether times are dates, and not places in an order.
    ratings : (users, items) sparse matrix or None
        Every rating of these users and items, also those below the threshold.
    least, lowest, top : float or None
        The threshold, and the ends of the scale; None without ratings.
    """

    key: tuple[Any, ...]
    data: Interactions
    matrix: sp.csr_matrix
    titles: NDArray[np.object_]
    labels: tuple[str, ...]
    attributes: Attributes
    popularity: NDArray[np.float64]
    years: NDArray[np.float64]
    times: sp.csr_matrix | None = None
    dated: bool = False
    ratings: sp.csr_matrix | None = None
    least: float | None = None
    lowest: float | None = None
    top: float | None = None

    @property
    def word(self) -> str:
        """What having an item means: "liked", or "rated" where every rating counts."""
        every = self.least is not None and self.lowest is not None and self.least <= self.lowest
        return "rated" if every else "liked"

    def rated(self, user: int) -> dict[int, str]:
        """Return what a user gave items, as it is shown: '4 of 5'."""
        if self.ratings is None or self.top is None:
            return {}
        row = self.ratings[user]
        return {int(k): f"{v:g} of {self.top:g}" for k, v in zip(row.indices, row.data, strict=True)}

    def user(self, user: int) -> Profile:
        """Return the profile of a user of the data."""
        row = self.matrix[user]
        own = slice(*self.matrix.indptr[user : user + 2])
        return Profile(user, row, when=None if self.times is None else self.times.data[own])

    def profile(self, items: list[int]) -> Profile:
        """Return the profile of somebody who liked these items, the oldest like first."""
        return Profile.in_order(items, self.matrix.shape[1])


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


def usual_threshold(ratings: NDArray[np.float64]) -> float:
    """Return the lowest rating that counts as liked unless a person says otherwise.

    On a scale the first grade three quarters of the way up: 4 on 1…5, 3.5 on ½…4. Where there are
    more than 20 different values they are counts or a dial, and every one counts.
    """
    grades = np.unique(ratings)
    if len(grades) > GRADES:
        return float(grades[0])
    least = grades[0] + LIKED * (grades[-1] - grades[0])
    return float(grades[grades >= least - 1e-9][0])


def catalogue_of(key: tuple[Any, ...], data: Interactions, least: float | None = None) -> Catalogue:
    """Derive what pages need; of rated data, pairs rated `least` or more count as liked."""
    import pandas as pd

    every, ratings = data, None
    if every.rating is not None:
        least = usual_threshold(every.rating) if least is None else least
        data = every.rated(least)
        user = pd.Index(data.user_ids).get_indexer(pd.Index(every.user_ids))[every.users]
        item = pd.Index(data.item_ids).get_indexer(pd.Index(every.item_ids))[every.items]
        known = (user >= 0) & (item >= 0)
        ratings = sp.csr_matrix(
            (every.rating[known], (user[known], item[known])), (data.n_users, data.n_items)
        )
    matrix = data.matrix
    years = np.full(data.n_items, np.nan)
    if data.item_features is not None and "year" in data.item_features:
        years = pd.to_numeric(data.item_features["year"], errors="coerce").to_numpy(np.float64)
    titles = np.array([natural(str(title)) for title in data.titles], dtype=object)
    seen: dict[str, int] = {}
    labels = []
    for k, title in enumerate(titles):
        seen[str(title)] = seen.get(str(title), 0) + 1
        labels.append(str(title) if seen[str(title)] == 1 else f"{title} [{data.item_ids[k]}]")
    times = times_of(data)
    popularity = np.bincount(matrix.indices, minlength=data.n_items).astype(np.float64)
    about: dict[str, Any] = {}
    if every.rating is not None:
        about = {"least": least, "lowest": float(every.rating.min()), "top": float(every.rating.max())}
    return Catalogue(
        key, data, matrix, titles, tuple(labels), item_attributes(data), popularity, years, times,
        times is not None and dated(times.data), ratings, **about,
    )  # fmt: skip


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
        key, given = uploaded
        data = given
    else:
        key = ("dataset", name)
        job = jobs().get(("data", key), lambda progress: load_dataset(name))
        data = ready(job, ("data", key), f"Reading {name}")
    least = None if data.rating is None else choose_threshold(key, data)
    full = key if least is None else (*key, least)
    job = jobs().get(("catalogue", full), lambda progress: catalogue_of(full, data, least))
    return ready(job, ("catalogue", full), f"Preparing {name}")


def choose_threshold(key: tuple[str, str], data: Interactions) -> float:
    """Show from which rating on a pair counts as liked, and return it."""
    assert data.rating is not None
    grades = [float(grade) for grade in np.unique(data.rating)]
    kept = f"least {key}"  # not a widget's key: Streamlit forgets those on another page
    current = st.session_state.get(kept, usual_threshold(data.rating))
    label, low, top = "Counts as liked: rated at least", grades[0], grades[-1]
    if len(grades) > GRADES:
        least = float(st.number_input(label, low, top, current))
    else:
        index = grades.index(current) if current in grades else 0
        least = st.selectbox(
            label,
            grades,
            index=index,
            format_func=lambda g: f"{g:g} of {top:g}" + (" (every rating)" if g == low else ""),
        )
    st.session_state[kept] = least
    return least


def ranker(catalogue: Catalogue, spec: str) -> Any:
    """Return the ranker of a specification fitted on a catalogue, fitting it once for everybody."""

    def fit(progress: Any) -> Any:
        name, params = parse_spec(spec)
        known = SideInformation(catalogue.data)
        ranker = make_ranker(name, **params)
        return ranker.fit(catalogue.matrix, show_progress=False, **known.of(ranker))

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
