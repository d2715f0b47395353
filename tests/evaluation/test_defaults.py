"""What is compared by default suits the size of the table."""

import numpy as np

from recsys import Interactions, load_dataset, make_ranker
from recsys.evaluation.models import COMPARED, default_comparison
from recsys.rankers.registry import ranker_of


def table(users, items, pairs):
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, users, pairs) * items + rng.integers(0, items, pairs))
    ids = (np.array(range(size), dtype=object) for size in (users, items))
    return Interactions(cells // items, cells % items, *ids)


def test_small_tables_are_compared_as_they_are():
    assert default_comparison(load_dataset("sample"), 5) == (list(COMPARED), None, "")


def test_large_tables_get_smaller_models_and_fewer_folds():
    shop = default_comparison(table(4_500, 6_500, 12_000), 5)
    assert "ease:top_k=100" in shop.models and "auto" in shop.models
    assert "fm" in shop.models and shop.only_folds is None
    large = default_comparison(table(53_000, 10_000, 980_000), 5)
    assert large.only_folds == 1 and "fm:iterations=3" in large.models
    assert "auto:budget=40" in default_comparison(table(5_000, 2_000, 300_000), 1).models
    wide = default_comparison(table(2_500, 70_000, 870_000), 5)
    assert "msdw" not in wide.models and "left out, for" in wide.note and "cf-komd" in wide.note
    for spec in {*shop.models, *large.models, *wide.models}:
        assert type(ranker_of(spec)) is type(make_ranker(spec.partition(":")[0]))
