"""Each fuzz test notices a fault of the kind it is there for: planted in a copy, beside a clean control.

A plant is a small replacement in one module, for one promise of SECURITY.md or of the service's pages. Not
here are the promises that no fuzz test is about: the app's address, the digests of downloads, who may
write to the cache of compiled code. Tests of their own check those. `RECSYS_MUTANTS=10` plants a tenth of them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
from benchmarks.attack import campaigns
from benchmarks.attack.common import ROOT, SHARED
from tests.mutants.drawn import drawn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]  # services are started again and again
SECONDS = 400  # after which a fuzz test of a copy is given up


class Plant(NamedTuple):
    """A fault: in a module, what stands there, what is put in its place, and what the report must say."""

    campaign: str
    module: str
    old: str
    new: str
    said: str


PLANTS = {
    "a damaged model file is refused": Plant(
        "model-files", "recsys/utils/model_file.py",
        'if checked is None and digest.hexdigest() != manifest.get("sha256"):', "if False:", "answers differ, no error",
    ),
    "a bomb is refused before it is unpacked": Plant(
        "odd-files", "recsys/utils/files.py",
        "if grown > MAX_BYTES or grown > max(BOMB_BYTES, BOMB_RATIO * packed):", "if False:", "gzip of",
    ),
    "a save is whole or not at all": Plant(
        "killed-saves", "recsys/utils/atomic.py",
        "os.replace(name, target)", "Path(target).write_bytes(Path(name).read_bytes()); os.unlink(name)",
        "killed after",
    ),
    "forget takes the likes out": Plant(
        "files-written", "recsys/recommender/recommender.py",
        "Changes({name: {} for name in names}, set(names))", "Changes({}, set())", "likes of",
    ),
    "no cell runs in a spreadsheet": Plant(
        "files-written", "recsys/utils/export.py",
        'FORMULA = ("=", "+",', 'FORMULA = ("=",', "a cell that runs",
    ),
    "the token is asked for": Plant(
        "guards", "recsys/service/limits.py",
        "not hmac.compare_digest(given, self.token)", "not given.startswith(self.token[:5])", "for b'Authorization",
    ),
    "the log holds no ids": Plant(
        "guards", "recsys/service/access_log.py", "if self.ids:", "if not self.ids:", "stands in",
    ),
    "the rate is limited": Plant(
        "guards", "recsys/service/limits.py", "short = left < 1.0", "short = left < -1e9", "are due",
    ),
    "an acknowledged event is kept": Plant(
        "events-killed", "recsys/data/event_database.py",
        "connection.execute(self._events.insert(), kept)", "connection.execute(self._events.insert(), kept[:1])",
        "events, not",
    ),
    "no worker outlives its supervisor": Plant(
        "parents-killed", "recsys/service/server.py",
        "    parent.join()\n    os.kill(os.getpid(), signal.SIGTERM)", "    parent.join()", "processes stay",
    ),
    "a damaged work folder is refused": Plant(
        "work-folders", "recsys/partitioned/arrays.py",
        "except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError):",
        "except NotImplementedError:", "case",
    ),
}  # fmt: skip
DRAWN = drawn(list(PLANTS))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder for what fuzz tests prepare once, of the clean package."""
    return tmp_path_factory.mktemp("shared")


def fuzzed(folder: Path, shared: Path, *names: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run fuzz tests of a copy of the package."""
    own = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    }
    words = [
        sys.executable,
        "-m",
        "benchmarks.attack",
        *names,
        "--minutes",
        str(seconds * len(names) / 60),
    ]
    return subprocess.run(
        words,
        cwd=folder,
        env=own | {SHARED: str(shared)},
        capture_output=True,
        text=True,
        timeout=SECONDS * len(names),
    )


def copied(folder: Path) -> Path:
    for name in ("recsys", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__", "results")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_a_clean_copy_passes(tmp_path, shared):
    names = sorted({PLANTS[promise].campaign for promise in DRAWN})
    assert set(names) <= set(campaigns())
    done = fuzzed(copied(tmp_path), shared, *names, seconds=6)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "failed" not in done.stdout


@pytest.mark.parametrize("promise", DRAWN)
def test_a_planted_fault_is_noticed(promise, tmp_path, shared):
    plant = PLANTS[promise]
    path = copied(tmp_path) / plant.module
    text = path.read_text(encoding="utf-8")
    assert text.count(plant.old) == 1, f"{plant.module} has changed: plant another fault"
    path.write_text(text.replace(plant.old, plant.new), encoding="utf-8")
    done = fuzzed(tmp_path, shared, plant.campaign, seconds=6)
    told = [line for line in done.stdout.splitlines() if line.startswith(f"{plant.campaign} (seed 0): ")]
    assert done.returncode == 1 and any(plant.said in line for line in told), (
        done.stdout + done.stderr[-2000:]
    )
