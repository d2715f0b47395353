"""Build the documentation, without a network.

    python docs/build.py [FOLDER]        # build/docs unless told otherwise

copies the pages to FOLDER/source, writes the generated ones beside them, and has Sphinx make FOLDER/html.
Warnings are errors. Nothing is written elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs.generate import command_line, figures, reference, reproductions, tables  # noqa: E402


def assemble(source: Path) -> None:
    """Put all pages together, those written by people and those by code."""
    shutil.rmtree(source, ignore_errors=True)
    unread = shutil.ignore_patterns("generate", "build.py", "__pycache__")
    shutil.copytree(ROOT / "docs", source, ignore=unread)
    shutil.copy(ROOT / "CHANGELOG.md", source / "changelog.md")
    reference.write(source / "reference" / "python")
    command_line.write(source / "reference" / "command-line.md")
    figures.write(source / "concepts" / "figures")
    reproductions.write(source / "reproductions")
    tables.fill(source)


def build(folder: Path, builder: str = "html") -> int:
    """Assemble and build; return Sphinx' exit code."""
    assemble(folder / "source")
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-b", builder]
    command += ["-d", str(folder / "doctrees"), str(folder / "source"), str(folder / builder)]
    done = subprocess.run(command, env=os.environ | {"RECSYS_ROOT": str(ROOT)})
    if done.returncode == 0:
        print(f"{folder / builder}/index.html")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(
        build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve())
    )
