"""Deliberate faults: what one is, and a run of some tests on a copy of the package that has it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("recsys", "tests", "data", "pyproject.toml")


@dataclass(frozen=True)
class Mutant:
    """A fault that the suite must notice.

    Attributes
    ----------
    name : str
    module : str
        File that it is in, below `recsys/`.
    old, new : str
        Text that occurs there exactly once, and what replaces it.
    tests : tuple of str
        What of the suite must fail: paths or ids, with `-k` and an expression if need be. Few and quick.
    compiled : bool
        Whether the tests need numba; without it they start at once.
    """

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]
    compiled: bool = False


def copy_package(folder):
    """Copy what tests need to an empty folder."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)


def changed(mutant, folder):
    """Return the text of a copy's file with the fault in it."""
    text = (folder / "recsys" / mutant.module).read_text(encoding="utf-8")
    count = text.count(mutant.old)
    assert count == 1, f"{mutant.name}: {mutant.old!r} occurs {count} times in {mutant.module}"
    return text.replace(mutant.old, mutant.new)


def apply(mutant, folder):
    """Put the fault into a copy."""
    (folder / "recsys" / mutant.module).write_text(changed(mutant, folder), encoding="utf-8")


def run(tests, folder, compiled):
    """Run tests in a copy; return pytest's exit code and what it printed."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(folder / ".numba"),
        "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".hypothesis"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow and not torch", "--hypothesis-profile=first-failure", *tests]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    return done.returncode, done.stdout[-4000:] + done.stderr[-2000:]
