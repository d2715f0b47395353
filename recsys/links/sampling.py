"""Negative pairs, and splits over pairs and over objects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.utils.features import as_array
from recsys.utils.validation import check_ids, check_integer, check_real

__all__ = [
    "LinkSplit",
    "sample_negatives",
    "split_objects",
    "split_pairs",
]

Index = NDArray[np.int64]
MOST_PAIRS = 2**62  # a pair's number, and twice it, are int64


class LinkSplit(NamedTuple):
    """Training and test pairs with labels (1 for a link, 0 for none).

    Attributes
    ----------
    train, test : (pairs, 2) int64
    train_labels, test_labels : (pairs,) int8

    Examples
    --------
    >>> split = split_pairs([[0, 1], [1, 2], [0, 3], [2, 3]], n_left=4, n_right=5)
    >>> split.train.shape, split.train_labels.tolist()
    ((4, 2), [1, 1, 0, 0])
    """

    train: Index
    train_labels: NDArray[np.int8]
    test: Index
    test_labels: NDArray[np.int8]


def sample_negatives(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None,
    count: int,
    seed: int = 0,
    avoid: ArrayLike | None = None,
) -> Index:
    """Return `count` distinct pairs without a link, drawn uniformly, (count, 2).

    Parameters
    ----------
    positives : (links, 2) int
    n_left, n_right : int
        Objects of each kind; n_right = None for pairs i < j of one kind.
    count : int
    seed : int
    avoid : (pairs, 2) int, optional
        Further pairs to exclude.
    """
    links, n_left, n_right = _checked("positives", positives, n_left, n_right)
    check_integer("count", count, 0)
    check_integer("seed", seed, 0)
    taken = _codes(links, n_left, n_right)
    if avoid is not None:
        taken = np.union1d(taken, _codes(_checked("avoid", avoid, n_left, n_right)[0], n_left, n_right))
    total = n_left * n_right if n_right is not None else n_left * (n_left - 1) // 2
    left = total - len(np.unique(taken))
    if count > left:
        raise InputError(
            f"{count:,} pairs without a link are needed, but only {left:,} exist: lower "
            "the ratio, or add objects"
        )
    rng = np.random.default_rng(seed)
    width = n_left if n_right is None else n_right
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        size = 2 * (count - len(found)) + 16
        pairs = np.column_stack([rng.integers(n_left, size=size), rng.integers(width, size=size)])
        if n_right is None:
            pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        codes = pairs[:, 0] * width + pairs[:, 1]
        codes = np.concatenate([found, codes[~np.isin(codes, taken)]])
        _, first = np.unique(codes, return_index=True)
        found = codes[np.sort(first)][:count]  # in the order drawn: no bias towards small numbers
    return np.column_stack([found // width, found % width])


def _checked(
    name: str, pairs: ArrayLike, n_left: int, n_right: int | None
) -> tuple[Index, int, int | None]:
    """Return pairs as (pairs, 2) int64 and the numbers of objects, once each pair is of these."""
    left = check_integer("n_left", n_left, 0)
    right = None if n_right is None else check_integer("n_right", n_right, 0)
    if left * (right or left) > MOST_PAIRS:
        raise InputError(f"{left:,} × {right or left:,} objects have too many pairs")
    given = as_array(name, pairs)
    if given.size == 0 and given.dtype.kind in "biuf":
        return np.empty((0, 2), dtype=np.int64), left, right
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise InputError(f"{name} must be (pairs, 2) integers, not {given.shape} {given.dtype}")
    check_ids(f"{name}, left object", given[:, 0], left)
    check_ids(f"{name}, right object", given[:, 1], right or left)
    return given.astype(np.int64), left, right


def _distinct(links: Index, n_left: int, n_right: int | None) -> Index:
    """Return each link once; of one kind (i, j) and (j, i) are one, and (i, i) is none."""
    if n_right is None:
        links = links[links[:, 0] != links[:, 1]]
    _, first = np.unique(_codes(links, n_left, n_right), return_index=True)
    return links[np.sort(first)]


def _codes(pairs: NDArray[np.int64], n_left: int, n_right: int | None) -> Index:
    if len(pairs) == 0:
        return np.empty(0, dtype=np.int64)
    if n_right is None:
        pairs = np.sort(pairs, axis=1)
    return (pairs[:, 0] * (n_left if n_right is None else n_right) + pairs[:, 1]).astype(np.int64)


def split_pairs(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    test_size: float = 0.5,
    ratio: float = 1.0,
    test_ratio: float | None = 1.0,
    seed: int = 0,
) -> LinkSplit:
    """Split links at random and sample negatives for each part.

    Repeated links count once, and so do (i, j) and (j, i) for one kind.

    Parameters
    ----------
    positives : (links, 2) int
    n_left, n_right : int
        Objects of each kind; n_right = None for pairs of one kind.
    test_size : float in (0, 1)
    ratio, test_ratio : float
        Negatives per link, above 0; test_ratio = None tests on all remaining pairs without a link.
    seed : int
    """
    check_real("test_size", test_size, 0.0, 1.0, open_low=True)
    check_real("ratio", ratio, 0.0, open_low=True)
    if test_ratio is not None:
        check_real("test_ratio", test_ratio, 0.0, open_low=True)
    check_integer("seed", seed, 0)
    links, n_left, n_right = _checked("positives", positives, n_left, n_right)
    links = _distinct(links, n_left, n_right)
    order = np.random.default_rng(seed).permutation(len(links))
    cut = len(links) - round(test_size * len(links))
    train, test = links[order[:cut]], links[order[cut:]]
    down = sample_negatives(links, n_left, n_right, round(ratio * len(train)), seed + 1)
    if test_ratio is None:
        every = np.argwhere(
            np.triu(np.ones((n_left, n_left)), 1) if n_right is None else np.ones((n_left, n_right))
        )
        taken = _codes(np.concatenate([links, down]), n_left, n_right)
        rest = every[~np.isin(_codes(every, n_left, n_right), taken)]
    else:
        rest = sample_negatives(links, n_left, n_right, round(test_ratio * len(test)), seed + 2, down)
    return LinkSplit(*_labelled(train, down), *_labelled(test, rest))


def split_objects(
    positives: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    test_size: float = 0.3,
    ratio: float = 1.0,
    seed: int = 0,
) -> LinkSplit:
    """Split over objects (cold start): tested pairs join two objects that no training pair contains.

    Parameters as in `split_pairs`. Objects of each kind are held out; links between a held-out and
    another object are in neither part.
    """
    check_real("test_size", test_size, 0.0, 1.0, open_low=True)
    check_real("ratio", ratio, 0.0, open_low=True)
    check_integer("seed", seed, 0)
    links, n_left, n_right = _checked("positives", positives, n_left, n_right)
    links = _distinct(links, n_left, n_right)
    rng = np.random.default_rng(seed)
    out_left = np.zeros(n_left, dtype=bool)
    out_left[rng.permutation(n_left)[: round(test_size * n_left)]] = True
    out_right = out_left
    if n_right is not None:
        out_right = np.zeros(n_right, dtype=bool)
        out_right[rng.permutation(n_right)[: round(test_size * n_right)]] = True
    parts = []
    for k, held in enumerate((False, True)):
        here, there = np.flatnonzero(out_left == held), np.flatnonzero(out_right == held)
        up = links[(out_left[links[:, 0]] == held) & (out_right[links[:, 1]] == held)]
        local = np.column_stack([np.searchsorted(here, up[:, 0]), np.searchsorted(there, up[:, 1])])
        others = None if n_right is None else len(there)
        down = sample_negatives(local, len(here), others, round(ratio * len(up)), seed + 1 + k)
        parts.append(_labelled(up, np.column_stack([here[down[:, 0]], there[down[:, 1]]])))
    return LinkSplit(*parts[0], *parts[1])


def _labelled(up: Index, down: Index) -> tuple[Index, NDArray[np.int8]]:
    labels = np.zeros(len(up) + len(down), dtype=np.int8)
    labels[: len(up)] = 1
    return np.concatenate([up, down]).astype(np.int64), labels
