import re
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


@pytest.mark.parametrize("page", PAGES)
def test_what_a_file_says_is_never_read_as_markdown(page):
    """Ids, titles, genres and the name of an upload, wherever a page shows them."""
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
    data = data.with_features(items=items)
    name = state.keep_table(UploadedTable(data), "hostile")
    for model in ("ease", "[x](http://127.0.0.1:9)"):
        at = open_page(page, data=name, model=model)
        shown = [
            text
            for kind in MARKDOWN
            for element in at.get(kind)
            for text in (getattr(element, "value", ""), getattr(element, "label", ""))
            if isinstance(text, str)
        ]
        bars = [element.proto.text for element in at.get("progress")]
        for text in [*shown, *bars]:
            bare = re.sub(r"\\.", "", text)  # what is escaped is text
            assert not re.search(r"\]\(|<b>|\$z\$|:red\[|`w`", bare), (page, text)
