"""Which items an evaluation ranks for each user: all, candidates, or a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Fold, Interactions
from recsys.data.splits import ranks_of
from recsys.errors import InputError, counted
from recsys.utils.sparse import binary, owners

BIASED = "biased"  # begins the name of a metric of sampled negatives
SAMPLING = 1  # parts the draws of negatives from those of protocols


@dataclass(frozen=True)
class Ranked:
    """Which items are ranked for each user, besides those of the test half.

    Examples
    --------
    >>> from recsys.data import split
    >>> from recsys.datasets import load_dataset
    >>> data = load_dataset("sample")
    >>> fold = next(split(data, "leave-one-out"))
    >>> found = Ranked(sampled_negatives=9).of(fold, 0, data)
    >>> (fold.train.shape[1] - found.left_out(fold.users).sum(axis=1)).A1[:4].tolist()
    [10.0, 10.0, 10.0, 10.0]
    """

    filter_liked: bool = True
    candidates: sp.csr_matrix | None = None  # the only ones, (users, items); all where it is None
    sampled_negatives: int | None = None  # how many items are drawn for each user beside test items
    seed: int = 0

    def metric(self, name: str) -> str:
        """Return what a report calls a metric."""
        return name if self.sampled_negatives is None else f"{BIASED} {name}"

    def of(self, fold: Fold, number: int, data: Interactions) -> RankedFold:
        """Return a fold with what is ranked in it: test items that are not, and their users, left out.

        Each fold, by its number from 0, has draws of its own; these depend on the data's ids as text,
        and not on the order of its rows.
        """
        if self.filter_liked and self.candidates is None and self.sampled_negatives is None:
            if data.repeat_time is None:
                return RankedFold(fold, None, True)
        test = binary(fold.test, np.float32)
        none = np.zeros(0, dtype=np.int64)
        without, few = none, 0
        only = self.candidates
        if only is not None:
            without = fold.users[np.diff(only.indptr)[fold.users] == 0]
        if self.sampled_negatives is not None:
            only, few = self._sampled(fold, number, data)
        if only is not None and self.filter_liked:
            only = _less(only, fold.train)
        left = np.setdiff1d(fold.users, without)
        asked = _rows(test, left)
        if only is not None:
            found = sp.csr_matrix(asked.multiply(only), dtype=np.float32)
        else:
            found = _less(asked, fold.train) if self.filter_liked else asked
        found.eliminate_zeros()
        found.sort_indices()
        users = left[np.diff(found.indptr)[left] > 0]
        kept = replace(fold, users=users, test=found)
        return RankedFold(
            kept, only, self.filter_liked, len(without), asked.nnz, asked.nnz - found.nnz,
            len(left) - len(users), few,
        )  # fmt: skip

    def _sampled(self, fold: Fold, number: int, data: Interactions) -> tuple[sp.csr_matrix, int]:
        """Return test items with drawn ones, and how many users have fewer than are asked for."""
        assert self.sampled_negatives is not None
        rng = np.random.default_rng([self.seed, number, SAMPLING])
        by_text = np.argsort(ranks_of(data.item_ids))
        rank, items = ranks_of(data.user_ids)[fold.users], fold.test.shape[1]
        taken = np.zeros(items, dtype=np.bool_)
        rows: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * fold.test.shape[0]
        few = 0
        for user in fold.users[np.argsort(rank)].tolist():
            parts = [fold.test, fold.train] if self.filter_liked else [fold.test]
            own = [part.indices[part.indptr[user] : part.indptr[user + 1]] for part in parts]
            not_drawn = np.concatenate(own)
            taken[not_drawn] = True
            # The first ones outside `taken` of an order drawn of all items, which need not be whole.
            drawn = by_text[
                rng.choice(items, min(items, self.sampled_negatives + len(not_drawn)), replace=False)
            ]
            drawn = drawn[~taken[drawn]][: self.sampled_negatives]
            taken[not_drawn] = False
            few += len(drawn) < self.sampled_negatives
            rows[user] = np.sort(np.concatenate([own[0], drawn]))
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        indices = np.concatenate(rows).astype(np.int32)
        ones = np.ones(len(indices), dtype=np.float32)
        return sp.csr_matrix((ones, indices, indptr), fold.test.shape), few


class RankedFold(NamedTuple):
    """A fold with the items that are ranked in it, and counts of what is not."""

    fold: Fold  # test items that are not ranked, and users who have no other, are left out
    only: sp.csr_matrix | None  # the items that are ranked, where they are not all
    filter_liked: bool
    without: int = 0  # users without candidates
    asked: int = 0  # test items of the others
    missing: int = 0  # those of them that are not ranked
    unmatched: int = 0  # users who have no other
    few: int = 0  # users with fewer negatives than were asked for

    @property
    def changed(self) -> bool:
        """Whether other items are left out than those of the training rows."""
        return self.only is not None or not self.filter_liked

    def left_out(self, users: NDArray[np.int64]) -> sp.csr_matrix:
        """Return the items that are not ranked for some users, (users, items) CSR."""
        train = self.fold.train
        if self.only is None:
            return train[users] if self.filter_liked else _rows(train, users[:0])[users]
        mask = np.ones((len(users), train.shape[1]), dtype=np.bool_)
        chosen = self.only[users]
        mask[owners(chosen), chosen.indices] = False
        indices = np.broadcast_to(np.arange(train.shape[1], dtype=np.int32), mask.shape)[mask]
        indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int32)
        return sp.csr_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), mask.shape)


def ranked_sentences(
    ranked: Ranked,
    folds: Sequence[RankedFold],
    data: Interactions,
    grouped: bool,
    notes: Sequence[str] = (),
) -> list[str]:
    """Return sentences: which items are ranked, and what is left out; none where nothing was asked for.

    `grouped` says that each user is in one fold only; `notes` are on reading the candidates.
    """
    without, asked, missing, unmatched, few = (
        sum(getattr(one, name) for one in folds)
        for name in ("without", "asked", "missing", "unmatched", "few")
    )
    users = sum(len(one.fold.users) for one in folds)
    less = "less those that the user has in training"
    among = less if ranked.filter_liked else "also those that the user has in training"
    each = "" if grouped or len(folds) == 1 else ", counted once a fold,"
    lines: list[str] = []
    if ranked.sampled_negatives is not None:
        negatives = counted(ranked.sampled_negatives, "item")
        lines += [
            f"Ranked: each user's test items and {negatives} drawn at random from all others, {among}.",
            f"Metric values on sampled negatives are {BIASED}: on all items they differ, and may rank "
            "the models in another order (Krichene and Rendle 2020).",
        ]
        if few:
            have = "has" if few == 1 else "have"
            lines.append(
                f"{counted(few, 'user')}{each} {have} fewer other items: all of them are ranked."
            )
    elif ranked.candidates is not None:
        sets = [one.only[one.fold.users].nnz for one in folds if one.only is not None]
        lines.append(
            f"Ranked: each user's candidates, {among}: {sum(sets) / max(users, 1):.1f} on average of "
            f"{counted(users, 'user')}{each.rstrip(',')}; no sampled negatives."
        )
    elif not ranked.filter_liked:
        again = sum(_again(one.fold) for one in folds)
        are = "is" if again == 1 else "are"
        lines.append(
            f"Ranked: all {counted(data.n_items, 'item')}, {among}, and {again:,} of "
            f"{counted(asked, 'test item')} {are} among these; no sampled negatives."
        )
        if not again:
            lines.append(
                "Rows of one user and item are merged on reading: for repeats, give what came later as "
                "a test half (--test FILE, test= in Python)."
            )
    lines += notes
    if without:
        are = "is" if without == 1 else "are"
        lines.append(f"{counted(without, 'user')}{each} without candidates {are} left out.")
    if missing:
        of = f"{missing:,} of {counted(asked, 'test item')}"
        are, their, they = ("is", "its", "it is") if missing == 1 else ("are", "their", "they are")
        lines.append(f"{of} {are} not among the items ranked for {their} user: {they} not counted.")
    if unmatched:
        are = "is" if unmatched == 1 else "are"
        lines.append(f"{counted(unmatched, 'user')}{each} without another test item {are} left out.")
    return lines


def check_some_ranked(folds: Sequence[RankedFold], data: Interactions) -> None:
    """Refuse folds in which no test item is ranked."""
    if not any(len(one.fold.users) for one in folds):
        raise InputError(f"{data.name}: no user has a test item among the items that are ranked")


def _again(fold: Fold) -> int:
    """Return how many test items their users have in training."""
    return int(binary(fold.test).multiply(binary(fold.train))[fold.users].nnz)


def _less(one: sp.csr_matrix, other: sp.csr_matrix) -> sp.csr_matrix:
    """Return the entries of a matrix of ones that another does not have."""
    out = sp.csr_matrix(one - one.multiply(binary(other, one.dtype)), dtype=np.float32)
    out.eliminate_zeros()
    out.sort_indices()
    return out


def _rows(matrix: sp.csr_matrix, users: NDArray[np.int64]) -> sp.csr_matrix:
    """Return a matrix with the rows of some users, the others empty."""
    keep = np.zeros(matrix.shape[0], dtype=np.float32)
    keep[users] = 1
    out = sp.csr_matrix(sp.diags(keep, format="csr") @ matrix, dtype=np.float32)
    out.eliminate_zeros()
    out.sort_indices()
    return out
