"""What the feature rankers share: rows and items as features, training pairs, inner products."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.multilinear import PairTerm, object_tables
from recsys.rankers._scoring import inner_products
from recsys.rankers.serialization import SavedRanker, expect
from recsys.utils.sparse import binary, owners, unit_rows
from recsys.utils.validation import check_integer, check_real, clean_matrix

Factors = NDArray[np.float64]
EMPTY = 0.2  # of the users, whose empty histories are trained on where users have features


class FeatureRanker(SavedRanker):
    """What these rankers share: rows and items as features, scores as inner products."""

    item_vectors_: NDArray[np.float32]
    item_features_: sp.csr_matrix | None = None
    user_features_: sp.csr_matrix | None = None

    def set_item_features(self, item_features: Any) -> Any:
        """Give the items features, (items, features) dense or sparse, before fit; None takes them away.

        Raises
        ------
        InputError
            If they are not finite numbers.
        """
        return self._set("item_features", item_features)

    def set_user_features(self, user_features: Any) -> Any:
        """Give the users features, (users, features), before fit; None takes them away.

        Users of the fit without a liked item are then ranked by them; rows that are folded in have none.

        Raises
        ------
        InputError
            If they are not finite numbers.
        """
        return self._set("user_features", user_features)

    def _set(self, name: str, given: Any) -> Any:
        if given is None:
            vars(self).pop(f"{name}_", None)
            return self
        try:
            F = sp.csr_matrix(given, dtype=np.float64, copy=True)  # the caller's stays as it is
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} must be a matrix of numbers") from error
        if not np.isfinite(F.data).all():
            raise InputError(f"{name} hold NaN or infinity")
        F.sum_duplicates()
        setattr(self, f"{name}_", F)
        return self

    def for_items(self, items: NDArray[np.int64]) -> Any:
        """Return the unfitted ranker for some of the items only."""
        if self.item_features_ is None:
            return self
        return copy(self).set_item_features(self.item_features_[items])

    def _check_parameters(self) -> None:
        given = self.params()
        for key, low in (("factors", 1), ("negatives", 1), ("iterations", 1), ("random_state", 0)):
            if key in given:
                check_integer(key, given[key], low)
        check_real("regularization", given["regularization"], 0.0)

    def _items(self, items: int) -> sp.csr_matrix:
        """Return the items' features: unit rows of what is known of them, and identity.

        What is known comes first: descent visits features in order, and what identities may explain
        first is not learned of items that nobody has.
        """
        identity = sp.identity(items, format="csr")
        if self.item_features_ is None:
            return identity
        if self.item_features_.shape[0] != items:
            raise InputError(f"item_features have {self.item_features_.shape[0]} rows for {items} items")
        return sp.csr_matrix(sp.hstack([unit_rows(self.item_features_), identity], format="csr"))

    def _rows(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> sp.csr_matrix:
        """Return histories as features: the items' rows summed, scaled to unit length.

        Before them stands what is known of the users, if anything; nothing is where they are not named.
        """
        ones = binary(rows)
        history = unit_rows(sp.csr_matrix(ones @ self._items(rows.shape[1])))
        if self.user_features_ is None:
            return history
        known = sp.csr_matrix((rows.shape[0], self._people))
        if users is not None:
            known = unit_rows(self.user_features_[users])
        return sp.csr_matrix(sp.hstack([known, history], format="csr"))

    @property
    def _people(self) -> int:
        """The number of user features."""
        return 0 if self.user_features_ is None else self.user_features_.shape[1]

    def _width(self, items: int) -> int:
        """Return the number of features of a row."""
        return self._people + self._items(items).shape[1]

    def _without(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.bool_]:
        empty = super()._without(userids, rows, recalculate)
        if self.user_features_ is None or recalculate:
            return empty
        return empty & (np.diff(self.user_features_.indptr)[userids] == 0)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        rng = np.random.default_rng(self.params().get("random_state", 0))
        half, other, owners = self._training(liked, rng)
        users, items, labels = sample_pairs(other, half, self.params().get("negatives", 1), rng)
        B = self._items(liked.shape[1])
        if len(users) == 0 or labels.min() == labels.max():  # nobody has two items, or all have all
            self._keep([], B)
            self.item_vectors_ = np.ascontiguousarray(
                np.bincount(liked.indices, minlength=liked.shape[1])[:, None], dtype=np.float32
            )
            return
        self._train(self._rows(half, owners), B, np.column_stack([users, items]), labels)

    def _training(
        self, liked: sp.csr_matrix, rng: np.random.Generator
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64]]:
        """Return histories, what they are to predict, and whose they are.

        Where users have features there are also some empty histories, which predict whole profiles.
        """
        half, other = split_profiles(liked, rng)
        owners = np.tile(np.flatnonzero(np.diff(liked.indptr) >= 2), 2)
        if self.user_features_ is None:
            return half, other, owners
        if self.user_features_.shape[0] != liked.shape[0]:
            raise InputError(
                f"user_features have {self.user_features_.shape[0]} rows for {liked.shape[0]} users"
            )
        some = np.flatnonzero(np.diff(liked.indptr) > 0)
        some = some[rng.random(len(some)) < EMPTY]
        whole = sp.csr_matrix(liked[some], dtype=np.float64)
        whole.data[:] = 1.0
        nothing = sp.csr_matrix(whole.shape)
        return (
            sp.vstack([half, nothing], format="csr"), sp.vstack([other, whole], format="csr"),
            np.concatenate([owners, some]),
        )  # fmt: skip

    def _train(self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: Any) -> None:
        raise NotImplementedError

    def _keep(self, terms: list[PairTerm], B: sp.csr_matrix) -> None:
        """Keep the row side of the terms, and the item side evaluated on every item."""
        self.degrees_ = [term.degree for term in terms]
        self.whole_ = [bool(term.coefficients[0]) for term in terms]
        vectors = []
        for k, term in enumerate(terms):
            vars(self)[f"left{k}_"] = np.ascontiguousarray(term.left)
            m = term.degree
            for s in range(term.left.shape[1]):
                table = object_tables(B, term.right[:, s], m)
                for t in self._powers(m, bool(term.coefficients[0])):
                    vectors.append(term.weights[s] * table[:, m - t])
        if vectors:
            self.item_vectors_ = np.ascontiguousarray(np.array(vectors).T, dtype=np.float32)

    @staticmethod
    def _powers(degree: int, whole: bool) -> range:
        """Orders t of the row side: all where a term is of the concatenation, else 1…m − 1."""
        return range(degree + 1) if whole else range(1, degree)

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        """Return the row side, (rows, factors); in the order of `item_vectors_`."""
        if not self.degrees_:
            return np.ones((rows.shape[0], 1))
        A, out = self._rows(rows, users), []
        for k, (m, whole) in enumerate(zip(self.degrees_, self.whole_, strict=True)):
            left = getattr(self, f"left{k}_")
            for s in range(left.shape[1]):
                table = object_tables(A, np.ascontiguousarray(left[:, s]), m)
                out += [table[:, t] for t in self._powers(m, whole)]
        return np.array(out).T

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        users = None if recalculate else userids
        return inner_products(self._row_vectors(rows, users), self.item_vectors_)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        """Share a product of t features of the history evenly among them (Aumann–Shapley).

        For a term of order t in the history: share_j = a_j ∂/∂a_j ÷ t, which sum to the term.
        """
        score = float(self._scores(np.array([userid]), row, False)[0, item])
        shares = np.zeros(row.nnz)
        A = self._rows(row, np.array([userid]))
        at = 0
        vector = self.item_vectors_[item].astype(np.float64)
        per_item = self._item_rows(row, A)
        for k, (m, whole) in enumerate(zip(self.degrees_, self.whole_, strict=True)):
            left = getattr(self, f"left{k}_")
            for s in range(left.shape[1]):
                p = np.ascontiguousarray(left[:, s])
                table = object_tables(A, p, m)[0]
                slopes = np.zeros((m + 1, A.nnz))  # ∂A^t/∂a_j·a_j of each feature
                z = p[A.indices] * A.data
                b = np.ones(A.nnz)
                for t in range(1, m + 1):
                    slopes[t] = z * b
                    b = table[t] - z * b
                for t in self._powers(m, whole):
                    if t > 0:
                        shares += per_item @ (vector[at] * slopes[t] / t)
                    at += 1
        return score, shares

    def _item_rows(self, row: sp.csr_matrix, A: sp.csr_matrix) -> sp.csr_matrix:
        """Return how much of each feature of the history comes from each liked item, (liked, nnz)."""
        people = sp.csr_matrix((row.nnz, self._people))
        items = self._items(row.shape[1])[row.indices]
        B = sp.hstack([people, items], format="csc")[:, A.indices].tocsc()
        totals = np.asarray(B.sum(axis=0)).ravel()
        scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals != 0)
        return sp.csr_matrix(B @ sp.diags(scale))

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        norms = np.linalg.norm(self.item_vectors_, axis=1, keepdims=True)
        unit = self.item_vectors_ / np.where(norms > 0, norms, 1.0)
        return inner_products(unit[ids].astype(np.float64), np.asarray(unit, dtype=np.float32))

    def item_embeddings(self) -> NDArray[np.float32]:
        """Return the item side, (items, factors) float32: a score is its product with a row's side."""
        self._check_fitted()
        return self.item_vectors_

    def user_embeddings(self, user_items: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the row side, (rows, factors) float32."""
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        users = np.arange(self.n_users_) if rows.shape[0] == self.n_users_ else None
        return self._row_vectors(rows, users).astype(np.float32)

    def _check_state(self) -> None:
        self._check_people()
        width = 0
        features = self._width(self.n_items_)
        for k, (m, whole) in enumerate(zip(self.degrees_, self.whole_, strict=True)):
            if not isinstance(m, int) or not 1 <= m <= 10:
                raise ValueError("a degree is out of range")
            left = getattr(self, f"left{k}_")
            expect(f"left{k}_", left, (features, left.shape[-1]), np.float64)
            width += left.shape[1] * len(self._powers(m, bool(whole)))
        expect("item_vectors_", self.item_vectors_, (self.n_items_, max(width, 1)), np.float32)

    def _check_people(self) -> None:
        if self.user_features_ is not None and self.user_features_.shape[0] != self.n_users_:
            raise ValueError("user_features_ does not have one row per user")


def split_profiles(
    liked: sp.csr_matrix, rng: np.random.Generator
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return two rows a user of two items or more: each random half of the profile, and the other."""
    lengths = np.diff(liked.indptr)
    users = np.flatnonzero(lengths >= 2)
    owner = owners(liked)
    place = np.lexsort((rng.random(liked.nnz), owner))
    rank = np.empty(liked.nnz, dtype=np.int64)
    rank[place] = np.arange(liked.nnz) - np.repeat(liked.indptr[:-1], lengths)
    first = rank < (lengths[owner] + 1) // 2
    number = np.full(len(lengths), -1)
    number[users] = np.arange(len(users))
    keep = number[owner] >= 0

    def rows(mask: NDArray[np.bool_]) -> sp.csr_matrix:
        mask = mask & keep
        ones = np.ones(int(mask.sum()))
        shape = (len(users), liked.shape[1])
        return sp.csr_matrix((ones, (number[owner[mask]], liked.indices[mask])), shape)

    one, two = rows(first), rows(~first)
    return sp.vstack([one, two], format="csr"), sp.vstack([two, one], format="csr")


def sample_pairs(
    positives: sp.csr_matrix, known: sp.csr_matrix, negatives: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Return rows, items and labels: every positive, and items drawn from those a row does not have."""
    owner = owners(positives)
    rows = np.repeat(owner, negatives)
    both = sp.csr_matrix(positives + known)
    somebody = np.unique(both.indices)  # an item nobody has is unknown, not disliked
    items = somebody[rng.integers(len(somebody), size=len(rows))] if len(rows) else rows
    taken = both.indices.astype(np.int64) + np.repeat(
        np.arange(both.shape[0]), np.diff(both.indptr)
    ) * np.int64(both.shape[1])
    free = ~np.isin(rows * np.int64(positives.shape[1]) + items, taken)
    users = np.concatenate([owner, rows[free]]).astype(np.int64)
    labels = np.zeros(len(users), dtype=np.int8)
    labels[: len(owner)] = 1
    return users, np.concatenate([positives.indices, items[free]]).astype(np.int64), labels


def products(X: sp.csr_matrix, p: Factors) -> Factors:
    """Return Π_j (1 + p_j x_j) of each row."""
    terms = 1.0 + X.data * p[X.indices]
    out = np.ones(X.shape[0])
    full = np.flatnonzero(np.diff(X.indptr))
    out[full] = np.multiply.reduceat(terms, X.indptr[full])
    return out
