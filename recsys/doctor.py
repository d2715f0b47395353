"""A report on the installation, and compilation ahead of the first use."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata

import psutil
from threadpoolctl import threadpool_info

from recsys import __version__
from recsys._jit import cache_dir, compiled_at_once, compiling, processors
from recsys.data.interactions import subset
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
from recsys.rankers import list_rankers
from recsys.rankers.registry import ranker_of
from recsys.recommender import Recommender
from recsys.utils.distribution import DISTRIBUTION

PACKAGES = ("numpy", "scipy", "pandas", "numba", "implicit", "scikit-learn", "pyarrow")


def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    versions = {"python": platform.python_version(), "recsys": __version__}
    return versions | {name: metadata.version(name) for name in PACKAGES}


def findings() -> list[tuple[str, str]]:
    """Return the lines of `recsys doctor`: (name, value), in order."""
    memory = psutil.virtual_memory()
    rows = [(name, version) for name, version in versions().items()]
    rows.append(("processors", f"{os.cpu_count()} ({processors()} used by numba)"))
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            rows.append(
                ("BLAS", f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads")
            )
    rows.append(("memory", f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"))
    owners = sorted(set(metadata.packages_distributions().get("recsys", [])))
    if len(owners) > 1:
        rows.append(
            (
                "installation",
                f"{' and '.join(owners)} own the folder recsys: pip uninstall {' '.join(owners)}, then "
                f"install {DISTRIBUTION} again",
            )
        )
    rows.append(("compiled code", str(cache_dir() or "kept nowhere: no folder can be written")))
    return rows


def compile_models(models: Sequence[str] | None = None) -> Iterator[tuple[str, float]]:
    """Compile what models need to fit, to list and to be evaluated, on a part of the sample.

    Models are specifications such as "cf-komd:kernel=mc,degree=2", all rankers by default. Yields
    each with the seconds of compilation: 0 if all was on disk.
    """
    made = {spec: ranker_of(spec) for spec in models or list_rankers()}
    sample = load_dataset("sample")
    data = subset(sample, sample.users < 60)
    with compiled_at_once():
        for spec, ranker in made.items():
            seconds: list[float] = []
            with compiling(seconds.append):
                model = Recommender(ranker).fit(data)
                model.recommend(data.user_ids[:1].tolist(), n=3)
                model.recommend(data.user_ids.tolist(), n=3)
                evaluate(data, {spec: ranker}, folds=2, metrics=("auc", "ndcg@10", "coverage@10"))
            yield spec, sum(seconds)
