"""docs/adding.md, followed to the letter in a copy of the sources."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
SECTIONS = {
    title: body
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    if "```" in body
}
ROWS = {  # of the table at the top
    "A ranker": "ranker",
    "A kernel": "kernel",
    "A dataset": "dataset",
    "A protocol": "protocol",
    "A page of the app": "page of the app",
    "A metric": "metric",
}


def blocks(body):
    """Return (kind, file, text) of each block of a section: new, diff or runs."""
    for first, text in re.findall(r"^```(.+?)\n(.*?)^```$", body, re.MULTILINE | re.DOTALL):
        language, what = first.split()
        yield ("diff" if language == "diff" else "runs" if what == "runs" else "new"), what, text


def changed(source, patch):
    """Apply a block of changes: its lines without additions must occur once in the file."""
    lines = patch.rstrip("\n").split("\n")
    before = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    assert source.count(before + "\n") == 1, f"not once in the file:\n{before}"
    return source.replace(before + "\n", after + "\n")


def test_the_table_counts_files_and_changes():
    assert set(SECTIONS) == set(ROWS)
    for title, name in ROWS.items():
        cells = re.search(
            rf"^\| \[{name}\]\([^)]*\)[^|]*\| (\d+) \| (\d+)[^|]*\| (\d+) \|$", TEXT, re.MULTILINE
        )
        made = [(kind, what) for kind, what, _ in blocks(SECTIONS[title])]
        diffs = [what for kind, what in made if kind == "diff"]
        counts = [sum(kind == "new" for kind, _ in made), len(set(diffs)), len(diffs)]
        if title == "A metric":  # one of each kind is shown
            counts = [0, counts[1] // 2, counts[2] // 2]
        assert list(map(int, cells.groups())) == counts, title


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
def test_the_guide_works_as_it_stands(title, tmp_path):
    for folder in ("recsys", "app", "data"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = []
    for kind, what, text in blocks(SECTIONS[title]):
        file = tmp_path / what
        if kind == "new":
            assert not file.exists()
            file.write_text(text, encoding="utf-8")
        elif kind == "diff":
            file.write_text(changed(file.read_text(encoding="utf-8"), text), encoding="utf-8")
        else:
            code.append(text)
    work = tmp_path / "work"
    work.mkdir()
    env = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert code, "a section ends with what shows that it works"
    for text in code:
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=work, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
