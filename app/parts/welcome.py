"""What a first visit shows: what this is, the two ways to begin, and what follows."""

from __future__ import annotations

import streamlit as st

from app.navigation import leave_for
from app.session import SAMPLE, session

WHAT = "Recommendations from a table of who liked what, each with its reason."
FOLLOWS = (
    "Recommend: a list for any user, and why each item is on it.",
    "Compare: which model suits the data, and how sure that is.",
    "Data: a file of your own in three steps. It stays on the machine that runs this app.",
)


def try_the_sample() -> None:
    """Open Recommend with the sample."""
    session().set("data", SAMPLE)
    leave_for("recommend")


def welcome() -> None:
    """Show it; either button ends it."""
    st.header("recsys", anchor=False)
    st.text(WHAT)
    with st.container(horizontal=True):
        st.button("Try the sample", type="primary", on_click=try_the_sample)
        st.button("Use my file", on_click=leave_for, args=("data",))
    st.caption("The sample is an example: its users and its films are invented.")
    st.subheader("What follows", anchor=False)
    st.text("\n".join(FOLLOWS))
