"""The app's entry: `recsys app`, or `streamlit run app/main.py`."""

import gc
import importlib
import sys
from pathlib import Path

import streamlit as st

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from app.navigation import menu  # noqa: E402

LOGO = str(HERE / "logo.svg")
# Streamlit writes white on the primary color, which on a dark page has to be a light one.
STYLE = """<style>
.stMainBlockContainer {padding-top: 4rem; padding-bottom: 3rem;}
button[kind^="primary"], button[kind^="primary"]:hover, span[data-tag] {
  background: #0069a3; border-color: #0069a3; color: #fff;}
</style>"""


@st.cache_resource(show_spinner=False)
def freeze() -> None:
    """Exclude what is imported from the garbage collection that Streamlit runs after each redraw."""
    gc.collect()
    gc.freeze()


page = menu()
st.set_page_config(page_title=f"{page.title} · recsys", page_icon=LOGO, layout="wide")
st.logo(LOGO, size="large")
st.html(STYLE)
try:  # the menu is shown before the package and its libraries are imported
    importlib.import_module("app.views.recommend")
except ModuleNotFoundError as error:
    st.error(f"The package {error.name} is not installed. In the project's folder: pip install '.[app]'")
    st.stop()
freeze()
if st.session_state.get("page") != page.title:
    st.session_state["page"] = page.title
    st.session_state["visit"] = st.session_state.get("visit", 0) + 1
page.run()
if st.session_state.pop("restored", False):
    st.rerun()
