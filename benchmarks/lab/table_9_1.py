"""Table 9.1 and Figures 9.1 to 9.5: learned combinations of mC kernels.

Half of the rows train. All methods see the same splits, the 30 of the thesis; a table's mean is over
those that all methods have been run on. The soft-margin SVM with a validated C on the plain average of the kernels is the
yardstick of 9.3.1. dna's rows differ in their ones; its degrees are the 47 of Table 3.1.
Above LARGE training rows GRAM and R-MKL end at a tolerance of 1e-5 or after 200 steps in Table 9.1; the thesis
has 1e-8 and 1,000. The figures' fits have the library's own.

    python -m benchmarks.lab.table_9_1 [table] [figures] [draw]

Seconds are of learning, the kernels' matrices given, which are computed once for all methods of a split.
LAB_TABLES=a,b runs these tables alone.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split

from benchmarks.lab.common import (
    LARGE,
    append_csv,
    chosen,
    each,
    figure,
    finished,
    names,
    read_csv,
    run,
    table,
    write_csv,
    write_png,
)
from recsys.kernel_machines import GRAM, KOMD, RMKL, AverageMKL, EasyMKL
from recsys.kernels import Kernel, make_kernel

SPLITS = 30
METHODS = {"GRAM": GRAM, "R-MKL": RMKL, "EasyMKL": EasyMKL, "Average": AverageMKL}
PRINTED = {  # AUC, its deviation, and the ratio in hundredths
    "dna": ((98.70, 0.24, 10.35), (98.36, 0.28, 10.83), (98.30, 0.27, 12.26), (97.89, 0.29, 17.76)),
    "house-votes": ((99.15, 0.42, 6.74), (99.01, 0.38, 7.21), (98.88, 0.44, 7.65), (98.85, 0.46, 7.92)),
    "kr-vs-kp": ((99.92, 0.03, 7.06), (99.88, 0.04, 7.52), (99.90, 0.04, 7.24), (99.88, 0.04, 7.52)),
    "primary-tumor": (
        (72.65, 2.81, 21.96),
        (68.80, 2.96, 78.69),
        (72.05, 2.72, 22.18),
        (68.81, 2.96, 78.90),
    ),
    "promoters": (
        (95.99, 1.63, 16.68),
        (96.00, 1.61, 16.70),
        (96.30, 1.18, 23.43),
        (96.29, 1.20, 23.65),
    ),
    "soybean": ((99.55, 0.48, 7.93), (99.55, 0.46, 8.59), (99.54, 0.39, 9.39), (99.44, 0.43, 11.20)),
    "spect": ((84.00, 3.04, 13.63), (76.97, 4.98, 71.46), (84.17, 3.11, 14.13), (77.00, 4.96, 71.66)),
    "splice": ((99.19, 0.12, 8.55), (98.81, 0.15, 9.49), (98.89, 0.15, 10.42), (98.74, 0.17, 17.23)),
    "tic-tac-toe": (
        (99.83, 0.15, 12.81),
        (99.26, 0.33, 15.21),
        (99.36, 0.30, 14.67),
        (99.26, 0.33, 15.22),
    ),
}


def parts(name: str, seed: int) -> tuple[np.ndarray, ...]:
    data = table(name)
    return tuple(train_test_split(data.X, data.y, test_size=0.5, random_state=seed, stratify=data.y))


def kernels(name: str, up_to: int | None = None) -> list[Kernel]:
    """Return mC of the degrees 1…up_to, or 1…m with the m of Table 3.1, that of the first row."""
    most = int(table(name).X[0].sum()) if up_to is None else up_to
    return [make_kernel("mc", degree=d) for d in range(1, most + 1)]


def one(name: str, seed: int, labels: tuple[str, ...]) -> list[tuple]:
    X, held, y, truth = parts(name, seed)
    family = kernels(name)
    grams = np.array([kernel(X, normalize=True) for kernel in family])
    across = np.array([kernel(held, X, normalize=True) for kernel in family])
    rows = []
    for label in labels:
        if label == "soft margin":
            rows.append((name, seed, *soft_margin(grams.mean(axis=0), across.mean(axis=0), y, truth)))
            continue
        options = {"tol": 1e-5, "max_iter": 200} if label in ("GRAM", "R-MKL") and len(y) > LARGE else {}
        started = time.perf_counter()
        model = METHODS[label](kernels="precomputed", **options).fit(grams, y)
        seconds = time.perf_counter() - started
        auc = 100 * roc_auc_score(truth, model.decision_function(across))
        steps, why = getattr(model, "n_iter_", 0), getattr(model, "stopped_", "")
        rows.append((name, seed, label, auc, 100 * model.ratio_, steps, why, seconds))
    return rows


def soft_margin(K: np.ndarray, T: np.ndarray, y: np.ndarray, truth: np.ndarray) -> tuple:
    started = time.perf_counter()
    costs = 2.0 ** np.arange(-5, 11, 3)
    grid = {"regularization": 1.0 / (1.0 + costs)}  # λ of a soft margin of cost C
    model = GridSearchCV(KOMD(kernel="precomputed"), grid, scoring="roc_auc").fit(K, y)
    seconds = time.perf_counter() - started
    auc = 100 * roc_auc_score(truth, model.decision_function(T))
    return "soft margin", auc, float("nan"), 0, f"λ={model.best_params_['regularization']:g}", seconds


def table_9_1() -> None:
    tables = names(without=("monks-1", "monks-2", "monks-3"))
    tables.sort(key=lambda n: (len(table(n).y), n))
    labels = (*METHODS, "soft margin")
    have = finished("table_9_1_runs", "table", "seed", "method")
    jobs = []
    for seed in range(SPLITS):  # outermost, so that a run that is ended leaves each table as many
        for name in chosen(tables):
            missing = tuple(label for label in labels if (name, str(seed), label) not in have)
            if missing:
                jobs.append((name, seed, missing))
    columns = ("table", "seed", "method", "auc", "ratio", "steps", "stopped", "seconds")
    each(one, jobs, done=lambda rows: append_csv("table_9_1_runs", columns, rows))
    summarise(tables, labels, columns)


def summarise(tables: list[str], labels: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Write the means over those splits that all methods have been run on."""
    rows = read_csv("table_9_1_runs")
    rows.sort(key=lambda r: (tables.index(r["table"]), int(r["seed"]), labels.index(r["method"])))
    write_csv("table_9_1_runs", columns, [list(row.values()) for row in rows])
    out = []
    for name in tables:
        seeds = [{r["seed"] for r in rows if (r["table"], r["method"]) == (name, x)} for x in labels]
        common = set.intersection(*seeds)
        for k, label in enumerate(labels if common else ()):
            mine = [
                r for r in rows if (r["table"], r["method"]) == (name, label) and r["seed"] in common
            ]
            auc, ratio, seconds = (
                np.array([float(row[key]) for row in mine]) for key in ("auc", "ratio", "seconds")
            )
            printed = PRINTED[name][k] if k < 4 else ("", "", "")
            values = (*map(float, (auc.mean(), auc.std(), ratio.mean(), ratio.std())), *printed)
            out.append((name, label, len(mine), *values, float(seconds.mean())))
    heads = ("auc", "auc_std", "ratio", "ratio_std", "printed_auc", "printed_std", "printed_ratio")
    write_csv("table_9_1", ("table", "method", "runs", *heads, "seconds"), out)
    draw_9_1()


