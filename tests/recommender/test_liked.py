"""Lists with items that users like already, and where their scores come from."""

import json

import pyarrow.parquet as pq
import pytest

from recsys import InputError, Recommender, list_rankers, make_ranker
from recsys.cli import call
from recsys.rankers import fit_package
from tests.contract.test_rankers import FAST
from tests.recommender.test_recommender import ROWS, data_of


@pytest.fixture(scope="module")
def model():
    return Recommender("ease").fit(data_of())


QUICK = ("popularity", "ease", "msdw", "cosine", "als")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in list_rankers()],
)
def test_every_model_lists_liked_items_too(name):
    data = data_of()
    model = Recommender.of(
        fit_package(make_ranker(name, **FAST.get(name, {})), data, show_progress=False)
    )
    found = model.recommend([117, 100], n=99, filter_liked=False)
    users = {117: None, 100: None}
    for user in users:
        k = model.user_ids.tolist().index(user)
        ids, scores = model.ranker.recommend(k, data.matrix[k], N=99, filter_already_liked_items=False)
        mine = found[found.user == user]
        assert mine["item"].tolist() == model.item_ids[ids].tolist() and len(mine) == 25
        assert mine["score"].tolist() == pytest.approx(scores.tolist(), rel=1e-6)
        assert set(ROWS[ROWS.user_id == user].item_id) <= set(mine["item"])
        others = model.recommend(user, n=99)["item"].tolist()
        assert others == [k for k in mine["item"] if k not in set(ROWS[ROWS.user_id == user].item_id)]


def test_the_sentence_of_a_liked_item_does_not_name_it_alone(model):
    liked = set(ROWS[ROWS.user_id == 117].item_id)
    found = model.recommend(117, n=99, filter_liked=False)
    for item, score, why in zip(found["item"], found["score"], found["why"], strict=True):
        told = model.explain(117, item)
        assert told.sentence == why and abs(told.score - score) < 1e-6
    assert liked <= set(found["item"])


def test_histories_and_files_list_liked_items_too(model, tmp_path):
    history = [7, 9, 12]
    found = model.recommend_history(history, n=99, filter_liked=False)
    assert set(history) <= set(found["item"]) and len(found) == 25
    assert not set(history) & set(model.recommend_history(history, n=99)["item"])
    table = model.recommend_all(n=99, filter_liked=False)
    assert len(table) == 40 * 25
    model.recommend_all(tmp_path / "top.parquet", n=99, filter_liked=False)
    file = pq.read_table(tmp_path / "top.parquet")
    assert file["item"].to_pylist() == table["item"].tolist()
    varied = model.recommend(117, n=25, diversity=0.5, dislikes=[8], filter_liked=False)
    assert sorted(varied["item"]) == [k for k in range(7, 32) if k != 8]
    only = model.recommend(117, n=99, items=history, filter_liked=False)
    assert sorted(only["item"]) == history


def test_what_is_neither_true_nor_false_is_refused(model, tmp_path):
    for ask in (
        lambda: model.recommend(117, filter_liked="no"),
        lambda: model.recommend_history([7], filter_liked=None),
        lambda: model.recommend_all(filter_liked=0),
    ):
        with pytest.raises(InputError, match="^filter_liked must be True or False, not"):
            ask()


def test_the_command_line_keeps_liked_items(model, tmp_path, capsys):
    path = tmp_path / "m.recsys"
    model.save(path)
    asked = ["recommend", "--ranker", str(path), "-n", "99", "--keep-liked", "--out"]
    assert call([*asked, str(tmp_path / "one.json"), "--user", "117"]) == 0
    rows = json.loads((tmp_path / "one.json").read_text())
    want = model.recommend(117, n=99, filter_liked=False)["item"].astype(str).tolist()
    assert [row["item_id"] for row in rows] == want
    assert call([*asked, str(tmp_path / "all.parquet"), "--all"]) == 0
    assert pq.read_table(tmp_path / "all.parquet").num_rows == 40 * 25


def test_a_column_says_which_scores_are_counts_of_users(model, tmp_path):
    assert "source" not in model.recommend([117], unknown="popular")
    found = model.recommend([3, 117], n=2, unknown="popular")
    assert found.columns.tolist() == ["user", "rank", "item", "title", "score", "source", "why"]
    assert found["source"].tolist() == ["popular"] * 2 + ["model"] * 2
    assert model.recommend_history([], n=2)["source"].tolist() == ["popular"] * 2
