"""The table of what fitted rankers keep, and other numbers of bytes in the pages, against arrays."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, make_ranker
from recsys.data import Interactions
from recsys.rankers import fit_package
from recsys.rankers._gram_view import SMALL, prefers_dense, worth_dense
from recsys.rankers.slist import DENSE_ITEMS
from recsys.utils.memory import size_text
from recsys.utils.spec import parse_spec
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "howto" / "large-catalogues.md").read_text(encoding="utf-8")
USERS, ITEMS, FACTORS, TOP_K = 500, 900, 64, 5
BY_PAIRS = ("msdw", "cf-komd", "ecf-omd")
PARAMS = {
    **{name: {"factors": FACTORS, "iterations": 1} for name in ("als", "bpr", "lmf")},
    "graph-filter": {"factors": FACTORS}, "slim": {"l1": 0.01},
    **{name: {"top_k": TOP_K} for name in ("cosine", "tfidf", "bm25")},
}  # fmt: skip


def rows():
    """Yield (spec, formula) of the table."""
    for line in PAGE.split("## What a fitted ranker keeps")[1].splitlines():
        if line.startswith("| `"):
            names, formula, _ = (cell.strip() for cell in line.strip("|").split("|"))
            for name in re.findall(r"`([^`]+)`", names):
                yield name, formula.strip("`")


@pytest.fixture(scope="module")
def likes():
    """Users of 30 interactions each, some items more popular than others."""
    rng = np.random.default_rng(0)
    weights = 1.0 / np.arange(20, ITEMS + 20)
    drawn = [rng.choice(ITEMS, 30, replace=False, p=weights / weights.sum()) for _ in range(USERS)]
    entries = np.ones(30 * USERS, np.float32), (np.repeat(np.arange(USERS), 30), np.concatenate(drawn))
    found = sp.csr_matrix(entries, shape=(USERS, ITEMS))
    assert found.getnnz(axis=0).max() <= 255
    return found


def arrays_of(kept, found):
    """Gather the arrays that an object refers to, each buffer once, by its address."""
    if isinstance(kept, np.ndarray):
        if kept.nbytes:
            found[kept.__array_interface__["data"][0]] = kept.nbytes
    elif sp.issparse(kept):
        arrays_of([kept.data, kept.indices, kept.indptr], found)
    elif isinstance(kept, dict):
        arrays_of(list(kept.values()), found)
    elif isinstance(kept, (list, tuple)):
        for one in kept:
            arrays_of(one, found)
    elif type(kept).__module__.startswith("recsys."):
        arrays_of(vars(kept), found)
    return found


def value(formula, likes):
    """Return a formula of the table for these interactions."""
    pairs = (likes.T @ likes).nnz - np.count_nonzero(likes.sum(axis=0))
    known = {"users": USERS, "items": ITEMS, "factors": FACTORS, "top_k": TOP_K}
    text = formula.replace("²", "**2").replace("·", "*")
    return eval(text, {"__builtins__": {}}, known | {"pairs": pairs, "interactions": likes.nnz})


@pytest.mark.thorough
@pytest.mark.parametrize(("spec", "formula"), list(rows()))
def test_a_fitted_ranker_keeps_what_the_table_says(spec, formula, likes, monkeypatch):
    name, params = parse_spec(spec)
    sparse, head = "items²" not in formula, 0
    if sparse and name in BY_PAIRS:
        params["memory"] = 4 * ITEMS**2 - 1
        head = 0 if name == "msdw" else 4 * ITEMS**2  # the pairs of 2,048 items, which is all
    if "top_k" in params:
        params["top_k"] = TOP_K
        monkeypatch.setattr("recsys.rankers._gram_view.SMALL", 0)
    ranker = make_ranker(name, **params, **PARAMS.get(name, {})).fit(likes, show_progress=False)
    if sparse and name in BY_PAIRS:
        assert sp.issparse(ranker.weights_ if name == "msdw" else ranker.together_)
    kept, told = sum(arrays_of(ranker, {}).values()) - head, value(formula, likes)
    assert told <= 1.06 * kept and kept <= told + 100 * ITEMS + 40 * USERS


def test_the_table_has_both_forms():
    assert [formula for spec, formula in rows() if spec == "cf-komd"] == ["5 · items²", "9 · pairs"]
    assert len(list(rows())) == 22


def test_the_largest_catalogue_of_dense_weights_and_of_slist_is_the_pages():
    assert worth_dense(5_656, None) and not worth_dense(5_657, None)
    assert prefers_dense(sp.identity(5_656, format="csr"), SMALL)
    assert not prefers_dense(sp.identity(5_657, format="csr"), None)
    assert set(re.findall(r"up to (\d,\d+) items", PAGE)) == {"5,656", f"{DENSE_ITEMS:,}"}
    assert f"`slist` up to {DENSE_ITEMS:,} items" in PAGE


def test_a_file_holds_the_histories_besides(likes, tmp_path):
    users, items = likes.nonzero()
    data = Interactions.from_ids(users, items)
    package = fit_package(make_ranker("ease"), data, show_progress=False)
    package.save(tmp_path / "m")
    size = (tmp_path / "m").stat().st_size
    told = 4 * len(data.item_ids) ** 2 + 8 * likes.nnz
    assert "the histories: 8 bytes an interaction" in PAGE
    assert told <= size <= told + 200 * (USERS + ITEMS)


@pytest.mark.parametrize(("name", "each"), [("ease", 16), ("slim", 13)])
def test_memory_is_compared_with_what_the_page_says(name, each, likes):
    assert f"`{each} · items²` of `{name}`" in PAGE
    params = {"keep_inverse": True} if name == "ease" else {}  # with which it has no smaller form
    make_ranker(name, memory=each * ITEMS**2, **params).fit(likes, show_progress=False)
    with pytest.raises(InputError):
        make_ranker(name, memory=each * ITEMS**2 - 1, **params).fit(likes, show_progress=False)


def test_the_sizes_of_a_dense_ease_on_the_page_of_rankers():
    text = (ROOT / "docs" / "concepts" / "rankers.md").read_text(encoding="utf-8")
    assert size_text(4 * 20_000**2) == "1.6 GB" and size_text(12 * 20_000**2) == "4.8 GB"
    assert "4 · items² bytes in memory and in the file, which is 1.6 GB for 20,000\nitems" in text
    assert "12 · items² bytes together, 4.8 GB" in text
