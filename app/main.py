"""The app's entry: `recsys app`, or `streamlit run app/main.py` from the root of the project."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import state  # noqa: E402
from app.navigation import menu  # noqa: E402
from app.session import session, write_address  # noqa: E402

page = menu()
session().page = page.title
st.set_page_config(page_title=f"{page.title} · recsys", page_icon=page.icon, layout="wide")
write_address()  # before the page is drawn: callbacks have run, and a page may end early
state.tray()
page.run()