def draw_9_1() -> None:
    """Draw Figure 9.1 from Table 9.1: AUC against ratio of each table, GRAM and R-MKL joined, print beside."""
    rows = read_csv("table_9_1")
    fig, axes = figure(2, size=(5.2, 4))
    for axis, auc, ratio, title in (
        (axes[0], "auc", "ratio", "ours"),
        (axes[1], "printed_auc", "printed_ratio", "printed"),
    ):
        for k, name in enumerate(dict.fromkeys(row["table"] for row in rows)):
            mine = {row["method"]: row for row in rows if row["table"] == name}
            both = [(float(mine[m][ratio]), float(mine[m][auc])) for m in ("GRAM", "R-MKL")]
            axis.plot(*zip(*both, strict=True), color=f"C{k}", linewidth=0.8, label=name)
            axis.plot(*both[0], "o", color=f"C{k}")
            axis.plot(*both[1], "x", color=f"C{k}")
        axis.set(title=f"{title}: o GRAM, x R-MKL", xlabel="ratio ×100", ylabel="AUC %", ylim=(65, 101))
    axes[0].legend(fontsize=7, loc="lower left")
    write_png("figure_9_1", fig)


def by_degree(name: str, seed: int, labels: tuple[str, ...]) -> list[tuple]:
    """Return (table, degrees, method, auc, ratio, seconds) as kernels of higher degree join."""
    X, held, y, truth = parts(name, seed)
    rows = []
    m = len(kernels(name))
    for label in labels:  # compiled before anything is timed
        METHODS[label](kernels=kernels(name, 1)).fit(X, y)
    for top in sorted({1, 2, 3, 4, 5, 6, 8, 10, 12, 16, m} & set(range(1, m + 1))):
        for label in labels:
            family = kernels(name, top)
            started = time.perf_counter()
            model = METHODS[label](kernels=family).fit(X, y)
            seconds = time.perf_counter() - started
            auc = 100 * roc_auc_score(truth, model.decision_function(held))
            rows.append((name, top, label, auc, 100 * model.ratio_, seconds))
    return rows


