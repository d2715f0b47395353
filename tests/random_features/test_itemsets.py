import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError
from recsys.random_features import ItemsetMap, RandomKernelMap, redundant_feature_augmentation

SETS = [(), (0,), (1, 2), (0, 2, 3), (4, 4), (1, 1, 1, 3)]
WEIGHTS = [0.7, 2.0, 1.0, 0.5, 1.5, 0.25]


def kernel(x, y, itemsets, weights):
    return sum(w * np.prod([x[j] * y[j] for j in V]) for V, w in zip(itemsets, weights, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2, 2]])
def test_the_kernel_is_the_expectation(groups):
    X = np.random.default_rng(0).uniform(0.5, 1.2, (2, 5))
    wanted = kernel(X[0], X[1], SETS, WEIGHTS)
    found = [
        float(Z[0] @ Z[1])
        for seed in range(60)
        for Z in [
            ItemsetMap(SETS, WEIGHTS, groups, 12_000, seed).fit_transform(X)
            if groups is None
            else ItemsetMap(SETS, WEIGHTS, groups, 12_000, seed).fit_transform(X).toarray()
        ]
    ]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.02 * wanted  # so that a constant wrong by 5% would show
    assert abs(np.mean(found) - wanted) < 3.5 * error


def test_all_pairs_are_the_anova_kernel_of_order_2():
    X = np.random.default_rng(1).normal(size=(7, 4))
    pairs = list(itertools.combinations(range(4), 2))
    ours = ItemsetMap(pairs, n_components=9, random_state=3).fit_transform(X)
    theirs = RandomKernelMap(degree=2, n_components=9, random_state=3).fit_transform(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_multisets_give_the_polynomial_kernel():
    X = np.random.default_rng(2).uniform(0.2, 1.0, (2, 3))
    multisets = list(itertools.combinations_with_replacement(range(3), 2))
    weights = [1.0 if a == b else 2.0 for a, b in multisets]
    assert kernel(X[0], X[1], multisets, weights) == pytest.approx((X[0] @ X[1]) ** 2)
    Z = ItemsetMap(multisets, weights, n_components=200_000).fit_transform(X)
    assert float(Z[0] @ Z[1]) == pytest.approx((X[0] @ X[1]) ** 2, rel=0.02)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_augmentation_turns_multisets_into_itemsets_with_the_same_kernel(make):
    X = np.random.default_rng(4).normal(size=(2, 5))
    wide, distinct = redundant_feature_augmentation(make(X), SETS)
    wide = wide.toarray() if sp.issparse(wide) else wide
    assert all(len(set(V)) == len(V) for V in distinct)
    wanted = kernel(X[0], X[1], SETS, WEIGHTS)
    assert kernel(wide[0], wide[1], distinct, WEIGHTS) == pytest.approx(wanted)


def test_augmentation_of_example_4_1():
    multisets = [(0, 1, 1, 1), (0, 0, 1, 1, 2), (2, 2, 2, 2)]
    wide, distinct = redundant_feature_augmentation([[1.0, 2.0, 3.0]], multisets)
    assert wide.tolist() == [[1, 1, 2, 2, 2, 3, 3, 3, 3]]
    assert distinct == [(0, 2, 3, 4), (0, 1, 2, 3, 5), (5, 6, 7, 8)]


def test_families_that_overlap_share_the_weight_of_an_itemset():
    families = [[(0,), (0, 1)], [(0, 1), (1, 2)], [(0, 1), (2,)]]
    listed = [(V, g) for g, family in enumerate(families) for V in family]
    often = {V: sum(V == other for other, _ in listed) for V, _ in listed}
    X = np.random.default_rng(5).uniform(0.5, 1.2, (2, 3))
    wanted = kernel(X[0], X[1], list(often), [1.0] * len(often))  # each itemset once
    found = [
        float(Z[0] @ Z[1])
        for seed in range(40)
        for Z in [
            ItemsetMap(
                [V for V, _ in listed],
                [1.0 / often[V] for V, _ in listed],
                [g for _, g in listed],
                4000,
                random_state=seed,
            )
            .fit_transform(X)
            .toarray()
        ]
    ]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.02 * wanted and abs(np.mean(found) - wanted) < 3.5 * error


def test_sparse_rows_give_sparse_features_with_groups():
    X = sp.random(50, 30, 0.05, random_state=0, format="csr")
    pairs = list(itertools.combinations(range(30), 2))
    maker = ItemsetMap(pairs, groups=[a for a, _ in pairs], n_components=60).fit(X)
    Z = maker.transform(X)
    assert sp.issparse(Z) and Z.nnz < 0.15 * np.prod(Z.shape)
    np.testing.assert_allclose(Z.toarray(), maker.transform(X.toarray()).toarray(), atol=1e-12)


@pytest.mark.parametrize(
    "more",
    [
        {"groups": [0, 0, 1, 1, 2, 2], "probabilities": [0.2, 0.5, 0.3]},
        {"sparsity": 0.4},
        {"groups": [0, 0, 1, 1, 2, 2], "probabilities": [0.6, 0.2, 0.2], "sparsity": 0.2},
    ],
)
def test_groups_drawn_by_given_probabilities_and_sparse_entries_are_unbiased(more):
    X = np.random.default_rng(0).uniform(0.5, 1.2, (2, 5))
    wanted = kernel(X[0], X[1], SETS, WEIGHTS)
    found = []
    for seed in range(40):
        Z = ItemsetMap(SETS, WEIGHTS, n_components=12_000, random_state=seed, **more).fit_transform(X)
        assert sp.issparse(Z)
        found.append(float((Z[[0]] @ Z[[1]].T).toarray().item()))
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.03 * wanted and abs(np.mean(found) - wanted) < 3.5 * error


def test_a_component_is_of_the_group_that_was_drawn_and_of_entries_that_are_not_zero():
    groups, p = np.array([3, 3, 7, 7, 9, 9]), np.array([0.1, 0.7, 0.2])
    drawn = ItemsetMap(SETS, groups=groups, probabilities=p, n_components=4000).fit(np.ones((1, 5)))
    bases = drawn.bases_.toarray()
    of = np.stack([(bases[groups == g] != 0).any(axis=0) for g in (3, 7, 9)])
    assert (of.sum(axis=0) == 1).all() and np.abs(of.mean(axis=1) - p).max() < 0.03
    squares = (bases**2).sum(axis=0) * 4000  # of signs, the two itemsets of the group
    np.testing.assert_allclose(squares, (2 / p)[of.argmax(axis=0)])
    bases = ItemsetMap(SETS, sparsity=0.5, n_components=4000).fit(np.ones((1, 5))).bases_.toarray()
    sizes = np.array([0, 1, 2, 3, 2, 4])  # random entries of each multiset
    assert np.abs((bases != 0).mean(axis=1) - 0.5**sizes).max() < 0.03


@pytest.mark.parametrize(
    "params, message",
    [
        ({"itemsets": []}, "at least one"),
        ({"itemsets": [(0, 7)]}, "feature of an itemset 7 is not within"),
        ({"itemsets": [(-1,)]}, "feature of an itemset -1 is not"),
        ({"weights": [1.0, 2.0]}, "weights"),
        ({"weights": [-1.0]}, "non-negative"),
        ({"groups": [0, 1]}, "groups"),
        ({"sparsity": 1.0}, "sparsity"),
        ({"groups": [0], "probabilities": [0.5, 0.5]}, "must be 1 non-negative numbers"),
        ({"groups": [0], "probabilities": [0.5]}, "sum to 1"),
        ({"groups": [0], "probabilities": ["a"]}, "probabilities must be an array"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        ItemsetMap(**params).fit(np.ones((4, 3)))
