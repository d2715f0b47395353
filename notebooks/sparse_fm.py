# %% [markdown]
# # Sparse factorization machines
#
# Atarashi et al. 2021: which interactions matter? The paper's tables and its synthetic study are
# `benchmarks/lab/sparse_fm_table_3.py` and `benchmarks/lab/sparse_fm_synthetic.py`.

# %%
import altair as alt
import numpy as np
import pandas as pd

from benchmarks.lab.planted import planted_interactions, recovery
from recsys.fm import FactorizationMachineRegressor, interactions
from recsys.fm.penalties import PENALTIES

# %% [markdown]
# The proximal operators (8.1): TI keeps features and drops interactions, CS drops features gradually.

# %%
P = np.random.default_rng(0).normal(size=(60, 4))
rows = []
for strength in np.logspace(-2, 0.5, 12):
    found = {
        name: PENALTIES[name].prox(P, strength / 10 if name in ("ti", "cs") else strength)
        for name in ("l1", "l21", "ti", "cs")
    }
    rows += [
        (name, strength, float((np.triu(Q @ Q.T, 1) != 0).sum() / 1770)) for name, Q in found.items()
    ]
alt.Chart(
    pd.DataFrame(rows, columns=["operator", "strength", "share of interactions"])
).mark_line().encode(
    x=alt.X("strength", scale=alt.Scale(type="log")), y="share of interactions", color="operator"
)

# %% [markdown]
# Planted groups: each feature interacts with those of its group only.

# %%
data = planted_interactions(600, 4, 4, 8, seed=1)
rows = []
for penalty, solver in (("ti", "cd"), ("cs", "block"), ("l21", "block"), ("l1", "cd"), ("l2", "cd")):
    for gamma in (0.01, 0.1, 0.3):
        model = FactorizationMachineRegressor(
            penalty=penalty,
            solver=solver,
            gamma=gamma,
            beta=1e-3,
            n_components=8,
            fit_linear=False,
            init_scale=0.1,
            max_iter=200,
        ).fit(data.X, data.y)
        rows.append((penalty, gamma, *recovery(data.W, model.P_[0][0])))
pd.DataFrame(rows, columns=["penalty", "gamma", "error", "F1", "recovered"]).round(3)

# %% [markdown]
# A model with a given number of interactions: bisection over the regularization strength (8.3).

# %%
model = FactorizationMachineRegressor(
    penalty="ti", n_components=8, fit_linear=False, init_scale=0.1, max_iter=200
)
model.sparsify(data.X, data.y, 24)
print(model.n_used_interactions_, "interactions at gamma", round(model.gamma, 4))
interactions(model, 5)
