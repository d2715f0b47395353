"""What blends and machines are made of, against sums over loops."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import make_ranker
from recsys.data.side_information import SideInformation, described
from recsys.datasets import load_dataset
from recsys.errors import NotFittedError, OutOfRangeError
from recsys.explain import blend_parts, products, what_if

DATA = load_dataset("sample")
R = DATA.matrix


def test_what_parts_add_is_the_score_and_places_are_those_of_their_own_lists():
    model = make_ranker("blend", models="ease+msdw").fit(R, show_progress=False)
    alone = [make_ranker(name).fit(R, show_progress=False) for name in ("ease", "msdw")]
    for user, item in itertools.product((3, 57), (10, 200)):
        found = blend_parts(model, user, R[user], item, leave_out=[7])
        assert [part.name for part in found] == ["ease", "msdw"]
        score = float(model.scores([user], R[user], recalculate_user=True)[0, item])
        assert sum(part.adds for part in found) == pytest.approx(score, abs=1e-5)
        for part, one, weight in zip(found, alone, model.part_weights_, strict=True):
            scores = one.scores([user], R[user], recalculate_user=True)[0].astype(float)
            assert part.weight == weight
            assert part.adds == pytest.approx(
                weight * (scores[item] - scores.mean()) / scores.std(), abs=1e-4
            )
            rivals = set(range(R.shape[1])) - set(R[user].indices.tolist()) - {7, item}
            assert part.rank == 1 + sum(
                scores[k] > scores[item] or (scores[k] == scores[item] and k < item) for k in rivals
            )


def test_parts_in_time_know_when_their_user_liked_what():
    times = SideInformation(DATA).times
    model = make_ranker("blend", models="slist+popularity").fit(R, show_progress=False, times=times)
    found = sum(part.adds for part in blend_parts(model, 3, R[3], 10))
    assert found == pytest.approx(what_if(model, 3, R[3], 10).score, abs=1e-5)


def test_models_that_are_not_made_of_anything():
    model = make_ranker("ease").fit(R, show_progress=False)
    assert blend_parts(model, 0, R[0], 1) == [] and products(model, 0, R[0], 1, DATA.titles) is None


@pytest.mark.parametrize(
    ("name", "params", "opened"),
    [("blend", {"models": "ease+popularity"}, blend_parts), ("fm", {"iterations": 1}, products)],
)
def test_what_cannot_be_opened_is_told(name, params, opened):
    more = (DATA.titles,) if opened is products else ()
    with pytest.raises(NotFittedError, match="is not fitted"):
        opened(make_ranker(name, **params), 0, R[0], 1, *more)
    model = make_ranker(name, **params).fit(R, show_progress=False)
    with pytest.raises(OutOfRangeError, match="item 300 is not within 0…299"):
        opened(model, 0, R[0], 300, *more)


@pytest.mark.parametrize(("name", "params"), [("fm", {}), ("hofm", {"degree": 3}), ("bilinear", {})])
@pytest.mark.parametrize("known", [False, True])
def test_products_sum_to_the_score_and_each_is_what_its_features_add(name, params, known):
    side = SideInformation(DATA).of(make_ranker(name, **params)) if known else {}
    model = make_ranker(name, iterations=3, **params).fit(R, show_progress=False, **side)
    names = described(DATA.item_features).names if known and "item_features" in side else ()
    user, item = 57, 20
    found = products(model, user, R[user], item, DATA.titles, names, most=10_000)
    assert found.unlisted == 0 and found.others == 0.0
    score = float(model.scores([user], R[user], recalculate_user=True)[0, item])
    assert found.score == pytest.approx(score, abs=1e-4)
    # The machine as a polynomial in the history's features: coefficients from its values at few of them.
    A = model._rows(R[user], np.array([user]))

    def value(kept):
        mask = np.zeros(A.nnz)
        mask[list(kept)] = 1.0
        part = sp.csr_matrix((A.data * mask, A.indices, A.indptr), A.shape)
        model_rows = model._rows
        model._rows = lambda rows, users=None: part
        try:
            vectors = model._row_vectors(R[user])
        finally:
            model._rows = model_rows
        return float(vectors[0] @ model.item_vectors_[item].astype(float))

    base = value(())
    assert found.base == pytest.approx(base, abs=1e-6)
    every = [*names, *map(str, DATA.titles)]
    told = {one.names: one.adds for one in found.listed}
    assert len(told) == len(found.listed)
    for j in range(0, A.nnz, 7):
        alone = value((j,)) - base
        assert told[every[A.indices[j]],] == pytest.approx(alone, abs=1e-6)
        k = (j + 3) % A.nnz
        both = value((j, k)) - value((j,)) - value((k,)) + base
        pair = tuple(every[A.indices[i]] for i in sorted((j, k)))
        assert told.get(pair, 0.0) == pytest.approx(both, abs=1e-6)


def test_what_is_not_listed_is_summed():
    model = make_ranker("hofm", iterations=3).fit(R, show_progress=False)
    whole = products(model, 3, R[3], 10, DATA.titles, most=10_000)
    few = products(model, 3, R[3], 10, DATA.titles, most=2)
    assert few.listed == whole.listed[:2] and few.unlisted == len(whole.listed) - 2
    assert few.score == pytest.approx(whole.score)
    assert abs(few.listed[0].adds) >= abs(few.listed[1].adds) >= abs(whole.listed[2].adds)
