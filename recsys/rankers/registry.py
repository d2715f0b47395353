"""The rankers by name, and in files: class by name, parameters, and state, part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import numpy as np

from recsys.errors import InputError, ModelFileError
from recsys.registry import Registry, parse_spec
from recsys.utils import model_file

if TYPE_CHECKING:
    from recsys.rankers.base import Ranker

R = TypeVar("R", bound="type[Ranker]")
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


@dataclass_transform(eq_default=False)
def register_ranker(name: str) -> Callable[[R], R]:
    """Register a class under a name, as a dataclass whose fields are the parameters."""

    def register(kind: R) -> R:
        kind.name = name
        return RANKERS.add(name)(dataclass(eq=False)(kind))  # type: ignore[return-value]

    return register


def list_rankers() -> list[str]:
    """Return the sorted names of the rankers that can be fitted with the installed packages.

    `pair-dnn` and `honfm` are listed only if PyTorch is installed; `make_ranker` does not need it.
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
    >>> make_ranker("ease", regularization=100.0).regularization
    100.0
    """
    if isinstance(name, str) and (short := name.split(":")[0]) != name and short in RANKERS.names():
        raise InputError(f"pass parameters as keywords, make_ranker({short!r}, …), not {name[:60]!r}")
    kind = RANKERS.get(name)
    ranker = kind(**kind.arrange(params))
    ranker._check_parameters()
    return ranker


def write_ranker(path: str | Path, ranker: Any, others: dict[str, Any]) -> None:
    """Write a fitted ranker, and other arrays beside its own."""
    manifest, arrays = _entry_of(ranker)
    model_file.write(path, manifest, arrays | others)


@model_file.refuses
def read_ranker(
    path: str | Path, kind: type[Any] = object, mapped: bool = False
) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a saved ranker and the arrays that were kept with it; the rest as in `model_file.read`."""
    manifest, arrays = model_file.read(path, mapped)
    if "link_predictor" in manifest:
        raise ModelFileError(
            f"{path} holds a link predictor: read it with recsys.links.load_link_predictor"
        )
    ranker = _ranker_of(manifest, arrays)
    if not isinstance(ranker, kind):
        raise ModelFileError(f"{path} holds a {ranker.name} ranker, not a {kind.name}")
    return ranker, arrays


def load_ranker(path: str | Path, *, mmap: bool = False) -> Any:
    """Read a ranker of any kind that `save` wrote.

    Parameters
    ----------
    path : path
    mmap : bool
        Leave the arrays in the file, where all processes that read it share one copy in memory; what one
        of them changes is its own. The file may be replaced or removed, but never be cut or written to.
    """
    return read_ranker(path, mapped=mmap)[0]


def _entry_of(ranker: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a ranker's entry of the manifest, and its arrays: the attributes whose names end in _."""
    state = {key: value for key, value in vars(ranker).items() if key.endswith("_")}
    parts: list[Any] = []
    part_arrays: dict[str, np.ndarray] = {}
    for k, part in enumerate(state.pop("parts_", None) or []):
        entry, arrays = _entry_of(part)
        parts.append(entry)
        part_arrays |= {f"part{k}.{name}": array for name, array in arrays.items()}
    scalars, arrays = model_file.packed(state)
    entry = {"ranker": ranker.name, "params": ranker._saved_params(), "state": scalars}
    return entry | ({"parts": parts} if parts else {}), arrays | part_arrays


def _ranker_of(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the ranker of an entry; its arrays are taken out."""
    ranker: Any = make_ranker(entry["ranker"], **entry["params"])
    parts = []
    for k, part in enumerate(entry.get("parts", [])):
        names = [name for name in arrays if name.startswith(f"part{k}.")]
        parts.append(_ranker_of(part, {name.partition(".")[2]: arrays.pop(name) for name in names}))
    vars(ranker).update(model_file.unpacked(entry["state"], arrays))
    if parts:
        ranker.parts_ = parts
    if ranker.popularity_.shape != (ranker.n_items_,) or ranker.n_users_ < 1:
        raise ValueError("popularity_ does not fit the items")
    return ranker
