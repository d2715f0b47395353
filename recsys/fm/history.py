"""The history of a fit: what each epoch came to, and the best epoch on rows kept out."""

from __future__ import annotations

import time

import numpy as np

from recsys.fm.objective import Objective

__all__ = ["History"]


class History:
    """Records epochs, and nothing else: it neither stops a fit nor writes into anybody.

    `entries` begins with what earlier fits recorded, and gets a dict an epoch: "objective", "violation",
    "seconds", and "validation", the loss on the rows of `held_out`. `epochs` counts them without the
    start, and `restore` returns to the parameters of `best_epoch`, that of the least validation loss.
    """

    def __init__(
        self, objective: Objective, held_out: Objective | None, entries: list[dict[str, float]]
    ) -> None:
        self.objective, self.held_out, self.entries = objective, held_out, entries
        self.epochs, self.best_epoch = -1, 0
        self._least, self._best = np.inf, self._parameters()
        self._started = time.perf_counter()

    def record(self, objective: float, moved: float) -> None:
        """Record an epoch, the first time the start."""
        self.epochs += 1
        entry = {
            "objective": objective, "violation": moved, "seconds": time.perf_counter() - self._started,
        }  # fmt: skip
        if self.held_out is not None:
            self.held_out.refresh()
            entry["validation"] = self.held_out.data_loss(self.held_out.pred)
            if entry["validation"] < self._least:
                self._least, self.best_epoch = entry["validation"], self.epochs
                self._best = [part.copy() for part in self._parameters()]
        self.entries.append(entry)

    def restore(self) -> None:
        """Put the parameters of the best epoch back, the weights of orders and components among them."""
        for part, best in zip(self._parameters(), self._best, strict=True):
            part[:] = best

    def _parameters(self) -> list[np.ndarray]:
        model = self.objective.model
        return [model.z, model.theta, model.weights]
