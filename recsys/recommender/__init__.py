"""The recommender: a table in, lists with reasons out, in the ids and the kind of the table.

Examples
--------
>>> import pandas as pd
>>> import recsys
>>> sample = recsys.load_dataset("sample")
>>> df = pd.DataFrame({
...     "user_id": sample.user_ids[sample.users], "item_id": sample.item_ids[sample.items],
...     "ts": sample.time,
... })
>>> films = sample.item_features.rename_axis("item_id").reset_index()

A table with ids, read and fitted on:

>>> data = recsys.Interactions.from_frame(df, user="user_id", item="item_id", time="ts", items=films)
>>> model = recsys.Recommender("auto").fit(data)

Lists, of users and of anybody's history:

>>> found = model.recommend(["u0042", "u0007"], n=10)
>>> list(found.columns), len(found)
(['user', 'rank', 'item', 'title', 'score', 'why'], 20)
>>> more = model.recommend_history(
...     ["m0050", "m0181"], dislikes=["m0288"], diversity=0.3, filters={"year": (1980, 1999)}
... )
>>> years = films.set_index("item_id")["year"].astype(int)
>>> bool(years[more["item"]].between(1980, 1999).all()), "m0288" in set(more["item"])
(True, False)
>>> model.recommend_all("top.parquet").name
'top.parquet'
>>> model.similar("m0172", n=3)["rank"].tolist()
[1, 2, 3]

Reasons:

>>> why = model.explain("u0042", found["item"][0])
>>> why.sentence == found["why"][0]
True
>>> model.rules("u0042").sentences[0]
'This profile as a rule: ...'

New interactions, users who want to be forgotten, files:

>>> model.update(df.head(3).assign(user_id="new one")).user_ids[-1]
'new one'
>>> model.forget("u0042").recommend("u0042", n=1)["why"][0]
'... people like it.'
>>> model.save("m.recsys")
>>> recsys.load("m.recsys").recommend("new one", n=2)["user"].tolist()
['new one', 'new one']

Is it any good?

>>> class Shortest:  # anything with fit and recommend, or scores
...     def fit(self, user_items, **options):
...         return self
...     def scores(self, users, rows):
...         return -abs(rows.toarray() - 0.5)
>>> report = recsys.evaluate(
...     data, ["ease", "popularity", Shortest()], protocol="half-profile-time", folds=2
... )
>>> report.frame()["model"].unique().tolist()
['ease', 'popularity', 'Shortest']
"""

from recsys.recommender.answers import Rules, Why
from recsys.recommender.loading import load
from recsys.recommender.model_rules import ModelRule
from recsys.recommender.recommender import Recommender

__all__ = ["ModelRule", "Recommender", "Rules", "Why", "load"]