def weights(name: str, label: str) -> list[tuple]:
    X, _, y, _ = parts(name, 0)
    model = METHODS[label](kernels=kernels(name)).fit(X, y)
    return [(name, label, degree, float(w)) for degree, w in enumerate(model.weights_, 1)]


def convergence(name: str, rate: float) -> list[tuple]:
    X, _, y, _ = parts(name, 0)
    model = GRAM(learning_rate=rate).fit(X, y)
    return [(name, rate, step, 100 * ratio) for step, ratio in enumerate(model.ratios_)]


def figures() -> None:
    tables = [
        "house-votes",
        "soybean",
        "spect",
        "tic-tac-toe",
        "promoters",
        "primary-tumor",
        "dna",
        "splice",
        "kr-vs-kp",
    ]
    two = ("tic-tac-toe", "spect")
    columns = ("table", "degrees", "method", "auc", "ratio", "seconds")
    have = finished("figure_9_2_9_3", "table", "method")
    jobs = [(n, 0, (label,)) for n in chosen(tables) for label in METHODS if (n, label) not in have]
    each(by_degree, jobs, done=lambda rows: append_csv("figure_9_2_9_3", columns, rows))

    have = finished("figure_9_4", "table", "learning_rate")
    rates = [(n, r) for n in chosen(two) for r in (0.01, 0.1, 1.0, 10.0) if (n, f"{r:g}") not in have]
    heads = ("table", "learning_rate", "step", "ratio")
    each(convergence, rates, done=lambda rows: append_csv("figure_9_4", heads, rows))

    have = finished("figure_9_5", "table", "method")
    shares = [(n, label) for n in chosen(tables) for label in METHODS if (n, label) not in have]
    heads = ("table", "method", "degree", "weight")
    each(weights, shares, done=lambda rows: append_csv("figure_9_5", heads, rows))
    draw()


def draw() -> None:
    """Draw the figures from their files."""
    found = read_csv("figure_9_2_9_3")
    tables = list(dict.fromkeys(row["table"] for row in found))
    fig, axes = figure(3, len(tables), (3.6, 2.6))
    for r, name in enumerate(tables):
        for c, (key, text) in enumerate(
            (("auc", "AUC %"), ("ratio", "ratio ×100"), ("seconds", "seconds"))
        ):
            for method in METHODS:
                mine = [row for row in found if row["table"] == name and row["method"] == method]
                mine.sort(key=lambda row: int(row["degrees"]))
                x, y = [int(m["degrees"]) for m in mine], [float(m[key]) for m in mine]
                axes[3 * r + c].plot(x, y, marker=".", label=method)
            axes[3 * r + c].set_title(f"{name}: {text}", fontsize=8)
            axes[3 * r + c].set_yscale("log" if c else "linear")
    axes[0].legend(fontsize=6)
    write_png("figure_9_2_9_3", fig)

    steps, shares = read_csv("figure_9_4"), read_csv("figure_9_5")
    fig, axes = figure(3, 4)
    for axis, name in zip(axes, dict.fromkeys(row["table"] for row in steps), strict=False):
        for rate in dict.fromkeys(row["learning_rate"] for row in steps):
            mine = [r for r in steps if r["table"] == name and r["learning_rate"] == rate]
            axis.plot([float(row["ratio"]) for row in mine], label=f"η = {float(rate):g}")
        axis.set_title(f"{name}: ratio ×100 by step (9.4)", fontsize=8)
        axis.set_xscale("symlog")
        axis.legend(fontsize=7)
    for axis, name in zip(axes[3:], dict.fromkeys(row["table"] for row in shares), strict=False):
        for label in METHODS:
            mine = [row for row in shares if row["table"] == name and row["method"] == label]
            mine.sort(key=lambda row: int(row["degree"]))
            x, y = [int(row["degree"]) for row in mine], [float(row["weight"]) for row in mine]
            axis.plot(x, y, marker=".", label=label)
        axis.set_title(f"{name}: weight by degree, last the identity (9.5)", fontsize=8)
        axis.legend(fontsize=7)
    for axis in axes:
        axis.set_axis_on() if axis.has_data() else axis.set_axis_off()
    write_png("figure_9_4_9_5", fig)


if __name__ == "__main__":
    run(
        {"table": table_9_1, "figures": figures, "draw": draw, "draw_9_1": draw_9_1},
        ("table", "figures"),
    )
