"""Interactions as a file that workers read: numbers and text of the metrics' columns, never code.

Workers divide the data themselves, and are handed what else a model or a metric asks for: the encoded
features, and columns of items. Ids stay where they are: nothing that is measured depends on them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.side_information import SideInformation
from recsys.data.splits import ids_of_ranks, ranks_of
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.utils import model_file
from recsys.utils.files import shown

KIND = "interactions"
PAIRS = ("users", "items", "rating", "time", "held_out", "weight", "repeat_time")
FEATURES = ("item_features", "item_texts", "user_features")
CANDIDATES = "candidates"
COLUMN = "column."


class Shared(NamedTuple):
    """A file of interactions, and the checksum that it has."""

    path: str
    sha256: str


class Known(NamedTuple):
    """The data of a worker: interactions with numbers for ids, their features, and candidates."""

    data: Interactions
    features: dict[str, Any]
    candidates: sp.csr_matrix | None = None

    def side(self, protocol: str) -> SideInformation:
        """Return the side information that the writer has."""
        found = SideInformation(self.data, protocol)
        for name in FEATURES:
            setattr(found, name, self.features.get(name))
        return found


def share(
    data: Interactions,
    path: Path,
    wanted: frozenset[str],
    metrics: Sequence[tuple[M.Metric, int, str]],
    candidates: sp.csr_matrix | None = None,
) -> Shared:
    """Write interactions for workers, to the path of a folder that they see.

    `wanted` says which of `FEATURES` the models use. Metrics of features bring their column along.
    `candidates` are the only items to rank, (users, items).
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name in PAIRS:
        values = getattr(data, name)
        if values is not None:
            arrays[name] = _storable(np.asarray(values))
    # The draws of protocols go by the order of the ids, and are all that workers need of them.
    arrays["user_ranks"], arrays["item_ranks"] = ranks_of(data.user_ids), ranks_of(data.item_ids)
    side = SideInformation(data)
    shapes = {}
    matrices = {name: getattr(side, name) for name in sorted(wanted & set(FEATURES))}
    for name, matrix in (matrices | {CANDIDATES: candidates}).items():
        if matrix is not None:
            shapes[name] = list(matrix.shape)
            for part in ("data", "indices", "indptr"):
                arrays[f"{name}.{part}"] = getattr(matrix, part)
    columns: list[list[str]] = []
    for metric, _, _ in metrics:
        if metric.takes_feature and data.item_features is not None:
            place = M.feature_column(data.item_features, metric.feature)
            name = str(data.item_features.columns[place])
            if name not in [known for known, _ in columns]:
                kind, array = _cells(data.item_features.iloc[:, place])
                arrays[f"{COLUMN}{len(columns)}"] = array
                columns.append([name, kind])
    manifest = {
        "kind": KIND, "name": data.name, "shapes": shapes, "columns": columns,
    }  # fmt: skip
    model_file.write(path, manifest, arrays)
    return Shared(str(path), model_file.read(path, mapped=True)[0]["sha256"])


@lru_cache(maxsize=2)
def known(shared: Shared) -> Known:
    """Read the file that `share` wrote; a process reads a file once."""
    path = Path(shared.path)
    if not path.is_file():
        raise InputError(
            f"a worker cannot see {shown(path)}: name a folder that all workers share with --scratch "
            "(scratch= in Python)"
        )
    manifest, arrays = model_file.read(path, mapped=True)
    if manifest.get("kind") != KIND or manifest["sha256"] != shared.sha256:
        raise InputError(f"{shown(path)} is not the file that the workers were sent to")
    features = {
        name: model_file.sparse(path, name, arrays, shape) for name, shape in manifest["shapes"].items()
    }
    table = {
        name: _column(kind, arrays[f"{COLUMN}{number}"])
        for number, (name, kind) in enumerate(manifest["columns"])
    }
    held_out = arrays.get("held_out")
    user_ids, item_ids = (ids_of_ranks(arrays[name]) for name in ("user_ranks", "item_ranks"))
    data = Interactions(
        arrays["users"], arrays["items"], user_ids, item_ids, arrays.get("rating"), arrays.get("time"),
        item_features=pd.DataFrame(table) if table else None, name=manifest["name"],
        held_out=None if held_out is None else held_out.view(np.bool_), weight=arrays.get("weight"),
        repeat_time=arrays.get("repeat_time"),
    )  # fmt: skip
    return Known(data, features, features.pop(CANDIDATES, None))


def _storable(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of a type that files have, with the same values."""
    if values.dtype == np.bool_:
        return values.view(np.uint8)
    if values.dtype in model_file.NAMES:
        return values
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


def _cells(column: pd.Series) -> tuple[str, NDArray[Any]]:
    """Return a column's cells as numbers, or as text; they are encoded alike."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return "numbers", _storable(column.to_numpy())
    missing = column.isna().to_numpy()
    text = [None if absent else str(cell) for cell, absent in zip(column, missing, strict=True)]
    return "text", np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)


def _column(kind: str, values: NDArray[Any]) -> Any:
    return values if kind == "numbers" else pd.Series(json.loads(values.tobytes()), dtype=object)
