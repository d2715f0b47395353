"""A matrix with broken arrays is one error at every boundary, never a crash: each format, each array."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, list_rankers, make_ranker
from recsys.data import Interactions
from recsys.evaluation import metrics
from recsys.explain import item_rule, reasons, what_if
from recsys.reranking import overlap, rerank, similar
from recsys.utils.validation import clean_matrix, take_columns

# ---- crashes, each in a process of its own

START = """
import sys, numpy as np, scipy.sparse as sp
from recsys import InputError, make_ranker
rng = np.random.default_rng(0)
R = sp.csr_matrix((rng.random((40, 30)) < 0.3).astype(np.float32))
ranker = make_ranker({name!r}).fit(R, show_progress=False)
row, whole = R[3], R.copy()
"""
END = """
for call in (lambda: ranker.recommend(3, row), lambda: make_ranker({name!r}).fit(whole, show_progress=False)):
    try:
        call()
    except InputError as error:
        assert "broken index arrays" in str(error), error
    else:
        sys.exit(3)
"""
CRASHES = {
    "CSC, last indptr too big": """
row, whole = row.tocsc(), whole.tocsc()
for m in (row, whole):
    m.indptr = m.indptr.copy(); m.indptr[-1] = 50_000_000
""",
    "CSC, indptr too big in the middle": """
row, whole = row.tocsc(), whole.tocsc()
for m in (row, whole):
    m.indptr = m.indptr.copy(); m.indptr[7] = 50_000_000
""",
    "CSC, indptr negative": """
row, whole = row.tocsc(), whole.tocsc()
for m in (row, whole):
    m.indptr = m.indptr.copy(); m.indptr[7] = -50_000_000
""",
    "CSR, indices with NaN": """
for m in (row, whole):
    m.indices = m.indices.astype(float); m.indices[0] = np.nan
""",
    "CSR, float indptr with NaN": """
for m in (row, whole):
    m.indptr = m.indptr.astype(float); m.indptr[-1] = np.nan
""",
    "BSR, indptr too big": """
row, whole = row.tobsr((1, 3)), whole.tobsr((2, 3))
for m in (row, whole):
    m.indptr = m.indptr.copy(); m.indptr[-1] = 50_000_000
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CRASHES)
def test_no_matrix_ends_the_interpreter(kind, tmp_path):
    name = "als" if "indices" in kind else "popularity"
    program = START.format(name=name) + CRASHES[kind] + END.format(name=name)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": root},
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])


# ---- every format, every array, every fault

FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")


def sample(kind, dense=None):
    """A sound matrix whose arrays are its own."""
    if dense is None:
        dense = np.zeros((4, 6), dtype=np.float32)
        dense[[0, 1, 1, 3], [2, 0, 5, 3]] = 1
    if kind == "bsr":
        return sp.bsr_matrix(dense, blocksize=(2, 3))
    return sp.csr_matrix(dense).asformat(kind, copy=True)


def put(matrix, name, array):
    """Set an index array behind the setters' backs: some convert, as an untrue library would not."""
    if matrix.format == "coo":
        coords = list(matrix.coords)
        coords[("row", "col").index(name)] = array
        matrix.coords = tuple(coords)
    else:
        setattr(matrix, name, array)
    return matrix


