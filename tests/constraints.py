"""Write constraints.txt: what `uv pip compile` resolves for every extra but `deep`, on all supported Pythons."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("app", "benchmark", "dev", "docs", "events", "excel", "index", "plot", "service", "tune")
HEAD = """\
# One set of versions for installs that must repeat: pip install . -c constraints.txt
# Made by `make constraints`; nothing here binds an install without -c.
"""


def main():
    """Resolve and write."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--universal", "--quiet"]
    command += ["--no-header", "--no-annotate", "--python-version", "3.11"]
    for extra in EXTRAS:
        command += ["--extra", extra]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    lines = [line for line in done.stdout.splitlines() if re.match(r"[A-Za-z0-9]", line)]
    (ROOT / "constraints.txt").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
