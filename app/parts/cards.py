"""Cards: an item with its year and categories, its reason, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app.parts.text import escaped


def card(
    rank: int,
    title: str,
    about: Sequence[str],
    reason: str,
    key: str,
    actions: Sequence[tuple[str, str, Callable[[], None]]] = (),
) -> None:
    """Draw a card. Actions are (label, icon, what is called)."""
    st.markdown(f"**{rank}. {escaped(title)}**")
    if about:
        st.caption(escaped(" · ".join(about)))
    st.text(reason)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for label, icon, action in actions:
            st.button(
                label,
                key=f"{label} {key}",
                on_click=action,
                icon=icon,
                type="tertiary",
                help=f"{label}: {escaped(title)}",
            )
