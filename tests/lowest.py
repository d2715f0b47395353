"""The lowest versions that pyproject.toml declares, installed afresh and tried: `make test-lowest`.

    python tests/lowest.py FOLDER

makes a virtual environment in FOLDER, installs the direct dependencies at their minimum and the package
without its own resolver having a say, and runs a short use of each part in it.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]

USE = """
import importlib.metadata, io, sys, tempfile, warnings
from pathlib import Path

warnings.simplefilter("ignore")
import numpy as np
import recsys
from recsys import list_rankers, load_ranker, make_ranker
from recsys.data import Interactions
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate

for pin in sys.argv[1:]:
    name, version = pin.split("==")
    found = importlib.metadata.version(name)
    assert found.startswith(version), (name, found, version)
assert "site-packages" in recsys.__file__, recsys.__file__

data = load_dataset("sample")
R = data.matrix
folder = Path(tempfile.mkdtemp())
small = {"als": {"factors": 8}, "bpr": {"factors": 8, "iterations": 5}, "lmf": {"factors": 8, "iterations": 5},
         "cf-komd": {"kernel": "mc", "degree": 2}, "fm": {"factors": 3, "iterations": 2}}
for name in ("popularity", "msdw", "ease", "slim", "als", "bpr", "lmf", "cf-komd", "fm"):
    ranker = make_ranker(name, **small.get(name, {})).fit(R, show_progress=False)
    ids, scores = ranker.recommend([3, 4], R[[3, 4]], N=5)
    assert ids.shape == (2, 5) and np.isfinite(scores).all()
    ranker.save(folder / name)
    again = load_ranker(folder / name).recommend([3, 4], R[[3, 4]], N=5)
    assert (again.ids == ids).all() and (again.scores == scores).all()
    print(name, "ok", flush=True)

import pandas as pd
frame = pd.DataFrame({"user": data.user_ids[data.users], "item": data.item_ids[data.items]})
for table in (frame, frame.astype({"user": "category"})):
    table.to_parquet(folder / "pairs.parquet")
    read = Interactions.from_frame(folder / "pairs.parquet")
    assert (read.matrix != R).nnz == 0
assert (Interactions.from_ids(frame.user, frame.item).matrix != R).nnz == 0
print("tables ok", flush=True)

from sklearn.model_selection import cross_val_score
from recsys.kernel_machines import KOMD
rng = np.random.default_rng(0)
X = rng.integers(0, 2, (60, 8))
print("machines", cross_val_score(KOMD(), X, X[:, 0] ^ X[:, 1], cv=3).shape, flush=True)

from typer.testing import CliRunner
from recsys.cli.commands import app
result = CliRunner().invoke(app, ["fit", "--model", "ease", "--out", str(folder / "m")])
assert result.exit_code == 0, (result.output, result.exception)
result = CliRunner().invoke(app, ["recommend", "--ranker", str(folder / "m"), "--all", "--out", str(folder / "t.parquet")])
assert result.exit_code == 0, (result.output, result.exception)
print("all of it works")
"""


def minimums():
    """Return name==version of each direct dependency, at the least that is declared."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    out = []
    for line in project["dependencies"]:
        found = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)(,.*)?", line)
        if found is None:
            raise SystemExit(f"{line!r} declares no lowest version")
        out.append(f"{found[1]}=={found[2]}")
    return out


def run(*command, **options):
    """Run a command, its output shown; end with its exit code if it fails."""
    done = subprocess.run([str(part) for part in command], **options)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(str(part) for part in command[:6])} …")


def main():
    """Install and try."""
    folder = Path(sys.argv[1]).resolve()
    pins = minimums()
    venv.create(folder / "env", with_pip=True, clear=True)
    python = folder / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *pins)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", ROOT, cwd=folder)
    run(python, "-m", "pip", "check")
    (folder / "use.py").write_text(USE, encoding="utf-8")
    run(python, folder / "use.py", *pins, cwd=folder, env={"PATH": "/usr/bin:/bin", "HOME": str(folder)})


if __name__ == "__main__":
    main()
