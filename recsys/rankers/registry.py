"""The rankers by name."""

from __future__ import annotations

from typing import Any

from recsys.rankers import _files
from recsys.rankers.base import Ranker
from recsys.registry import Registry

RANKERS: Registry[type[Ranker]] = _files.RANKERS


def list_rankers() -> list[str]:
    """Return the names that `make_ranker` takes.

    Examples
    --------
    >>> "cf-komd" in list_rankers()
    True
    """
    return RANKERS.names()


# What `recsys evaluate` measures when no model is named, the slow ones last.
COMPARED = (
    "popularity", "ease", "cf-komd:kernel=mc,degree=2", "msdw", "als", "sparse-fm", "fm", "pairnet",
    "auto",
)  # fmt: skip


def offered_models() -> list[str]:
    """Return the specifications that a list of models offers, as the rankers declare them."""
    return [
        f"{name}:{params}" if params else name
        for name in list_rankers()
        for params in RANKERS.get(name).offered
    ]


def make_ranker(name: str, /, **params: Any) -> Ranker:
    """Return an unfitted ranker.

    Parameters
    ----------
    name : str
        One of `list_rankers()`.
    **params
        Its parameters; for `cf-komd`, also those of its kernel.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, or a value out of range.

    Examples
    --------
    >>> make_ranker("popularity")
    Popularity()
    >>> make_ranker("ease", regularization=100.0).regularization
    100.0
    """
    ranker: Ranker = _files.made(name, params)
    return ranker
