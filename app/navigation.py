"""The pages by name, in the order of the menu. A new page is a file in `app/views` and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import streamlit as st

PAGES = (
    "recommend",  # the first one opens
    "explain",
    "interactions",
    "links",
    "map",
    "evaluate",
    "data",
    "kernels",
)


def menu() -> Any:
    """Show the menu and return the page that was chosen.

    Pages have no icons: the one that is open would be fetched from elsewhere for the tab.
    """
    pages = {
        name: st.Page(
            _opener(name),
            title=name.capitalize(),
            url_path=name,
            default=name == PAGES[0],
        )
        for name in PAGES
    }
    st.session_state["pages"] = pages
    return st.navigation(list(pages.values()), position="top")


def _opener(name: str) -> Callable[[], None]:
    """Return what shows a page; its module is imported when it is opened first."""

    def show() -> None:
        importlib.import_module(f"app.views.{name}").page()

    return show


def open_page(name: str) -> None:
    """Leave this page for another one."""
    st.switch_page(st.session_state["pages"][name])
