"""CPU seconds from the start of Python to a first list, with nothing compiled and with everything on disk.

    python -m benchmarks.first_list [MODEL …] [--runs 3]

Each run is a process of its own that loads the sample (400 users, 300 items), fits, and lists for one user; values
are medians of the runs, beside implicit's ALS in the same form.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks.lab.common import Results
from recsys import load_dataset

MODELS = ("ease", "cf-komd:kernel=mc,degree=2", "slist", "msdw", "fm", "auto")
OURS = """
from recsys import Recommender, load_dataset
data = load_dataset("sample")
model = Recommender({model!r}).fit(data)
model.recommend([data.user_ids[0]], n=10)
"""
IMPLICIT = """
from implicit.als import AlternatingLeastSquares
import numpy as np, pandas as pd, scipy.sparse as sp
pairs = pd.read_csv({path!r})
users, items = (pairs[name].astype("category") for name in ("user", "item"))
X = sp.csr_matrix((np.ones(len(pairs), np.float32), (users.cat.codes, items.cat.codes)))
model = AlternatingLeastSquares(factors=64, iterations=15)
model.fit(X, show_progress=False)
model.recommend(0, X[0], N=10)
"""


def run(program: str, cache: str) -> float:
    """Return the processor seconds of a program in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode on disk
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    results = Results("first_list", ("model", "nothing compiled", "everything on disk"))
    results.replace([])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "pairs.csv"))
        data = load_dataset("sample")
        pairs = {"user": data.user_ids[data.users], "item": data.item_ids[data.items]}
        pd.DataFrame(pairs).to_csv(path, index=False)
        seconds = [run(IMPLICIT.format(path=path), folder) for _ in range(args.runs)]
    results.add(("implicit als", "", f"{statistics.median(seconds):.1f}"))
    for model in args.models:
        cold, warm = [], []
        for _ in range(args.runs):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(run(OURS.format(model=model), cache))
                warm.append(run(OURS.format(model=model), cache))
        results.add((model, *(f"{statistics.median(times):.1f}" for times in (cold, warm))))


if __name__ == "__main__":
    main()
