"""The strongest interactions against enumeration, the path, and rows from tables and interactions."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.lab.planted import planted_interactions
from recsys import InputError, load_dataset
from recsys.fm import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    interactions,
    liked_pairs,
    regularization_path,
    table_rows,
)


def fitted(seed, degree=2, features=7):
    rng = np.random.default_rng(seed)
    X = (rng.random((30, features)) < 0.4).astype(float)
    model = FactorizationMachineRegressor(
        degree=degree, n_components=3, max_iter=3, tol=0, random_state=seed
    )
    return model.fit(X, rng.standard_normal(30)), X


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 3), st.integers(1, 6))
def test_interactions_are_those_of_enumeration(seed, order, min_rows):
    model, X = fitted(seed, degree=3)
    every = {m: model.interaction_weight(m) for m in combinations(range(X.shape[1]), order)}
    together = {m: w for m, w in every.items() if X[:, list(m)].all(axis=1).sum() >= min_rows}
    for values, options in ((every, {}), (together, {"X": X, "min_rows": min_rows})):
        best = interactions(model, 5, order=order, **options)
        expected = sorted(values.items(), key=lambda entry: (-abs(entry[1]), entry[0]))[:5]
        assert [members for members, _ in best] == [members for members, _ in expected]
        np.testing.assert_allclose([w for _, w in best], [w for _, w in expected], rtol=1e-9)


def test_no_more_pairs_than_there_are():
    model, _ = fitted(0)
    pairs = [members for members, _ in interactions(model, 500)]
    assert len(set(pairs)) == len(pairs) and all(i < j for i, j in pairs)


@pytest.mark.parametrize("kind", [FactorizationMachineRegressor, FactorizationMachineClassifier])
def test_a_path_ends_without_interactions_and_is_best_before(kind):
    data = planted_interactions(400, groups=2, per_group=3, noise_features=6, seed=1)
    y = data.y if kind is FactorizationMachineRegressor else (data.y > 0).astype(int)
    model = kind(penalty="ti", n_components=4, beta=1e-6, random_state=0, init_scale=0.1)
    path = regularization_path(model, data.X, y, (1e-4, 1e-2, 1e2))
    assert [point.gamma for point in path] == [1e-4, 1e-2, 1e2]
    assert path[-1].n_interactions == 0 < path[0].n_interactions
    assert min(point.loss for point in path[:-1]) < 0.9 * path[-1].loss
    assert path[0].model is not path[1].model and path[0].model.n_used_interactions_


def test_a_path_needs_a_penalty_that_selects():
    with pytest.raises(InputError, match="is not sparse"):
        regularization_path(FactorizationMachineRegressor(), np.eye(10), np.arange(10.0))


def test_rows_of_a_table():
    table = pd.DataFrame(
        {
            "name": [f"item {k}" for k in range(60)],
            "genre": ["a|b", "b", None] * 20,
            "year": np.arange(60.0),
            "sold": [0, 1, np.nan] * 20,
        }
    )
    rows = table_rows(table, buckets=3)
    assert rows.X.shape == (40, 5) and set(rows.y) == {0.0, 1.0}
    assert rows.names[:2] == ("genre=a", "genre=b")
    assert table_rows(table, "genre", rows=10).X.shape[0] == 10
    with pytest.raises(InputError, match="no column"):
        table_rows(table, "color")
    with pytest.raises(InputError, match="one value"):
        table_rows(table.assign(sold=1))


def test_pairs_are_liked_or_not():
    data = load_dataset("sample")
    users = data.user_features.assign(me=[f"u{k}|" for k in range(data.n_users)])
    items = data.item_features.assign(me=[f"i{k}|" for k in range(data.n_items)])
    rows = liked_pairs(replace(data, user_features=users, item_features=items), rows=2000)
    assert rows.X.shape[0] == len(rows.y) <= 2000 and rows.y.sum() == 1000
    users, items = (rows.X[:, [n.startswith(f"me={what}") for n in rows.names]] for what in "ui")
    numbers = [[int(n[4:]) for n in rows.names if n.startswith(f"me={what}")] for what in "ui"]
    pairs = zip(users.argmax(axis=1).A1, items.argmax(axis=1).A1, strict=True)
    pairs = [(numbers[0][u], numbers[1][i]) for u, i in pairs]
    assert all(bool(data.matrix[u, i]) == bool(y) for (u, i), y in zip(pairs, rows.y, strict=True))
    assert not any(name.startswith(("user=", "item=")) for name in liked_pairs(data, rows=50).names)
