"""The table of docs/concepts/protocols.md: each name of implicit and LensKit, by its definition, against ours."""

import re

import numpy as np
import pytest

from recsys import load_dataset
from recsys.data import find_protocol, split
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "concepts" / "protocols.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+\(.*\))` \| `([^`]+)` \| .* \|$", TEXT, re.MULTILINE)
DATA = load_dataset("sample")
LENGTHS = np.diff(DATA.matrix.indptr)


def test_the_table_has_every_pair_of_a_split_and_a_holdout():
    theirs = " ".join(one for one, _ in ROWS)
    for function in ("crossfold_users", "sample_users"):
        for holdout in ("SampleN", "LastN", "SampleFrac", "LastFrac"):
            assert re.search(rf"{function}\(data, \d+, {holdout}\(", theirs)
    others = (
        "train_test_split",
        "leave_k_out_split",
        "crossfold_records",
        "sample_records",
        "split_temporal_fraction",
    )
    assert all(one in theirs for one in others)


@pytest.mark.parametrize(("theirs", "ours"), ROWS)
def test_a_name_of_theirs_is_ours_by_definition(theirs, ours):
    folds = list(split(DATA, ours, seed=1))
    number = float(re.findall(r"[\d.]+", theirs)[-1]) if "seed" not in theirs else 0.8
    sizes = [np.diff(fold.test.indptr) for fold in folds]
    assert all((fold.train + fold.test != DATA.matrix).nnz == 0 for fold in folds)
    if theirs.startswith("train_test_split"):
        assert abs(folds[0].test.nnz / DATA.matrix.nnz - (1 - number)) < 0.02
    elif theirs.startswith("leave_k_out"):
        assert np.array_equal(sizes[0], np.where(LENGTHS > number + 1, number, 0))
    elif theirs.startswith("crossfold_records"):
        assert len(folds) == 5 and np.ptp([fold.test.nnz for fold in folds]) <= 1
        assert (sum(fold.test for fold in folds) != DATA.matrix).nnz == 0
    elif theirs.startswith("sample_records"):
        assert [fold.test.nnz for fold in folds] == [number]
    elif theirs.startswith("split_temporal_fraction"):
        (fold,) = folds
        first = np.quantile(DATA.time, 1 - number)
        held = np.asarray(fold.test[DATA.users, DATA.items]).ravel() > 0
        assert np.array_equal(held, DATA.time >= first)
    else:
        wanted = np.where(LENGTHS > number, number, 0)
        if "Frac(" in theirs:
            wanted = np.array([round(n * number) for n in LENGTHS.tolist()])
        if theirs.startswith("crossfold_users"):
            assert len(folds) == 5 and np.array_equal(np.sum(sizes, axis=0), wanted)
            tested = [len(fold.users) + fold.train_only for fold in folds]
            assert sum(tested) == DATA.n_users and np.ptp(tested) <= 1
        else:
            (fold,) = folds
            assert len(fold.users) + fold.train_only == int(re.findall(r"\d+", theirs)[0]) == 100
            assert np.array_equal(sizes[0][fold.users], wanted[fold.users])
        assert find_protocol(ours).predicts_future(DATA) == ("Last" in theirs)
        if "Last" in theirs:
            when = np.zeros(DATA.matrix.shape)
            when[DATA.users, DATA.items] = DATA.time
            for fold in folds:
                for user in fold.users:
                    before, after = fold.train[user].indices, fold.test[user].indices
                    assert when[user, before].max() <= when[user, after].min()
