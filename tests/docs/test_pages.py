"""Every block of every page runs, and the commands print what the pages show."""

import os
import re
import warnings

import pytest

from tests.docs.pages import ROOT, pages, play, prepare, without_figures

PAGES = {str(path.relative_to(ROOT)): path for path in pages()}
# Five seconds and more, some of them compiling what no other page needs.
LONG = {
    "docs/howto/rules.md", "docs/howto/factorization-machines.md", "docs/howto/links.md",
    "docs/howto/interactions.md", "docs/howto/clusters.md",
    "docs/tutorials/researcher.md",
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in PAGES]
)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    if "tune" in page:
        pytest.importorskip("optuna")
    if "run-files" in page:
        pytest.importorskip("ir_measures")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", os.environ.get("COLUMNS", ""))
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    prepare(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries; ours have tests of their own
        failures = play(PAGES[page])
    told = "If what is printed now is right: make pages"
    assert not failures, "\n\n".join([*failures, told])


def test_the_comparison_sees_words_and_not_figures():
    shown = " ease  0.8116 ±0.01 \n ─────\n u0001"
    assert without_figures(shown) == without_figures("ease 0.9 ±1e-05\nu0002")
    assert without_figures(shown) != without_figures("slim 0.9 ±1e-05\nu0002")


def test_there_are_pages():
    assert len(PAGES) > 20 and "README.md" in PAGES and "docs/getting-started.md" in PAGES


def test_the_labels_of_the_app_are_those_of_the_app():
    """What stands in bold on the analyst's page, and in brackets of the app's sources."""
    text = (ROOT / "docs" / "tutorials" / "analyst.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    labels = {" ".join(label.split()) for label in re.findall(r"\*\*([^*]+)\*\*", text)} - {"bold"}
    assert len(labels) > 15
    menu = set(re.findall(r"[A-Z]\w+", text)) & {
        path.stem.capitalize() for path in (ROOT / "app" / "views").glob("*.py")
    }  # capitalised by the menu
    missing = [label for label in labels - menu if f'"{label}"' not in sources]
    assert not missing


def test_a_newcomers_whole_way_takes_under_fifteen_lines():
    """Own table, list with reasons, explanation, file, measurement; and the line that serves it."""
    text = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    way = re.search(r"```python\n(import pandas.*?)```", text, re.S)[1]
    for call in ("read_csv", "from_frame", ".recommend(", ".explain(", ".save(", "evaluate("):
        assert call in way
    served = [line for line in text.splitlines() if line.startswith("recsys serve")]
    assert len(way.splitlines()) + len(served) < 15 and len(served) == 1
