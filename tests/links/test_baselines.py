"""Scores by paths of known links against enumeration; the split that they are measured on."""

import numpy as np
import pytest

from recsys.links import (
    link_metrics,
    load_link_predictor,
    make_link_predictor,
    split_objects,
    split_pairs,
)


def adjacency(links, n, m=None):
    size = n if m is None else n + m
    A = np.zeros((size, size))
    for i, j in links:
        j = j if m is None else n + j
        A[i, j] = A[j, i] = 1.0
    return A


def drawn(seed, n, m):
    rng = np.random.default_rng(seed)
    pairs = np.column_stack([rng.integers(0, n, 80), rng.integers(0, n if m is None else m, 80)])
    return pairs[pairs[:, 0] != pairs[:, 1]] if m is None else pairs


@pytest.mark.parametrize("m", [None, 9])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_definitions(seed, m, tmp_path):
    n = 12
    pairs = drawn(seed, n, m)
    y = np.random.default_rng(seed).integers(0, 2, len(pairs))
    A = adjacency(pairs[y == 1], n, m)
    degrees = np.maximum(A.sum(axis=1), 1)
    if m is None:
        common, allocation = A @ A, A @ np.diag(1 / degrees) @ A
    else:
        root = np.diag(degrees**-0.5)
        common, allocation = A @ A @ A, A @ root @ A @ root @ A
    katz = sum(0.1**power * np.linalg.matrix_power(A, power) for power in range(1, 5))
    expected = {
        "common-neighbors": common,
        "resource-allocation": allocation,
        "katz": katz,
    }
    left, right = np.eye(n), None if m is None else np.eye(m)
    at = pairs[:, 0], pairs[:, 1] + (0 if m is None else n)
    for name, scores in expected.items():
        params = {"decay": 0.1, "length": 4} if name == "katz" else {}
        model = make_link_predictor(name, **params).fit(left, right, pairs, y)
        np.testing.assert_allclose(model.decision_function(left, right, pairs), scores[at])
        model.save(tmp_path / "m.recsys")
        again = load_link_predictor(tmp_path / "m.recsys")
        np.testing.assert_allclose(again.decision_function(left, right, pairs), scores[at])


@pytest.mark.parametrize("cut", [split_pairs, split_objects])
@pytest.mark.parametrize(
    "double", [lambda a: a, lambda a: np.vstack([a, a[:, ::-1]]), lambda a: np.vstack([a, a])]
)
def test_no_link_is_in_training_and_test(cut, double):
    links = np.unique(np.sort(drawn(5, 30, None), axis=1), axis=0)
    split = cut(double(links), 30, seed=1)
    expected = cut(links, 30, seed=1)
    train, test = (
        [tuple(sorted(pair)) for pair in pairs[labels == 1].tolist()]
        for pairs, labels in ((split.train, split.train_labels), (split.test, split.test_labels))
    )
    assert not set(train) & set(test)
    assert len(train) == len(set(train)) == int(expected.train_labels.sum())
    assert len(test) == len(set(test)) == int(expected.test_labels.sum())


@pytest.mark.parametrize("name", ["bilinear", "fm"])
def test_by_ids_alone_the_defaults_are_as_good_as_paths(name):
    rng = np.random.default_rng(0)
    group = rng.integers(4, size=240)
    chance = np.where(group[:, None] == group, 0.2, 0.02)
    links = np.argwhere(np.triu(rng.random((240, 240)) < chance, 1))
    split, ids = split_pairs(links, 240, test_size=0.3), np.eye(240)

    def auc(model):
        fitted = make_link_predictor(model).fit(ids, None, split.train, split.train_labels)
        scores = fitted.decision_function(ids, None, split.test)
        return link_metrics(split.test_labels, scores).auc

    assert auc(name) > auc("katz") - 0.01
