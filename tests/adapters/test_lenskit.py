"""Rankers as scorers of LensKit, against the real package: in an environment that has it."""

import importlib.util
import pickle

import numpy as np
import pandas as pd
import pytest

from recsys import InputError
from recsys.datasets import load_dataset

if importlib.util.find_spec("lenskit") is None:
    pytest.skip(
        "LensKit is not installed: nothing is known of its adapter here", allow_module_level=True
    )

from lenskit import batch, recommend, topn_pipeline
from lenskit.data import ItemList, RecQuery, from_interactions_df
from lenskit.knn import EASEScorer
from lenskit.metrics import NDCG, RunAnalysis
from lenskit.splitting import SampleN, crossfold_users

from recsys.adapters.lenskit import RankerScorer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    found = load_dataset("sample")
    table = pd.DataFrame(
        {
            "user_id": found.user_ids[found.users].astype(str), "item_id": found.item_ids[found.items].astype(str),
            "timestamp": found.time.astype(np.int64),
        }
    )  # fmt: skip
    return from_interactions_df(table)


@pytest.mark.parametrize(
    "spec", ["ease", "cf-komd:kernel=mc,degree=2", "als:factors=8", "bpr:factors=8,iterations=5"]
)
def test_lists_are_the_rankers_own(data, spec):
    pipeline = topn_pipeline(RankerScorer(model=spec), predicts_ratings=False)
    pipeline.train(data)
    scorer = pipeline.node("scorer").component
    for user in data.users.ids()[:6]:
        number = data.users.number(user)
        row = scorer.rows[[number]]
        known = {"recalculate_user": True} if "fold-in" in scorer.ranker.capabilities else {}
        wanted = scorer.ranker.recommend([number], row, N=5, **known)
        found = recommend(pipeline, user, 5)
        assert list(found.ids()) == [data.items.id(j) for j in wanted.ids[0]]
        np.testing.assert_allclose(found.scores(), wanted.scores[0], rtol=1e-6)


def test_as_their_own_ease(data):
    ours, theirs = RankerScorer(model="ease:regularization=100"), EASEScorer(regularization=100)
    for one in (ours, theirs):
        one.train(data)
    items = ItemList.from_vocabulary(data.items)
    for user in data.users.ids()[:5]:
        query = RecQuery(user_id=user, history_items=data.user_row(user))
        np.testing.assert_allclose(ours(query, items).scores(), theirs(query, items).scores(), atol=1e-4)


def test_histories_of_strangers_unknown_items_and_nobody(data):
    scorer = RankerScorer(model="ease")
    scorer.train(data)
    names = list(data.items.ids()[:4])
    items = ItemList(item_ids=[*names, "nothing"])
    history = RecQuery(history_items=ItemList(item_ids=[*names[:2], "unheard of"]))
    found = scorer(history, items).scores()
    assert np.isfinite(found[:4]).all() and np.isnan(found[4])
    row = np.zeros((1, len(data.items)))
    row[0, data.items.numbers(names[:2])] = 1
    wanted = scorer.ranker.scores(0, row, recalculate_user=True)[0]
    np.testing.assert_array_equal(found[:4], wanted[data.items.numbers(names)])
    assert np.isnan(scorer(RecQuery(user_id="stranger"), items).scores()).all()
    assert len(scorer(history, ItemList(item_ids=[])).ids()) == 0
    one = data.users.ids()[0]
    alone = scorer(RecQuery(user_id=one), items).scores()
    with_history = scorer(RecQuery(user_id=one, history_items=data.user_row(one)), items).scores()
    np.testing.assert_allclose(alone, with_history, rtol=1e-6)


def test_their_splits_batches_and_metrics(data):
    split = next(iter(crossfold_users(data, 4, SampleN(3, rng=1), rng=1)))
    figures = {}
    for spec in ("ease:regularization=100", "popularity"):
        pipeline = topn_pipeline(RankerScorer(model=spec), n=20)
        pipeline.train(split.train)
        lists = batch.recommend(pipeline, split.test.keys(), 20, n_jobs=1)
        measured = RunAnalysis(NDCG()).measure(lists, split.test)
        figures[spec] = measured.list_summary()["mean"]["NDCG"]
    assert figures["ease:regularization=100"] > figures["popularity"] > 0


def test_trained_once_unless_asked_again_and_sent_elsewhere(data):
    from lenskit.training import TrainingOptions

    scorer = RankerScorer(model="ease:recency=1.0")
    scorer.train(data)
    assert scorer.ranker.times_ is not None
    first = scorer.ranker
    scorer.train(data, TrainingOptions(retrain=False))
    assert scorer.ranker is first
    again = pickle.loads(pickle.dumps(scorer))
    items = ItemList.from_vocabulary(data.items)
    query = RecQuery(user_id=data.users.ids()[3])
    np.testing.assert_array_equal(again(query, items).scores(), scorer(query, items).scores())
    assert scorer.dump_config() == {"model": "ease:recency=1.0"}


def test_a_wrong_name_is_told_when_trained(data):
    with pytest.raises(InputError, match="did you mean 'ease'"):
        RankerScorer(model="eaze").train(data)
