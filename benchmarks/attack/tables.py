"""What fuzz tests of rankers share: a small table of likes, and every ranker fitted to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.attack.common import prepared_once
from recsys.data import Interactions
from recsys.rankers import Ranker, fit_package, list_rankers, make_ranker

SMALL: dict[str, dict[str, Any]] = {"auto": {"users": 12, "rounds": 1}}
SMALL["cf-gram"] = {"users": 10, "iterations": 2}
SMALL |= {name: {"factors": 4, "iterations": 2} for name in ("bpr", "lmf", "als")}
SMALL |= {
    name: {"factors": 2, "iterations": 1}
    for name in ("fm", "sparse-fm", "hofm", "bilinear", "pairnet", "all-subsets")
}


def likes(users: int = 60, items: int = 40, seed: int = 0) -> sp.csr_matrix:
    """Return who likes what: a made-up table on which every ranker fits in moments."""
    made = sp.random(users, items, 0.15, format="csr", dtype=np.float32, random_state=seed)
    made.data[:] = 1.0
    return made


def make(name: str) -> Ranker:
    """Return a ranker with parameters that make its fit short."""
    return make_ranker(name, **SMALL.get(name, {}))


def interactions(users: int = 60, items: int = 40) -> Interactions:
    """Return the same table with ids."""
    pairs = likes(users, items).tocoo()
    return Interactions.from_ids(
        np.array([f"u{u}" for u in pairs.row], dtype=object),
        np.array([f"i{i}" for i in pairs.col], dtype=object),
        name="made",
    )


def save_package(name: str, path: Path) -> None:
    """Fit a ranker to the table with ids and write it as `recsys fit` does."""
    fit_package(make(name), interactions(), show_progress=False).save(path)


def model_files() -> dict[str, Path]:
    """Return a file of every ranker, by its name; they are fitted once for all fuzz tests of a run."""

    def made(folder: Path) -> None:
        folder.mkdir()
        for name in list_rankers():
            save_package(name, folder / name)

    return {path.name: path for path in sorted(prepared_once("rankers", made).iterdir())}
