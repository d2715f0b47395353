"""Blend: a sum of other rankers' scores, each brought to mean 0 and deviation 1 over a user's items."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.rankers.base import Data, Ranker, Rows, Shares
from recsys.rankers.protocol import Floats, Ints, Items, Users
from recsys.rankers.registry import ranker_of, register_ranker
from recsys.registry import format_spec
from recsys.utils.progress import within
from recsys.utils.validation import check_choice


class StandardizedSum(Ranker):
    """A weighted sum of the standardized scores of several rankers, its parts.

    Parameters
    ----------
    ties : "popularity" or None
        Order of items with equal scores; items without users count as items of mean popularity.

    Attributes
    ----------
    parts_ : list of Ranker
    part_names_ : list of str
    part_weights_ : (parts,) float64
    """

    part_weights_: Floats
    part_names_: list[str]
    parts_: list[Ranker]
    ties: str | None

    uses = frozenset({"times"})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.ties is not None:
            check_choice("ties", self.ties, ("popularity",))

    def _keep(self, names: list[str], parts: list[Ranker], weights: Floats) -> None:
        """Keep fitted parts, under the names that they were asked for."""
        for part in parts:
            vars(part).pop("times_", None)  # the blend's own serve all
        self.part_names_, self.parts_ = names, parts
        self.part_weights_ = np.asarray(weights, dtype=np.float64)

    def reads_times(self) -> bool:
        """Return whether any part reads times; before the fit, assume that parts do."""
        return not hasattr(self, "parts_") or any(part.reads_times() for part in self.parts_)

    def wanted(self) -> frozenset[str]:
        """Return the side information that a fit uses: its parts may be others than these."""
        return self.uses

    def _part_scores(self, rows: Rows) -> list[NDArray[np.floating]]:
        # Users of the fit are scored by rows alone, too, so that explanations add up.
        return [part._scores(_read_by(part, rows)) for part in self.parts_]

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.floating]:
        return self._weighted(self._part_scores(rows))

    def _weighted(self, blocks: list[NDArray[np.floating]]) -> NDArray[np.floating]:
        out = np.zeros(blocks[0].shape, dtype=np.float32)
        for scores, weight in zip(blocks, self.part_weights_, strict=True):
            out += np.float32(weight) * standardized(scores)
        return out if self.ties is None else break_ties(out, popularity_ranks(self.popularity_))

    def part_scores(self, userid: int, row: sp.csr_matrix, times: sp.csr_matrix | None = None) -> Floats:
        """Return the parts' contributions to the scores of a row, (parts, items), which sum to them."""
        self._check_fitted()
        _, rows = self._request([userid], row, True, times)
        scores = [part._all_scores(None, _read_by(part, rows)) for part in self.parts_]
        weighted = zip(scores, self.part_weights_, strict=True)
        return np.concatenate([weight * standardized(block) for block, weight in weighted]).astype(float)

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        blocks = self._part_scores(rows)
        scores = self._weighted(blocks)
        shares = [
            np.zeros((len(some), span.stop - span.start))
            for some, span in zip(items, rows.spans, strict=True)
        ]
        for part, weight, block in zip(self.parts_, self.part_weights_, blocks, strict=True):
            if "explain" in part.capabilities:
                deviation = block.std(axis=1, dtype=np.float64)
                scale = np.where(deviation > 1e-12, weight / np.maximum(deviation, 1e-12), weight)
                own = part._explain(_read_by(part, rows), items)  # type: ignore[attr-defined]
                for total, factor, (_, one) in zip(shares, scale, own, strict=True):
                    total += factor * one
        parts = zip(scores, items, shares, strict=True)
        return [(of[some].astype(np.float32).astype(float), one) for of, some, one in parts]

    def _item_similarity(self, ids: Ints) -> NDArray[np.floating]:
        for part in self.parts_:
            if "similar-items" in part.capabilities:
                return part._item_similarity(ids)  # type: ignore[attr-defined, no-any-return]
        raise InputError(f"no part of this {self.name} offers similar items")


def _read_by(part: Ranker, rows: Rows) -> Rows:
    """Return the rows as a part reads them."""
    return rows if part.reads_times() else Rows(rows.matrix)


