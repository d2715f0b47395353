"""docs/format.md is enough to write a ranker file by hand: nothing of recsys writes these."""

import hashlib
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import ModelFileError, list_rankers, load_ranker
from recsys.rankers import load_package

DTYPES = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "uint8": "U8"}


def by_hand(path, manifest, arrays):
    table, at = {}, 0
    for name in sorted(arrays):
        size = arrays[name].nbytes
        table[name] = {
            "dtype": DTYPES[arrays[name].dtype.name],
            "shape": list(arrays[name].shape),
            "data_offsets": [at, at + size],
        }
        at += size
    content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    text = json.dumps([manifest, table], sort_keys=True).encode()
    manifest = manifest | {"sha256": hashlib.sha256(text + content).hexdigest()}
    header = json.dumps({"__metadata__": {"recsys": json.dumps(manifest)}} | table).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + content)


def manifest(ranker, **params):
    state = {"n_users_": 2, "n_items_": 3}
    return {"format": 1, "written_by": "hand", "ranker": ranker, "params": params, "state": state}


def test_a_ranker_written_by_hand_loads(tmp_path):
    W = np.array([[0, 2, 1], [0, 0, 3], [5, 0, 0]], dtype=np.float32)
    popularity = np.array([1, 0, 2], dtype=np.float32)
    by_hand(
        tmp_path / "m", manifest("ease", regularization=10.0), {"weights_": W, "popularity_": popularity}
    )
    ranker = load_ranker(tmp_path / "m")
    row = sp.csr_matrix([[1, 0, 0]])
    assert ranker.name == "ease" and ranker.regularization == 10.0
    assert ranker.scores(0, row).tolist() == [[0, 2, 1]]


def test_a_sparse_one_with_its_catalogue_loads(tmp_path):
    tables = {
        "user_ids": ["u", "v"],
        "item_ids": ["a", "b", "c"],
        "titles": ["A", "B", "C"],
        "item_features": None,
        "user_features": None,
        "columns": None,
    }
    written = manifest("msdw")
    written["state"]["weights_.shape"] = [3, 3]
    arrays = {
        "weights_.data": np.array([2.0, 1.0], np.float32),
        "weights_.indices": np.array([1, 2], np.int32),
        "weights_.indptr": np.array([0, 2, 2, 2], np.int32),
        "popularity_": np.ones(3, np.float32),
        "package.json": np.frombuffer(json.dumps(tables).encode(), dtype=np.uint8),
        "history.data": np.ones(1, np.float32),
        "history.indices": np.array([0], np.int32),
        "history.indptr": np.array([0, 1, 1], np.int32),
    }
    by_hand(tmp_path / "m", written, arrays)
    package = load_package(tmp_path / "m")
    users, rows = package.rows(["u"])
    assert package.ranker.recommend(users, rows, N=1).ids.tolist() == [[1]]
    arrays["history.indptr"][1] = 9
    by_hand(tmp_path / "m", written, arrays)
    with pytest.raises(ModelFileError):
        load_package(tmp_path / "m")


def test_every_ranker_is_in_the_table():
    text = (Path(__file__).parent.parent / "docs" / "format.md").read_text()
    named = set(re.findall(r"`([a-z0-9-]+)`", text[text.index("## Arrays") :]))
    assert set(list_rankers()) <= named
