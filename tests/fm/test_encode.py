import numpy as np
import pandas as pd
import pytest

from recsys import InputError
from recsys.fm import PairEncoder

USERS = pd.DataFrame({"age": [20, 30, None], "sex": ["f", "m", "f"]})
ITEMS = pd.DataFrame({"title": ["x", "y"], "genres": ["a|b", "b"]})


def test_rows_are_identities_and_features_with_names():
    encoder = PairEncoder(USERS, ITEMS).fit(3, 2)
    X = encoder.transform([0, 2], [1, 0])
    named = [{encoder.names_[k] for k in row.indices} for row in X]
    assert named[0] == {"user=0", "age=20.0", "sex=f", "item=1", "genres=b"}
    assert named[1] == {"user=2", "sex=f", "item=0", "genres=a", "genres=b"}
    assert X.shape[1] == len(encoder.names_)
    assert encoder.names_[encoder.split_ :] == ("item=0", "item=1", "genres=a", "genres=b")


def test_numbers_of_many_values_are_cut_at_quantiles():
    table = pd.DataFrame({"age": np.arange(100)})
    X = PairEncoder(table, buckets=4).fit(100, 1).transform(np.arange(100), np.zeros(100, int))
    counts = np.asarray(X[:, 100:104].sum(axis=0)).ravel()
    assert counts.tolist() == [25, 25, 25, 25]


def test_unknown_users_are_ignored():
    row = PairEncoder(USERS, ITEMS).fit(3, 2).transform([7], [0])
    assert row.nnz == 3  # the item and its genres
    with pytest.raises(InputError, match="equal lengths"):
        PairEncoder().fit(3, 2).transform([0, 1], [0])
    with pytest.raises(InputError, match="rows for 4 users"):
        PairEncoder(USERS).fit(4, 2)


def test_nobody_known_is_a_row_of_nothing():
    encoder = PairEncoder().fit(0, 3)
    assert encoder.transform([1, 0], [1, 5]).toarray().tolist() == [[0, 1, 0], [0, 0, 0]]
    with pytest.raises(InputError, match="n_users must be an integer of at least 0"):
        PairEncoder().fit(-1, 3)
