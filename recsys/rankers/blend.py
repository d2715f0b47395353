"""Blends: sums of other rankers' standardised scores, with weights given or learned.

A part's scores of a user are brought to mean 0 and deviation 1 over all items, so that parts of any
scale add up, and a blended score is explained by its parts' explanations.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.rankers.serialization import RANKERS, SavedRanker, expect, make_ranker
from recsys.utils.sparse import owners
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_integer, check_real, clean_matrix

SEPARATOR = " + "
LEAST = 2e-3  # of AUC + nDCG@10 that an addition must gain: less is chance, and every part costs time
WITHIN = 8_000  # items up to which dense models of all pairs are tried

SMALL = (
    "ease:regularization=100", "ease:regularization=400", "ease:regularization=1500",
    "cf-komd:regularization=1", "cf-komd:votes=1", "cf-komd:kernel=hp,regularization=1",
    "cf-komd:kernel=mc,degree=2,regularization=5", "cf-komd:kernel=tanimoto,regularization=1",
    "cf-komd:kernel=md,degree=10", "cf-komd:kernel=md,degree=30,unrated=mean",
    "cf-komd:kernel=md,degree=100,unrated=mean", "msdw:alpha=0.3,votes=0.5",
    "msdw:alpha=0.3,votes=0.5,sharpening=0.5", "msdw:alpha=0.5,votes=0.5,sharpening=0.5",
    "msdw:alpha=0.3,votes=0.5,sharpening=1", "popularity",
)  # fmt: skip
SHORT = ("bilinear:regularization=1e-5",)  # besides, up to so many likes: its fit is longer
LIKES = 150_000
LARGE = (
    "msdw:alpha=0.25,votes=0.6,locality=1.1", "msdw:alpha=0.25,votes=0.5,locality=1.1,sharpening=1",
    "msdw:alpha=0.4,votes=0.6,sharpening=0.5", "msdw:alpha=0.1,votes=0.6", "cf-komd:votes=1",
    "popularity",
)  # fmt: skip


class _Blend(SavedRanker):
    """What blends share: parts, which are whole rankers, and their weights."""

    part_weights_: NDArray[np.float64]
    part_names_: list[str]

    @property
    def parts(self) -> list[SavedRanker]:
        """The fitted rankers that are blended."""
        return self._parts

    _parts: list[SavedRanker]

    def _adopt(self, specs: list[str], parts: list[SavedRanker], weights: NDArray[np.float64]) -> None:
        """Keep fitted parts; what a part has learned is listed under its number, for saving."""
        for key in [key for key in vars(self) if ":" in key]:
            del vars(self)[key]
        self.part_names_, self._parts = specs, parts
        self.part_weights_ = np.asarray(weights, dtype=np.float64)
        for k, part in enumerate(parts):
            vars(self).update({f"{k}:{key}": v for key, v in vars(part).items() if key.endswith("_")})

    def _check_state(self) -> None:
        if not isinstance(self.part_names_, list) or not self.part_names_:
            raise ValueError("part_names_ lists no parts")
        expect("part_weights_", self.part_weights_, (len(self.part_names_),), np.float64)
        if (self.part_weights_ < 0).any():
            raise ValueError("a part weighs less than nothing")
        parts = []
        for k, spec in enumerate(self.part_names_):
            name, params = parse_spec(str(spec))
            if issubclass(RANKERS.get(name), _Blend):
                raise ValueError("a blend inside a blend")
            part = make_ranker(name, **params)
            prefix = f"{k}:"
            own = {key[len(prefix) :]: v for key, v in vars(self).items() if key.startswith(prefix)}
            vars(part).update(own)
            if (part.n_users_, part.n_items_) != (self.n_users_, self.n_items_):
                raise ValueError("a part was fitted on something else")
            expect("a part's popularity_", part.popularity_, (self.n_items_,), np.float32)
            part._check_state()
            parts.append(part)
        self._parts = parts

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        out = np.zeros((rows.shape[0], rows.shape[1]), dtype=np.float32)
        for part, weight in zip(self._parts, self.part_weights_, strict=True):
            add_standardised(out, part._scores(userids, rows, recalculate), float(weight))
        return out

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        users = np.array([userid])
        score = float(self._scores(users, row, False)[0, item])
        shares = np.zeros(row.nnz)
        for part, weight in zip(self._parts, self.part_weights_, strict=True):
            if "explain" in part.capabilities:
                _, deviation = moments(part._scores(users, row, False)[0])
                shares += weight / deviation * part._explain(userid, row, item)[1]
        return score, shares

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        able = [part for part in self._parts if "similar-items" in part.capabilities]
        if not able:
            raise InputError(f"no part of this {self.name} offers similar items")
        return able[0]._item_similarity(ids)


@RANKERS.add("blend")
@dataclass(eq=False)
class Blend(_Blend):
    """A blend of given rankers, each weighed alike or as told.

    Parameters
    ----------
    models : str
        Specifications `NAME[:key=value;key=value]` joined by +.
    weights : str, optional
        One number for each, joined by +.
    """

    models: str = "ease+cf-komd+cf-komd:kernel=mc;degree=2"
    weights: str | None = None

    name: ClassVar[str] = "blend"
    capabilities = frozenset({"fold-in", "explain", "similar-items"})

    def _check_parameters(self) -> None:
        self._specs()
        self._weights()

    def _specs(self) -> list[str]:
        if not isinstance(self.models, str) or not self.models.strip():
            raise InputError("models must name rankers, as in ease+cf-komd:kernel=mc;degree=2")
        specs = [part.strip().replace(";", ",") for part in self.models.split("+")]
        for spec in specs:
            name, params = parse_spec(spec)
            if name in ("blend", "auto"):
                raise InputError(f"models: {name} cannot be part of a blend")
            part = make_ranker(name, **params)
            if "fold-in" not in part.capabilities:
                raise InputError(f"models: {name} cannot rank users it was not fitted on")
        return specs

    def _weights(self) -> NDArray[np.float64]:
        count = len(self._specs())
        if self.weights is None:
            return np.full(count, 1.0 / count)
        try:
            values = [float(part) for part in str(self.weights).split("+")]
        except ValueError as error:
            raise InputError(f"weights must be numbers joined by +, not {self.weights!r}") from error
        if len(values) != count or not np.isfinite(values).all() or min(values) < 0:
            raise InputError(f"weights must be {count} numbers, none below 0, not {self.weights!r}")
        return np.array(values)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        specs = self._specs()
        self._adopt(specs, [_fitted(spec, liked) for spec in specs], self._weights())


@RANKERS.add("auto")
@dataclass(eq=False)
class Auto(_Blend):
    """A blend whose parts and weights are chosen on held-out half profiles of the training users.

    Candidates are fitted without half of the profiles of `share` of the users, these halves are
    predicted, and parts are added one at a time (and again, which weighs them more) while AUC plus
    nDCG@10 rises by 0.002 or more; the chosen ones are fitted again on everything.

    Parameters
    ----------
    share : float in (0, 1)
        Of the users; at most `users` of them.
    users : int ≥ 1
    rounds : int ≥ 1
        Additions at most.
    random_state : int ≥ 0

    Attributes
    ----------
    part_names_ : list of str
    part_weights_ : (parts,) float64
    validation_ : dict
        AUC plus nDCG@10 of each candidate alone, and of the blend.

    Notes
    -----
    Greedy selection with replacement is that of Caruana et al. 2004.
    """

    share: float = 0.5
    users: int = 600
    rounds: int = 12
    random_state: int = 0

    name: ClassVar[str] = "auto"
    _times = cast(Any, None)  # not a parameter, and not saved
    capabilities = frozenset({"fold-in", "explain", "similar-items"})

    def _check_parameters(self) -> None:
        check_real("share", self.share, 0.0, 0.9, open_low=True)
        check_integer("users", self.users, 1)
        check_integer("rounds", self.rounds, 1)
        check_integer("random_state", self.random_state, 0)

    def set_times(self, times: Any) -> Auto:
        """Give the times of likes, (users, items) sparse, above 0, before fit; None takes them away.

        The later half of a profile is then hidden for the choice, instead of a random one.

        Raises
        ------
        InputError
            If they are not finite numbers.
        """
        self._times = None if times is None else clean_matrix(times)
        return self

    def for_items(self, items: NDArray[np.int64]) -> Auto:
        """Return the unfitted ranker for some of the items only."""
        if self._times is None:
            return self
        return copy(self).set_times(self._times[:, items])

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        candidates: tuple[str, ...] = SMALL if liked.shape[1] <= WITHIN else LARGE
        candidates += SHORT if liked.nnz <= LIKES else ()
        train, test, held = self._halves(liked)
        if len(held) == 0:
            self.validation_ = {}
            self._adopt(["cf-komd"], [_fitted("cf-komd", liked)], np.ones(1))
            return
        scores: dict[str, NDArray[np.float32]] = {}
        for spec in candidates:
            try:
                part = _fitted(spec, train)
            except InputError:  # a degree above what these rows allow
                continue
            block = np.zeros((len(held), liked.shape[1]), dtype=np.float32)
            add_standardised(block, part.scores(held, train[held]), 1.0)
            scores[spec] = block
        order, figures = _greedy(scores, train[held], test, self.rounds)
        chosen = sorted(set(order), key=order.index)
        weights = np.array([order.count(spec) for spec in chosen], dtype=np.float64)
        self.validation_ = figures
        self._adopt(chosen, [_fitted(spec, liked) for spec in chosen], weights / weights.sum())

    def _when(self, liked: sp.csr_matrix, owner: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the time of each like; 0 where none is known."""
        if self._times is None:
            return None
        if self._times.shape != liked.shape:
            raise InputError(f"times are of shape {self._times.shape} for likes of shape {liked.shape}")
        width = np.int64(liked.shape[1])
        known = owners(self._times) * width
        return _lookup(known + self._times.indices, self._times.data, owner * width + liked.indices)

    def _halves(self, liked: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64]]:
        """Hide half of some users' items; return what is left, the hidden rows, and the users."""
        rng = np.random.default_rng(self.random_state)
        lengths = np.diff(liked.indptr)
        able = np.flatnonzero(lengths >= 2)
        count = min(self.users, max(1, round(self.share * len(able)))) if len(able) else 0
        held = np.sort(rng.choice(able, size=count, replace=False)) if count else able
        hidden = np.zeros(liked.nnz, dtype=bool)
        owner = owners(liked)
        when = self._when(liked, owner)
        for user in held:
            begin, end = liked.indptr[user], liked.indptr[user + 1]
            later = rng.permutation(end - begin)
            if when is not None:
                later = later[np.argsort(-when[begin:end][later], kind="stable")]
            hidden[begin + later[: (end - begin) // 2]] = True

        def part(mask: NDArray[np.bool_]) -> sp.csr_matrix:
            ones = np.ones(int(mask.sum()), dtype=np.float32)
            return sp.csr_matrix((ones, (owner[mask], liked.indices[mask])), liked.shape)

        return part(~hidden), part(hidden)[held], held


def _lookup(keys: Any, values: Any, wanted: Any) -> NDArray[np.float64]:
    """Return the values of some keys among ascending ones, 0 for others."""
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    found = keys[place] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
    out = np.zeros(len(wanted))
    out[found] = values[place[found]]
    return out


def _fitted(spec: str, liked: sp.csr_matrix) -> SavedRanker:
    name, params = parse_spec(spec)
    part = make_ranker(name, **params)
    part.fit(liked, show_progress=False)
    return part


def _greedy(
    scores: dict[str, NDArray[np.float32]], train: sp.csr_matrix, test: sp.csr_matrix, rounds: int
) -> tuple[list[str], dict[str, float]]:
    """Add candidates while the figure rises; return them in order, and the figures."""
    parsed = [M.parse_metric(name) for name in ("auc", "ndcg@10")]

    def figure(block: NDArray[np.float32]) -> float:
        found = M.ranking_values(parsed, block, train, test)
        known = np.isfinite(found)
        return float((np.where(known, found, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)).sum())

    alone = {spec: figure(block) for spec, block in scores.items()}
    order = [max(alone, key=lambda spec: alone[spec])]
    total, best = scores[order[0]].copy(), alone[order[0]]
    for _ in range(rounds - 1):
        tried = {spec: figure(total + block) for spec, block in scores.items()}
        spec = max(tried, key=lambda spec: tried[spec])
        if tried[spec] <= best + LEAST:
            break
        best, total = tried[spec], total + scores[spec]
        order.append(spec)
    return order, alone | {SEPARATOR.join(order): best}


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
