"""What the program runs on, and compiling it ahead of the first use."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib import metadata

import numba
import psutil
from threadpoolctl import threadpool_info

from recsys._jit import CACHE_DIR
from recsys.datasets import planted_catalogue
from recsys.evaluation import evaluate
from recsys.rankers import list_rankers, make_ranker

PACKAGES = ("recsys", "numpy", "scipy", "pandas", "numba", "implicit", "scikit-learn", "pyarrow")


def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def findings() -> list[tuple[str, str]]:
    """Return what `recsys doctor` prints: (what, value), in order."""
    memory = psutil.virtual_memory()
    rows = [(name, version) for name, version in versions().items()]
    rows.append(("processors", f"{os.cpu_count()} ({numba.config.NUMBA_NUM_THREADS} used by numba)"))
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            rows.append(
                ("BLAS", f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads")
            )
    rows.append(("memory", f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"))
    rows.append(("compiled code", str(CACHE_DIR or "kept nowhere: no folder can be written")))
    return rows


def warm_up(progress: Callable[[str, float, int], None] | None = None) -> float:
    """Compile every ranker and the metrics on a small generated catalogue; return the seconds."""
    start = time.perf_counter()
    data = planted_catalogue(60, 40, seed=0).interactions
    models = {name: make_ranker(name) for name in list_rankers()}
    evaluate(data, models, folds=2, metrics=("auc", "ndcg@10", "coverage@10"), progress=progress)
    return time.perf_counter() - start
