"""Sparse FM: a factorization machine whose penalty leaves few interactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers.fm import FM
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("sparse-fm")
@documented
@dataclass(eq=False)
class SparseFM(FM):
    """A factorization machine with the triangular inequality penalty: `fm` with `penalty="ti"`.

    Notes
    -----
    Source: Atarashi et al. 2021, 3.3.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = SparseFM(iterations=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    penalty: str = "ti"

    name: ClassVar[str] = "sparse-fm"
    search_space: ClassVar[dict[str, Any]] = FM.search_space | {"gamma": ("log", 1e-7, 1e-4)}
