"""The rankers by name."""

from __future__ import annotations

from typing import Any

from recsys.rankers.base import Ranker
from recsys.registry import Registry

RANKERS: Registry[type[Ranker]] = Registry("ranker", package="recsys.rankers")


def list_rankers() -> list[str]:
    """Return the names that `make_ranker` takes.

    Examples
    --------
    >>> "cf-komd" in list_rankers()
    True
    """
    return RANKERS.names()


def offered_models() -> list[str]:
    """Return the specifications that a list of models offers, as the rankers declare them."""
    return _specifications("offered")


def compared_models() -> list[str]:
    """Return the specifications that are measured when no model is named."""
    return _specifications("compared")


def _specifications(attribute: str) -> list[str]:
    return [
        f"{name}:{params}" if params else name
        for name in list_rankers()
        for params in getattr(RANKERS.get(name), attribute)
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
    kind = RANKERS.get(name)
    ranker = kind(**kind.arrange(params))
    ranker.check_parameters()
    return ranker
