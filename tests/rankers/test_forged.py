"""Every ranker's file with each of its arrays and numbers made wrong in turn, under a right checksum."""

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import ModelFileError, load_ranker, make_ranker
from recsys.utils import model_file
from tests.contract.test_rankers import CASES, identifier

EXTRA = [
    ("cf-komd", {"kernel": "md", "degree": 3, "memory": 5000}),
    ("cf-komd", {"votes": 1.0}),
    ("ease", {"keep_inverse": True}),
    ("msdw", {"votes": 1.0}),
    ("blend", {"models": "ease+als:factors=4"}),
    ("als", {"factors": 4, "iterations": 2, "ridge_power": 1.0}),
]


def of_array(name, array, n_items, n_users):
    """Yield (what, changed or None to leave it out): each is wrong for any ranker."""
    yield "absent", None
    yield "one row less", array[:-1]
    yield "one row more", np.concatenate([array, array[-1:]])
    yield "another dimension", array[None]
    other = np.float64 if array.dtype == np.float32 else np.float32
    if array.dtype.kind == "i":
        other = np.int64 if array.dtype == np.int32 else np.int32
    if array.dtype.kind != "u" and not name.endswith((".indices", ".indptr")):
        yield "another dtype", array.astype(other)
    # Counts are bytes themselves, and all 0 they are those of other data: these nothing has.
    most = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 0
    yield "bytes", np.full(array.shape, most, dtype=array.dtype if most else np.uint8)
    if array.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf):
            changed = array.copy()
            changed.flat[changed.size // 2] = value
            yield f"{value}", changed
    if array.dtype.kind == "i":
        for value in (-1, np.iinfo(array.dtype).max):
            changed = array.copy()
            changed.flat[changed.size // 2] = value
            yield f"{value}", changed


def of_value(value):
    """Yield what is none of the values that a ranker writes there."""
    yield None
    yield {"a": [1]}
    yield float("inf")
    yield float("nan")
    yield "x" * 50
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield -7
        yield 10**15
        yield [value]
    if isinstance(value, list):
        yield value + value[-1:]
        yield value[:-1]
        yield [None] * len(value)


def forgeries(manifest, arrays):
    items, users = manifest["state"]["n_items_"], manifest["state"]["n_users_"]
    for name in arrays:
        for what, changed in of_array(name, arrays[name], items, users):
            table = {key: value for key, value in arrays.items() if key != name}
            if changed is not None:
                table[name] = changed
            yield f"{name}: {what}", manifest, table
    for key, value in manifest["state"].items():
        left_out = copy.deepcopy(manifest)
        del left_out["state"][key]
        yield f"{key}: absent", left_out, arrays
        for changed in of_value(value):
            other = copy.deepcopy(manifest)
            other["state"][key] = changed
            yield f"{key}: {json.dumps(changed)[:40]}", other, arrays
    for key in manifest["params"]:
        for changed in ({"a": 1}, [1], -(10**9), float("nan"), float("inf"), "no such thing"):
            other = copy.deepcopy(manifest)
            other["params"][key] = changed
            yield f"parameter {key}: {json.dumps(changed)}", other, arrays


@pytest.mark.thorough
@pytest.mark.parametrize("case", [*CASES, *EXTRA], ids=identifier)
def test_no_forged_state_is_used(case, liked, tmp_path):
    name, params = case
    if "memory" in params:  # thinned, so that the sparse form is the smaller one
        liked = liked.multiply(np.random.default_rng(1).random(liked.shape) < 0.15).tocsr()
    known = {}
    if name == "content":  # which holds nothing where items have no features
        known["item_features"] = sp.csr_matrix(
            np.random.default_rng(2).random((liked.shape[1], 7)) < 0.3
        )
    model = make_ranker(name, **params).fit(liked, show_progress=False, **known)
    assert ("memory" in params) == hasattr(model, "order_")
    model.save(tmp_path / "good")
    manifest, arrays = model_file.read(tmp_path / "good")
    for key in ("sha256", "format", "written_by"):
        manifest.pop(key)
    rows = sp.csr_matrix(liked)
    wanted = model.scores(np.arange(60), rows)
    accepted = []
    for what, other, table in forgeries(manifest, arrays):
        model_file.write(tmp_path / "bad", other, table)
        try:
            loaded = load_ranker(tmp_path / "bad")
        except ModelFileError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
            continue
        # what was read may be unused in scoring (a record of the fit); it may not change an answer
        if not np.array_equal(loaded.scores(np.arange(60), rows), wanted):
            accepted.append(what)
    assert not accepted
