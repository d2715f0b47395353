"""Blend: given rankers, weighed alike or as told."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.rankers._standardised import StandardisedSum
from recsys.rankers.base import Ranker
from recsys.rankers.registry import RANKERS, ranker_of
from recsys.utils.docstrings import documented
from recsys.utils.progress import within
from recsys.utils.spec import format_spec


@RANKERS.add("blend")
@documented
@dataclass(eq=False)
class Blend(StandardisedSum):
    """A blend of given rankers: the sum of their standardised scores, weighed alike or as told.

    Parameters
    ----------
    models : str, or sequence of Ranker
        Specifications `NAME[:key=value;key=value]` joined by +, or unfitted rankers, of which copies
        are fitted.
    weights : str, or sequence of float, optional
        One number for each; as text joined by +.

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

    name: ClassVar[str] = "blend"

    def _check_parameters(self) -> None:
        self._weights(len(self._made()))

    def _made(self) -> list[Ranker]:
        """Return the parts, unfitted."""
        if isinstance(self.models, str) and self.models.strip():
            parts = [ranker_of(spec) for spec in self._specs(self.models)]
        elif not isinstance(self.models, str) and len(self.models):
            parts = [copy.deepcopy(part) for part in self.models]
        else:
            raise InputError("models must name rankers, as in ease+cf-komd:kernel=mc;degree=2")
        for part in parts:
            if not isinstance(part, Ranker):
                raise InputError(f"models: {part!r} is no ranker")
            if isinstance(part, StandardisedSum):
                raise InputError(f"models: {part.name} cannot be part of a blend")
            if "fold-in" not in part.capabilities:
                raise InputError(f"models: {part.name} cannot rank users it was not fitted on")
        return parts

    @staticmethod
    def _specs(models: str) -> list[str]:
        return [text.strip().replace(";", ",") for text in models.split("+")]

    def _weights(self, count: int) -> NDArray[np.float64]:
        if self.weights is None:
            return np.full(count, 1.0 / count)
        given = self.weights.split("+") if isinstance(self.weights, str) else np.ravel(self.weights)
        try:
            values = [float(part) for part in given]
        except (TypeError, ValueError) as error:
            raise InputError(f"weights must be numbers joined by +, not {self.weights!r}") from error
        if len(values) != count or not np.isfinite(values).all() or min(values) < 0:
            raise InputError(f"weights must be {count} numbers, none below 0, not {self.weights!r}")
        return np.array(values)

    def _saved_params(self) -> dict[str, Any]:
        params = self.get_params()
        if not isinstance(self.models, str):
            specs = [format_spec(part.name, part._saved_params()) for part in self.models]
            params["models"] = "+".join(spec.replace(",", ";") for spec in specs)
        if self.weights is not None and not isinstance(self.weights, str):
            params["weights"] = "+".join(repr(float(weight)) for weight in self.weights)
        return params

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        parts = self._made()
        weights = self._weights(len(parts))
        if isinstance(self.models, str):
            names = self._specs(self.models)
        else:
            names = [format_spec(part.name, part._saved_params()) for part in parts]
        for number, (name, part) in enumerate(zip(names, parts, strict=True)):
            with within(name, number, len(parts)):
                part.fit(liked, show_progress=False, times=times)
        self._adopt(names, parts, weights)
