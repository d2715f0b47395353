"""Time of our GRAM and MKLpy's in one run, on the same Gram matrices and the same rows.

`MKLPY_PYTHON` names an interpreter that has MKLpy; it runs in a process of its own, and only
its `fit` is timed. Ours is timed after compilation. Both get normalised mC kernels of all degrees
and the identity; half of the rows train.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.lab.common import write_csv
from benchmarks.lab.table_9_1 import parts
from recsys.kernel_machines import GRAM
from recsys.kernels import make_kernel

PEER = """
import json, sys, time
import numpy as np, torch
from MKLpy.algorithms import GRAM
data = np.load(sys.argv[1])
KL = [torch.tensor(K) for K in data["K"]]
model = GRAM(max_iter=int(sys.argv[2]))
started = time.perf_counter()
model.fit(KL, torch.tensor(data["y"]))
seconds = time.perf_counter() - started
w = [float(v) for v in model.solution.weights]
print(json.dumps({"seconds": seconds, "ratio": float(model.solution.objective), "weights": w}))
"""


def main() -> None:
    rows = []
    for name, tol in (("tic-tac-toe", 1e-6), ("kr-vs-kp", 1e-4)):
        X, _, y, _ = parts(name, 0)
        m = int(X[0].sum())
        K = np.array(
            [make_kernel("mc", degree=d)(X, normalize=True) for d in range(1, m + 1)] + [np.eye(len(y))]
        )
        model = GRAM(kernels="precomputed", identity=False, tol=tol)
        model.fit(K[:, :60, :60], y[:60])
        started = time.perf_counter()
        model.fit(K, y)
        ours = time.perf_counter() - started
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "K.npz"
            np.savez(path, K=K, y=y)
            done = subprocess.run(
                [os.environ["MKLPY_PYTHON"], "-c", PEER, str(path), "100"],
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        peer = json.loads(done.stdout.strip().split("\n")[-1])
        rows.append(
            (
                name,
                len(y),
                len(K),
                ours,
                model.ratio_,
                model.n_iter_,
                peer["seconds"],
                peer["ratio"],
                peer["seconds"] / ours,
            )
        )
        print(rows[-1], flush=True)
    columns = (
        "table",
        "rows",
        "kernels",
        "seconds",
        "ratio",
        "steps",
        "mklpy_seconds",
        "mklpy_ratio",
        "times_faster",
    )
    write_csv("gram_speed", columns, rows)


if __name__ == "__main__":
    main()
