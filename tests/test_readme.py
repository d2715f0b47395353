"""The README is read in three minutes, and what it and the pages say of what there is holds.

Its Python runs in tests/docs/test_pages.py, as that of every page.
"""

import re
from pathlib import Path

from docs.generate import readme
from recsys import list_rankers
from recsys.data import PROTOCOLS
from recsys.kernels import list_kernels
from recsys.rankers.registry import RANKERS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_it_is_read_in_three_minutes():
    assert len(TEXT.splitlines()) <= 120
    assert len(TEXT.replace(readme.table(), "").split()) <= 720  # 240 words a minute
    assert TEXT.count("![") == 1 and len(re.findall(r"^\|---", TEXT, re.M)) == 2


def test_the_measured_table_is_that_of_the_results():
    assert readme.table() in TEXT and readme.filled(TEXT) == TEXT, "python -m docs.generate.readme"


def test_the_advice_is_that_of_the_page_about_rankers():
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \|$", TEXT.split("## Which model")[1], re.M)[1:]
    assert len(rows) == 6
    for have, begin in rows:
        assert f"| {have} | {begin} |" in page("concepts/rankers.md"), have


def test_no_page_tells_to_install_another_authors_package():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install (-\S+ )*['\"]?recsys(?!_cpu|-cpu)\b", text), path


def test_what_it_links_is_there():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists() or "://" in target, target


def test_every_ranker_kernel_and_protocol_has_its_place():
    rankers, kernels = page("concepts/rankers.md"), page("concepts/boolean-kernels.md")
    assert all(f"`{name}`" in rankers for name in list_rankers())
    assert all(f"`{name}`" in kernels for name in list_kernels())
    rows = re.findall(r"^\| (`.+?) \|.* \| ([^|]+) \|$", rankers.split("| weights |")[1], re.M)
    told = {
        name for names, weights in rows if weights != "–" for name in re.findall(r"`([\w-]+)`", names)
    }
    told -= {"bpr", "lmf"}  # in the row of als, which the cell names
    assert told == {name for name in list_rankers() if getattr(RANKERS.get(name), "weighted", False)}
    # Protocols and metrics are tables made from the registries.
    assert "<!-- table: protocols -->" in page("concepts/protocols.md") and len(list(PROTOCOLS)) > 5
    assert "<!-- table: metrics -->" in page("concepts/metrics.md")


def test_nothing_is_left_to_fill_in():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert "@@" not in text and "TODO" not in text, path
