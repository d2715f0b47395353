"""Runs and judgements for other tools, read by these tools."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import recsys
from recsys import InputError
from recsys.data import split
from recsys.evaluation.trec import file_names, query_names


@pytest.fixture(scope="module")
def report(planted):
    return recsys.evaluate(
        planted, ["ease", "cf-komd:kernel=mc,degree=2"], folds=2, metrics=["ndcg@10", "map-full@10", "recall@10"],
        keep_lists=10,
    )  # fmt: skip


def test_lists_are_the_first_items_of_every_user(report, planted):
    run, qrels = report.run("ease"), report.qrels()
    assert set(run) == set(qrels) == set(map(str, planted.user_ids))
    for fold in split(planted, folds=2):
        model = recsys.EASE().fit(fold.train, show_progress=False)
        found = model.recommend(fold.users, fold.train[fold.users], N=10)
        for user, ids, scores in zip(fold.users, *found, strict=True):
            name = str(planted.user_ids[user])
            assert list(run[name]) == [str(planted.item_ids[j]) for j in ids]
            np.testing.assert_array_equal(list(run[name].values()), scores)
            assert set(qrels[name]) == {str(planted.item_ids[j]) for j in fold.test[user].indices}


def test_ranx_gives_our_figures(report):
    ranx = pytest.importorskip("ranx")
    run = ranx.Run(report.run("ease"), name="ease")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler about ranx' code
        theirs = ranx.evaluate(
            ranx.Qrels(report.qrels()), run, ["ndcg@10", "recall@10"], make_comparable=True
        )
    for name, value in theirs.items():
        assert value == pytest.approx(np.nanmean(report.result("ease").per_user[name]), abs=1e-6)


def test_trec_eval_gives_our_figures_from_the_files(report, tmp_path):
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, R, nDCG

    qrels, *runs = report.write_trec(tmp_path / "new" / "folder")
    assert [path.name for path in runs] == ["ease.run", "cf-komd_kernel=mc_degree=2.run"]
    for path, result in zip(runs, report.results, strict=True):
        lines = path.read_text().splitlines()
        assert all(len(line.split()) == 6 for line in lines) and lines[0].split()[1] == "Q0"
        theirs = ir_measures.iter_calc(
            [nDCG @ 10, AP @ 10, R @ 10],
            list(ir_measures.read_trec_qrels(str(qrels))),
            list(ir_measures.read_trec_run(str(path))),
        )
        values = {(one.query_id, one.measure): one.value for one in theirs}
        # trec_eval orders equal scores by the items' names, where ours is the mean over all orders
        own = report.run(result.model)
        untied = [user for user, items in own.items() if len(set(items.values())) == len(items)]
        assert len(untied) > 0.8 * len(own)
        names = query_names(report.evaluated)
        for measure, name in ((nDCG @ 10, "ndcg@10"), (AP @ 10, "map-full@10"), (R @ 10, "recall@10")):
            ours = dict(zip(names, result.per_user[name], strict=True))
            for user in untied:
                assert values[user, measure] == pytest.approx(ours[user], abs=1e-6)


def test_a_user_of_two_folds_is_two_queries(planted):
    found = recsys.evaluate(planted, "popularity", protocol="holdout", folds=2, keep_lists=3)
    run, names = found.run(), set(map(str, planted.user_ids))
    assert set(run) == set(found.qrels()) and len(run) == len(found.evaluated.users)
    assert {name.rpartition("/")[0] for name in run} <= names
    assert {name.rpartition("/")[2] for name in run} == {"fold1", "fold2"}


def test_what_a_model_does_not_list_is_not_in_its_run(planted):
    class One:
        def fit(self, likes):
            pass

        def recommend(self, userid, user_items, N=10, filter_already_liked_items=True):
            return np.full((len(userid), 1), 4), np.ones((len(userid), 1))

    run = recsys.evaluate(planted, One(), folds=2, metrics="auc", keep_lists=5).run()
    assert {len(found) for found in run.values()} == {0, 1}


def test_nothing_is_kept_unasked(planted, tmp_path):
    found = recsys.evaluate(planted, "popularity", folds=2, metrics="auc")
    assert found.results[0].lists is None and found.evaluated.tested is None
    for ask in (found.run, found.qrels, lambda: found.write_trec(tmp_path)):
        with pytest.raises(InputError, match="pass keep_lists=100 to evaluate"):
            ask()
    with pytest.raises(InputError, match="keep_lists must be"):
        recsys.evaluate(planted, "popularity", keep_lists=0)


def test_ids_that_a_file_cannot_hold(planted, tmp_path):
    for what, wrong, text in (
        ("item_ids", "a b", "item id 'a b' has a blank"),
        ("user_ids", "", "user id '' has a blank or no character"),
    ):
        ids = getattr(planted, what).copy()
        ids[:] = wrong if wrong == "" else ids
        ids[0] = wrong
        if wrong == "":
            ids[1:] = [f"u{k}" for k in range(1, len(ids))]
        found = recsys.evaluate(
            replace(planted, **{what: ids}), "popularity", folds=2, metrics="auc", keep_lists=40
        )
        assert found.run() and found.qrels()
        with pytest.raises(InputError, match=text):
            found.write_trec(tmp_path)
    ids = planted.item_ids.copy()
    ids[:2] = 1, "1"
    found = recsys.evaluate(
        replace(planted, item_ids=ids), "popularity", folds=2, metrics="auc", keep_lists=4
    )
    with pytest.raises(InputError, match="two item ids are both '1' as text"):
        found.run()
    (tmp_path / "file").write_text("x")
    fine = recsys.evaluate(planted, "popularity", folds=2, metrics="auc", keep_lists=4)
    with pytest.raises(InputError, match="cannot be made a folder"):
        fine.write_trec(tmp_path / "file")


def test_file_names_differ():
    labels = ["a:b", "a/b", "A_b", "../..", "qrels", "", "x" * 300]
    names = list(file_names(labels).values())
    assert len({name.lower() for name in names}) == len(labels) and "qrels" not in names
    assert all(0 < len(name) < 120 and "/" not in name and not name.startswith(".") for name in names)
