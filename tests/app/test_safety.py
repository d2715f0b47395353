import re
import threading
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("streamlit")

from app.navigation import PAGES
from recsys.data import Interactions
from tests.app.page_runs import open_page

ROOT = Path(__file__).parents[2]


def test_the_configuration_is_closed():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["server"]["enableXsrfProtection"] is True
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["maxUploadSize"] <= 200
    assert config["client"]["showErrorDetails"] == "none"
    assert config["browser"]["gatherUsageStats"] is False
    assert "secrets.toml" in (ROOT / ".gitignore").read_text()


def test_no_page_renders_raw_html_or_markdown_from_data():
    for path in (ROOT / "app").rglob("*.py"):
        text = path.read_text()
        for bad in ("unsafe_allow_html", "st.markdown(", "st.write(", "st.components"):
            assert bad not in text, f"{path.name}: {bad}"
        # Markup is a style of ours, or made by `cards`, which escapes every text (see its tests).
        for made in re.findall(r"st\.html\(\s*([\w.]+)", text):
            assert made in ("STYLE", "HISTORY") or made.startswith("cards."), f"{path.name}: {made}"
        # The one script is a constant.
        for run in re.findall(r"st\.html\(([^()]*unsafe_allow_javascript[^()]*)\)", text):
            assert run == "HISTORY, unsafe_allow_javascript=True", f"{path.name}: {run}"
        # Markdown elements get our own words and figures only, never titles.
        for call in re.findall(
            r"\.(?:caption|subheader|header|info|warning|success|error)\(([^)]*)", text
        ):
            assert "title" not in call or "titles" not in call, f"{path.name}: {call}"


HOSTILE = "![x](http://127.0.0.1:9/x) <b>:red[y]</b> $z$ `w`"
MARKDOWN = (
    "caption", "header", "subheader", "title", "info", "warning", "error", "success", "markdown",
    "expander", "metric", "toast",
)  # fmt: skip


HOSTILE_SPEC = "[x](http://127.0.0.1:9)"
HOSTILE_TABLE = f"{HOSTILE} user,{HOSTILE} item\nu1,i1\n"


@pytest.fixture(scope="module")
def hostile():
    """Return the name of an upload whose ids, titles, genres and name are Markdown."""
    from app import state
    from app.uploads import UploadedTable

    rng = np.random.default_rng(0)
    pairs = sorted({(int(u), int(i)) for u, i in rng.integers(0, 25, (300, 2))})
    data = Interactions.from_ids(
        [f"{HOSTILE} {u}" for u, _ in pairs], [f"{HOSTILE} item {i}" for _, i in pairs], name=HOSTILE
    )
    items = pd.DataFrame(
        {
            "title": [f"{HOSTILE} film {name[-2:]}" for name in data.item_ids],
            "genres": [f"{HOSTILE} genre{k % 2}|plain" for k in range(data.n_items)],
        },
        index=data.item_ids,
    )
    return state.keep_table(UploadedTable(data.with_features(items=items)), "hostile")


def as_markdown(at):
    """Return what of a page Streamlit reads as Markdown and the one who wrote a file may have meant."""
    shown = [
        text
        for kind in MARKDOWN
        for element in at.get(kind)
        for text in (
            getattr(element, "value", ""), getattr(element, "label", ""),
            getattr(element.proto, "help", ""),
        )
        if isinstance(text, str)
    ]  # fmt: skip
    bars = [element.proto.text for element in at.get("progress")]
    bare = [re.sub(r"\\.", "", text) for text in [*shown, *bars]]  # what is escaped is text
    return [text for text in bare if re.search(r"\]\(|<b>|\$z\$|:red\[|`w`", text)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_what_a_file_says_is_never_read_as_markdown(page, hostile):
    """Ids, titles, genres and the name of an upload, wherever a page shows them."""
    from app import state

    for model in ("ease", HOSTILE_SPEC):
        at = open_page(page, data=hostile, model=model)
        assert not as_markdown(at), page
    if page == "data":
        token = state.keep_file(f"{HOSTILE}.csv", HOSTILE_TABLE.encode())
        at = open_page(page, data=hostile, data__file=token)
        assert at.dataframe[0].value.columns[0] == f"{HOSTILE} user" and not as_markdown(at)


SAID = {
    "who is not there": ("recommend", {"user": HOSTILE}),
    "the dataset that is not there": ("recommend", {"data": HOSTILE}),
    "the model": ("explain", {"model": HOSTILE_SPEC}),
    "another model": ("compare", {"evaluate__more": HOSTILE_SPEC}),
    "a protocol": ("compare", {"evaluate__protocol": HOSTILE_SPEC}),
    "a table that cannot be read": ("data", {"data__file": (f"{HOSTILE}.csv", b"one column\n1\n")}),
    "an item table": ("data", {
        "data__file": ("good.csv", b"user_id,item_id\na,x\nb,y\n"),
        "data__items": (f"{HOSTILE}.csv", HOSTILE_TABLE.encode()),
    }),
    "a table of rules": ("kernels", {
        "kernels__show": "Rules on a table", "rules__file": (f"{HOSTILE}.csv", b"\n"),
    }),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("what", SAID)
def test_what_an_address_or_a_refused_file_says_is_told_as_text(what, hostile, monkeypatch):
    from app import state

    page, chosen = SAID[what]
    chosen = {k: state.keep_file(*v) if isinstance(v, tuple) else v for k, v in chosen.items()}
    chosen = {"data": hostile} | chosen
    drawn = []
    for kind in ("error", "warning", "info"):
        monkeypatch.setattr(f"streamlit.{kind}", heard(kind, drawn))
    at = open_page(page, **chosen)
    assert not as_markdown(at) and any("127.0.0.1:9" in text for text in drawn), drawn
    bare = [re.sub(r"\\.", "", text) for text in drawn]
    assert not [text for text in bare if "](" in text or "<b>" in text]


def heard(kind, drawn):
    """Return Streamlit's function, which notes what it draws: a page's next run forgets it."""
    import streamlit

    before = getattr(streamlit, kind)
    return lambda text, *more, **options: drawn.append(str(text)) or before(text, *more, **options)


def test_what_jobs_say_is_told_as_text(monkeypatch):
    from streamlit.testing.v1 import AppTest

    from app import state
    from app.jobs import Jobs
    from app.session import Session
    from recsys import InputError

    jobs, go = Jobs(), threading.Event()
    monkeypatch.setattr(state, "jobs", lambda: jobs)
    monkeypatch.setattr(state, "PATIENCE", 0.05)

    def work(progress):
        progress(HOSTILE, 1, 2)
        go.wait(30)
        raise InputError(HOSTILE)

    monkeypatch.setattr(state, "_work_of_a_test", work, raising=False)
    script = "from app import state; state.result(('k',), state._work_of_a_test, {text!r}); state.tray()"
    at = AppTest.from_string(script.format(text=HOSTILE), default_timeout=60)
    here = at.session_state["session"] = Session({}, "one")
    at.run()
    assert len(at.get("progress")) == 1 and not as_markdown(at)
    here.cancelled.add(("k",))
    jobs.leave(("k",), "one")
    at.run()
    assert "cancelled" in at.info[0].value and not as_markdown(at)
    here.cancelled.clear()
    go.set()
    at.run()
    assert jobs.find(("k",)) is None and "127.0.0.1:9" in at.error[0].value and not as_markdown(at)
