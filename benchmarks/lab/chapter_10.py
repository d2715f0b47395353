"""Table 10.1 and Figures 10.1, 10.2, 10.5 to 10.8: the collaborative filtering data and kernels on them.

    python -m benchmarks.lab.chapter_10 [sparsity] [spectral] [degrees]      all where none is named

Netflix is not distributed any more; MovieLens is the 1M version, where the thesis has 10M. Figures 10.5 and
10.6 leave out the catalogues above LARGEST items, whose whole kernel they would need; 10.7 and 10.8 draw what
`benchmarks.table_10_3` has measured.
"""

from __future__ import annotations

import numpy as np

from benchmarks.lab.common import append_csv, figure, finished, read_csv, run, write_csv, write_png
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
ROUNDING = 1e-9  # spectral ratios below are not drawn: they come to be of rounding
DEGREES = {"mc": (1, 2, 3, 4, 5, 7, 10), "md": (1, 2, 3, 5, 10, 20, 50, 100, 200, 300, 500)}


def sparsity() -> None:
    """Write Table 10.1, and draw how many likes users and items have, with the power laws that fit best."""
    rows, laws = [], []
    figures = {what: figure(3, 2) for what in ("users", "items")}
    for k, name in enumerate(DATASETS):
        found = profile(load_dataset(name).matrix)
        ours = [100 * float(v) for v in (found.density, found.kernel_density, found.kernel_estimate)]
        rows.append((name, *ours, *PRINTED.get(name, ("", "", ""))))
        print(rows[-1], flush=True)
        for what, counts, law in (
            ("users", found.users, found.user_law),
            ("items", found.items, found.item_law),
        ):
            laws.append((name, what, *map(float, law)))
            axis = figures[what][1][k]
            ranks = np.arange(1, len(counts) + 1)
            axis.plot(ranks, counts, ".", color="#555555", markersize=2)
            axis.plot(ranks, law.scale * ranks ** -float(law.exponent), color="#0072B2")
            axis.set(xscale="log", yscale="log", title=name, xlabel=f"rank of {what}", ylabel="likes")
            axis.set_ylim(bottom=0.7)
    heads = ("density", "kernel_density", "estimate")
    write_csv("table_10_1", ("dataset", *heads, *(f"printed_{h}" for h in heads)), rows)
    write_csv("figure_10_1_10_2", ("dataset", "of", "exponent", "scale", "r_squared"), laws)
    write_png("figure_10_1", figures["users"][0])
    write_png("figure_10_2", figures["items"][0])


def spectral() -> None:
    """Draw Figures 10.5 and 10.6, the spectral ratio of the items' kernels by degree; add what the file lacks."""
    columns = ("dataset", "kernel", "degree", "ratio")
    have = finished("figure_10_5_10_6", "dataset", "kernel", "degree")
    for name in DATASETS:
        X = load_dataset(name).matrix.T.tocsr()
        if X.shape[0] > LARGEST:
            continue
        for kernel, degrees in DEGREES.items():
            for degree in [d for d in degrees if (name, kernel, str(d)) not in have]:
                K = make_kernel(kernel, degree=degree)(X, normalize=True)
                found = (name, kernel, degree, spectral_ratio(K, standardized=True))
                append_csv("figure_10_5_10_6", columns, [found])
                print(found, flush=True)
    rows = read_csv("figure_10_5_10_6")
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    rows.sort(key=lambda row: (names.index(row["dataset"]), row["kernel"], int(row["degree"])))
    write_csv("figure_10_5_10_6", columns, [list(row.values()) for row in rows])
    fig, axes = figure(2, size=(5, 3.6))
    for axis, kernel, title in zip(axes, DEGREES, ("mC (10.5)", "mD (10.6)"), strict=True):
        for name in sorted({row["dataset"] for row in rows}):
            mine = [row for row in rows if (row["dataset"], row["kernel"]) == (name, kernel)]
            x, y = [int(row["degree"]) for row in mine], [float(row["ratio"]) for row in mine]
            axis.plot(x, y, marker=".", label=name)
        axis.set(title=title, xlabel="degree", ylabel="standardised spectral ratio", yscale="log")
        axis.set_xscale("log")
        if kernel == "md":
            axis.set_ylim(bottom=ROUNDING)
    axes[0].legend(fontsize=7)
    write_png("figure_10_5_10_6", fig)


def degrees() -> None:
    """Draw Figures 10.7 and 10.8 from their files: AUC by degree, new items by their kernel."""
    fig, axes = figure(2, size=(5, 3.6))
    for axis, name, title in zip(
        axes, ("figure_10_7", "figure_10_8"), ("mC (10.7)", "mD (10.8)"), strict=True
    ):
        found = [row for row in read_csv(name) if row["unrated"] == "kernel"]
        for dataset in dict.fromkeys(row["dataset"] for row in found):
            mine = sorted(
                (int(row["degree"]), float(row["auc"])) for row in found if row["dataset"] == dataset
            )
            axis.plot(*zip(*mine, strict=True), marker=".", label=dataset)
        axis.set(title=title, xlabel="degree", ylabel="AUC", xscale="log")
        ticks = sorted({int(row["degree"]) for row in found})
        axis.set_xticks(ticks, ticks, fontsize=7)
        axis.minorticks_off()
    axes[0].legend(fontsize=7)
    write_png("figure_10_7_10_8", fig)


if __name__ == "__main__":
    run({"sparsity": sparsity, "spectral": spectral, "degrees": degrees})
