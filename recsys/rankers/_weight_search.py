"""Search for the candidates of a blend and their weights: in steps, each on held-out interactions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recsys.rankers._held_out import HeldOut

GRID = (3.0, 1.0, 0.3, 0.1, 0.03)  # weights of an addition, relative to what is there
FACTORS = (2.0, 1.41)  # by which weights are changed at the end
LEAST = 3e-4  # of the criterion that an addition must gain: less is chance, and every part costs time


def criterion(figures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(AUC − ½) + log nDCG@10 of (…, 2) metric values: gains and losses count relatively.

    In absolute units, where nDCG is small, the top of the list would be sold for AUC.
    """
    auc, ndcg = np.moveaxis(figures, -1, 0)
    return np.asarray(np.log(np.maximum(auc - 0.5, 1e-6)) + np.log(np.maximum(ndcg, 1e-6)))


def find_weights(
    held: HeldOut, rounds: int, enough: Callable[[], bool] = lambda: False
) -> dict[str, float]:
    """Return the weights of a blend, in the order in which its parts were added; they sum to 1.

    The candidate that is best alone begins. Each step adds the candidate, with the weight of `GRID`,
    that raises the criterion most, while it rises by `LEAST`; then weights are multiplied and divided by
    `FACTORS`, and parts left out, while that raises it or costs next to nothing. There are at most
    `rounds` additions, the first among them; `enough` is asked before each step, and True ends the
    search.
    """
    names = list(held.scores)
    nothing = np.zeros(len(held.worth), dtype=np.float32)

    def tried(total: NDArray[np.float32], name: str, weights: list[float]) -> list[float]:
        found = held.figures(total, held.scores[name], np.array(weights, dtype=np.float32))
        found = found[np.isfinite(found[:, 0, 0])]
        return criterion(found.mean(axis=0)).tolist() if len(found) else [0.0] * len(weights)

    alone = {name: tried(nothing, name, [1.0])[0] for name in names}
    first = max(names, key=alone.__getitem__)
    weights, total, best = {first: 1.0}, held.scores[first].copy(), alone[first]
    for _ in range(1, rounds):
        if enough():
            break
        size = float(np.sqrt(np.mean(np.square(total, dtype=np.float64))))
        steps = [size * weight for weight in GRID]
        found = [
            one
            for name in names
            for one in zip(tried(total, name, steps), steps, [name] * len(steps), strict=True)
        ]
        value, weight, name = max(found, key=lambda one: one[0])
        if value <= best + LEAST:
            break
        best, total = value, total + np.float32(weight) * held.scores[name]
        weights[name] = weights.get(name, 0.0) + weight
    for factor in FACTORS:
        changed = len(weights) > 1
        while changed and not enough():
            changed = False
            for name in list(weights):
                rest = total - np.float32(weights[name]) * held.scores[name]
                steps = [weights[name] * factor, weights[name] / factor, 0.0]
                values = tried(rest, name, steps)
                k = int(np.argmax(values[:2]))
                if len(weights) > 1 and values[2] >= max(best - LEAST / 4, values[k] - LEAST):
                    best, total, changed = values[2], rest, True
                    del weights[name]
                elif values[k] > best + LEAST / 4:
                    best, changed, weights[name] = values[k], True, steps[k]
                    total = rest + np.float32(steps[k]) * held.scores[name]
    share = sum(weights.values())
    return {name: weight / share for name, weight in weights.items()}
