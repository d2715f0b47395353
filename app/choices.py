"""Choices: widgets whose values are kept in the address, over pages and reloads, by Streamlit itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

SAMPLE = "sample"


def ask(widget: Callable[..., Any], label: str, *args: Any, key: str, **options: Any) -> Any:
    """Draw a widget whose value is in the address, and kept for the session.

    The browser's back button opens a page without its parameters, and a bound widget would then go back
    to its default: in that run it is drawn unbound, with its last value, and bound again in the next.
    """
    visit = st.session_state.get("visit", 0)
    last, value = st.session_state.setdefault("kept", {}).get(key, (visit, None))
    context = get_script_run_ctx()
    restored = last != visit and context is not None and context.is_history_navigation
    if restored:
        st.session_state[key] = value
        st.session_state["restored"] = True
    bind = None if restored else "query-params"
    value = widget(label, *args, key=key, bind=bind, persist_state="session", **options)
    st.session_state["kept"][key] = (visit, value)
    return value


def scoped(name: str, *owners: str | None) -> str:
    """Return the key of a choice that belongs to a dataset or a user: another one has its own."""
    parts = [str(owner)[:20] for owner in owners if owner not in (None, SAMPLE)]
    return "-".join([name, *parts])


def missing(key: str, options: Sequence[str]) -> str | None:
    """Return the value that the address asks for and that is not among the options, until `dismiss`.

    It is remembered, because Streamlit removes what is invalid from the address.
    """
    memory = f"missing {key}"
    asked = st.query_params.get(key)
    if asked is not None and asked not in options and key not in st.session_state:
        st.session_state[memory] = asked
    value: str | None = st.session_state.get(memory)
    if value in options:
        dismiss(key)
        return None
    return value


def dismiss(key: str) -> None:
    """Forget that something is missing."""
    st.session_state.pop(f"missing {key}", None)
