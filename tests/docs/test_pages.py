"""Every block of every page runs, and the commands print what the pages show."""

import os
import warnings

import pytest

from tests.docs.pages import ROOT, pages, play, prepare, without_figures

PAGES = {str(path.relative_to(ROOT)): path for path in pages()}
SLOW = {
    "docs/howto/rules.md",
    "docs/howto/factorization-machines.md",
    "docs/howto/links.md",
    "docs/tutorials/researcher.md",
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PAGES]
)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    if "tune" in page:
        pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", os.environ.get("COLUMNS", ""))
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    prepare(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries; ours have tests of their own
        failures = play(PAGES[page])
    told = "If what is printed now is right: python -m tests.docs.pages"
    assert not failures, "\n\n".join([*failures, told])


def test_the_comparison_sees_words_and_not_figures():
    shown = " ease  0.8116 ±0.01 \n ─────\n u0001"
    assert without_figures(shown) == without_figures("ease 0.9 ±1e-05\nu0002")
    assert without_figures(shown) != without_figures("slim 0.9 ±1e-05\nu0002")


def test_there_are_pages():
    assert len(PAGES) > 20 and "README.md" in PAGES and "docs/getting-started.md" in PAGES
