"""The rule behind a profile, beside a list."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.catalogues import Catalogue
from app.jobs import Job
from app.parts.chosen_user import ChosenUser
from app.session import session
from recsys.explain import following, taste_rule
from recsys.explain import text as wording

HEAD_START = 2.0  # seconds that the first list has before its rule is begun
PATIENCE = 0.6  # seconds a list waits for its rule
MARK = "fits your rule"  # on the items of a list that follow the rule of the profile
COVERS = "What the rule covers, and whether the list follows it"


def profile_rule(
    catalogue: Catalogue,
    chosen_user: ChosenUser,
    ranked: NDArray[np.int32],
    listed: NDArray[np.int32],
    marked: bool = True,
) -> tuple[bool, ...]:
    """Show the rule behind a profile, where there is one that says something and leaves something.

    Returns for each listed item whether it follows the rule.
    """
    nothing = (False,) * len(listed)
    if len(catalogue.attributes) == 0 or chosen_user.row.nnz < 5 or len(listed) == 0:
        return nothing
    # The same items whatever the model: a rule must not change with the list it is shown beside.
    candidates = np.sort(ranked)
    key = (
        "profile rule",
        catalogue.key,
        state.digest(chosen_user.user, chosen_user.row.indices.tolist(), candidates.tolist()),
    )
    if key in session().cancelled:
        return nothing
    first = "sklearn" not in sys.modules  # of the process: the list is drawn before its rule is read
    job = state.run(
        key, lambda progress: rule_of(catalogue, chosen_user, candidates), "Reading a rule",
        HEAD_START if first else 0.0,
    )  # fmt: skip
    if not job.wait(PATIENCE):
        _later(job)
        return nothing
    found = job.result
    if found is None or not found.shown:
        return nothing
    how = following(found.rule, catalogue.attributes, ranked, listed)
    st.text(f"This profile as a rule: {wording.readable(found.rule)}")
    with st.expander(COVERS):
        st.caption(
            " ".join(wording.taste(found, word=catalogue.word))
            + " The rule is read from the profile and the items' attributes; the model does not use it."
        )
        st.caption(" ".join(wording.follows(how, f"“{MARK}”" if marked else "")))
    return how.follows


@st.fragment(run_every=1.0)
def _later(job: Job) -> None:
    """Say that the rule is coming, and run the page again when it is there."""
    if job.over:
        st.rerun()
    # The same two elements as when it is there, so that the cards below do not move.
    st.text("This profile as a rule: being read from the profile …")
    with st.expander(COVERS):
        st.caption("At the first start this is compiled, for some seconds.")


def rule_of(catalogue: Catalogue, chosen_user: ChosenUser, candidates: NDArray[np.int32]) -> Any:
    """Return the rule of a profile, the user's own likes taken out of the popularity."""
    popularity = catalogue.popularity.copy()
    if chosen_user.user is not None:
        own = np.intersect1d(catalogue.matrix[chosen_user.user].indices, chosen_user.row.indices)
        popularity[own] -= 1
    return taste_rule(chosen_user.row.indices, catalogue.attributes, popularity, candidates=candidates)
