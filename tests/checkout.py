"""No test may write into the checkout: what it leaves there would be committed one day."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Caches are hidden or named so; texts are what a person may be editing while the suite runs.
PASSED_OVER = {"__pycache__", "build", "dist"}
EDITED = {".py", ".md", ".toml"}


def listing(root):
    """Return size and time of every file below a folder that no tool and no person writes."""
    out = {}
    for where, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name not in PASSED_OVER and not name.startswith(".") and not name.endswith(".egg-info")
        ]
        for name in names:
            path = Path(where, name)
            if path.suffix not in EDITED and not name.startswith(".") and path.is_file():
                state = path.stat()
                out[str(path.relative_to(root))] = (state.st_size, state.st_mtime_ns)
    return out


def differences(before, after):
    """Return a line for each file that came, went or changed."""
    return sorted(
        [f"{path} is new" for path in after.keys() - before.keys()]
        + [f"{path} is gone" for path in before.keys() - after.keys()]
        + [f"{path} was changed" for path in before.keys() & after.keys() if before[path] != after[path]]
    )


@pytest.fixture(scope="session", autouse=True)
def untouched_checkout():
    """Fail the run if the checkout is another after it."""
    before = listing(ROOT)
    yield
    found = differences(before, listing(ROOT))
    assert not found, f"a test wrote into the checkout (use tmp_path): {', '.join(found)}"
