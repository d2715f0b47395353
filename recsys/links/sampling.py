"""Negative pairs, and splits over pairs and over objects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.utils.features import as_array
from recsys.utils.validation import check_ids, check_integer, check_real

Index = NDArray[np.int64]


class LinkSplit(NamedTuple):
    """Training and test pairs with labels (1 for a link, 0 for none).

    Attributes
    ----------
    train, test : (pairs, 2) int64
    train_labels, test_labels : (pairs,) int8
    """

    train: Index
    train_labels: NDArray[np.int8]
    test: Index
    test_labels: NDArray[np.int8]


def sample_negatives(
    positives: ArrayLike, n_left: int, n_right: int | None, count: int, seed: int = 0
) -> Index:
    """Return `count` distinct pairs that are not in `positives`, drawn uniformly, (count, 2).

    Parameters
    ----------
    positives : (links, 2) int
    n_left, n_right : int
        Objects of each kind; n_right = None for pairs i < j of one kind.
    count : int
    seed : int
    """
    check_integer("count", count, 0)
    check_integer("seed", seed, 0)
    taken = np.unique(_codes(_checked(positives, n_left, n_right), n_left, n_right))
    total = n_left * n_right if n_right is not None else n_left * (n_left - 1) // 2
    if count > total - len(taken):
        raise InputError(
            f"{count:,} pairs without a link are needed, but only {total - len(taken):,} exist: lower "
            "the ratio, or add objects"
        )
    rng = np.random.default_rng(seed)
    width = n_left if n_right is None else n_right
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        size = 2 * (count - len(drawn)) + 16
        pairs = np.column_stack([rng.integers(n_left, size=size), rng.integers(width, size=size)])
        if n_right is None:
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        codes = _codes(pairs, n_left, n_right)
        codes = np.concatenate([drawn, codes[~np.isin(codes, taken)]])
        _, first = np.unique(codes, return_index=True)
        drawn = codes[np.sort(first)][:count]  # in the order drawn: no bias towards small numbers
    return np.column_stack([drawn // width, drawn % width])


def split_pairs(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    test_size: float = 0.5,
    test_all: bool = False,
    seed: int = 0,
) -> LinkSplit:
    """Split links at random, with as many pairs without a link in each part.

    Repeated links count once, and so do (i, j) and (j, i) for one kind.

    Parameters
    ----------
    positives : (links, 2) int
    n_left, n_right : int
        Objects of each kind; n_right = None for pairs of one kind.
    test_size : float in (0, 1)
    test_all : bool
        Whether to test on all pairs without a link that are not in training.
    seed : int
    """
    links, rng = _distinct(positives, n_left, n_right, test_size, seed)
    links = links[rng.permutation(len(links))]
    train, test = np.split(links, [len(links) - round(test_size * len(links))])
    down = sample_negatives(links, n_left, n_right, len(train), seed + 1)
    taken = np.concatenate([links, down])
    if test_all:
        every = np.ones((n_left, n_left if n_right is None else n_right))
        pairs = np.argwhere(np.triu(every, 1) if n_right is None else every)
        rest = pairs[~np.isin(_codes(pairs, n_left, n_right), _codes(taken, n_left, n_right))]
    else:
        rest = sample_negatives(taken, n_left, n_right, len(test), seed + 2)
    return LinkSplit(*_labelled(train, down), *_labelled(test, rest))


def split_objects(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    test_size: float = 0.3,
    seed: int = 0,
) -> LinkSplit:
    """Split over objects (cold start): tested pairs join two objects that no training pair contains.

    Parameters as in `split_pairs`. Objects of each kind are held out; links between a held-out and
    another object are in neither part.
    """
    links, rng = _distinct(positives, n_left, n_right, test_size, seed)
    out_left = rng.permutation(n_left).argsort() < round(test_size * n_left)
    out_right = out_left
    if n_right is not None:
        out_right = rng.permutation(n_right).argsort() < round(test_size * n_right)
    parts: list[NDArray[Any]] = []
    for k, held in enumerate((False, True)):
        here, there = np.flatnonzero(out_left == held), np.flatnonzero(out_right == held)
        up = links[(out_left[links[:, 0]] == held) & (out_right[links[:, 1]] == held)]
        local = np.column_stack([np.searchsorted(here, up[:, 0]), np.searchsorted(there, up[:, 1])])
        others = None if n_right is None else len(there)
        down = sample_negatives(local, len(here), others, len(up), seed + 1 + k)
        parts += _labelled(up, np.column_stack([here[down[:, 0]], there[down[:, 1]]]))
    return LinkSplit(*parts)


def _checked(positives: ArrayLike, n_left: int, n_right: int | None) -> Index:
    """Return pairs as (pairs, 2) int64, each of objects that there are."""
    check_integer("n_left", n_left, 0)
    width = n_left if n_right is None else check_integer("n_right", n_right, 0)
    pairs = as_array("positives", positives)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"positives must be (pairs, 2) integers, not of shape {pairs.shape}")
    left = check_ids("positives, left object", pairs[:, 0], n_left)
    return np.column_stack([left, check_ids("positives, right object", pairs[:, 1], width)])


def _distinct(
    positives: ArrayLike, n_left: int, n_right: int | None, test_size: float, seed: int
) -> tuple[Index, np.random.Generator]:
    """Return each link once, after checks, and a generator; of one kind (i, i) is no link."""
    check_real("test_size", test_size, 0.0, 1.0, open_low=True)
    check_integer("seed", seed, 0)
    links = _checked(positives, n_left, n_right)
    if n_right is None:
        links = links[links[:, 0] != links[:, 1]]
    _, first = np.unique(_codes(links, n_left, n_right), return_index=True)
    return links[np.sort(first)], np.random.default_rng(seed)


def _codes(pairs: Index, n_left: int, n_right: int | None) -> Index:
    """Return a number for each pair, the same for (i, j) and (j, i) of one kind."""
    if n_right is None:
        pairs = np.sort(pairs, axis=1)
    return np.asarray(pairs[:, 0] * (n_left if n_right is None else n_right) + pairs[:, 1])


def _labelled(up: Index, down: Index) -> tuple[Index, NDArray[np.int8]]:
    labels = np.repeat(np.array([1, 0], dtype=np.int8), [len(up), len(down)])
    return np.concatenate([up, down]), labels
