"""Rankers in files: their class by name, their parameters, and their state, part by part.

This is below the class `Ranker`, whose `save` and `load` it is: it names no class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import ModelFileError
from recsys.rankers.state import State
from recsys.registry import Registry
from recsys.utils import model_file

RANKERS: Registry[type[Any]] = Registry(
    "ranker",
    package="recsys.rankers",
    homes=dict.fromkeys(("cosine", "tfidf", "bm25"), "neighbours")
    | dict.fromkeys(("cf-komd", "cf-omd", "ecf-omd"), "margin"),
)  # classes of rankers

PART = "part{}."  # before the names of a part's arrays


def made(name: str, params: dict[str, Any]) -> Any:
    """Return an unfitted ranker of a name, whose parameters are in range."""
    kind = RANKERS.get(name)
    ranker = kind(**kind.arrange(params))
    ranker.check_parameters()
    return ranker


def write_ranker(path: model_file.Target, ranker: Any, others: dict[str, Any]) -> None:
    """Write a fitted ranker, and other arrays beside its own."""
    manifest, arrays = _described(ranker)
    model_file.write(path, manifest, arrays | others)


@model_file.refuses
def read_ranker(
    path: model_file.Target,
    kind: type[Any] = object,
    mapped: bool = False,
    checked: str | None = None,
) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a saved ranker and the arrays that were kept with it; the rest as in `model_file.read`.

    Raises
    ------
    ModelFileError
        Also if it is of another kind.
    """
    manifest, arrays = model_file.read(path, mapped, checked)
    path = model_file.name_of(path)
    if "link_predictor" in manifest:
        raise ModelFileError(
            f"{path} holds a link predictor: read it with recsys.links.load_link_predictor"
        )
    try:
        ranker = _restored(manifest, arrays)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        told = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"{path} does not describe a ranker: {told}") from None
    if not isinstance(ranker, kind):
        raise ModelFileError(f"{path} holds a {ranker.name} ranker, not a {kind.name}")
    return ranker, arrays


def _described(ranker: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a ranker's entry of the manifest, and its arrays."""
    state = ranker.get_state()
    entry: dict[str, Any] = {
        "ranker": ranker.name,
        "params": ranker._saved_params(),
        "state": dict(sorted(state.scalars.items())),  # whatever was set first
    }
    arrays = dict(state.arrays)
    if state.parts:
        entry["parts"] = []
        for k, part in enumerate(state.parts):
            described, own = _described(part)
            entry["parts"].append(described)
            arrays |= {PART.format(k) + name: array for name, array in own.items()}
    return entry, arrays


def _restored(entry: dict[str, Any], arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """Return the ranker of an entry; its arrays are taken out."""
    ranker = made(entry["ranker"], entry["params"])
    parts = []
    described = entry.get("parts", [])
    if not isinstance(described, list) or (described and depth):
        raise ValueError("its parts have parts")
    for k, part in enumerate(described):
        prefix = PART.format(k)
        names = [name for name in arrays if name.startswith(prefix)]
        parts.append(_restored(part, {name[len(prefix) :]: arrays.pop(name) for name in names}, 1))
    names = [name for name in arrays if name.partition(".")[0].endswith("_")]
    own = {name: arrays.pop(name) for name in names}
    return ranker.set_state(State(own, dict(entry["state"]), parts))