ARRAYS = {
    "csr": ("indptr", "indices"),
    "csc": ("indptr", "indices"),
    "bsr": ("indptr", "indices"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


def at(place, value, dtype=None):
    def change(array):
        array = array.astype(dtype or array.dtype)
        array[place] = value
        return array

    return change


FAULTS = {
    "float": lambda a: a.astype(float),
    "NaN": at(0, np.nan, float),
    "fraction": at(-1, 1.5, float),
    "two-dimensional": lambda a: np.tile(a, (2, 1)),
    "a column": lambda a: a[:, None],
    "no array": lambda a: a.tolist(),
    "text": lambda a: a.astype(str),
    "bool": lambda a: a.astype(bool),
    "object": lambda a: a.astype(object),
    "far too big": at(-1, 2**40, np.int64),
    "beyond int64": at(-1, 2**64 - 1, np.uint64),
    "negative": at(-1, -7),
    "cut": lambda a: a[:-1],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind, name", [(k, name) for k, names in ARRAYS.items() for name in names])
def test_a_fault_in_an_index_array_is_an_error_or_leaves_entries_within_the_matrix(kind, name, fault):
    whole = sample(kind)
    broken = put(whole, name, FAULTS[fault](np.asarray(getattr(whole, name))))
    try:
        clean = clean_matrix(broken)
    except InputError as error:
        assert str(error).startswith("user_items has broken index arrays: ")
        return
    assert (kind != "csr" or fault == "no array") and clean.shape == (4, 6)
    clean.check_format(full_check=True)


@pytest.mark.parametrize("places", [[99], [-1], [2**40]])
def test_a_fault_in_a_list_of_lists_is_one_error(places):
    matrix = sample("lil")
    matrix.rows[1] = places  # of two values
    matrix.data[1] = [1.0]
    with pytest.raises(InputError, match="^user_items has broken index arrays: "):
        clean_matrix(matrix)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
@pytest.mark.parametrize("values", [np.complex64, object, str])
def test_values_that_are_no_real_numbers_are_refused(kind, values):
    matrix = sample(kind)
    matrix.data = matrix.data.astype(values)
    with pytest.raises(InputError, match="real numbers are needed"):
        clean_matrix(matrix)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_values_of_another_shape_are_refused(kind):
    matrix = sample(kind)
    matrix.data = matrix.data[None]
    with pytest.raises(InputError, match="broken"):
        clean_matrix(matrix)
    if kind == "dia":  # has as many entries as its diagonals
        return
    matrix = sample(kind)
    matrix.data = matrix.data[:-1]
    with pytest.raises(InputError, match="broken index arrays"):
        clean_matrix(matrix)


def test_more_columns_than_an_index_can_name_are_refused():
    wide = sp.coo_matrix((np.ones(1), (np.zeros(1, np.int64), np.full(1, 2**31))), (1, 2**31 + 5))
    with pytest.raises(InputError, match="at most 2,147,483,647 items"):
        clean_matrix(wide)


def test_ragged_lists_are_refused():
    for wrong in ([[1, 0], [1]], [[[1]], [1]]):
        with pytest.raises(InputError, match="user_items must be an array"):
            clean_matrix(wrong)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("index", [np.int8, np.uint16, np.int64, np.uint64, ">i4"])
def test_whole_numbers_of_any_width_and_byte_order_are_taken(kind, index):
    whole = sample(kind)
    wanted = whole.toarray()
    for name in ARRAYS.get(kind, ()):
        if name == "offsets" and np.dtype(index).kind == "u":
            continue
        put(whole, name, np.asarray(getattr(whole, name)).astype(index))
    np.testing.assert_array_equal(clean_matrix(whole).toarray(), wanted)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_arrays_longer_than_indptr_says_are_taken(kind):
    """What lies beyond indptr[-1] is no entry, whatever it is."""
    whole = sample(kind)
    wanted = whole.toarray()
    whole.indices = np.concatenate([whole.indices, [10**6]]).astype(np.int32)
    whole.data = np.concatenate([whole.data, whole.data[:1] * 9])
    np.testing.assert_array_equal(clean_matrix(whole).toarray(), wanted)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_sound_matrix_keeps_its_entries_in_every_format(data):
    rows, cols = (data.draw(st.integers(1, 4)) * 2 for _ in range(2))
    dense = np.array(
        data.draw(
            st.lists(
                st.lists(st.sampled_from([0, 0, 0, 1, 2, -1]), min_size=cols, max_size=cols),
                min_size=rows,
                max_size=rows,
            )
        ),
        dtype=np.float32,
    )
    kind = data.draw(st.sampled_from(FORMATS))
    matrix = sp.csr_matrix(dense)
    matrix = matrix.tobsr((2, 2)) if kind == "bsr" else matrix.asformat(kind)
    if data.draw(st.booleans()):
        matrix = getattr(sp, f"{kind}_array")(matrix)
    np.testing.assert_array_equal(clean_matrix(matrix).toarray(), np.maximum(dense, 0))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_any_change_of_an_index_array_gives_an_error_or_entries_within_the_matrix(data):
    kind = data.draw(st.sampled_from([*ARRAYS]))
    whole = sample(kind)
    name = data.draw(st.sampled_from(ARRAYS[kind]))
    array = np.array(getattr(whole, name), dtype=data.draw(st.sampled_from([np.int32, np.int64, float])))
    if len(array):
        where = data.draw(st.integers(0, len(array) - 1))
        values = st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 9)
        array[where] = data.draw(values if array.dtype.kind == "i" else values | st.floats())
    try:
        clean = clean_matrix(put(whole, name, array))
    except InputError as error:
        assert str(error).startswith("user_items has broken index arrays")
        return
    assert (array.dtype.kind == "i" or kind != "csr") and clean.shape == (4, 6)
    clean.check_format(full_check=True)


# ---- every boundary


def breakers():
    """Return a function a fault, each of which breaks a matrix of at least one entry."""

    def csc(m):
        m = sp.csc_matrix(m)
        m.indptr = m.indptr.copy()
        m.indptr[-1] = 50_000_000
        return m

    def nan(m):
        m = sp.csr_matrix(m, copy=True)
        m.indices = m.indices.astype(float)
        m.indices[0] = np.nan
        return m

    def far(m):
        m = sp.coo_matrix(m)
        m.coords = (m.coords[0], np.full_like(m.coords[1], 10**6))
        return m

    def flat(m):
        m = sp.csr_matrix(m, copy=True)
        m.indices = m.indices[None]
        return m

    return {"csc": csc, "nan": nan, "far": far, "flat": flat}


BREAKERS = breakers()
SMALL = {"auto": {"users": 12, "rounds": 1}}
SMALL |= {name: {"iterations": 1} for name in ("bpr", "lmf", "als")}
SMALL |= {
    name: {"factors": 2, "iterations": 1}
    for name in (
        "fm",
        "sparse-fm",
        "hofm",
        "bilinear",
        "pairnet",
        "pair-dnn",
        "honfm",
        "all-subsets",
    )
}
QUICK = ("popularity", "ease", "cf-komd", "msdw", "slist", "slim", "fm", "als", "cosine", "content")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.thorough) for one in list_rankers()],
)
def test_every_call_of_every_ranker_refuses_them(name, liked):
    ranker = make_ranker(name, **SMALL.get(name, {})).fit(liked, show_progress=False)
    for breaker in BREAKERS.values():
        whole, row = breaker(liked), breaker(liked[3])
        calls = [
            lambda whole=whole: make_ranker(name, **SMALL.get(name, {})).fit(whole, show_progress=False),
            lambda row=row: ranker.recommend(3, row),
            lambda whole=whole: ranker.recommend(np.arange(60), whole),
            lambda row=row: ranker.scores(3, row),
        ]
        if "fold-in" in ranker.capabilities:
            calls.append(lambda row=row: ranker.recommend(0, row, recalculate_user=True))
        if "explain" in ranker.capabilities:
            calls.append(lambda row=row: ranker.explain(3, row, 1))
        if hasattr(ranker, "user_embeddings"):
            calls.append(lambda whole=whole: ranker.user_embeddings(whole))
        for call in calls:
            with pytest.raises(InputError, match="user_items has broken index arrays"):
                call()
        if "similar-items" in ranker.capabilities:  # there it is not looked at
            np.testing.assert_array_equal(
                ranker.similar_items(1, item_users=row)[0], ranker.similar_items(1)[0]
            )
            with pytest.raises(InputError, match="recalculate"):
                ranker.similar_items(1, recalculate_item=True, item_users=row)


