"""The pages by name, in the order of the menu. A new page is a file in `app/views` and a word here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import streamlit as st

MAIN = ("recommend", "compare", "data")
LAB = ("rules", "interactions", "kernels", "links")
PAGES = (*MAIN, *LAB)


def menu() -> Any:
    """Show the menu and return the chosen page."""
    pages = {name: st.Page(_opener(name), title=name.capitalize(), url_path=name) for name in PAGES}

    def first() -> None:
        st.switch_page(pages[MAIN[0]], query_params=_parameters())

    start = st.Page(
        first, title="recsys", default=True, visibility="hidden"
    )  # the address without a page
    main = [start, *(pages[name] for name in MAIN)]
    page = st.navigation({"": main, "Lab": [pages[name] for name in LAB]}, position="top")
    if target := st.session_state.pop("next page", ""):
        st.switch_page(pages[target])
    return page


def _parameters() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def _opener(name: str) -> Callable[[], None]:
    """Return what shows a page; its module is imported when it is opened."""
    return lambda: importlib.import_module(f"app.views.{name}").page()


def go_to(name: str) -> None:
    """Open another page after this callback."""
    st.session_state["next page"] = name
