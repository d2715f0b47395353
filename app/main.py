"""The app's entry: `streamlit run app/main.py` from the root of the project."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.navigation import menu  # noqa: E402

st.set_page_config(page_title="recsys", layout="wide")
menu().run()
