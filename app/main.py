"""The app's entry: `streamlit run app/main.py` from the root of the project."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.views import data, evaluate, explain, kernels, recommend  # noqa: E402

PAGES = [
    st.Page(recommend.page, title="Recommend", url_path="recommend", default=True),
    st.Page(explain.page, title="Explain", url_path="explain"),
    st.Page(evaluate.page, title="Evaluate", url_path="evaluate"),
    st.Page(data.page, title="Data", url_path="data"),
    st.Page(kernels.page, title="Kernels", url_path="kernels"),
]

st.set_page_config(page_title="recsys", layout="wide")
st.session_state["explain page"] = PAGES[1]
st.navigation(PAGES, position="top").run()
