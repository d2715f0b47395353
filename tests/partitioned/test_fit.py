"""Rankers fitted from partitions are those of a fit in memory: to the bit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from recsys.partitioned import fit_partitions
from recsys.partitioned.rows import read_catalogue, read_rows
from recsys.partitioned.ids import plain, unpacked
from recsys.partitioned.work import Work
from recsys.rankers import load_bundle, load_ranker, make_ranker
from recsys.utils.spec import parse_spec


def write(folder, users, items, parts=3, group=7, **others):
    """Write rows in so many files."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"who": users, "what": items, **others})
    edges = np.linspace(0, len(users), parts + 1).astype(int)
    for k, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        pq.write_table(table.slice(low, high - low), folder / f"p{k:03d}.parquet", row_group_size=group)
    return folder


def likes(seed=0, users=40, items=25, rows=300, text=False):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, users, rows) * 3 - 20
    i = (items * rng.random(rows) ** 2).astype(int) * 7
    return ([f"u{x}" for x in u], [f"é{x}" for x in i]) if text else (u, i)


def matrix_of(work):
    """Return ids of users and items as the work folder numbers them, and the rows."""
    work = Work.opened(work)
    rows = [read_rows(work, b) for b in range(work.buckets)]
    items = plain(unpacked("ids", read_catalogue(work)))
    users = [name for one in rows for name in plain(one.users)]
    lengths = np.concatenate([np.diff(one.indptr) for one in rows])
    indices = np.concatenate([one.items for one in rows])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return users, items, sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(users), len(items)))


def in_memory(spec, matrix, monkeypatch):
    from recsys.rankers import _margin, cf_komd

    for module in (_margin, cf_komd):
        monkeypatch.setattr(module, "prefers_dense", lambda *_: False)
    name, params = parse_spec(spec)
    return make_ranker(name, **params).fit(matrix, show_progress=False)


def same_state(one, other):
    a, b = one.get_state(), other.get_state()
    assert a.scalars == b.scalars
    assert a.arrays.keys() == b.arrays.keys()
    for name in a.arrays:
        assert a.arrays[name].dtype == b.arrays[name].dtype, name
        assert np.array_equal(a.arrays[name], b.arrays[name]), name


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("spec", ["cf-komd", "cf-komd:votes=1.0", "cf-komd:kernel=mc,degree=2"])
def test_a_ranker_is_that_of_a_fit_in_memory(tmp_path, monkeypatch, spec, text):
    users, items = likes(text=text)
    data = write(tmp_path / "data", users, items)
    fit_partitions(spec, data, out=tmp_path / "m.recsys", work=tmp_path / "work", user="who", item="what", memory=20_000)
    names, known, matrix = matrix_of(tmp_path / "work")
    assert Work.opened(tmp_path / "work").buckets > 1
    pairs = {(names[u], known[i]) for u, i in zip(*matrix.nonzero(), strict=True)}
    assert pairs == set(zip(np.asarray(users).tolist(), np.asarray(items).tolist(), strict=True))
    assert known == sorted(known)
    expected = in_memory(spec, matrix, monkeypatch)
    bundle = load_bundle(tmp_path / "m.recsys", mapped=True)
    same_state(bundle.ranker, expected)
    assert list(bundle.user_ids) == names and list(bundle.item_ids) == known
    assert (bundle.user_items != matrix).nnz == 0
    everybody = np.arange(len(names))
    a, b = bundle.ranker.recommend(everybody, matrix), expected.recommend(everybody, matrix)
    assert np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores)
