"""Models from Parquet by Dask equal the fit in memory, also where a worker is killed."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import InputError, Interactions
from recsys.errors import CapabilityError
from recsys.rankers.registry import ranker_of

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
from recsys.distributed import fit_counts, recommend_all  # noqa: E402

MODELS = ("ease", "cf-komd", "cf-komd:kernel=md,degree=5", "msdw")


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 150, 3000), (60 * rng.random(3000) ** 2).astype(int)
    frame = pd.DataFrame({"who": user, "what": item, "stars": rng.integers(1, 6, 3000)})
    return frame.assign(when=np.arange(3000))


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("likes")
    for k, part in enumerate(np.array_split(np.arange(len(rows)), 5)):
        rows.iloc[part].to_parquet(path / f"{k}.parquet")
    return path


COLUMNS = {"user": "who", "item": "what"}
RATED = COLUMNS | {"rating": "stars", "time": "when", "min_rating": 3}


def in_memory(rows, model):
    """Fit on the latest rows of each pair with at least three stars, items in the order of their ids."""
    data = Interactions.from_frame(
        rows, user="who", item="what", rating="stars", time="when", min_rating=3
    )
    order = np.argsort([int(i) for i in data.item_ids])
    return data, order, ranker_of(model).fit(data.matrix[:, order], show_progress=False)


@pytest.mark.parametrize("model", MODELS)
def test_fit_counts_equals_the_fit_in_memory(client, rows, folder, model):
    package = fit_counts(folder, model, **RATED, partitions=4)
    data, order, ranker = in_memory(rows, model)
    assert [int(i) for i in package.item_ids] == sorted(int(i) for i in data.item_ids)
    matrix = data.matrix[:, order]
    users = np.arange(20)
    expected = ranker.scores(users, matrix[users])
    np.testing.assert_allclose(
        package.ranker.scores(users, matrix[users]), expected, rtol=1e-5, atol=1e-6
    )


def test_recommend_all_writes_every_users_list(client, rows, folder, tmp_path):
    fit_counts(folder, "ease", **RATED).save(tmp_path / "model.recsys")
    recommend_all(tmp_path / "model.recsys", folder, tmp_path / "out", n=5, **RATED)
    lists = pd.read_parquet(tmp_path / "out")
    data, order, ranker = in_memory(rows, "ease")
    assert set(lists["user"]) == {int(u) for u in data.user_ids}
    known = np.array([int(i) for i in data.item_ids])[order]
    matrix = data.matrix[:, order]
    for u in range(0, data.n_users, 10):
        own = lists[lists["user"] == int(data.user_ids[u])].sort_values("rank")
        items, scores = ranker.recommend(u, matrix[u], N=5)
        assert own["item"].tolist() == known[items].tolist()
        np.testing.assert_allclose(own["score"], scores, rtol=1e-5)


def test_a_killed_worker_changes_nothing(client, folder):
    expected = fit_counts(folder, "msdw", **COLUMNS, partitions=6).ranker

    def kill():
        time.sleep(0.3)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    again = fit_counts(folder, "msdw", **COLUMNS, partitions=6).ranker
    thread.join()
    assert abs(again.weights_ - expected.weights_).max() < 1e-6


def test_a_model_of_a_stream_is_a_model(client, folder, tmp_path):
    fit_counts(folder, "msdw", **COLUMNS).save(tmp_path / "model.recsys")
    assert len(recsys.load(tmp_path / "model.recsys").recommend_history([3, 5], n=4)) == 4


def test_a_model_without_users_is_served_and_refuses_what_needs_them(client, folder, tmp_path):
    testclient = pytest.importorskip("fastapi.testclient")
    from recsys.service import create_app

    fit_counts(folder, "msdw", **COLUMNS).save(tmp_path / "model.recsys")
    model = recsys.load(tmp_path / "model.recsys")
    with pytest.raises(InputError, match="the model names none"):
        model.recommend(3)
    with pytest.raises(CapabilityError, match="keeps no interactions"):
        model.update(add=pd.DataFrame({"user": [1], "item": [3]}))
    with testclient.TestClient(create_app(tmp_path / "model.recsys")) as served:
        assert len(served.post("/recommend", json={"history": ["3"], "n": 4}).json()["items"]) == 4
        assert served.post("/recommend", json={"user": "3"}).status_code == 404


@pytest.mark.parametrize(
    "error, model, options",
    [
        (CapabilityError, "als", {}),
        (CapabilityError, "msdw:sharpening=1", {}),
        (InputError, "ease", {"user": "nobody"}),
        (InputError, "ease", {"min_rating": 3}),
        (InputError, "ease", {"rating": "stars", "min_rating": 9}),
    ],
)
def test_refused(folder, error, model, options):
    with pytest.raises(error):
        fit_counts(folder, model, **COLUMNS | options)
