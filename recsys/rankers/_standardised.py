"""Base of blends: sums of other rankers' standardised scores.

A part's scores of a user are brought to mean 0 and deviation 1 over all items, so that parts of any
scale add up, and a blended score is explained by its parts' explanations.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.rankers.base import Ranker, Shares, Times, expect
from recsys.rankers.registry import ranker_of
from recsys.utils.spec import parse_spec


class StandardisedSum(Ranker):
    """A ranker that adds up whole rankers, its parts, each with a weight."""

    part_weights_: NDArray[np.float64]
    part_names_: list[str]
    parts_: list[Ranker]

    @property
    def parts(self) -> list[Ranker]:
        """The fitted rankers that are blended."""
        return self.parts_

    def _adopt(self, names: list[str], parts: list[Ranker], weights: NDArray[np.float64]) -> None:
        """Keep fitted parts, called as they were asked for."""
        for part in parts:
            vars(part).pop("times_", None)  # the blend's own serve all
        self.part_names_, self.parts_ = names, parts
        self.part_weights_ = np.asarray(weights, dtype=np.float64)

    def _check_state(self) -> None:
        names, parts = self.part_names_, self.parts_
        if not isinstance(names, list) or len(names) != len(parts) or not parts:
            raise ValueError("part_names_ does not name each part")
        expect("part_weights_", self.part_weights_, (len(parts),), np.float64)
        if (self.part_weights_ < 0).any():
            raise ValueError("a part weighs less than nothing")
        for name, part in zip(names, parts, strict=True):
            if isinstance(part, StandardisedSum) or "fold-in" not in part.capabilities:
                raise ValueError(f"a blend cannot have a part {part.name}")
            if parse_spec(str(name))[0] != part.name:
                raise ValueError("part_names_ names other parts")
            if (part.n_users_, part.n_items_) != (self.n_users_, self.n_items_):
                raise ValueError("a part was fitted on something else")

    def _reads_times(self) -> bool:
        # Unfitted it has no parts to ask, and passes times on to whichever there will be.
        return not hasattr(self, "parts_") or any(part.reads_times() for part in self.parts_)

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.float32]:
        # Users of the fit are scored by it, too: rows alone count, in each part, so that what
        # `part_scores` and explanations tell adds up.
        scores = [part._fold_in_scores(rows, **part._timed(times)) for part in self.parts_]
        return self._sum(scores, rows.shape)

    def part_scores(
        self, userid: int, row: sp.csr_matrix, times: sp.csr_matrix | None = None
    ) -> NDArray[np.float64]:
        """Return the parts' contributions to a profile's scores, (parts, items); their sum is the score.

        Parameters
        ----------
        userid : int
            A label only: each part folds the row in.
        row : (1, items) CSR
        times : (1, items) sparse matrix, optional
            As `recommend` takes them.

        Raises
        ------
        InputError, NotFittedError
            As `scores`.
        """
        self._check_fitted()
        out = np.zeros((len(self.parts_), row.shape[1]), dtype=np.float32)
        for k, (part, weight) in enumerate(zip(self.parts_, self.part_weights_, strict=True)):
            timed = {"times": times} if part.reads_times() else {}
            block = part.scores([userid], row, recalculate_user=True, **timed)
            add_standardised(out[k : k + 1], np.ascontiguousarray(block), float(weight))
        return out.astype(np.float64)

    def _sum(self, scores: list[NDArray[np.floating]], shape: tuple[int, int]) -> NDArray[np.float32]:
        out = np.zeros(shape, dtype=np.float32)
        for block, weight in zip(scores, self.part_weights_, strict=True):
            add_standardised(out, block, float(weight))
        return out

    def _explain_items(  # type: ignore[override]
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], times: Times = None
    ) -> list[Shares]:
        scores = self._fold_in_scores(row, times)[0, items].astype(float).tolist()
        shares = np.zeros((len(items), row.nnz))
        for part, weight in zip(self.parts_, self.part_weights_, strict=True):
            explained = part._explain_folded_in()
            if explained is not None:
                timed = part._timed(times)
                _, deviation = moments(part._fold_in_scores(row, **timed)[0])
                told = explained(userid, row, items, **timed)
                shares += weight / deviation * np.array([own for _, own in told]).reshape(shares.shape)
        return list(zip(scores, shares, strict=True))

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        able = [part for part in self.parts_ if "similar-items" in part.capabilities]
        if not able:
            raise InputError(f"no part of this {self.name} offers similar items")
        return able[0]._item_similarity(ids)


def fitted(
    spec: str,
    liked: sp.csr_matrix,
    times: sp.csr_matrix | None = None,
    item_features: sp.csr_matrix | None = None,
) -> Ranker:
    """Return the ranker of a specification, fitted; item features go to rankers of described data."""
    ranker = ranker_of(spec)
    if not any(candidate.described for candidate in ranker.candidates):
        item_features = None
    return ranker.fit(liked, show_progress=False, times=times, item_features=item_features)


# ---- kernels


@jit
def moments(row):
    """Return mean and deviation (1 where there is none) of one user's scores, in item order."""
    total = square = 0.0
    for v in row:
        total += v
    mean = total / len(row)
    for v in row:
        square += (v - mean) ** 2
    deviation = np.sqrt(square / len(row))
    return mean, deviation if deviation > 1e-12 else 1.0


@jit
def add_standardised(out, scores, weight):
    """Out += weight × scores brought to mean 0 and deviation 1, user by user."""
    for u in range(len(out)):
        mean, deviation = moments(scores[u])
        for i in range(out.shape[1]):
            out[u, i] += weight * (scores[u, i] - mean) / deviation
