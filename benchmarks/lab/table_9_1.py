"""Table 9.1 and Figures 9.1 to 9.5: learned combinations of mC kernels.

Half of the rows train. All methods see the same splits, the 30 of the thesis. The soft-margin SVM with a
validated C on the plain average of the kernels is the yardstick of 9.3.1. dna's rows differ in their ones; its
degrees are the 47 of Table 3.1. Above LARGE training rows GRAM and R-MKL end at a tolerance of 1e-5 or after
200 steps in Table 9.1; the thesis has 1e-8 and 1,000. The figures' fits have the library's own.

    python -m benchmarks.lab.table_9_1 [table] [figures]

Seconds are of learning from kernel matrices that are computed once for all methods of a split; in the figures the
kernels are among them. LAB_TABLES=a,b runs these tables alone.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split

from benchmarks.lab.common import LARGE, Results, chosen, each, names, plot, run, table
from recsys.kernel_machines import GRAM, KOMD, RMKL, AverageMKL, EasyMKL
from recsys.kernels import Kernel, make_kernel

SPLITS = 30
METHODS = {"GRAM": GRAM, "R-MKL": RMKL, "EasyMKL": EasyMKL, "Average": AverageMKL}
DEGREES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)  # and m
PRINTED = {  # AUC, its deviation, and the ratio in hundredths, in the order of METHODS
    "dna": ((98.70, 0.24, 10.35), (98.36, 0.28, 10.83), (98.30, 0.27, 12.26), (97.89, 0.29, 17.76)),
    "house-votes": ((99.15, 0.42, 6.74), (99.01, 0.38, 7.21), (98.88, 0.44, 7.65), (98.85, 0.46, 7.92)),
    "kr-vs-kp": ((99.92, 0.03, 7.06), (99.88, 0.04, 7.52), (99.90, 0.04, 7.24), (99.88, 0.04, 7.52)),
    "primary-tumor": (
        (72.65, 2.81, 21.96),
        (68.8, 2.96, 78.69),
        (72.05, 2.72, 22.18),
        (68.81, 2.96, 78.9),
    ),
    "promoters": ((95.99, 1.63, 16.68), (96.0, 1.61, 16.7), (96.3, 1.18, 23.43), (96.29, 1.2, 23.65)),
    "soybean": ((99.55, 0.48, 7.93), (99.55, 0.46, 8.59), (99.54, 0.39, 9.39), (99.44, 0.43, 11.20)),
    "spect": ((84.00, 3.04, 13.63), (76.97, 4.98, 71.46), (84.17, 3.11, 14.13), (77.00, 4.96, 71.66)),
    "splice": ((99.19, 0.12, 8.55), (98.81, 0.15, 9.49), (98.89, 0.15, 10.42), (98.74, 0.17, 17.23)),
    "tic-tac-toe": (
        (99.83, 0.15, 12.81),
        (99.26, 0.33, 15.21),
        (99.36, 0.3, 14.67),
        (99.26, 0.33, 15.22),
    ),
}


def tables() -> list[str]:
    return chosen([name for name in names() if name in PRINTED])


def parts(name: str, seed: int) -> tuple[np.ndarray, ...]:
    data = table(name)
    return tuple(train_test_split(data.X, data.y, test_size=0.5, random_state=seed, stratify=data.y))


def kernels(name: str, up_to: int | None = None) -> list[Kernel]:
    """Return mC of the degrees 1…up_to, or 1…m with the m of Table 3.1, that of the first row."""
    most = int(table(name).X[0].sum()) if up_to is None else up_to
    return [make_kernel("mc", degree=d) for d in range(1, most + 1)]


def soft_margin(grams: np.ndarray, y: np.ndarray) -> Any:
    costs = 2.0 ** np.arange(-5, 11, 3)
    grid = {"regularization": 1.0 / (1.0 + costs)}  # λ of a soft margin of cost C
    search = GridSearchCV(KOMD(kernel="precomputed"), grid, scoring="roc_auc")
    return search.fit(grams.mean(axis=0), y)


def one(name: str) -> list[tuple]:
    """Return the rows of a table."""
    labels = (*METHODS, "soft margin")
    found: dict[str, list] = {label: [] for label in labels}
    for seed in range(SPLITS):
        X, held, y, truth = parts(name, seed)
        grams = np.array([kernel(X, normalize=True) for kernel in kernels(name)])
        across = np.array([kernel(held, X, normalize=True) for kernel in kernels(name)])
        for label in labels:
            short = label in ("GRAM", "R-MKL") and len(y) > LARGE
            options = {"tol": 1e-5, "max_iter": 200} if short else {}
            started = time.perf_counter()
            if label == "soft margin":
                model, tested = soft_margin(grams, y), across.mean(axis=0)
            else:
                model, tested = METHODS[label](kernels="precomputed", **options).fit(grams, y), across
            seconds = time.perf_counter() - started
            auc = 100 * roc_auc_score(truth, model.decision_function(tested))
            found[label].append((auc, 100 * getattr(model, "ratio_", np.nan), seconds))
    rows = []
    for label, printed in zip(labels, (*PRINTED[name], ("", "", "")), strict=True):
        auc, ratio, seconds = np.array(found[label]).T
        ours = (auc.mean(), auc.std(), ratio.mean(), ratio.std())
        rows.append((name, label, SPLITS, *ours, *printed, seconds.mean()))
    return rows


def table_9_1() -> None:
    """Write Table 9.1, and draw Figure 9.1: AUC against ratio, GRAM joined with R-MKL, which is to its right."""
    heads = ("auc", "auc_std", "ratio", "ratio_std", "printed_auc", "printed_std", "printed_ratio")
    results = Results("table_9_1", ("table", "method", "runs", *heads, "seconds"))
    for rows in each(one, results.missing([(name,) for name in tables()])):
        results.add(*rows)
    both = results.frame().query("method in ('GRAM', 'R-MKL')")
    printed = both.assign(auc=both["printed_auc"], ratio=both["printed_ratio"], by="printed")
    frame = pd.concat([both.assign(by="ours"), printed])
    plot("figure_9_1", frame, "ratio", "auc", "table", "by", style="o-", ylim=(65, 101))


def by_degree(name: str, label: str) -> list[tuple]:
    """Return rows of Figures 9.2 and 9.3, as kernels of higher degree join."""
    X, held, y, truth = parts(name, 0)
    m = len(kernels(name))
    METHODS[label](kernels=kernels(name, 1)).fit(X, y)  # compiled before anything is timed
    rows = []
    for top in sorted({d for d in DEGREES if d <= m} | {m}):
        started = time.perf_counter()
        model = METHODS[label](kernels=kernels(name, top)).fit(X, y)
        seconds = time.perf_counter() - started
        auc = 100 * roc_auc_score(truth, model.decision_function(held))
        rows.append((name, top, label, auc, 100 * model.ratio_, seconds))
    return rows


def convergence(name: str, rate: float) -> list[tuple]:
    X, _, y, _ = parts(name, 0)
    model = GRAM(learning_rate=rate).fit(X, y)
    return [(name, rate, step, 100 * ratio) for step, ratio in enumerate(model.ratios_)]


def weights(name: str, label: str) -> list[tuple]:
    X, _, y, _ = parts(name, 0)
    model = METHODS[label](kernels=kernels(name)).fit(X, y)
    return [(name, label, degree, float(w)) for degree, w in enumerate(model.weights_, 1)]


def figures() -> None:
    pairs = [(name, label) for name in tables() for label in METHODS]
    results = Results("figure_9_2_9_3", ("table", "degrees", "method", "auc", "ratio", "seconds"), 3)
    jobs = [(name, label) for name, _, label in results.missing([(t, 1, label) for t, label in pairs])]
    for rows in each(by_degree, jobs):
        results.add(*rows)
    frame = results.frame().melt(["table", "degrees", "method"], var_name="measure")
    frame["panel"] = frame["table"] + ", " + frame["measure"]
    frame = frame.sort_values(["table", "measure", "degrees"])
    plot("figure_9_2_9_3", frame, "degrees", "value", "method", "panel", yscale="log")

    results = Results("figure_9_4", ("table", "learning_rate", "step", "ratio"), 2)
    rates = [(n, r) for n in chosen(("tic-tac-toe", "spect")) for r in (0.01, 0.1, 1.0, 10.0)]
    for rows in each(convergence, results.missing(rates)):
        results.add(*rows)
    frame = results.frame()
    plot("figure_9_4", frame, "step", "ratio", "learning_rate", "table", style="-", xscale="symlog")

    results = Results("figure_9_5", ("table", "method", "degree", "weight"), 2)
    for rows in each(weights, results.missing(pairs)):
        results.add(*rows)
    plot("figure_9_5", results.frame(), "degree", "weight", "method", "table")


if __name__ == "__main__":
    run({"table": table_9_1, "figures": figures})
