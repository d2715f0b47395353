# %% [markdown]
# # A tour: data, a ranker, a reason, a measurement

# %%
import altair as alt
import pandas as pd

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
from recsys.explain import because, item_attributes, item_rule, reasons, taste_rule, text

data = load_dataset("sample")
user_items = data.matrix
print(f"{data.n_users} users, {data.n_items} items, {user_items.nnz} interactions")

# %% [markdown]
# Every model has the same interface, that of implicit.

# %%
ranker = make_ranker("cf-komd", kernel="md", degree=2).fit(user_items, show_progress=False)
ids, scores = ranker.recommend(7, user_items[7], N=5)
for item, score in zip(ids, scores, strict=True):
    found = reasons(ranker, 7, user_items[7], int(item))
    print(f"{score:.4f}  {data.titles[item]}: {because(data.titles, found)}")

# %% [markdown]
# The contributions of the liked items, and the bias, sum to the score.

# %%
found = reasons(ranker, 7, user_items[7], int(ids[0]), N=user_items[7].nnz)
shares = pd.DataFrame(
    {"item": [data.titles[k] for k, _ in found.items], "adds": [v for _, v in found.items]}
)
assert abs(shares["adds"].sum() + found.bias - found.score) < 1e-5
alt.Chart(shares).mark_bar().encode(x="adds", y=alt.Y("item", sort=None))

# %% [markdown]
# A rule about the user's items, and one about other users.

# %%
popularity = (
    user_items.sum(axis=0).A1 if hasattr(user_items.sum(axis=0), "A1") else user_items.sum(axis=0)
)
taste = taste_rule(user_items[7].indices, item_attributes(data), popularity)
if taste is not None and taste.shown:
    print(text.readable(taste.rule), *text.taste(taste), sep="\n")
rule = item_rule(user_items, user_items[7].indices, int(ids[0]), exclude=7)
if rule is not None:
    print(text.rule_sentence(data.titles, rule))

# %% [markdown]
# Two models on the same folds, with the paired difference over users.

# %%
models = {"ease": make_ranker("ease"), "cf-komd": ranker}
report = evaluate(data, models, metrics=("auc", "ndcg@10"), only_folds=2)
print("\n".join(report.sentences()[:3]))
pd.DataFrame([{"model": r.model, **{k: f.mean for k, f in r.metrics.items()}} for r in report.results])
