"""Base of rankers of histories: rows and items as features, training pairs, inner products.

A user is the items of the row, scaled to unit length, and so needs no refit; an item is its identity,
with its features if there are any, so that cold items are ranked by what they are like. Training
rows are halves of profiles, and the items to predict come from the other half: an item never predicts
itself. Every score is an inner product of row factors and item factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._scoring import cosines, inner_products
from recsys.rankers.base import Ranker
from recsys.utils.memory import check_fits
from recsys.utils.sparse import binary, masked, owners, random_halves, unit_rows
from recsys.utils.validation import MOST, check_integer, check_real, clean_matrix

Factors = NDArray[np.float64]
RANGES = (
    ("factors", 1, MOST), ("neg_prop", 1, MOST), ("iterations", 1, MOST), ("random_state", 0, None),
    ("degree", 2, 6),
)  # fmt: skip
EMPTY = 0.2  # of the users, whose empty histories are trained on where users have features


class FeatureRanker(Ranker):
    """A ranker of items by features of a row and features of an item.

    Parameters
    ----------
    factors : int ≥ 1
        Rank.
    regularization : float ≥ 0
    neg_prop : int ≥ 1
        Items not liked that are drawn for each liked one.
    iterations : int ≥ 1
        Passes over the pairs.
    """

    random_state: int
    neg_prop: int  # of those that sample pairs
    item_features_: sp.csr_matrix | None = None
    user_features_: sp.csr_matrix | None = None

    def _check_parameters(self) -> None:
        given = self.get_params()
        for key, low, high in RANGES:
            if key in given:
                check_integer(key, given[key], low, high)
        if "regularization" in given:
            check_real("regularization", given["regularization"], 0.0)

    def _items(self, items: int) -> sp.csr_matrix:
        """Return the items' features: unit rows of what is known of them, and identity.

        What is known comes first: descent visits features in order, and what identities may explain
        first is not learned of cold items.
        """
        identity = sp.identity(items, format="csr")
        if self.item_features_ is None:
            return identity
        return sp.csr_matrix(sp.hstack([unit_rows(self.item_features_), identity], format="csr"))

    def _rows(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> sp.csr_matrix:
        """Return histories as features: the items' rows summed, scaled to unit length.

        Before them stands what is known of the users, if anything; nothing is where they are not named.
        """
        ones = binary(rows)
        history = unit_rows(sp.csr_matrix(ones @ self._items(rows.shape[1])))
        if self.user_features_ is None:
            return history
        known = sp.csr_matrix((rows.shape[0], self._n_user_features))
        if users is not None:
            known = unit_rows(self.user_features_[users])
        return sp.csr_matrix(sp.hstack([known, history], format="csr"))

    @property
    def _n_user_features(self) -> int:
        """The number of user features."""
        return 0 if self.user_features_ is None else self.user_features_.shape[1]

    def _width(self, items: int) -> int:
        """Return the number of features of a row."""
        return self._n_user_features + self._items(items).shape[1]

    def falls_back(self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        """Return for which rows nothing is known, of the user's features either."""
        empty = super().falls_back(userids, rows)
        if self.user_features_ is None or userids is None:
            return empty
        return empty & (np.diff(self.user_features_.indptr)[userids] == 0)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        item_features: sp.csr_matrix | None = None,
        user_features: sp.csr_matrix | None = None,
    ) -> None:
        self.item_features_, self.user_features_ = item_features, user_features
        factors = self.get_params().get("factors", 0)
        items = liked.shape[1]
        # At least: a history's side in float64, an item's in float32.
        check_fits(1.5 * items * factors, f"factors={factors} of {items:,} items", "lower factors")
        self._learn(liked)

    def _learn(self, liked: sp.csr_matrix) -> None:
        """Learn from the interactions, with the features in place."""
        raise NotImplementedError

    def _training(
        self, liked: sp.csr_matrix, rng: np.random.Generator
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64]]:
        """Return histories, what they are to predict, and whose they are.

        Where users have features there are also some empty histories, which predict whole profiles.
        """
        half, other = split_profiles(liked, rng)
        whose = np.tile(np.flatnonzero(np.diff(liked.indptr) >= 2), 2)
        if self.user_features_ is None:
            return half, other, whose
        some = np.flatnonzero(np.diff(liked.indptr) > 0)
        some = some[rng.random(len(some)) < EMPTY]
        whole = binary(liked[some])
        nothing = sp.csr_matrix(whole.shape)
        return (
            sp.vstack([half, nothing], format="csr"), sp.vstack([other, whole], format="csr"),
            np.concatenate([whose, some]),
        )  # fmt: skip

    def _training_pairs(
        self, liked: sp.csr_matrix
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64], NDArray[np.int8]] | None:
        """Return features of histories and of items, pairs of them, and which of these are interactions.

        None where there is nothing to learn: no user has two items, or all users have all items.
        """
        rng = np.random.default_rng(self.random_state)
        half, other, whose = self._training(liked, rng)
        users, items, labels = sample_pairs(other, half, self.neg_prop, rng)
        if len(users) == 0 or labels.min() == labels.max():
            return None
        A, B = self._rows(half, whose), self._items(liked.shape[1])
        return A, B, np.column_stack([users, items]), labels

    @staticmethod
    def _popularities(liked: sp.csr_matrix) -> NDArray[np.float32]:
        """Return item vectors of one number, where nothing else can be learned, (items, 1)."""
        counts = np.bincount(liked.indices, minlength=liked.shape[1])
        return np.ascontiguousarray(counts[:, None], dtype=np.float32)

    def _check_user_features(self) -> None:
        if self.user_features_ is not None and self.user_features_.shape[0] != self.n_users_:
            raise ValueError("user_features_ does not have one row per user")


