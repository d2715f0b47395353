"""The pages build without a warning, and every link leads somewhere."""

import re
import subprocess
import sys

import pytest

pytest.importorskip("sphinx")

from tests.docs.pages import ROOT  # noqa: E402


@pytest.mark.slow
def test_the_pages_build_and_every_link_leads_somewhere(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "build.py"), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    pages = list((tmp_path / "html").rglob("*.html"))
    anchors = {page: set(re.findall(r"\bid=\"([^\"]+)\"", page.read_text())) for page in pages}
    broken = []
    for page in pages:
        for target in re.findall(r"<a [^>]*href=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:") or path.endswith((".csv", ".py")):
                continue
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or (anchor and there in anchors and anchor not in anchors[there]):
                broken.append(f"{page.name}: {target}")
    assert not broken, broken[:20]
