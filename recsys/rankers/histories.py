"""Rankers of histories: half of a profile predicts the other half, by features of both sides.

A user is the items of the row, scaled to unit length, and so needs no refit; an item is its identity,
with its features if there are any, so that cold items are ranked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.multilinear import PairTerm, object_tables
from recsys.rankers.base import Data, Rows, Shares
from recsys.rankers.protocol import Floats, Ints, Items, Users, integer
from recsys.rankers.scoring import VectorRanker
from recsys.utils.resources import check_memory
from recsys.utils.sparse import binary, masked, owners, random_halves, unit_rows

EMPTY = 0.2  # of the users, whose empty histories are trained on where users have features


class Pairs(NamedTuple):
    """Pairs of a history and an item, sampled for a fit."""

    A: sp.csr_matrix  # features of histories
    B: sp.csr_matrix  # features of items
    pairs: Ints  # (n, 2): rows of A and of B
    labels: NDArray[np.int8]  # 1 for items of the other half of the profile


class HistoryRanker(VectorRanker):
    """Base of the rankers that score features of a history and of an item."""

    random_state: int
    neg_prop: int  # of those that sample pairs
    item_features_: sp.csr_matrix | None = None
    user_features_: sp.csr_matrix | None = None

    uses = frozenset({"item_features", "user_features"})
    checks = VectorRanker.checks | {"degree": integer(2, 6)}

    def _learn(self, liked: sp.csr_matrix) -> None:
        """Learn from the interactions, with the features in place."""
        raise NotImplementedError

    def _fit(self, data: Data) -> None:
        self.item_features_, self.user_features_ = data.item_features, data.user_features
        factors, items = self.get_params().get("factors", 0), data.liked.shape[1]
        # At least: a history's side in float64, an item's in float32.
        check_memory(12.0 * items * factors, f"factors={factors} of {items:,} items", "lower factors")
        self._learn(data.liked)

    def _item_features(self, items: int) -> sp.csr_matrix:
        """Return the items' features: unit rows of what is known of them, and identity."""
        # What is known comes first: descent visits features in order, and what identities explain is
        # not learned of cold items.
        identity = sp.identity(items, format="csr")
        if self.item_features_ is None:
            return identity
        return sp.csr_matrix(sp.hstack([unit_rows(self.item_features_), identity], format="csr"))

    def _history_features(self, rows: sp.csr_matrix, users: Users = None) -> sp.csr_matrix:
        """Return features of histories: the users' own, and the items' rows summed to unit length."""
        history = unit_rows(sp.csr_matrix(binary(rows) @ self._item_features(rows.shape[1])))
        if self.user_features_ is None:
            return history
        known = sp.csr_matrix((rows.shape[0], self.user_features_.shape[1]))
        if users is not None:
            known = unit_rows(self.user_features_[users])
        return sp.csr_matrix(sp.hstack([known, history], format="csr"))

    def _width(self, items: int) -> int:
        known = 0 if self.user_features_ is None else self.user_features_.shape[1]
        return int(known + self._item_features(items).shape[1])

    def falls_back(self, users: Users, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        """Return a mask of the rows without information, also of the user's features."""
        empty = super().falls_back(users, rows)
        if self.user_features_ is None or users is None:
            return empty
        return empty & (np.diff(self.user_features_.indptr)[users] == 0)

    def _halves(
        self, liked: sp.csr_matrix, rng: np.random.Generator
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, Ints]:
        """Return histories, some of them empty where users have features, target items, and users."""
        half, other = split_profiles(liked, rng)
        whose = np.tile(np.flatnonzero(np.diff(liked.indptr) >= 2), 2)
        if self.user_features_ is None:
            return half, other, whose
        some = np.flatnonzero(np.diff(liked.indptr) > 0)
        some = some[rng.random(len(some)) < EMPTY]
        whole = binary(liked[some])
        return (
            sp.vstack([half, sp.csr_matrix(whole.shape)], format="csr"),
            sp.vstack([other, whole], format="csr"),
            np.concatenate([whose, some]),
        )

    def _training_pairs(self, liked: sp.csr_matrix) -> Pairs | None:
        """Return pairs to fit on; None where no user has two items, or all users have all items."""
        rng = np.random.default_rng(self.random_state)
        half, other, whose = self._halves(liked, rng)
        rows, items, labels = sample_pairs(other, half, self.neg_prop, rng)
        if len(rows) == 0 or labels.min() == labels.max():
            return None
        A, B = self._history_features(half, whose), self._item_features(liked.shape[1])
        return Pairs(A, B, np.column_stack([rows, items]), labels)

    def _popularity_vectors(self, liked: sp.csr_matrix) -> NDArray[np.float32]:
        """Return numbers of users as vectors of items, where nothing else can be learned."""
        return np.bincount(liked.indices, minlength=liked.shape[1])[:, None].astype(np.float32)


class FeatureRanker(HistoryRanker):
    """Base of the rankers of histories whose scores are shared among features."""

    def _feature_shares(self, A: sp.csr_matrix, items: Items) -> list[Shares]:
        """Return scores and what each feature of each history adds to them, (items, features)."""
        raise NotImplementedError

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        """Return the shares of items of the rows: those of the features that come from them."""
        A = self._history_features(rows.matrix, users)
        of_items = self._item_features(rows.matrix.shape[1])
        first = A.shape[1] - of_items.shape[1]  # features of the user come before
        out = []
        of_features = zip(rows.spans, Rows(A).spans, self._feature_shares(A, items), strict=True)
        for span, features, (scores, shares) in of_features:
            names = A.indices[features]
            of_history = names >= first
            own = of_items[rows.matrix.indices[span]][:, names[of_history] - first]
            totals = np.asarray(own.sum(axis=0)).ravel()  # a feature goes to the items that it came from
            shares = shares[:, of_history] / np.where(totals == 0, np.inf, totals)
            out.append((scores, (own @ shares.T).T))
        return out


class PairTermRanker(HistoryRanker):
    """Base of the rankers with products of up to `degree` features of history and item."""

    degrees_: list[int]  # of each term
    whole_: list[bool]  # whether a term is over both sides together, instead of products across them
    lefts_: list[Floats]  # (features, factors) of each term
    # The vectors of items, (items, …), are the item side of all terms.
    link: ClassVar[str]  # the link predictor of `recsys.links` that learns the terms

    def _model(self, **params: Any) -> Any:
        import recsys.links  # late: it imports scikit-learn

        return getattr(recsys.links, self.link)(**params)

    def _terms(self, found: Pairs) -> list[PairTerm]:
        raise NotImplementedError

    def _learn(self, liked: sp.csr_matrix) -> None:
        found = self._training_pairs(liked)
        terms = [] if found is None else self._terms(found)
        self.degrees_ = [term.degree for term in terms]
        self.whole_ = [bool(term.coefficients[0]) for term in terms]
        self.lefts_ = [np.ascontiguousarray(term.left) for term in terms]
        if found is None:
            self.item_factors_ = self._popularity_vectors(liked)
        else:
            self.item_factors_ = self._item_vectors(terms, found.B)

    def _item_vectors(self, terms: list[PairTerm], B: sp.csr_matrix) -> NDArray[np.float32]:
        vectors = []
        for term in terms:
            m = term.degree
            for s in range(term.left.shape[1]):
                table = object_tables(B, term.right[:, s], m)
                for t in orders(m, bool(term.coefficients[0])):
                    vectors.append(term.weights[s] * table[:, m - t])
        return np.ascontiguousarray(np.array(vectors).T, dtype=np.float32)

    def _row_factors(self, rows: sp.csr_matrix, users: Users = None) -> Floats:
        if not self.degrees_:
            return np.ones((rows.shape[0], 1))
        tables = self._tables(self._history_features(rows, users))
        return np.array([table[:, t] for used, _, table in tables for t in used]).T

    def _tables(self, A: sp.csr_matrix) -> Iterator[tuple[range, Floats, NDArray[Any]]]:
        """Yield the orders, the parameters and the table of products of each component of each term."""
        for m, whole, left in zip(self.degrees_, self.whole_, self.lefts_, strict=True):
            for p in np.ascontiguousarray(left.T):
                yield orders(m, whole), p, object_tables(A, p, m)


def orders(degree: int, whole: bool) -> range:
    """Return the orders t of the row side: all where a term is of the concatenation, else 1…m − 1."""
    return range(degree + 1) if whole else range(1, degree)


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
) -> tuple[Ints, Ints, NDArray[np.int8]]:
    """Return rows, items and labels: every positive, and items drawn from those a row does not have."""
    owner = owners(positives)
    rows = np.repeat(owner, negatives)
    both = sp.csr_matrix(positives + known)
    known_items = np.unique(both.indices)  # a cold item is unknown, not disliked
    items = known_items[rng.integers(len(known_items), size=len(rows))] if len(rows) else rows
    free = np.asarray(both[rows, items]).ravel() == 0 if len(rows) else np.zeros(0, dtype=bool)
    users = np.concatenate([owner, rows[free]]).astype(np.int64)
    labels = np.zeros(len(users), dtype=np.int8)
    labels[: len(owner)] = 1
    return users, np.concatenate([positives.indices, items[free]]).astype(np.int64), labels
