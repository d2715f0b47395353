"""Rankers in files: their class by name, their parameters, and their state, part by part."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import ModelFileError
from recsys.rankers.base import Ranker, State
from recsys.rankers.registry import make_ranker
from recsys.utils import model_file

PART = "part{}."  # before the names of a part's arrays


def write_ranker(path: model_file.Target, ranker: Ranker, others: dict[str, Any]) -> None:
    """Write a fitted ranker, and other arrays beside its own."""
    manifest, arrays = _described(ranker)
    model_file.write(path, manifest, arrays | others)


@model_file.refuses
def read_ranker(
    path: model_file.Target,
    kind: type[Ranker] = Ranker,
    mapped: bool = False,
    checked: str | None = None,
) -> tuple[Ranker, dict[str, np.ndarray]]:
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


def load_ranker(path: model_file.Target, *, mmap: bool = False) -> Ranker:
    """Read a ranker of any kind that `save` wrote.

    Parameters
    ----------
    path : path, or a file open for reading bytes
        Also a URL of object storage, such as s3://bucket/model.recsys, where fsspec is installed: it is
        fetched once to this machine's cache.
    mmap : bool
        Leave the arrays in the file, where all processes that read it share one copy in memory; what one
        of them changes is its own. The file may be replaced or removed, but never be cut or written to.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of another kind or too new.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from recsys import EASE, load_dataset, load_ranker
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ease.recsys"
    >>> EASE().fit(load_dataset("sample").matrix).save(path)
    >>> load_ranker(path, mmap=True).name
    'ease'
    """
    return read_ranker(path, mapped=mmap)[0]


def _described(ranker: Ranker) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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


def _restored(entry: dict[str, Any], arrays: dict[str, np.ndarray], depth: int = 0) -> Ranker:
    """Return the ranker of an entry; its arrays are taken out."""
    ranker = make_ranker(entry["ranker"], **entry["params"])
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
