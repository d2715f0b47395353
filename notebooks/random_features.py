# %% [markdown]
# # Random feature maps
#
# Chapter 4 of Atarashi's thesis: linear models on random features instead of kernels. Table 4.2 and the
# timings on MovieLens are `benchmarks/lab/random_features.py`.

# %%
import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from recsys.random_features import RandomKernelMap, SignedCirculantMap, SparseRandomKernelMap

X = np.random.default_rng(0).random((60, 24))
X /= X.sum(axis=1, keepdims=True)
exact = 0.5 * ((X @ X.T) ** 2 - (X**2) @ (X**2).T)

# %% [markdown]
# The error falls with the root of the number of features.

# %%
rows = []
for distribution in ("rademacher", "gaussian", "uniform", "laplace"):
    for times in (2, 4, 8, 16):
        gaps = []
        for seed in range(10):
            Z = RandomKernelMap(
                degree=2, n_components=24 * times, distribution=distribution, random_state=seed
            ).fit_transform(X)
            gaps.append(np.abs(Z @ Z.T - exact).mean())
        rows.append((distribution, 24 * times, np.mean(gaps)))
table = pd.DataFrame(rows, columns=["distribution", "D", "mean absolute error"])
log = alt.Scale(type="log")
alt.Chart(table).mark_line(point=True).encode(
    x=alt.X("D", scale=log), y=alt.Y("mean absolute error", scale=log), color="distribution"
)

# %% [markdown]
# In a pipeline: products of two features decide, which no linear model of them can see.

# %%
rng = np.random.default_rng(1)
X = rng.normal(size=(600, 6))
y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0
plain = LogisticRegression().fit(X[:400], y[:400]).score(X[400:], y[400:])
rows = [("linear", plain)]
for name, maker in (
    ("RK", RandomKernelMap(degree=2, n_components=200, random_state=0)),
    ("circulant", SignedCirculantMap(degree=3, n_components=200, random_state=0)),
    ("sparse", SparseRandomKernelMap(degree=2, n_components=200, sparsity=0.5, random_state=0)),
):
    model = make_pipeline(maker, LogisticRegression(C=100, max_iter=1000)).fit(X[:400], y[:400])
    rows.append((name, model.score(X[400:], y[400:])))
pd.DataFrame(rows, columns=["features", "accuracy"]).round(3)