class HistoryRanker(FeatureRanker):
    """A ranker by inner products of features of a row and features of an item."""

    item_vectors_: NDArray[np.float32]

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        """Return the row side, (rows, factors), in the order of `item_vectors_`.

        Users are None for rows that are not of users of the fit, for which nothing else is known.
        """
        raise NotImplementedError

    def _scores(self, userids: NDArray[np.int64], rows: sp.csr_matrix) -> NDArray[np.float32]:
        return inner_products(self._row_vectors(rows, userids), self.item_vectors_)

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return inner_products(self._row_vectors(rows), self.item_vectors_)

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return cosines(self.item_vectors_, ids)

    def item_embeddings(self) -> NDArray[np.float32]:
        """Return the item side, (items, factors) float32: a score is its product with a row's side."""
        self._check_fitted()
        return self.item_vectors_

    def user_embeddings(self, user_items: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the row side, (rows, factors) float32.

        A matrix of as many rows as the fit had is taken for that of the fit: its users' features count.
        """
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        users = np.arange(self.n_users_) if rows.shape[0] == self.n_users_ else None
        return self._row_vectors(rows, users).astype(np.float32)


def split_profiles(
    liked: sp.csr_matrix, rng: np.random.Generator
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return two rows a user of two items or more: each random half of the profile, and the other."""
    users = np.flatnonzero(np.diff(liked.indptr) >= 2)
    first = random_halves(liked, rng)
    one, two = (masked(binary(liked), half)[users] for half in (first, ~first))
    return sp.vstack([one, two], format="csr"), sp.vstack([two, one], format="csr")


def sample_pairs(
    positives: sp.csr_matrix, known: sp.csr_matrix, negatives: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Return rows, items and labels: every positive, and items drawn from those a row does not have."""
    owner = owners(positives)
    rows = np.repeat(owner, negatives)
    both = sp.csr_matrix(positives + known)
    somebody = np.unique(both.indices)  # a cold item is unknown, not disliked
    items = somebody[rng.integers(len(somebody), size=len(rows))] if len(rows) else rows
    taken = both.indices.astype(np.int64) + owners(both) * np.int64(both.shape[1])
    free = ~np.isin(rows * np.int64(positives.shape[1]) + items, taken)
    users = np.concatenate([owner, rows[free]]).astype(np.int64)
    labels = np.zeros(len(users), dtype=np.int8)
    labels[: len(owner)] = 1
    return users, np.concatenate([positives.indices, items[free]]).astype(np.int64), labels
