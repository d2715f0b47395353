"""The rankers by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from recsys.errors import InputError
from recsys.registry import Registry
from recsys.utils.spec import parse_spec

if TYPE_CHECKING:
    from recsys.rankers.base import Ranker

MODULES = {
    "neighbors": "cosine tfidf bm25 user-knn",
    "factors": "als bpr lmf",
    "machines": "fm hofm sparse-fm all-subsets bilinear pairnet pair-svm random-features",
    "networks": "pair-dnn honfm",
    "sequences": "slist",
    "margin": "cf-omd ecf-omd cf-komd",
}
RANKERS: Registry[type[Ranker]] = Registry(
    "ranker",
    package="recsys.rankers",
    homes={name: module for module, names in MODULES.items() for name in names.split()},
)


def list_rankers() -> list[str]:
    """Return the sorted names of the rankers that can be fitted with the installed packages.

    `pair-dnn` and `honfm` are listed only if PyTorch is installed. `make_ranker` and `load_ranker` do
    not need it.

    Examples
    --------
    >>> "cf-komd" in list_rankers()
    True
    """
    needed = {name: RANKERS.get(name).needs for name in RANKERS}
    return [name for name, module in needed.items() if not module or find_spec(module) is not None]


def offered_models() -> list[str]:
    """Return the specifications for lists of models."""
    return [
        f"{name}:{params}" if params else name
        for name in list_rankers()
        for params in RANKERS.get(name).offered
    ]


def ranker_of(spec: str) -> Ranker:
    """Return the unfitted ranker of a specification such as "ease:regularization=500"."""
    name, params = parse_spec(spec)
    return make_ranker(name, **params)


def make_ranker(name: str, /, **params: Any) -> Ranker:
    """Return an unfitted ranker.

    Parameters
    ----------
    name : str
        One of `list_rankers()`, or `pair-dnn` or `honfm`, whose fit needs PyTorch.
    **params
        Parameters of the ranker; for `cf-komd`, also those of its kernel.

    Examples
    --------
    >>> make_ranker("popularity")
    Popularity(unseen=False)
    >>> make_ranker("ease", regularization=100.0).regularization
    100.0
    """
    if isinstance(name, str) and (short := name.split(":")[0]) != name and short in RANKERS.names():
        raise InputError(
            f"pass parameters as keywords, make_ranker({short!r}, …), not {name[:60]!r}; "
            "Recommender and evaluate accept such text"
        )
    kind = RANKERS.get(name)
    ranker = kind(**kind.arrange(params))
    ranker._check_parameters()
    return ranker
