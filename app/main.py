"""The app's entry: `recsys app`, or `streamlit run app/main.py` from the root of the project."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from app import state  # noqa: E402
from app.navigation import MOVED, menu, open_page  # noqa: E402
from app.session import session, write_address  # noqa: E402

LOGO = str(HERE / "logo.svg")  # an icon by name would be fetched from elsewhere

# Streamlit writes white on the primary colour, which on a dark page has to be a light one.
STYLE = """<style>
.stMainBlockContainer {padding-top: 4rem; padding-bottom: 3rem;}
button[kind^="primary"], button[kind^="primary"]:hover, span[data-tag] {
  background: #0069a3; border-color: #0069a3; color: #fff;}
.st-key-history {display: none;}
</style>"""

# Streamlit adds to the browser's history for every choice, which the address holds: the back button
# is for pages, and not for addresses that redirect to one. On a phone the menu lies over the page, and
# closes when a page is chosen.
HISTORY = """<script>
if (!window.recsysPages) {
  window.recsysPages = true;
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, url) => {
    const before = location.pathname;
    if (new URL(url, location.href).pathname === before) return history.replaceState(state, unused, url);
    if (/\\/(MOVED)?$/.test(before)) history.replaceState(state, unused, url);
    else push(state, unused, url);
    const close = "[data-testid=stSidebarCollapseButton] button[aria-expanded=true]";
    if (innerWidth < 768) document.querySelector(close)?.click();
  };
}
</script>""".replace("MOVED", "|".join(MOVED))

page = menu()
session().page = page.title
if opening := session().opening:
    session().opening = ""
    open_page(opening)
st.set_page_config(page_title=f"{page.title} · recsys", page_icon=LOGO, layout="wide")
st.logo(LOGO, size="large")
st.html(STYLE)
with st.container(key="history"):
    st.html(HISTORY, unsafe_allow_javascript=True)
write_address()  # before the page is drawn: callbacks have run, and a page may end early
state.tray()
page.run()
