"""Updates without a refit, vectors and their index, tuning."""

import dataclasses

import numpy as np
import pytest

from recsys import InputError, list_rankers, make_ranker
from recsys.data import split
from recsys.embeddings import embeddings, export_embeddings
from recsys.evaluation import evaluate
from recsys.tuning import training_part, tunable, tune


@pytest.mark.parametrize(
    "name, params",
    [
        ("ecf-omd", {"kernel": "md"}), ("ecf-omd", {"degree": 3}), ("ecf-omd", {"q": "mean"}),
        ("ecf-omd", {"votes": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_of_other_rankers_are_refused(name, params):
    with pytest.raises(InputError, match=f"{next(iter(params))!r}"):
        make_ranker(name, **params)


@pytest.mark.parametrize("name", list_rankers())
def test_what_the_constructor_takes_is_what_is_saved(name):
    ranker = make_ranker(name)
    fields = {f.name for f in dataclasses.fields(ranker)}
    assert set(ranker.get_params()) == fields


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["fm", "hofm", "bilinear", "pairnet", "all-subsets", "random-features", "als"])  # fmt: skip
def test_vectors_of_models_that_have_them_give_the_scores(name, liked):
    ranker = make_ranker(name).fit(liked, show_progress=False)
    found = embeddings(ranker, liked)
    users = np.flatnonzero(np.diff(liked.indptr))
    np.testing.assert_allclose(
        found.users[users] @ found.items.T, ranker.scores(users, liked[users]), rtol=1e-3, atol=1e-4
    )
    assert found.error == 0.0


def test_other_scores_are_factorised_and_the_error_is_said(liked):
    ranker = make_ranker("ease").fit(liked)
    small, large = embeddings(ranker, liked, 4), embeddings(ranker, liked, 40)
    assert large.error < 1e-5 < small.error
    scores = ranker.scores(np.arange(60), liked)
    missed = np.linalg.norm(scores - small.users @ small.items.T) / np.linalg.norm(scores)
    assert small.error == pytest.approx(missed, rel=1e-3)
    with pytest.raises(InputError, match="factors"):
        embeddings(ranker, liked, 0)


def test_vectors_are_exported(tmp_path):
    import pyarrow.parquet as pq

    vectors, ids = np.arange(6, dtype=np.float32).reshape(3, 2), np.array(["a", "b", "c"], dtype=object)
    export_embeddings(tmp_path / "v.npy", ids, vectors)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), vectors)
    export_embeddings(tmp_path / "v.parquet", ids, vectors)
    table = pq.read_table(tmp_path / "v.parquet")
    assert table["id"].to_pylist() == ["a", "b", "c"] and table["vector"].to_pylist()[2] == [4.0, 5.0]
    with pytest.raises(InputError, match="ending in"):
        export_embeddings(tmp_path / "v.txt", ids, vectors)
    with pytest.raises(InputError, match="3 ids for 2"):
        export_embeddings(tmp_path / "v.npy", ids, vectors[:2])


def test_tuning_never_reads_the_test_half(planted):
    inner = training_part(planted, "half-profile", 0)
    fold = next(iter(split(planted, "half-profile", seed=0)))
    tested = {(u, i) for u, i in zip(*fold.test.nonzero(), strict=True)}
    assert tested and not tested & set(zip(inner.users.tolist(), inner.items.tolist(), strict=True))
    assert len(inner.users) == fold.train.nnz


@pytest.mark.thorough
def test_tuning_goes_on_and_repeats_itself(planted, tmp_path):
    first = tune(planted, "ease", 3, storage=tmp_path / "study", seed=1)
    more = tune(planted, "ease", 4, storage=tmp_path / "study", seed=1)
    assert len(first.trials) == 3 and more.trials[:3] == first.trials and len(more.trials) == 4
    again = tune(planted, "ease", 3, seed=1)
    assert again.trials == first.trials and again.value == max(v for _, v in again.trials)
    assert make_ranker("ease", **again.params).regularization == again.params["regularization"]
    with pytest.raises(InputError, match="model must be one of"):
        tune(planted, "popularity", 1)


@pytest.mark.parametrize("name", tunable())
def test_every_declared_space_makes_rankers(name):
    import optuna

    from recsys.tuning import _suggested

    for seed in range(3):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        make_ranker(name, **_suggested(study.ask(), name, {}))


@pytest.mark.thorough
def test_given_parameters_are_held_fixed_and_metrics_summed(planted):
    found = tune(planted, "cf-komd:kernel=md,q=mean", 3, metric="auc+ndcg@10")
    assert all(p["kernel"] == "md" and p["q"] == "mean" and "degree" in p for p, _ in found.trials)
    params, value = found.trials[0]
    inner = training_part(planted, "half-profile", 0)
    report = evaluate(
        inner,
        [("m", make_ranker("cf-komd", **params))],
        metrics=["auc", "ndcg@10"],
        only_folds=1,
    )
    assert value == pytest.approx(sum(f.mean for f in report.results[0].metrics.values()))
