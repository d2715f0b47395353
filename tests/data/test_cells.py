"""Codes of ids against a loop."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recsys.data.cells import coded, factorized

CELLS = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=20)


def by_loop(cells):
    """Number values in the order of their first appearance."""
    known = list(dict.fromkeys(one for one in cells if one is not None))
    return [-1 if one is None else known.index(one) for one in cells], known


@given(
    CELLS, st.permutations(range(6)), st.sampled_from([pa.int8(), pa.uint8(), pa.int32(), pa.int64()])
)
@example([0, 1, 2], tuple(range(6)), pa.uint8())
@example([None, None], tuple(range(6)), pa.int8())
@example([], tuple(range(6)), pa.int32())
def test_codes_of_a_dictionary_are_in_the_order_of_first_appearance(cells, order, kind):
    """The dictionary may be in any order, and have entries that no row has."""
    places = [None if one is None else order.index(one) for one in cells]
    dictionary = pa.array([f"v{one}" for one in order])
    column = pa.DictionaryArray.from_arrays(pa.array(places, kind), dictionary)
    codes, values = factorized("table", "user", column)
    expected, known = by_loop(cells)
    assert codes.tolist() == expected and values.tolist() == [f"v{one}" for one in known]


@given(CELLS.filter(any), st.booleans(), st.integers(1, 4))
def test_codes_of_integers_in_chunks(cells, as_text, chunks):
    parts = np.array_split(np.array(cells, dtype=object), chunks)
    column = pa.chunked_array([pa.array(part.tolist(), pa.int64()) for part in parts])
    found = coded("table", "user", column, as_text)
    expected, known = by_loop(cells)
    assert found.codes.tolist() == expected
    assert found.ids.tolist() == ([str(one) for one in known] if as_text else known)


@pytest.mark.parametrize("width", [127, 128, 255])
def test_codes_fill_their_type(width):
    """Differences of codes would overflow in the narrow type of a dictionary."""
    codes = np.arange(width, dtype=np.uint8)
    column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([f"v{k}" for k in range(width)]))
    assert factorized("table", "user", column)[0].tolist() == list(range(width))
