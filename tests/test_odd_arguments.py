"""Arguments of the wrong kind end in an InputError of one line, whatever they are: arrays, frames, NA."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import recsys
from recsys.datasets import graph_of, load_table
from recsys.links import compare_links, split_pairs

DATA = recsys.load_dataset("sample")
MODEL = recsys.Recommender("popularity").fit(DATA)
GRAPH = graph_of(DATA).weighted()
ODD = [
    np.zeros((2, 2)),
    np.array(["u1", "u2"]),
    pd.DataFrame({"a": [1, 2]}),
    pd.Series(["u1", "x"]),
    pd.NA,
    sp.eye(3, format="csr"),
    [[], ["a", ["b"]]],
    object(),
    1j,
    np.array(2),
    -(2**70),
    float("nan"),
]
CALLS = {
    "users": MODEL.recommend,
    "items": lambda odd: MODEL.recommend("u0001", items=odd),
    "exclude": lambda odd: MODEL.recommend("u0001", exclude=odd),
    "diversity": lambda odd: MODEL.recommend("u0001", diversity=odd),
    "diversity of similar": lambda odd: MODEL.similar("m0256", diversity=odd),
    "filters": lambda odd: MODEL.recommend("u0001", filters=odd),
    "why of all": lambda odd: MODEL.recommend_all(why=odd),
    "table": load_table,
    "metrics": lambda odd: recsys.evaluate(DATA, "popularity", metrics=odd),
    "only_folds": lambda odd: recsys.evaluate(DATA, "popularity", only_folds=odd),
    "filter_liked": lambda odd: recsys.evaluate(DATA, "popularity", filter_liked=odd),
    "n_jobs": lambda odd: recsys.evaluate(DATA, "popularity", n_jobs=odd),
    "budget": lambda odd: recsys.evaluate(DATA, "popularity", budget=odd),
    "link models": lambda odd: compare_links(GRAPH, odd),
    "cold": lambda odd: compare_links(GRAPH, "katz", cold=odd),
    "test_size": lambda odd: split_pairs(GRAPH.links, *GRAPH.sizes, test_size=odd),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_argument_of_the_wrong_kind_is_refused_in_one_line(call, odd):
    if call in ("users", "items", "exclude") and isinstance(odd, (np.ndarray, pd.Series)):
        pytest.skip("these may be ids")
    with pytest.raises(recsys.InputError) as caught:
        CALLS[call](odd)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("large", [2**70, 10**400, -(10**400), np.float64(1e308)])
def test_numbers_beyond_floats_are_refused(large):
    with pytest.raises(recsys.InputError, match="diversity must be a finite number"):
        MODEL.recommend("u0001", diversity=large)
