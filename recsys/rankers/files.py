"""Rankers in files: their class by name, their parameters, and their state, part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import ModelFileError
from recsys.rankers.registry import make_ranker
from recsys.utils import model_file


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

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from recsys import EASE, load_dataset, load_ranker
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ease.recsys"
    >>> EASE().fit(load_dataset("sample").matrix).save(path)
    >>> load_ranker(path, mmap=True).name
    'ease'
    """
    from recsys.rankers.base import Ranker

    return read_ranker(path, Ranker, mapped=mmap)[0]


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
