"""CF-GRAM's learned combination beside each of its kernels alone: writes results/cf_gram.csv.

    python -m benchmarks.cf_gram

The first two folds of half profiles, settings the defaults; every figure is a mean over both. `weight` is the
learned weight of a kernel in the combination. `ratio` is the squared radius over the squared margin that `cf-gram`
lowers, of the combination and of each kernel alone, on the same sample of users and items.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from benchmarks.lab.common import write_csv
from benchmarks.table_10_3 import SEED, build, measure
from recsys.data import Fold, split
from recsys.datasets import load_dataset
from recsys.rankers.cf_gram import CFGRAM

DATASETS = ("movielens", "filmtrust")
FOLDS = 2
PARTS = CFGRAM.kernels.split("+")


def one(fold: Fold) -> list[tuple[str, float, float, float, float]]:
    """Return (model, AUC, nDCG@10, ratio, weight) of the combination and of its kernels."""
    learned = build("cf-gram").fit(fold.train, show_progress=False)
    rows = [("cf-gram", *measure("cf-gram", fold).values(), learned.ratio_[-1], np.nan)]
    for part, weight in zip(PARTS, learned.kernel_weights_, strict=True):
        spec = "cf-komd:kernel=" + part.replace(":", ",").replace(";", ",")
        # Its first ratio is that of equal weights: twice one kernel is that kernel.
        twice = CFGRAM(kernels=f"{part}+{part}", iterations=1).fit(fold.train, show_progress=False)
        rows.append((spec, *measure(spec, fold).values(), twice.ratio_[0], float(weight)))
    return rows


def main() -> None:
    rows = []
    for name in DATASETS:
        data = replace(load_dataset(name), item_features=None, user_features=None)
        found = [one(fold) for fold in islice(split(data, "half-profile", seed=SEED), FOLDS)]
        for same in zip(*found, strict=True):
            means = np.mean([row[1:] for row in same], axis=0)
            rows.append((name, same[0][0], FOLDS, *map(float, means[:3])))
            rows[-1] += ("" if np.isnan(means[3]) else float(means[3]),)
            print(rows[-1], flush=True)
    heads = ("dataset", "model", "folds", "auc", "ndcg@10", "ratio", "weight")
    write_csv("cf_gram", heads, rows)


if __name__ == "__main__":
    main()
