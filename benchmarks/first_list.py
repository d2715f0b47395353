"""Processor seconds from the start of Python to a first list, with nothing compiled and with everything on disk.

    python -m benchmarks.first_list [MODEL ...] [--runs 3] [--functions MODEL]

Each run is a process of its own that loads the sample (400 users, 300 items), fits, and lists for one user; the
median of the runs is printed and written to results/first_list.csv, beside implicit's ALS in the same form. With
`--functions` one run with nothing compiled prints the functions of a model by the time of their own that they took
to compile.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from recsys import load_dataset

RESULTS = Path(__file__).parent / "results" / "first_list.csv"
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
FUNCTIONS = """
import time, collections
from recsys._jit import _numba
_numba()
from numba.core.event import Listener, register
own, stack, count = collections.Counter(), [], collections.Counter()
class Watch(Listener):
    def on_start(self, event):
        stack.append([time.process_time(), 0.0])
    def on_end(self, event):
        started, inside = stack.pop()
        took = time.process_time() - started
        name = event.data["dispatcher"].py_func
        name = f"{name.__module__}.{name.__qualname__}"
        own[name] += took - inside
        count[name] += 1
        if stack:
            stack[-1][1] += took
register("numba:compile", Watch())
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
    """Time the models that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--functions", metavar="MODEL")
    args = parser.parse_args()
    if args.functions:
        program = FUNCTIONS + OURS.format(model=args.functions)
        program += (
            "\nfor name, took in own.most_common(40): print(f'{took:6.2f} s {count[name]:3} times  {name}')"
            "\nprint(f'{sum(own.values()):.2f} s in all')"
        )
        with tempfile.TemporaryDirectory() as cache:
            run(program, cache)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "pairs.csv"))
        data = load_dataset("sample")
        pairs = {"user": data.user_ids[data.users], "item": data.item_ids[data.items]}
        pd.DataFrame(pairs).to_csv(path, index=False)
        took = [run(IMPLICIT.format(path=path), folder) for _ in range(args.runs)]
    rows: list[tuple[str, str, str]] = [("implicit als", "", f"{statistics.median(took):.1f}")]
    print(*rows[-1], flush=True)
    for model in args.models:
        cold, warm = [], []
        for _ in range(args.runs):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(run(OURS.format(model=model), cache))
                warm.append(run(OURS.format(model=model), cache))
        rows.append((model, f"{statistics.median(cold):.1f}", f"{statistics.median(warm):.1f}"))
        print(*rows[-1], flush=True)
        with RESULTS.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("model", "nothing compiled", "everything on disk"))
            writer.writerows(rows)


if __name__ == "__main__":
    main()
