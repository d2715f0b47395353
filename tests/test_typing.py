"""What a user's own type checker sees: the Python of some pages, and a script of the usual calls, in strict mode."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/howto/arrays.md", "docs/howto/explain.md", "docs/howto/links.md")

# Libraries without types of their own are the user's affair; what they give us is Any.
SETTINGS = """
[mypy]
strict = true
follow_imports = silent
[mypy-scipy.*,sklearn.*,pandas.*]
ignore_missing_imports = true
"""

USUAL = """
from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray

from recsys import CapabilityError, load_ranker, make_ranker
from recsys.rankers.answers import Explanation, Recommendations
from recsys.data import Interactions, read_interactions, split
from recsys.datasets import load_dataset
from recsys.evaluation import compare, evaluate
from recsys.evaluation.metrics import ListContext, auc, coverage, ndcg
from recsys.explain import because, changes, reasons
from recsys.reranking import rerank, similar
from recsys.rankers import ModelPackage, Ranker, fit_package, list_rankers, load_package
from recsys import ALS, Recommender


def ranked(path: Path) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    data = load_dataset("sample")
    ranker: Ranker = make_ranker("ease", regularization=10.0).fit(data.matrix, show_progress=False)
    ranker.save(path)
    with path.open("wb") as file:
        ranker.save(file)
    found: Recommendations = load_ranker(path).recommend([1, 2], data.matrix[[1, 2]], N=5)
    empty: bool | NDArray[np.bool_] = found.fallback
    print(np.any(empty), found.ids.dtype, found.scores.sum())
    ids, scores = found
    why: Explanation = ranker.explain(1, data.matrix[1], int(ids[0, 0]))
    print(why.bias + sum(share for _, share in why.contributions))
    near, cosines = ranker.similar_items(3, N=4)
    print(near.tolist(), float(cosines[0]))
    return ids, scores


def of_one_class(path: Path) -> ALS:
    model = ALS(factors=8).fit(load_dataset("sample").matrix)
    model.save(path)
    factors: NDArray[np.float32] = model.item_embeddings()
    print(factors.shape)
    return ALS.load(path)


def by_ids(path: Path) -> ModelPackage:
    data: Interactions = Interactions.from_ids(["a", "b"], [1, 2], rating=[4, 5])
    package: ModelPackage = fit_package(make_ranker(list_rankers()[0]), data)
    package.save(path)
    rows, matrix = load_package(path).rows(["a"])
    print(rows.sum(), matrix.shape)
    return package


def at_the_front_door(path: Path) -> Recommender:
    model: Recommender = Recommender(ALS(factors=8)).fit(load_dataset("sample").matrix)
    print(model.recommend([1, 2], n=5, filter_liked=False)["item"])
    return model


def in_the_kind_of_table_that_was_given(table: pl.DataFrame, other: pd.DataFrame, path: Path) -> None:
    model = Recommender("ease").fit(table, user="who", item="what")
    assert_type(model.recommend("a", n=3), pl.DataFrame)
    assert_type(model.recommend_history(["b"]).height, int)
    assert_type(model.predict("a", "b"), pl.DataFrame)
    assert_type(Recommender().fit(other).similar("b"), pd.DataFrame)
    assert_type(Recommender().fit(path).similar_users("a"), pd.DataFrame)
    print(Shop().fit(Interactions.from_frame(table)).shelf())


class Shop(Recommender):
    def shelf(self) -> int:
        return len(self.item_ids)


def measured(path: Path) -> list[str]:
    data = read_interactions(path, user="user")
    report = evaluate(data, {"ease": make_ranker("ease")}, folds=2)
    fold = next(iter(split(data, "half-profile")))
    scores = make_ranker("ease").fit(fold.train).scores(fold.users, fold.train[fold.users])
    values: NDArray[np.float64] = auc(scores, fold.train, fold.test)
    print(values.mean() + ndcg(scores, fold.train, fold.test, 5).mean(), coverage([[1]], ListContext(fold.train)))
    print(compare(values, values))
    return report.sentences()


def told() -> str:
    data = load_dataset("sample")
    ranker = make_ranker("ease").fit(data.matrix)
    row = data.matrix[3]
    list_ = rerank(ranker, 3, row, 5, diversity=0.2, item_users=data.matrix.tocsc())
    ids, _ = similar(ranker, int(list_.ids[0]))
    try:
        ranker.similar_users(3)
    except CapabilityError as error:
        print(error, ids.shape, changes(ranker, 3, row, 1)[0].rank)
    return because(data.titles, reasons(ranker, 3, row, int(list_.ids[0])))
"""


def strictly(script, tmp_path):
    """Return what mypy finds in a script, from outside the clone."""
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "script.py"]
    env = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.stdout, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("script.py")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("typing")  # one for both, so that what is imported is read once


@pytest.mark.slow
def test_the_python_of_pages_is_typed(folder):
    found = []
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
        assert blocks, page
        found += [f"{page}: {line}" for line in strictly("\n".join(blocks), folder)]
    assert found == []


@pytest.mark.slow
def test_a_script_of_the_usual_calls_is_typed(folder):
    assert strictly(USUAL, folder) == []


@pytest.mark.slow
def test_what_is_wrong_is_found(folder):
    wrong = """
from recsys import make_ranker
ranker = make_ranker("ease")
ranker.fit([[1]]).saev("x")
found = ranker.recommend(0, [[1]])
found.fallback + "x"
found.ids.no_such_name
"""
    assert len([line for line in strictly(wrong, folder) if "error:" in line]) >= 3
