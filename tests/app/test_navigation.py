"""The pages there are, what they may import, and which models and metrics they offer."""

import re
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from app.navigation import PAGES
from app.parts.models import metrics, models, summary
from recsys import EASE
from recsys.evaluation.metrics import METRICS
from tests.app.page_runs import ROOT, box, open_page

APP = ROOT / "app"


def test_pages_are_found_by_name_and_import_neither_each_other_nor_the_command_line():
    assert {path.stem for path in (APP / "views").glob("*.py")} - {"__init__"} == set(PAGES)
    for path in Path(APP).rglob("*.py"):
        imported = re.findall(r"^ *(?:from|import) ([\w.]+)", path.read_text(), re.M)
        assert not [name for name in imported if name.startswith(("app.views", "recsys.cli"))], path


def test_models_and_metrics_are_offered_as_the_registries_declare_them(monkeypatch):
    assert models()[:2] == ["cf-komd:kernel=mc,degree=2", "auto"] and "ease" in models()
    monkeypatch.setattr(EASE, "offered", ("regularization=3",))
    assert "ease:regularization=3" in models() and "ease" not in models()
    assert {name.split("@")[0] for name in metrics()} == set(METRICS.names())
    assert "ease:regularization=3" in box(open_page("evaluate"), "Models", "multiselect").options


@pytest.mark.parametrize("spec", models())
def test_every_model_says_what_it_is_in_a_sentence(spec):
    told = summary(spec)
    assert told.endswith(".") and 20 < len(told) < 260 and "`" not in told and "\n" not in told
