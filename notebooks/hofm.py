# %% [markdown]
# # Factorization machines of higher order
#
# Blondel et al. 2016 on the embedded dataset: orders, shared parameters, solvers. The paper's Table 3 and
# Figure 1 on their own data are `benchmarks/lab/hofm_table_3.py` and `benchmarks/lab/hofm_figure_1.py`.

# %%
import altair as alt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from recsys.datasets import load_dataset
from recsys.fm import (
    AllSubsetsRegressor,
    FactorizationMachineRegressor,
    PairEncoder,
    PolynomialNetworkRegressor,
)

data = load_dataset("sample")
encoder = PairEncoder(data.user_features, data.item_features).fit(data.n_users, data.n_items)
rng = np.random.default_rng(0)
liked = data.matrix.toarray() > 0
negatives = np.argwhere(~liked)
negatives = negatives[rng.permutation(len(negatives))[: len(data.users)]]
users = np.r_[data.users, negatives[:, 0]]
items = np.r_[data.items, negatives[:, 1]]
y = np.r_[np.ones(len(data.users)), np.zeros(len(negatives))]
X = encoder.transform(users, items)
order = rng.permutation(len(y))
train, test = order[: len(y) // 2], order[len(y) // 2 :]

# %%
common = {"n_components": 8, "max_iter": 30, "init_scale": 0.1, "beta": 1e-3}
rows = []
for degree in (2, 3, 4):
    models = {
        "explicit": FactorizationMachineRegressor(degree=degree, solver="relational", **common),
        "augmented": FactorizationMachineRegressor(degree=degree, fit_lower="augment", **common),
        "simplex": FactorizationMachineRegressor(
            degree=degree, fit_lower="simplex", fit_linear=False, **common
        ),
        "polynomial network": PolynomialNetworkRegressor(degree=degree, **common),
    }
    for name, model in models.items():
        rows.append(
            (name, degree, roc_auc_score(y[test], model.fit(X[train], y[train]).predict(X[test])))
        )
subsets = AllSubsetsRegressor(**common).fit(X[train], y[train])
rows.append(("all-subsets", 0, roc_auc_score(y[test], subsets.predict(X[test]))))
pd.DataFrame(rows, columns=["model", "degree", "AUC"]).pivot(
    index="model", columns="degree", values="AUC"
).round(3)

# %% [markdown]
# Objective against seconds, the counterpart of Figure 1.

# %%
curves = []
for solver in ("cd", "relational", "adagrad", "lbfgs"):
    model = FactorizationMachineRegressor(
        degree=3, fit_lower=None, solver=solver, learning_rate=0.05, tol=0.0, **common
    )
    model.fit(X[train], y[train])
    curves += [(solver, entry["seconds"], entry["objective"]) for entry in model.history_]
alt.Chart(pd.DataFrame(curves, columns=["solver", "seconds", "objective"])).mark_line().encode(
    x="seconds", y=alt.Y("objective", scale=alt.Scale(zero=False)), color="solver"
)
