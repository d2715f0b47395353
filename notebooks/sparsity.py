# %% [markdown]
# # CF-KOMD, expressiveness and sparsity
#
# Sections 10.3 and 10.4 of Polato's thesis on the embedded dataset.

# %%
import altair as alt
import pandas as pd

from recsys import make_ranker
from recsys.data.statistics import profile
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
from recsys.kernels import item_gram, make_kernel, spectral_ratio

data = load_dataset("sample")
found = profile(data.matrix)
print(
    f"density of the data {found.density:.1%}, of the linear kernel {found.kernel_density:.1%}, by (10.7) {found.kernel_estimate:.1%}"
)

# %%
ranks = pd.DataFrame({"rank": range(1, len(found.items) + 1), "likes": found.items})
log = alt.Scale(type="log")
alt.Chart(ranks[ranks["likes"] > 0]).mark_line().encode(
    x=alt.X("rank", scale=log), y=alt.Y("likes", scale=log)
)

# %% [markdown]
# Conjunctions of higher degree are more expressive, disjunctions less (Figures 10.5 and 10.6).

# %%
rows = []
for name in ("mc", "md"):
    for degree in (1, 2, 3, 5):
        K = item_gram(data.matrix, make_kernel(name, degree=degree))
        model = make_ranker("cf-komd", kernel=name, degree=degree)
        report = evaluate(data, {name: model}, metrics=("auc",), only_folds=1)
        ratio = spectral_ratio(K, standardized=True)
        rows.append(
            {
                "kernel": name,
                "degree": degree,
                "spectral ratio": ratio,
                "AUC": report.results[0].metrics["auc"].mean,
            }
        )
frame = pd.DataFrame(rows)
mc = frame[frame["kernel"] == "mc"]["spectral ratio"].to_numpy()
assert (mc[1:] >= mc[:-1]).all()
frame

# %%
alt.Chart(frame).mark_line(point=True).encode(
    x="degree", y=alt.Y("spectral ratio"), color="kernel"
) | alt.Chart(frame).mark_line(point=True).encode(
    x="degree", y=alt.Y("AUC", scale=alt.Scale(zero=False)), color="kernel"
)
