"""Rankers as models of RecTools, against the real package: in an environment that has it."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

from recsys import InputError, make_ranker
from recsys.datasets import load_dataset

if importlib.util.find_spec("rectools") is None:
    pytest.skip(
        "RecTools is not installed: nothing is known of its adapter here", allow_module_level=True
    )

from rectools import Columns
from rectools.dataset import Dataset
from rectools.metrics import MAP
from rectools.model_selection import LastNSplitter, cross_validate
from rectools.models import EASEModel, model_from_config

from recsys.adapters.rectools import RankerModel

pytestmark = pytest.mark.slow
MODELS = (
    "ease",
    "cf-komd:kernel=mc,degree=2",
    "als:factors=8",
    "bpr:factors=8,iterations=5",
    "popularity",
    "slist",
)


@pytest.fixture(scope="module")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="module")
def table(data):
    return pd.DataFrame(
        {
            Columns.User: data.user_ids[data.users], Columns.Item: data.item_ids[data.items],
            Columns.Weight: 1.0, Columns.Datetime: pd.to_datetime(data.time, unit="s"),
        }
    ).astype({Columns.User: object, Columns.Item: object})  # fmt: skip


@pytest.fixture(scope="module")
def dataset(table):
    return Dataset.construct(table)


@pytest.mark.parametrize("spec", MODELS)
def test_lists_are_the_rankers_own(dataset, spec):
    model = RankerModel(spec).fit(dataset)
    matrix = dataset.get_user_item_matrix(include_weights=True)
    users = dataset.user_id_map.external_ids[:20]
    found = model.recommend(users, dataset, k=7, filter_viewed=True)
    wanted = model.ranker.recommend(np.arange(20), matrix[:20], N=7)
    items = dataset.item_id_map.external_ids
    assert found[Columns.User].tolist() == np.repeat(users, 7).tolist()
    assert found[Columns.Item].tolist() == items[wanted.ids.ravel()].tolist()
    np.testing.assert_array_equal(found[Columns.Score].to_numpy(np.float32), wanted.scores.ravel())
    assert found[Columns.Rank].tolist() == list(range(1, 8)) * 20


def test_as_their_own_ease(dataset):
    ours = RankerModel("ease:regularization=500").fit(dataset)
    theirs = EASEModel(regularization=500.0, recommend_use_gpu_ranking=False).fit(dataset)
    rows = dataset.get_user_item_matrix(include_weights=True)
    # Their weights are the paper's, X B. Their lists (0.19) are by X times the transpose of B.
    found = ours.ranker.scores(np.arange(rows.shape[0]), rows)
    np.testing.assert_allclose(found, rows @ theirs.weight, rtol=1e-3, atol=1e-4)


def test_a_list_of_items_and_what_was_viewed(dataset):
    model = RankerModel("ease").fit(dataset)
    matrix, items = dataset.get_user_item_matrix(), dataset.item_id_map.external_ids
    allowed = items[::3]
    users = dataset.user_id_map.external_ids[:30]
    found = model.recommend(users, dataset, k=200, filter_viewed=True, items_to_recommend=allowed)
    assert set(found[Columns.Item]) <= set(allowed)
    for number, (user, some) in enumerate(found.groupby(Columns.User, sort=False)):
        assert user == users[number]
        assert not set(some[Columns.Item]) & set(items[matrix[number].indices])
        assert (
            len(some)
            == len(allowed) - np.isin(matrix[number].indices, np.arange(0, len(items), 3)).sum()
        )
    everything = model.recommend(users[:2], dataset, k=len(items), filter_viewed=False)
    assert len(everything) == 2 * len(items)


def test_users_of_another_dataset_are_folded_in(dataset, table):
    model = RankerModel("ease").fit(dataset)
    renamed = table.assign(**{Columns.User: "new " + table[Columns.User].astype(str)})
    other = Dataset.construct(renamed.astype({Columns.User: object}))
    one = model.recommend(dataset.user_id_map.external_ids[:9], dataset, k=5, filter_viewed=True)
    two = model.recommend(other.user_id_map.external_ids[:9], other, k=5, filter_viewed=True)
    assert one[Columns.Item].tolist() == two[Columns.Item].tolist()
    fewer = Dataset.construct(table[table[Columns.Item] != table[Columns.Item].iloc[0]])
    with pytest.raises(InputError, match="not those that the model was fitted on"):
        model.recommend(fewer.user_id_map.external_ids[:3], fewer, k=5, filter_viewed=True)


def test_similar_items(dataset):
    model = RankerModel("ease").fit(dataset)
    targets = dataset.item_id_map.external_ids[:4]
    found = model.recommend_to_items(targets, dataset, k=5, filter_itself=True)
    ids, _ = model.ranker.similar_items(np.arange(4), N=6)
    items = dataset.item_id_map.external_ids
    for number, (_, some) in enumerate(found.groupby(Columns.TargetItem, sort=False)):
        wanted = [items[j] for j in ids[number] if j != number][:5]
        assert some[Columns.Item].tolist() == wanted


def test_times_and_features_reach_the_ranker(table, data):
    again = Dataset.construct(table)
    model = RankerModel("ease:recency=1.0").fit(again)
    assert model.ranker.times_ is not None
    genres = data.item_features["genres"].str.split("|").explode()
    features = pd.DataFrame({"id": genres.index, "feature": "genre", "value": genres.to_numpy()})
    described = Dataset.construct(
        table,
        item_features_df=features[features["id"].isin(table[Columns.Item])],
        cat_item_features=["genre"],
    )
    fitted = RankerModel("bilinear:factors=2,iterations=2").fit(described)
    assert fitted.ranker.item_features_.shape[0] == described.item_id_map.size


def test_cross_validation_and_metrics_are_theirs(dataset):
    found = cross_validate(
        dataset, LastNSplitter(n=1, n_splits=1), {"map": MAP(k=5)},
        {"ours": RankerModel("ease:regularization=100"), "popular": RankerModel("popularity")},
        k=5, filter_viewed=True,
    )  # fmt: skip
    figures = {row["model"]: row["map"] for row in found["metrics"]}
    assert figures["ours"] > figures["popular"] > 0


def test_files_and_configs(dataset, tmp_path):
    model = RankerModel("ease:regularization=7").fit(dataset)
    model.save(tmp_path / "m")
    again = RankerModel.load(tmp_path / "m")
    users = dataset.user_id_map.external_ids[:5]
    lists = [m.recommend(users, dataset, k=3, filter_viewed=True) for m in (model, again)]
    pd.testing.assert_frame_equal(*lists)
    config = model.get_config(simple_types=True)
    assert config["model"] == "ease:regularization=7"
    made = model_from_config(config)
    assert isinstance(made, RankerModel) and made.model == model.model
    with pytest.raises(InputError, match="as a specification"):
        RankerModel(make_ranker("ease")).get_config()
    assert RankerModel(make_ranker("ease")).fit(dataset).is_fitted


@pytest.mark.parametrize(
    ("wrong", "text"), [("eaze", "did you mean 'ease'"), (3, "must be a ranker or")]
)
def test_refusals(wrong, text):
    with pytest.raises(InputError, match=text):
        RankerModel(wrong)


def test_in_their_wrapper_of_implicits_item_models(dataset):
    """A ranker in the place of implicit's model. Those of ALS and BPR take implicit's classes alone."""
    from rectools.models import ImplicitItemKNNWrapperModel

    model = ImplicitItemKNNWrapperModel(make_ranker("ease")).fit(dataset)
    users = dataset.user_id_map.external_ids[:10]
    found = model.recommend(users, dataset, k=5, filter_viewed=True)
    rows = dataset.get_user_item_matrix(include_weights=True)
    wanted = make_ranker("ease").fit(rows, show_progress=False).recommend(np.arange(10), rows[:10], N=5)
    items = dataset.item_id_map.external_ids
    assert found[Columns.Item].tolist() == items[wanted.ids.ravel()].tolist()
