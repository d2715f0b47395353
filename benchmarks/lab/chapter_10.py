"""Table 10.1 and Figures 10.1, 10.2, 10.5 to 10.8: the collaborative filtering data and kernels on them.

    python -m benchmarks.lab.chapter_10 [sparsity] [spectral] [degrees]

Netflix is not distributed any more; MovieLens is the 1M version, where the thesis has 10M. Figures 10.5 and
10.6 leave out the catalogs above LARGEST items, whose whole kernel they would need; 10.7 and 10.8 draw what
`benchmarks.table_10_3` has measured.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.lab.common import Results, plot, run
from recsys.data.statistics import profile
from recsys.datasets import load_dataset
from recsys.kernels import make_kernel, spectral_ratio

DATASETS = ("bookcrossing", "ciaodvd", "filmtrust", "jester", "movielens", "movielens-1m")
PRINTED = {  # Table 10.1, %: density of R, of the kernel, and the estimate
    "bookcrossing": (0.003, 0.687, 0.011),
    "ciaodvd": (0.025, 2.51, 0.12),
    "filmtrust": (1.13, 11.11, 17.74),
    "movielens-1m": (1.34, 85.56, 99.99),
}
LARGEST = 20_000  # items
ROUNDING = 1e-9  # smaller spectral ratios are rounding errors and not drawn
DEGREES = {"mc": (1, 2, 3, 4, 5, 7, 10), "md": (1, 2, 3, 5, 10, 20, 50, 100, 200, 300, 500)}


def sparsity() -> None:
    """Write Table 10.1, and draw how many likes users and items have, with the power laws that fit best."""
    rows, laws, tails = [], [], []
    for name in DATASETS:
        found = profile(load_dataset(name).matrix)
        ours = [100 * float(v) for v in (found.density, found.kernel_density, found.kernel_estimate)]
        rows.append((name, *ours, *PRINTED.get(name, ("", "", ""))))
        for what, counts, law in (
            ("users", found.users, found.user_law),
            ("items", found.items, found.item_law),
        ):
            laws.append((name, what, *map(float, law)))
            ranks = np.arange(1, len(counts) + 1)
            for line, likes in (("data", counts), ("law", law.scale * ranks ** -float(law.exponent))):
                frame = {"panel": f"{name}, {what}", "line": line, "rank": ranks, "likes": likes}
                tails.append(pd.DataFrame(frame))
    heads = ("density", "kernel_density", "estimate")
    Results("table_10_1", ("dataset", *heads, *(f"printed_{h}" for h in heads))).replace(rows)
    Results("figure_10_1_10_2", ("dataset", "of", "exponent", "scale", "r_squared")).replace(laws)
    scales = {"xscale": "log", "yscale": "log"}
    plot("figure_10_1_10_2", pd.concat(tails), "rank", "likes", "line", "panel", 4, **scales)


def spectral() -> None:
    """Write and draw Figures 10.5 and 10.6, the spectral ratio of the items' kernels by degree."""
    results = Results("figure_10_5_10_6", ("dataset", "kernel", "degree", "ratio"), 3)
    for name in DATASETS:
        X = load_dataset(name).matrix.T.tocsr()
        keys = [(name, kernel, degree) for kernel, all_of in DEGREES.items() for degree in all_of]
        for _, kernel, degree in results.missing(keys) if X.shape[0] <= LARGEST else ():
            K = make_kernel(kernel, degree=degree)(X, normalize=True)
            results.add((name, kernel, degree, spectral_ratio(K, standardized=True)))
    frame = results.frame().query(f"ratio > {ROUNDING}").sort_values(["kernel", "dataset", "degree"])
    scales = {"xscale": "log", "yscale": "log"}
    plot("figure_10_5_10_6", frame, "degree", "ratio", "dataset", "kernel", **scales)


def degrees() -> None:
    """Draw Figures 10.7 and 10.8 from their files: AUC by degree, new items by their kernel."""
    frames = [
        Results(name, ()).frame().query("unrated == 'kernel'").assign(kernel=kernel)
        for name, kernel in (("figure_10_7", "mC"), ("figure_10_8", "mD"))
    ]
    plot("figure_10_7_10_8", pd.concat(frames), "degree", "auc", "dataset", "kernel", xscale="log")


if __name__ == "__main__":
    run({"sparsity": sparsity, "spectral": spectral, "degrees": degrees})
