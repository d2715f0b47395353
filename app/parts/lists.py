"""The best items for a user."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.parts.chosen_user import ChosenUser
from app.parts.words import escaped
from recsys.rankers.answers import Recommendations
from recsys.reranking import DISLIKE_WEIGHT, rerank
from recsys.utils.topn import all_but


def recommend(
    model: Any, chosen_user: ChosenUser, N: int, items: NDArray[np.int64] | None = None
) -> Recommendations:
    """Return the best items for a user, of all or of these.

    What they like or rated low is left out; so are their dislikes, and what goes with them is lowered.
    A model that cannot rank for a built profile ends this run of the page with a sentence.
    """
    fold = "fold-in" in model.capabilities
    if chosen_user.user is None and not fold:
        st.warning(
            f"{escaped(model.name)} knows only the users that it was fitted on: choose a user, or "
            "another model."
        )
        st.stop()
    left_out = all_but(chosen_user.row.shape[1], items)  # liked ones of the items are left out, too
    out = chosen_user.lower if left_out is None else np.union1d(left_out, chosen_user.lower)
    return rerank(
        model, chosen_user.user or 0, chosen_user.row, N, dislikes=chosen_user.dislikes,
        dislike_weight=DISLIKE_WEIGHT if fold else 0.0, recalculate_user=fold, filter_items=out,
        times=chosen_user.times,
    )  # fmt: skip
