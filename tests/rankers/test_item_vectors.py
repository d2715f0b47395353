"""Vectors of items and their maps, against what they are by definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import EASE, InputError, make_ranker
from recsys.datasets import load_dataset
from recsys.embeddings import embeddings, item_vectors, project
from recsys.utils.progress import listening


@pytest.fixture(scope="module")
def R():
    return load_dataset("sample").matrix


def test_own_vectors_are_the_models(R):
    model = make_ranker("als", factors=5, iterations=2).fit(R, show_progress=False)
    found = item_vectors(model, R)
    np.testing.assert_array_equal(found.vectors, model.item_embeddings())
    assert found[1:] == (True, 0, 0.0)


@pytest.mark.thorough
def test_others_are_the_main_directions_of_the_scores(R):
    model = make_ranker("ease").fit(R, show_progress=False)
    scores = model.scores(np.arange(R.shape[0]), R).astype(np.float64)
    found = item_vectors(model, R, factors=20)
    U, s, Vt = np.linalg.svd(scores, full_matrices=False)
    best = (U[:, :20] * s[:20]) @ Vt[:20]
    assert found.error == pytest.approx(np.linalg.norm(scores - best) / np.linalg.norm(scores), rel=0.02)
    # the distance of two items is that of their scores, as far as the directions go
    gaps = np.linalg.norm(best[:, 0] - best[:, 1:30].T, axis=1)
    np.testing.assert_allclose(
        np.linalg.norm(found.vectors[0] - found.vectors[1:30], axis=1), gaps, rtol=0.05
    )
    few = item_vectors(model, R, factors=4, most_users=50)
    assert (few.users, few.vectors.shape, few.own) == (50, (300, 4), False)
    whole = item_vectors(model, R, factors=1000)
    assert whole.vectors.shape == (300, 300) and whole.error < 1e-6


@pytest.mark.parametrize("arguments", [{"factors": 0}, {"most_users": 0}])
def test_numbers_out_of_range(R, arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        item_vectors(make_ranker("popularity").fit(R, show_progress=False), R, **arguments)


def test_principal_components_are_those_of_the_covariance():
    X = np.random.default_rng(0).normal(size=(80, 6)) @ np.diag([5, 3, 1, 1, 1, 1])
    found = project(X)
    values, V = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(found.shares, values[::-1][:2] / values.sum())
    expected = (X - X.mean(axis=0)) @ V[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(found.points), np.abs(expected), atol=1e-9)


def test_vectors_of_one_number_or_all_alike():
    found = project(np.arange(5.0)[:, None])
    np.testing.assert_allclose(found.shares, [1, 0], atol=1e-12)
    assert project(np.ones((4, 3))).shares.tolist() == [0, 0]


@pytest.mark.thorough
def test_tsne_keeps_groups_together_tells_how_far_it_is_and_can_be_stopped():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 10)) + 12 * np.eye(10)[groups]
    seen = []
    with listening(lambda *said: seen.append(said)):
        found = project(X, "tsne")
    assert found.shares is None and [said[1:] for said in seen] == [(k, 4) for k in range(4)]
    near = np.argsort(((found.points[:, None] - found.points[None]) ** 2).sum(axis=2), axis=1)[:, 1]
    assert (groups[near] == groups).all()
    np.testing.assert_array_equal(found.points, project(X, "tsne").points)

    def stop(step, done, total):
        if done > 0:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"), listening(stop):
        project(X, "tsne")


@pytest.mark.parametrize(("vectors", "method", "message"), [
    (np.ones((2, 4)), "pca", "a map needs 3 vectors"), (np.ones((5, 0)), "pca", "a map needs"), (np.ones(5), "pca", "a map needs"),
    (np.full((5, 2), np.nan), "pca", "NaN"), (np.ones((5, 2)), "umap", "method must be one of"),
])  # fmt: skip
def test_what_makes_no_map(vectors, method, message):
    with pytest.raises(InputError, match=message):
        project(vectors, method)


def test_the_default_rank_is_no_more_than_there_is():
    few = sp.csr_matrix(np.tri(9, 7, dtype=np.float32))
    model = EASE().fit(few, show_progress=False)
    found = embeddings(model, few)
    assert found.users.shape == (9, 7) and found.items.shape == (7, 7) and found.error < 1e-6
    with pytest.raises(InputError, match="factors"):
        embeddings(model, few, factors=0)


def test_many_items_are_compared_in_blocks(monkeypatch):
    data = load_dataset("sample").matrix
    model = EASE().fit(data, show_progress=False)
    whole = model.similar_items(np.arange(300), N=5)
    real, asked = model._item_similarity, []
    monkeypatch.setattr(model, "_item_similarity", lambda ids: asked.append(len(ids)) or real(ids))
    monkeypatch.setattr("recsys.rankers._lists.BLOCK_BYTES", 4 * 300 * 7)
    parts = model.similar_items(np.arange(300), N=5)
    assert asked == [7] * 42 + [6]
    np.testing.assert_array_equal(whole[0], parts[0])
    np.testing.assert_allclose(whole[1], parts[1], rtol=1e-6)