def standardized(scores: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return scores of users brought to mean 0 and deviation 1, float32."""
    mean = scores.mean(axis=1, dtype=np.float64, keepdims=True)
    centered = scores - mean
    deviation = np.sqrt(np.mean(np.square(centered), axis=1, keepdims=True))
    centered /= np.where(deviation > 1e-12, deviation, 1.0)
    return centered.astype(np.float32)


def popularity_ranks(popularity: NDArray[np.floating]) -> Floats:
    """Return items' ranks by popularity, 0 to 1, those without users at the mean of the others."""
    known = popularity > 0
    mean = popularity[known].mean(dtype=np.float64) if known.any() else 0.0
    _, rank = np.unique(np.where(known, popularity, mean), return_inverse=True)
    return rank / len(rank)


def break_ties(scores: NDArray[np.float32], ranks: Floats) -> Floats:
    """Return float64 scores of which equal ones are ordered by rank; as float32 they are the same."""
    return scores + ranks * (np.spacing(np.abs(scores)) / np.float64(4.0))


@register_ranker("blend")
class Blend(StandardizedSum):
    """A blend of chosen rankers: the weighted sum of their standardized scores.

    Parameters
    ----------
    models : str, or sequence of Ranker
        Specifications `NAME[:key=value;key=value]` joined by +, or unfitted rankers; `fit` fits copies.
    weights : str, or sequence of float, optional
        One number per model, or text joined by +; equal by default.

    Other parameters: as of `StandardizedSum`.

    Examples
    --------
    >>> from recsys import CFKOMD, EASE
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0]]
    >>> model = Blend([EASE(), CFKOMD(kernel="mc", degree=2)], weights=[2, 1])
    >>> model.fit(likes, show_progress=False).recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    models: str | Sequence[Ranker] = "ease+cf-komd+cf-komd:kernel=mc;degree=2"
    weights: str | Sequence[float] | None = None
    ties: str | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._weights(len(self._unfitted()))

    def _unfitted(self) -> list[tuple[str, Ranker]]:
        """Return the names and rankers of the parts."""
        if isinstance(self.models, str) and self.models.strip():
            specs = [text.strip().replace(";", ",") for text in self.models.split("+")]
            parts = [(spec, ranker_of(spec)) for spec in specs]
        elif not isinstance(self.models, str) and len(self.models):
            parts = [(_name(part), copy.deepcopy(part)) for part in self.models]
        else:
            raise InputError("models must name rankers, as in ease+cf-komd:kernel=mc;degree=2")
        for _, part in parts:
            if isinstance(part, StandardizedSum):
                raise InputError(f"models: {part.name} cannot be part of a blend")
            if not part.folds_in:
                raise InputError(f"models: {part.name} cannot rank users it was not fitted on")
        return parts

    def _weights(self, count: int) -> Floats:
        if self.weights is None:
            return np.full(count, 1.0 / count)
        given = self.weights.split("+") if isinstance(self.weights, str) else np.ravel(self.weights)
        try:
            values = [float(part) for part in given]
        except (TypeError, ValueError) as error:
            raise InputError(f"weights must be numbers joined by +, not {self.weights!r}") from error
        if len(values) != count or not np.isfinite(values).all() or min(values) < 0:
            raise InputError(f"weights must be {count} non-negative numbers, not {self.weights!r}")
        return np.array(values)

    def _saved_params(self) -> dict[str, Any]:
        params = self.get_params()
        if not isinstance(self.models, str):
            params["models"] = "+".join(_name(part).replace(",", ";") for part in self.models)
        if self.weights is not None and not isinstance(self.weights, str):
            params["weights"] = "+".join(repr(float(weight)) for weight in self.weights)
        return params

    def _fit(self, data: Data) -> None:
        names, parts = zip(*self._unfitted(), strict=True)
        for number, (name, part) in enumerate(zip(names, parts, strict=True)):
            with within(name, number, len(parts)):
                part.fit(data.liked, show_progress=False, times=data.times)
        self._keep(list(names), list(parts), self._weights(len(parts)))


def _name(part: Any) -> str:
    if not isinstance(part, Ranker):
        raise InputError(f"models: {part!r} is not a ranker")
    return format_spec(part.name, part._saved_params())
