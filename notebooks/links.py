# %% [markdown]
# # Links between objects
#
# Chapter 3 of Atarashi's thesis on a small graph. Tables 3.2 and 3.3 and Cora are `benchmarks/lab/links.py`.

# %%
import numpy as np
import pandas as pd

from recsys.links import (
    FactorizedBilinear,
    PairFactorizationMachine,
    PairNet,
    PairSVM,
    link_metrics,
    split_objects,
    split_pairs,
)

rng = np.random.default_rng(0)
group = rng.integers(0, 4, 150)
A = (rng.random((150, 40)) < np.where(np.arange(40)[None] // 10 == group[:, None], 0.5, 0.1)).astype(
    float
)
links = np.array(
    [
        (i, j)
        for i in range(150)
        for j in range(i + 1, 150)
        if rng.random() < (0.3 if group[i] == group[j] else 0.01)
    ]
)
print(len(links), "links between", len(A), "objects of", A.shape[1], "features")

# %%
models = {
    "FBM": FactorizedBilinear(n_components=8, beta=1e-3),
    "HOPairNet 3": PairNet(degree=3, n_components=8, beta=1e-3),
    "HOPairNet 4": PairNet(degree=4, n_components=8, beta=1e-3),
    "PairNet + similarity": PairNet(similarity=True, n_components=8, beta=1e-3),
    "FM on both ends": PairFactorizationMachine(n_components=8, beta=1e-3),
    "PairSVM": PairSVM(C=0.01),
}
rows = []
for where, split in (("pairs", split_pairs(links, 150)), ("new objects", split_objects(links, 150))):
    for name, model in models.items():
        model.fit(A, None, split.train, split.train_labels)
        rows.append(
            (where, name, *link_metrics(split.test_labels, model.decision_function(A, None, split.test)))
        )
pd.DataFrame(rows, columns=["split over", "model", "AUC", "accuracy", "precision", "recall"]).round(3)

# %% [markdown]
# Imbalanced: every other pair without a link is tested.

# %%
split = split_pairs(links, 150, test_ratio=None)
net = PairNet(similarity=True, n_components=8, beta=1e-3).fit(A, None, split.train, split.train_labels)
link_metrics(split.test_labels, net.decision_function(A, None, split.test))
