"""What must not be in the tree, and that every registered thing has a slow twin."""

import re
from pathlib import Path

import pytest

from recsys import list_rankers
from recsys.evaluation.metrics import METRICS
from recsys.kernels import list_kernels

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "recsys").rglob("*.py")) + sorted((ROOT / "app").rglob("*.py"))

FORBIDDEN = {
    r"\bpickle\b|\bjoblib\b|\bmarshal\b|\bshelve\b|yaml\.load|allow_pickle\s*=\s*True|torch\.load\(": "code in data files",
    r"(?<![\w.])(eval|exec)\(": "evaluated text",
    r"unsafe_allow_html": "markup from data",
    r"np\.random\.(seed|rand|randn|randint|random|shuffle|choice|permutation)\b": "the global random state",
    r"default_rng\(\)": "an unseeded generator",
    r"numba\.n?jit|from numba import": "numba outside _jit.py",
    r"extractall": "archives unpacked whole",
    r"verify\s*=\s*False": "TLS checks switched off",
    r"fastmath\s*=\s*True": "arithmetic that ignores NaN",
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sources_are_free_of_what_is_forbidden(path):
    text = path.read_text(encoding="utf-8")
    for pattern, why in FORBIDDEN.items():
        if path.name == "_jit.py" and "numba" in pattern:
            continue
        found = re.search(pattern, text)
        assert found is None, f"{why}: {found.group(0)!r}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_are_readable_in_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 900


def corpus(*folders):
    return "\n".join(
        p.read_text(encoding="utf-8")
        for folder in folders
        for p in (ROOT / "tests" / folder).rglob("*.py")
    )


def test_every_ranker_has_a_reference():
    text = corpus("rankers")
    for name in list_rankers():
        assert re.search(rf"[\"']{name}[\"']", text), f"no test in tests/rankers names {name}"


def test_every_metric_has_a_reference():
    text = corpus("evaluation", "reference")
    for name in METRICS.names():
        assert name in text, f"no test names {name}"


def test_every_kernel_has_an_enumeration():
    text = corpus("kernels")
    for name in list_kernels():
        assert re.search(rf"[\"']{name}[\"']", text), f"no test in tests/kernels names {name}"
