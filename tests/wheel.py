"""The wheel, and environments of their own to try it in."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    """Run a command and return it finished, its output as text."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)


def must(*command, **options):
    """Run a command that has to succeed; return what it printed."""
    done = run(*command, **options)
    if done.returncode:
        told = " ".join(str(part) for part in command[:8])
        raise AssertionError(
            f"{told} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        )
    return done.stdout


def build(folder):
    """Build the wheel into a folder; return its path."""
    must(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def environment(python, folder, *requirements):
    """Make an environment and install into it with its own resolver; return its folder of programs."""
    must(python, "-m", "venv", folder)
    programs = Path(folder) / "bin"
    if requirements:
        install(programs, *requirements)
    return programs


def install(programs, *requirements):
    """Install into an environment."""
    must(
        programs / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *requirements,
    )


def outside(folder, **more):
    """Return the variables of a process that knows nothing of this checkout and its datasets."""
    dropped = ("RECSYS_DATA", "PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in dropped and not key.startswith("PYTEST")
    }
    return kept | {"HOME": str(folder), "XDG_CACHE_HOME": str(Path(folder) / "cache")} | more
