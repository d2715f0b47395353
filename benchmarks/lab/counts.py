"""Tables 3.1, 3.3, 6.1 and 7.1: what there is of the thesis' datasets, and how many features kernels have.

python -m benchmarks.lab.counts [3.1] [3.3] [6.1] [7.1]      all where none is named
"""

from __future__ import annotations

from math import comb

import numpy as np

from benchmarks.lab.common import names, run, table, write_csv
from benchmarks.lab.table_7_2 import FORMULAS, TASKS, task
from recsys.datasets import load_dataset
from recsys.kernels import make_kernel

TABLES = {  # instances, features, the two classes in %, ones of a row
    "dna": (2000, 180, "47/53", 47), "house-votes": (232, 32, "47/53", 16),
    "kr-vs-kp": (3196, 73, "52/48", 36), "monks-1": (432, 17, "50/50", 6),
    "monks-2": (432, 17, "33/67", 6), "monks-3": (432, 17, "53/47", 6),
    "primary-tumor": (339, 34, "42/58", 15), "promoters": (106, 228, "50/50", 57),
    "soybean": (266, 97, "55/45", 35), "spect": (267, 45, "79/21", 22),
    "splice": (3175, 240, "48/52", 60), "tic-tac-toe": (958, 27, "65/35", 9),
}  # fmt: skip
RECOMMENDERS = {  # users, items, ratings, density in %; Jester's and MovieLens' ratings are printed as 1M
    "bookcrossing": (2802, 5892, 70593, 0.004), "ciaodvd": (17615, 16121, 72664, 0.025),
    "filmtrust": (1508, 2071, 35496, 1.13), "jester": (24430, 100, "1M", 42.24),
    "movielens-1m": (6040, 3706, "1M", 1.34),
}  # fmt: skip
DRAWN = {  # the sizes that Table 7.1 prints where it prints no formula
    "tic-tac-toe": "d=8 c=3", "monks-3": "d=7 c=2", "art-d5-c4": "d=5 c≤4", "art-d5-c5": "d=5 c≤5",
}  # fmt: skip
MONKS_1 = ((0, 3), (1, 4), (2, 5), (11,))
N = 12  # features of the vectors of Table 6.1
DEGREE = 2


def table_3_1() -> None:
    """Write the sizes of the tables; the ones are those of the first row, which dna's others have not."""
    rows = []
    for name in names():
        data = table(name)
        share = 100 * float(data.y.mean())
        ours = (len(data.y), data.X.shape[1], share, int(data.X[0].sum()))
        rows.append((name, *ours, *TABLES[name]))
    heads = ("instances", "features", "positive", "ones")
    printed = ("instances", "features", "classes", "ones")
    write_csv("table_3_1", ("table", *heads, *(f"printed_{h}" for h in printed)), rows)


def table_3_3() -> None:
    """Write users, items, distinct pairs and their share in percent of the recommender datasets."""
    rows = []
    for name, printed in RECOMMENDERS.items():
        found = load_dataset(name).matrix
        share = 100 * found.nnz / (found.shape[0] * found.shape[1])
        rows.append((name, *found.shape, int(found.nnz), share, *printed))
    heads = ("users", "items", "ratings", "density")
    write_csv("table_3_3", ("dataset", *heads, *(f"printed_{h}" for h in heads)), rows)


def table_6_1() -> None:
    """Write the kernel of two drawn vectors, of one with itself, and the features, by the print's formulas too."""
    rng = np.random.default_rng(0)
    x, z = (rng.random((2, N)) < 0.5).astype(np.uint8)
    a, b, s, n, k = int(x.sum()), int(z.sum()), int(x @ z), N, DEGREE
    neither = n - a - b + s
    printed = {
        "ml": (s, a, n),
        "mc": (comb(s, k), comb(a, k), comb(n, k)),
        "md": (
            comb(n, k) - comb(n - a, k) - comb(n - b, k) + comb(neither, k),
            comb(n, k) - comb(n - a, k), comb(n, k),
        ),
        "negation": (neither, n - a, n),
        "literal": (s + neither, n, 2 * n),
        "c": (comb(s + neither, k), comb(n, k), 2**k * comb(n, k)),
        "d": (
            (2**k - 2) * comb(n, k) + comb(s + neither, k),
            (2**k - 1) * comb(n, k), 2**k * comb(n, k),
        ),
    }  # fmt: skip
    rows = []
    for name, theirs in printed.items():
        kernel = make_kernel(name, **({"degree": k} if name in ("mc", "md", "c", "d") else {}))
        K = kernel(np.array([x, z]))
        rows.append((name, int(K[0, 1]), int(K[0, 0]), int(kernel.dimension(n)), *theirs))
    heads = ("kernel_of_two", "with_itself", "features")
    write_csv("table_6_1", ("kernel", *heads, *(f"printed_{h}" for h in heads)), rows)


def table_7_1() -> None:
    """Write the sizes of the datasets and the rules that are printed; `equal` says where ours labels as it does."""
    rows = []
    for name in TASKS:
        data = task(name)
        rule = MONKS_1 if name == "monks-1" else FORMULAS.get(name)
        text, equal = DRAWN.get(name, ""), ""
        if rule is not None:
            text = " or ".join("(" + " and ".join(f"x{v}" for v in clause) + ")" for clause in rule)
            labels = np.any([data.X[:, clause].all(axis=1) for clause in rule], axis=0)
            equal = "yes" if np.array_equal(labels, data.y == 1) else "no"
        rows.append((name, len(data.y), data.X.shape[1], 100 * float(data.y.mean()), text, equal))
    write_csv("table_7_1", ("task", "instances", "features", "positive", "printed_rule", "equal"), rows)


if __name__ == "__main__":
    run({"3.1": table_3_1, "3.3": table_3_3, "6.1": table_6_1, "7.1": table_7_1})
