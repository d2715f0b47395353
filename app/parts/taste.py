"""The rule behind a profile, beside a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.catalogues import Catalogue
from app.parts.people import Asked
from recsys.explain import following, taste_rule
from recsys.explain import text as wording

MARK = "◆"  # beside the items of a list that follow the taste rule


def taste(
    catalogue: Catalogue,
    asked: Asked,
    allowed: NDArray[np.int64] | None,
    ranked: NDArray[np.int32],
    listed: NDArray[np.int32],
    marked: bool = True,
) -> tuple[bool, ...]:
    """Show the rule behind a profile, where there is one that says something and leaves something.

    Returns for each listed item whether it follows the rule.
    """
    nothing = (False,) * len(listed)
    if len(catalogue.attributes) == 0 or asked.row.nnz < 5 or len(listed) == 0:
        return nothing
    items = tuple(int(k) for k in asked.row.indices)
    # The same items whatever the model: a rule must not change with the list it is shown beside.
    found = taste_of(catalogue, items, asked.user, np.sort(ranked))
    if found is None or not found.shown:
        return nothing
    how = following(found.rule, catalogue.attributes, ranked, listed)
    st.text(f"This taste as a rule: {wording.readable(found.rule)}")
    st.caption(
        " ".join(wording.taste(found, word=catalogue.word))
        + " The rule is read from the profile and the items' attributes; the model does not use it."
    )
    st.caption(" ".join(wording.follows(how, MARK if marked else "")))
    return how.follows


@st.cache_data(max_entries=500, show_spinner=False, hash_funcs={Catalogue: lambda c: c.key})
def taste_of(
    catalogue: Catalogue, items: tuple[int, ...], user: int | None, candidates: NDArray[np.int32]
) -> Any:
    """Return the taste rule of a profile, the user's own likes taken out of the popularity."""
    popularity = catalogue.popularity.copy()
    if user is not None:
        popularity[list(items)] -= 1
    return taste_rule(np.array(items), catalogue.attributes, popularity, candidates=candidates)
