"""Work folders and models that are not what they should be, and files larger than the memory."""

import json
import os
import struct

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from recsys import InputError
from recsys.data import Interactions
from recsys.partitioned import fit_partitions, recommend_partitions
from recsys.partitioned.arrays import MAGIC, read_arrays, write_arrays
from recsys.partitioned.ids import unpacked
from recsys.partitioned.ordered import stage_name
from recsys.rankers import ModelPackage, fit_package, load_package, load_ranker, make_ranker

pytestmark = pytest.mark.thorough


@pytest.fixture
def fitted(tmp_path):
    """A model, its work folder, and the table that both are of."""
    rng = np.random.default_rng(0)
    table = {"user": rng.integers(0, 30, 200), "item": rng.integers(0, 20, 200)}
    pq.write_table(pa.table(table), tmp_path / "likes.parquet")
    model, work = tmp_path / "my.recsys", tmp_path / "work"
    fit_partitions("ease:top_k=5", tmp_path / "likes.parquet", out=model, work=work)
    return model, work, table


@pytest.mark.skipif(not os.path.exists("/proc/sys/vm/overcommit_memory"), reason="of Linux")
def test_a_file_larger_than_the_memory_is_mapped(tmp_path):
    with open("/proc/sys/vm/overcommit_memory") as file:
        if file.read().strip() == "2":
            pytest.skip("every mapping counts here")
    count = (psutil.virtual_memory().total + psutil.swap_memory().total) // 8 + 2**27
    path = tmp_path / "large"
    write_arrays(path, {"a": np.arange(8)})
    table = {"a": ["<i8", [count], 0]}
    header = json.dumps(table).encode()
    header += b" " * (-(len(header) + 16) % 64)
    with path.open("wb") as file:
        file.write(MAGIC + struct.pack("<Q", len(header)) + header + np.arange(5).tobytes())
        file.truncate(16 + len(header) + 8 * count)  # holes: it takes no room
    found = read_arrays(path)["a"]
    assert len(found) == count and found[:6].tolist() == [0, 1, 2, 3, 4, 0] and found[-1] == 0
    found[0] = 9
    assert read_arrays(path)["a"][0] == 0, "what is written to is this process's copy"


@pytest.mark.parametrize(
    "header",
    [
        b"[1]", b'{"a": 3}', b'{"a": ["<z9", [1], 0]}', b'{"a": ["<i8", [1.5], 0]}', b'{"a": ["<i8", [-1], 0]}',
        b"[" * 5000, b'{"a": ["<i8", [99], 0]}', b"not json",
    ],
)  # fmt: skip
def test_a_header_that_is_none_is_told_in_a_line(tmp_path, header):
    path = tmp_path / "part"
    path.write_bytes(MAGIC + struct.pack("<Q", len(header)) + header + bytes(64))
    with pytest.raises(InputError, match="damaged"):
        read_arrays(path)


@pytest.mark.parametrize("length", [2**40, 2**63 - 1, 2**64 - 1])
def test_a_header_longer_than_the_file_is_not_read(tmp_path, length):
    path = tmp_path / "part"
    path.write_bytes(MAGIC + struct.pack("<Q", length) + bytes(64))
    with pytest.raises(InputError, match="damaged"):
        read_arrays(path)


@pytest.mark.parametrize("offsets", [[0, 2**50], [0, 3, 1], [-1, 2], []])
def test_ids_outside_their_bytes_are_refused(offsets):
    arrays = {"ids.offsets": np.array(offsets, dtype=np.int64), "ids.bytes": np.zeros(3, np.uint8)}
    with pytest.raises(InputError, match="damaged"):
        unpacked("ids", arrays)


@pytest.mark.parametrize("spec", ["ease:top_k=5", "slist:form=cosine"])
def test_a_ranker_of_other_items_is_refused_and_leaves_no_folder(fitted, tmp_path, spec):
    model, work, table = fitted
    name, _, params = spec.partition(":")
    key, value = params.split("=")
    ranker = make_ranker(name, **{key: int(value) if value.isdecimal() else value})
    import pandas as pd

    frame = pd.DataFrame(table).assign(item=table["item"] + 1000)
    other = fit_package(ranker, Interactions.from_frame(frame), show_progress=False)
    assert isinstance(other, ModelPackage)
    other.save(tmp_path / "other")
    top = tmp_path / "top"
    with pytest.raises(InputError, match="was not fitted on the rows"):
        recommend_partitions(tmp_path / "other", work, top)
    recommend_partitions(model, work, top)  # what was refused has not taken the folder
    ranker = load_ranker(model)
    ranker.save(tmp_path / "bare")
    with pytest.raises(InputError, match="was not fitted on the rows"):
        recommend_partitions(tmp_path / "bare", work, tmp_path / "top2")


def test_a_model_saved_anew_is_still_that_of_its_rows(fitted, tmp_path):
    model, work, _ = fitted
    load_package(model).save(tmp_path / "again")
    one = recommend_partitions(model, work, tmp_path / "a")
    two = recommend_partitions(tmp_path / "again", work, tmp_path / "b")
    assert pq.read_table(one).equals(pq.read_table(two))


def test_an_altered_model_makes_no_lists(fitted, tmp_path):
    model, work, _ = fitted
    content = bytearray(model.read_bytes())
    content[-5] ^= 64
    model.write_bytes(content)
    with pytest.raises(InputError, match="was altered"):
        recommend_partitions(model, work, tmp_path / "top")
    assert not (tmp_path / "top").exists()


def test_weights_that_are_there_need_no_memory(fitted, tmp_path):
    _, work, _ = fitted
    fit_partitions("ease:top_k=5", tmp_path / "likes.parquet", out=tmp_path / "m2", work=work, memory=1)
    assert (
        load_ranker(tmp_path / "m2").weights_ != load_ranker(tmp_path / "my.recsys").weights_
    ).nnz == 0


def test_numbers_of_numpy_are_parameters_like_others(tmp_path):
    pq.write_table(pa.table({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2]}), tmp_path / "p.parquet")
    ranker = make_ranker("ease", top_k=np.int64(2), regularization=np.float32(5))
    fit_partitions(ranker, tmp_path / "p.parquet", out=tmp_path / "m", work=tmp_path / "w")
    assert load_ranker(tmp_path / "m").top_k == 2
    plain = make_ranker("ease", top_k=np.int64(2)).fit(sp.identity(4, format="csr"), show_progress=False)
    plain.save(tmp_path / "plain")
    assert load_ranker(tmp_path / "plain").top_k == 2


@pytest.mark.parametrize("wrong", [-np.inf, np.nan])
def test_a_least_rating_is_a_finite_number(tmp_path, wrong):
    pq.write_table(pa.table({"user": [1], "item": [1], "rating": [3.0]}), tmp_path / "p.parquet")
    with pytest.raises(InputError, match="min_rating must be a finite number"):
        fit_partitions(
            "cf-komd", tmp_path / "p.parquet", out=tmp_path / "m", work=tmp_path / "w", min_rating=wrong
        )


def test_any_seed_can_name_a_stage():
    assert stage_name(7) == "7" and len(stage_name(10**300)) == 32 != stage_name(10**300 + 1)
