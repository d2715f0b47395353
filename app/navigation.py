"""The pages by name, in the order of the menu. A new page is a file in `app/views` and a word here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.session import session

MAIN = ("recommend", "compare", "data")
LAB = (
    "interactions",
    "links",
    "map",
    "rules",
    "kernels",
)
FIRST = "welcome"  # where a visit without an address begins
CARD = "explain"  # opens from a card, and has an address, but no line of the menu
PAGES = (*MAIN, CARD, *LAB)
MOVED = {"evaluate": "compare"}  # addresses that were in use, and the pages that are there now


def menu() -> Any:
    """Show the menu and return the page that was chosen.

    Pages have no icons: the one that is open would be fetched from elsewhere for the tab.
    """
    pages = {
        name: st.Page(
            _opener(name),
            title=name.capitalize(),
            url_path=name,
            visibility="hidden" if name == CARD else "visible",
        )
        for name in PAGES
    }
    hidden = [
        st.Page(_first, title="Welcome", url_path=FIRST, default=True, visibility="hidden"),
        *(
            st.Page(_sender(new), title=new.capitalize(), url_path=old, visibility="hidden")
            for old, new in MOVED.items()
        ),
    ]
    if (name := _unknown()) is not None:
        hidden.append(st.Page(_missing, title="No such page", url_path=name, visibility="hidden"))
    st.session_state["pages"] = pages
    first = [pages[name] for name in (*MAIN, CARD)]
    return st.navigation({"": [*hidden, *first], "Lab": [pages[name] for name in LAB]}, position="top")


def _first() -> None:
    """Welcome a first visit, and redirect any other one to Recommend."""
    if session().fresh:
        from app.parts.welcome import welcome

        welcome()
    else:
        open_page("recommend")


def _unknown() -> str | None:
    """Return the address that a visit began with, where it is none of ours; Streamlit opens a dialog."""
    context = get_script_run_ctx()
    name = (None if context is None else context.pages_manager.intended_page_name) or ""
    if name not in (FIRST, *PAGES, *MOVED) and name == name.strip(" /") and name and "/" not in name:
        st.session_state["unknown"] = name
    found: str | None = st.session_state.get("unknown")  # later runs of its page have no name
    return found


def _missing() -> None:
    """Say that an address is none of ours, and redirect."""
    st.header("No such page", anchor=False)
    st.text("This address is not one of the app's pages. The menu has them all.")
    st.button("Open Recommend", type="primary", on_click=leave_for, args=("recommend",))


def _opener(name: str) -> Callable[[], None]:
    """Return what shows a page; its module is imported when it is opened first."""

    def show() -> None:
        importlib.import_module(f"app.views.{name}").page()

    return show


def _sender(name: str) -> Callable[[], None]:
    """Return what opens a page in the place of another address."""
    return lambda: open_page(name)


def open_page(name: str) -> None:
    """Leave this page for another one."""
    st.switch_page(st.session_state["pages"][name])


def leave_for(name: str) -> None:
    """Open another page when the next run begins: what a button calls.

    A callback, because `if st.button(…)` is not reached where another event ends the run before it.
    """
    session().opening = name