@pytest.mark.parametrize("kind", BREAKERS)
def test_metrics_refuse_them(kind, liked):
    scores = np.random.default_rng(0).random(liked.shape)
    broken = BREAKERS[kind](liked)
    for measure in (metrics.auc, metrics.ndcg, metrics.average_precision, metrics.recall):
        with pytest.raises(InputError, match="train has broken index arrays"):
            measure(scores, broken, liked)
        with pytest.raises(InputError, match="test has broken index arrays"):
            measure(scores, liked, broken)
    with pytest.raises(InputError, match="train must be"):
        metrics.auc(scores, None, liked)


def test_list_metrics_refuse_ids_that_are_none():
    context = metrics.ListContext(sp.csr_matrix(np.ones((3, 5))))
    for wrong in ([[5]], [[-2]], [[0.5]], [0, 1], [["a"]]):
        with pytest.raises(InputError, match="ranked ids"):
            metrics.coverage(wrong, context)
        with pytest.raises(InputError, match="ranked ids"):
            metrics.novelty(wrong, context)
    assert metrics.coverage([[0, -1], [4, 0]], context) == 0.4
    with pytest.raises(InputError, match="train"):
        metrics.ListContext(None)


@pytest.mark.parametrize("kind", BREAKERS)
def test_what_needs_the_histories_refuses_them(kind, liked):
    broken = BREAKERS[kind](liked)
    ranker = make_ranker("ease").fit(liked, show_progress=False)
    every = np.arange(40)
    with pytest.raises(InputError, match="item_users has broken index arrays"):
        overlap(broken, every)
    with pytest.raises(InputError, match="item_users has broken index arrays"):
        rerank(ranker, 3, liked[3], 30, diversity=0.5, item_users=broken)
    with pytest.raises(InputError, match="item_users has broken index arrays"):
        similar(ranker, 3, 30, diversity=0.5, item_users=broken)
    with pytest.raises(InputError, match="user_items has broken index arrays"):
        item_rule(broken, liked[3].indices, 1)
    with pytest.raises(InputError, match="row has broken index arrays"):
        reasons(ranker, 3, BREAKERS[kind](liked[3]), 1)
    with pytest.raises(InputError, match="row has broken index arrays"):
        what_if(ranker, 3, BREAKERS[kind](liked[3]), 1)


