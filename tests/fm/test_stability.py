"""Stability selection and several starts: what is planted is found, and the bound is what it says."""

import numpy as np
import pytest

from recsys import InputError
from recsys.fm import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    several_starts,
    stability_selection,
)
from recsys.fm import stability as module
from tests.fm.test_path import planted, regressor, true_pairs


def test_halves_agree_on_what_was_planted():
    data = planted()
    found = stability_selection(regressor(), data.X, data.y, n_pairs=4, seed=1)
    assert set(found.selected) == true_pairs(data)
    assert found.n_halves == 8 and found.candidates == 28
    assert found.q == int(np.sqrt(0.5 * 28))
    assert found.bound == pytest.approx(found.q**2 / (0.5 * 28)) and found.bound <= 1.0
    assert all(found.frequencies[one] == 1.0 for one in found.selected)
    assert list(found.frequencies.values()) == sorted(found.frequencies.values(), reverse=True)
    assert found.mean_taken <= found.q
    assert sum(found.frequencies.values()) == pytest.approx(found.mean_taken)
    assert f"at most {found.bound:.3g}" in found.sentence and "Of 3 interactions" in found.sentence
    again = stability_selection(regressor(), data.X, data.y, n_pairs=4, seed=1)
    assert again == found


def test_halves_are_complementary_and_have_the_share_of_each_class(monkeypatch):
    parts = []
    monkeypatch.setattr(
        module, "_strongest", lambda estimator, rows, members, q, rng: parts.append(members) or []
    )
    data = planted()
    y = np.arange(200) % 10 == 0
    model = FactorizationMachineClassifier(penalty="ti")
    found = stability_selection(model, data.X, y, n_pairs=3)
    assert len(parts) == 6 and found.selected == () and found.mean_taken == 0
    for one, other in zip(parts[::2], parts[1::2], strict=True):
        assert len(one) == len(other) == 100 and not set(one) & set(other)
        assert y[one].sum() == y[other].sum() == 10


def test_the_strongest_of_more_are_taken_and_named_by_their_columns():
    """The order of the columns is a half's own: it must not be seen in what it takes."""
    data = planted(3, groups=2)
    found = stability_selection(regressor(), data.X, data.y, n_pairs=3, q=2)
    assert all(share <= 1.0 for share in found.frequencies.values())
    assert set(found.frequencies) <= true_pairs(data) and found.mean_taken == 2


def test_rows_that_nothing_is_left_of_take_nothing():
    X = np.zeros((40, 3))
    X[:, 0] = np.arange(40)
    X[0, 1:] = 1.0  # a pair, so that there are candidates: it is in one half only
    y = np.zeros(40)
    y[0] = 5.0
    found = stability_selection(regressor(alpha=0.0), X, y, n_pairs=2, q=1)
    assert found.mean_taken <= 0.5 and found.selected == ()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"threshold": 0.5}, "threshold"), ({"n_pairs": 0}, "n_pairs"), ({"q": 0}, "q must be"),
        ({"expected": 1e-3}, "leaves no interaction to take"), ({"seed": -1}, "seed"),
        ({"q": 29}, "q must be an integer from 1 to 28"),
    ],
)  # fmt: skip
def test_wrong_numbers_are_told(more, message):
    data = planted()
    with pytest.raises(InputError, match=message):
        stability_selection(regressor(), data.X, data.y, **more)


def test_more_than_there_are_is_all_of_them():
    data = planted()
    found = stability_selection(regressor(), data.X, data.y, n_pairs=1, expected=1e6)
    assert found.q == found.candidates == 28


def test_rows_of_one_feature_have_no_interaction():
    X = np.eye(3)[np.arange(30) % 3]
    for more in ({}, {"q": 1}):
        with pytest.raises(InputError, match="no row has two features"):
            stability_selection(regressor(), X, np.arange(30.0), **more)


def test_sentences_count_one_and_none():
    none = module.Stability(2, 4, 0.75, 28.0, 0.3, 1.0, {(0, 1): 0.5})
    assert none.sentence == "None of 28 interactions is taken by 75% of the 4 halves."
    one = module.Starts((0.5,), (1,), {(0, 1): 1.0})
    assert one.sentence.startswith("1 start selects 1 interaction; 1 of the 1 that any selects")


def test_too_few_rows_are_told():
    X = np.random.default_rng(0).normal(size=(7, 3))
    with pytest.raises(InputError, match="8 rows"):
        stability_selection(regressor(), X, X[:, 0] * X[:, 1], q=1)
    y = np.array([1, 0, 0, 0, 0, 0, 0, 0, 0])
    with pytest.raises(InputError, match="of each class"):
        stability_selection(FactorizationMachineClassifier(penalty="ti"), np.vstack([X, X[:2]]), y, q=1)


def test_starts_agree_on_what_was_planted_and_differ_where_the_penalty_is_weak():
    data = planted()
    model = regressor(gamma=0.1)
    found = several_starts(model, data.X, data.y, n_starts=4)
    assert set(found.always) == true_pairs(data) and found.counts == (3, 3, 3, 3)
    assert "3 of the 3" in found.sentence and len(found.objectives) == 4
    assert several_starts(model, data.X, data.y, n_starts=4) == found
    weak = several_starts(model.set_params(gamma=0.01), data.X, data.y, n_starts=4)
    assert len(set(weak.objectives)) > 1 and len(weak.always) < len(weak.frequencies)
    with pytest.raises(InputError, match="n_starts"):
        several_starts(model, data.X, data.y, n_starts=0)


def test_columns_of_the_relational_solver_stay_in_their_order():
    rng = np.random.default_rng(0)
    assert module._columns(regressor(), 30, rng).tolist() != list(range(30))
    relational = FactorizationMachineRegressor(penalty="ti", solver="relational")
    assert module._columns(relational, 30, rng).tolist() == list(range(30))


def test_starts_are_seen_beside_the_path():
    found = module.Starts((0.5, 0.504, 0.6), (2, 1, 1), {(0, 1): 1.0}, path_objective=0.5)
    assert "The path's model has 0.5; 2 of the starts end at most 1% above it." in found.sentence
