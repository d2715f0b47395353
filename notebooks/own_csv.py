# %% [markdown]
# # Your own CSV: from a file to a list with reasons
#
# Set `PATH` to your file: one row per interaction, with a column of users and a column of items. Leave it empty to follow the
# notebook on a made-up export.

# %%
from pathlib import Path

import pandas as pd

import recsys

PATH = ""

if not PATH:
    sample = recsys.load_dataset("sample")
    PATH = "export.csv"
    pd.DataFrame(
        {
            "customer": sample.user_ids[sample.users],
            "product": sample.item_ids[sample.items],
            "bought": pd.to_datetime(sample.time, unit="s").strftime("%d.%m.%Y"),
        }
    ).to_csv(PATH, sep=";", index=False)
print(*Path(PATH).read_text(encoding="utf-8").splitlines()[:4], sep="\n")

# %% [markdown]
# Columns are found by their names. Name those that are not: `user=`, `item=`, `time=`, `weight=`, `rating=`.

# %%
data = recsys.Interactions.from_frame(PATH, user="customer", item="product", time="bought")
print(*data.notes, sep="\n")
data

# %% [markdown]
# Which model ranks better on these data? Half of each user's items is hidden. The sentences say which differences are significant.

# %%
report = recsys.evaluate(
    data, ["ease", "cf-komd", "popularity"], metrics=["auc", "ndcg@10"], only_folds=2
)
print(*report.verdicts(), sep="\n")
report.frame()[["model", "metric", "mean", "low", "high"]].round(3)

# %% [markdown]
# Fit the model on all data, and look at the list of one user.

# %%
model = recsys.Recommender("ease").fit(data)
user = data.user_ids[0]
top = model.recommend(user, n=5)
top

# %% [markdown]
# The contributions of the user's items sum to the score.

# %%
why = model.explain(user, top["item"][0])
print(why)

# %% [markdown]
# Write one file. `recsys serve --ranker model.recsys` answers from it over HTTP.

# %%
model.save("model.recsys")
print(f"{Path('model.recsys').stat().st_size:,} bytes")
recsys.load("model.recsys")
