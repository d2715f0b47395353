"""Decompositions of scores inside some models: the parts of a blend, the products of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recsys.explain.counterfactuals import open_items, rank_among
from recsys.explain.recency import known_times
from recsys.rankers.base import Ranker
from recsys.utils.validation import clean_matrix

LISTED = 12  # products that are named


class PartShare(NamedTuple):
    """One part of a blend, at one item.

    Parameters
    ----------
    name : str
        The part's specification.
    weight : float
    adds : float
        To the blend's score.
    rank : int
        Rank of the item by that part alone, among those that could be recommended.

    Examples
    --------
    >>> PartShare("ease", 0.75, 1.5, 2).rank
    2
    """

    name: str
    weight: float
    adds: float
    rank: int


def blend_parts(
    ranker: Ranker, userid: int, row: Any, item: int, leave_out: ArrayLike = (), *, times: Any = None
) -> list[PartShare]:
    """Return each part's contribution to a blend's score, and the item's rank by that part alone.

    Parameters
    ----------
    ranker, userid, row, item, leave_out, times
        As in `what_if`.

    Returns
    -------
    list of PartShare
        In the blend's order; what they add sums to the score. Empty for a ranker without parts.

    Raises
    ------
    InputError, NotFittedError
        As the ranker's `scores`. OutOfRangeError for an item that there is not.

    Examples
    --------
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("blend", models="ease+msdw").fit(R, show_progress=False)
    >>> [part.name for part in blend_parts(model, 3, R[3], 10)]
    ['ease', 'msdw']
    """
    blend: Any = ranker
    if not hasattr(blend, "part_scores"):
        return []
    liked = clean_matrix(row, n_rows=1, name="row")
    times = known_times(ranker, userid, times)
    every = blend.part_scores(userid, liked, times)
    free = open_items(liked, leave_out, item)
    return [
        PartShare(str(name), float(weight), float(scores[item]), rank_among(scores, free, item))
        for name, weight, scores in zip(blend.part_names_, blend.part_weights_, every, strict=True)
    ]


class Product(NamedTuple):
    """Features of a profile that a machine multiplies with an item's, and what that adds to the score.

    Parameters
    ----------
    names : tuple of str
        One feature, or two.
    adds : float

    Examples
    --------
    >>> " × ".join(Product(("Alien", "genres=War"), 0.125).names)
    'Alien × genres=War'
    """

    names: tuple[str, ...]
    adds: float


class Decomposition(NamedTuple):
    """A factorization machine's score as a sum: base + everything listed + others + higher.

    Parameters
    ----------
    base : float
        The item's own part, the same for all users.
    listed : list of Product
        The largest, whatever their sign.
    others : float
        What the products of one or two features add that are not listed.
    unlisted : int
        Their number.
    higher : float
        What more than two features add together.

    Examples
    --------
    >>> Decomposition(0.5, [Product(("Alien",), 0.25)], 0.0, 0, 0.0).score
    0.75
    """

    base: float
    listed: list[Product]
    others: float
    unlisted: int
    higher: float

    @property
    def score(self) -> float:
        """The sum of all."""
        return self.base + sum(one.adds for one in self.listed) + self.others + self.higher


def products(
    ranker: Ranker,
    userid: int,
    row: Any,
    item: int,
    titles: ArrayLike,
    item_features: Sequence[str] = (),
    user_features: Sequence[str] = (),
    most: int = LISTED,
    *,
    recalculate_user: bool = False,
) -> Decomposition | None:
    """Return the features of a profile, and the pairs, on which a factorization machine's score rests.

    Parameters
    ----------
    ranker, userid, row, item
        As in `reasons`.
    titles : (items,) of str
    item_features, user_features : sequences of str
        Names of the features that the ranker was fitted with.
    most : int ≥ 1
    recalculate_user : bool
        As in `reasons`.

    Returns
    -------
    Decomposition or None
        None for a ranker that is no such machine. A product of two is that of different features.

    Raises
    ------
    InputError, NotFittedError
        As the ranker's `scores`. OutOfRangeError for an item that there is not.

    Notes
    -----
    A profile's features are its items, scaled to unit length with what is known of them; the machine is
    multilinear in them, so that its score is exactly this sum (Rendle 2010, eq. 1; Blondel et al. 2016,
    eq. 3 for higher orders).

    Examples
    --------
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> data = load_dataset("sample")
    >>> R = data.matrix
    >>> model = make_ranker("fm", iterations=2).fit(R, show_progress=False)
    >>> found = products(model, 3, R[3], 10, data.titles)
    >>> bool(abs(found.score - model.scores([3], R[3])[0, 10]) < 1e-5)
    True
    """
    if not hasattr(ranker, "products"):
        return None
    liked = clean_matrix(row, n_rows=1, name="row")
    found = ranker.products(userid, liked, item, recalculate_user=recalculate_user)
    names = [*user_features, *item_features, *map(str, np.asarray(titles, dtype=object))]
    known = [names[f] if f < len(names) else f"feature {f}" for f in found.features]
    first, second = np.nonzero(found.pairs)
    values = np.concatenate([found.singles, found.pairs[first, second]])
    order = np.argsort(-np.abs(values), kind="stable")
    listed, alone = [], len(found.singles)
    for k in order[:most].tolist():
        names_of = (k,) if k < alone else (first[k - alone], second[k - alone])
        listed.append(Product(tuple(known[j] for j in names_of), float(values[k])))
    rest = values[order[most:]].tolist()
    return Decomposition(float(found.base), listed, float(sum(rest)), len(rest), float(found.higher))
