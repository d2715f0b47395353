"""A recommender for tables: lists with reasons in the ids and the kind of the table.

Examples
--------
>>> import recsys
>>> sample = recsys.load_dataset("sample")
>>> model = recsys.Recommender("ease").fit(sample)
>>> table = model.recommend(["u0042", "u0007"], n=10)
>>> list(table.columns), len(table)
(['user', 'rank', 'item', 'title', 'score', 'why'], 20)
>>> more = model.recommend_history(["m0050"], dislikes=["m0288"], filters={"year": (1980, 1999)})
>>> "m0288" in set(more["item"])
False
>>> model.recommend_all("top.parquet").name
'top.parquet'
>>> model.similar("m0172", n=3)["rank"].tolist()
[1, 2, 3]

>>> why = model.explain("u0042", table["item"][0])
>>> why.sentence == table["why"][0]
True
>>> model.rules("u0042").sentences[0]
'This profile as a rule: ...'

Updates, removal of users, files:

>>> import pandas as pd
>>> row = {"user_id": ["new one"], "item_id": ["m0050"], "time": ["2005-01-01"]}
>>> model = model.update(pd.DataFrame(row), remove=pd.DataFrame({"user_id": ["u0042"]}))
>>> model.user_ids[-1], "u0042" in model.user_ids
('new one', False)
>>> model.save("m.recsys")
>>> recsys.load("m.recsys").recommend("new one", n=2)["user"].tolist()
['new one', 'new one']
"""

from recsys.recommender.explained import Rules, Why
from recsys.recommender.recommender import Recommender, load

__all__ = ["Recommender", "Rules", "Why", "load"]
