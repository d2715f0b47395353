"""What pages and docstrings say of result files, against the files."""

import pytest

from benchmarks.lab.common import read_csv


def numbers(rows, *columns):
    return [tuple(float(row[column]) for column in columns) for row in rows]


def of(rows, **given):
    return [row for row in rows if all(row[key] == str(value) for key, value in given.items())]


@pytest.fixture(scope="module")
def gram():
    rows = read_csv("cf_gram")
    return {
        (row["dataset"], row["model"].removeprefix("cf-komd:kernel=").partition(",")[0]): row
        for row in rows
    }


def test_a_smaller_ratio_does_not_rank_better_on_movielens(gram):
    learned = gram["movielens", "cf-gram"]
    parts = {kernel: row for (name, kernel), row in gram.items() if name == "movielens"}
    del parts["cf-gram"]
    assert len(parts) == 4
    assert all(float(learned["ratio"]) < float(row["ratio"]) for row in parts.values())
    for kernel in ("linear", "mc"):
        for metric in ("auc", "ndcg@10"):
            assert float(learned[metric]) < float(parts[kernel][metric])
    assert float(parts["mc"]["weight"]) < 0.001
    heaviest = max(parts, key=lambda kernel: float(parts[kernel]["weight"]))
    assert heaviest == min(parts, key=lambda kernel: float(parts[kernel]["ratio"]))
    assert heaviest == min(parts, key=lambda kernel: float(parts[kernel]["auc"]))


def test_on_filmtrust_all_weight_is_on_the_best_by_ndcg(gram):
    parts = {kernel: row for (name, kernel), row in gram.items() if name == "filmtrust"}
    assert float(parts["md"]["weight"]) > 1 - 1e-6
    assert float(parts["md"]["ndcg@10"]) == max(float(row["ndcg@10"]) for row in parts.values())
