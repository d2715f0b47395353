"""One table and one seed give one model file and one list: threads, hash seeds, processes, numpy's state."""

from __future__ import annotations

import os
import sys

from benchmarks.attack.common import ROOT, Result, cases, started, workspace
from recsys.rankers import list_rankers

# Fits each ranker named, saves it, and prints a digest of the file and of every user's list.
PROGRAM = """
import hashlib, pathlib, sys
import numpy as np
from benchmarks.attack.tables import likes, make
from recsys.rankers import load_ranker
folder, table, names = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for name in names:
    np.random.seed(len(name) + sum(map(ord, str(folder))))
    before = np.random.get_state()[1].tobytes()
    rows, path = likes(150, 70, table), folder / name
    ranker = make(name).fit(rows, show_progress=False)
    ranker.save(path)
    users = np.arange(rows.shape[0])
    found = ranker.recommend(users, rows, 10)
    again = load_ranker(path).recommend(users, rows, 10)
    single = [ranker.recommend(int(u), rows[int(u)], 10) for u in users[::9]]
    told = []
    if not all(np.array_equal(a, b) for a, b in zip(found, again)):
        told.append("the loaded model answers otherwise")
    for u, one in zip(users[::9], single):
        if not (np.array_equal(one.ids, found.ids[u][: len(one.ids)]) and np.array_equal(one.scores, found.scores[u][: len(one.ids)])):
            told.append(f"user {u} alone is answered otherwise")
            break
    if np.random.get_state()[1].tobytes() != before:
        told.append("numpy's global generator was used")
    digest = hashlib.sha256(path.read_bytes())
    for part in found:
        digest.update(np.ascontiguousarray(part).tobytes())
    print(name, digest.hexdigest(), "; ".join(told), sep="\\t", flush=True)
"""
# Name of a run, and its environment; what more threads than processors do is the same.
RUNS: dict[str, dict[str, str]] = {
    "1 thread": {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    "2 threads": {"NUMBA_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    "again, other hash seed": {"NUMBA_NUM_THREADS": "2", "PYTHONHASHSEED": "7"},
    "4 threads": {"NUMBA_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"},
}


def run(seconds: float, seed: int) -> Result:
    """Compare all rankers on one table after another, the first of them in all runs whatever the time."""
    names, result = list_rankers(), Result()
    for number, random in cases(seconds, seed):
        compare(result, random.randrange(2**31), number, names)
    return result


def compare(result: Result, table: int, number: int, names: list[str]) -> None:
    """Fit every ranker to a table in each of `RUNS`."""
    digests: dict[str, str] = {}
    for what, env in RUNS.items():
        with workspace() as folder:
            arguments = [sys.executable, "-c", PROGRAM, str(folder), str(table), *names]
            ended = started(arguments, 900, folder, cwd=ROOT, env=os.environ | env)
        lines = [line.split("\t") for line in ended.out.splitlines()]
        if ended.code or [line[0] for line in lines] != names:
            result.add(
                f"table {number}, {what}", "stopped", ended.fault((0,)) or "not every ranker was fitted"
            )
            continue
        for name, digest, told in lines:
            differs = digests.setdefault(name, digest) != digest
            fault = told or ("another model or other lists than with 1 thread" if differs else "")
            result.add(f"table {number}, {name}, {what}", "wrong" if fault else "same bits", fault)