def test_columns_are_those_of_the_whole_matrix(liked):
    ids = np.array([3, 39, 5, 3])
    wanted = (liked.toarray() > 0)[:, ids]
    for kind in FORMATS:
        np.testing.assert_array_equal(take_columns(liked.asformat(kind), ids).toarray(), wanted)
    nobody = take_columns(liked.tocsc(), [])
    assert nobody.shape == (60, 0)
    for wrong in ([40], [-1]):
        with pytest.raises(IndexError, match="is not within 0…39"):
            take_columns(liked.tocsc(), wrong)


def test_pairs_that_leave_their_ids_are_refused():
    ids = np.array(["a", "b"], dtype=object)
    fine = np.array([0, 1], dtype=np.int32)
    for wrong in (np.array([0, 2]), np.array([-1, 0])):
        with pytest.raises(InputError, match="must be within 0…1"):
            Interactions(wrong, fine, ids, ids)
        with pytest.raises(InputError, match="must be within 0…1"):
            Interactions(fine, wrong, ids, ids)
    for wrong in (np.array([0.0, 1.0]), np.array([[0, 1]]), np.array(["a", "b"])):
        with pytest.raises(InputError, match="must be integers in one dimension"):
            Interactions(wrong, fine, ids, ids)
    for wrong in ({"rating": np.ones(3)}, {"time": np.ones(1)}):
        with pytest.raises(InputError, match="for 2 pairs"):
            Interactions(fine, fine, ids, ids, **wrong)
    with pytest.raises(InputError, match="for 2 pairs"):
        Interactions(fine, fine[:1], ids, ids)
