"""Kernels that are defined outside the package: functions of matrices, and of counts."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from recsys import InputError, Recommender
from recsys.errors import CapabilityError
from recsys.kernel_machines import KOMD, EasyMKL
from recsys.kernels import MonotoneConjunctiveKernel, item_gram, make_kernel
from recsys.kernels.base import KERNELS
from recsys.kernels.gram.counts import sparse_counts
from recsys.kernels.gram.structured import StructuredGram
from recsys.rankers.cf_komd import CFKOMD
from recsys.rankers.serialization import load_ranker
from tests.outside.kernels import Tversky, Unknown, cosine, jaccard

SAME = [(cosine, "linear"), (jaccard, "tanimoto"), (Tversky(), "tanimoto")]


@pytest.fixture(scope="module")
def likes():
    R = (np.random.default_rng(0).random((40, 25)) < 0.25) * 1.0
    R[:, 7] = 0.0  # an item without users
    return sp.csr_matrix(R)


def fitted(likes, **params):
    return CFKOMD(**params).fit(likes, show_progress=False)


@pytest.mark.parametrize(("kernel", "name"), SAME)
def test_scores_are_those_of_the_kernel_by_name(likes, kernel, name):
    ours, theirs = fitted(likes, kernel=kernel), fitted(likes, kernel=name)
    users = np.arange(40)
    np.testing.assert_allclose(
        ours.scores(users, likes), theirs.scores(users, likes), rtol=1e-4, atol=1e-6
    )
    assert (ours.recommend(users, likes, N=5).ids == theirs.recommend(users, likes, N=5).ids).all()


def test_by_a_recommender(likes):
    table = pd.DataFrame(dict(zip(("user", "item"), likes.nonzero(), strict=True))).astype(str)
    ours = Recommender(CFKOMD(kernel=jaccard)).fit(table)
    theirs = Recommender("cf-komd:kernel=tanimoto").fit(table)
    users = table.user.unique()[:5].tolist()
    one, other = (model.recommend(users, 4, why=False) for model in (ours, theirs))
    assert one.item.tolist() == other.item.tolist()
    np.testing.assert_allclose(one.score, other.score, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("kernel", "name"), SAME)
@pytest.mark.parametrize("normalize", [False, True])
def test_machines_take_them(likes, kernel, name, normalize):
    X, y = (likes.toarray() > 0) * 1.0, np.arange(40) % 2
    for make in (lambda k: KOMD(kernel=k, normalize=normalize), lambda k: EasyMKL(kernels=[k, "mc"])):
        ours, theirs = make(kernel).fit(X, y), make(name).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-8)  # fmt: skip


@pytest.mark.parametrize("normalize", [False, True])
def test_a_kernel_of_counts_is_called_as_any(likes, normalize):
    ours, theirs = Tversky(), make_kernel("tanimoto")
    np.testing.assert_allclose(
        ours(likes, likes[:5], normalize), theirs(likes, likes[:5], normalize), rtol=1e-12
    )
    np.testing.assert_allclose(ours.less_one(likes), theirs.less_one(likes), atol=1e-12)
    assert np.abs(Tversky(3.0)(likes) - theirs(likes)).max() > 0.1


def test_an_object_of_the_package_is_its_name(likes, tmp_path):
    ours = fitted(likes, kernel=MonotoneConjunctiveKernel(degree=2))
    theirs = fitted(likes, kernel="mc", degree=2)
    assert (ours.scores(3, likes[3]) == theirs.scores(3, likes[3])).all()
    ours.save(tmp_path / "model")
    assert (load_ranker(tmp_path / "model").scores(3, likes[3]) == theirs.scores(3, likes[3])).all()


def test_scikit_learn_and_pickle(likes):
    model = fitted(likes, kernel=jaccard)
    assert clone(model).kernel is jaccard
    again = pickle.loads(pickle.dumps(model))
    assert (again.scores(3, likes[3]) == model.scores(3, likes[3])).all()


def test_a_kernel_of_counts_is_updated_as_any(likes):
    ours = fitted(likes[:30], kernel=Tversky()).partial_fit(likes[30:])
    whole = fitted(likes, kernel=Tversky())
    np.testing.assert_allclose(ours.scores(3, likes[3]), whole.scores(3, likes[3]), rtol=1e-6)


def test_a_registered_class_is_kept_by_its_name(likes, tmp_path, monkeypatch):
    model = fitted(likes, kernel=Tversky(2.0))
    with pytest.raises(InputError, match=r"a file cannot keep kernel Tversky\(weight=2.0\)"):
        model.save(tmp_path / "model")
    KERNELS.names()
    monkeypatch.setitem(KERNELS._entries, "tversky", Tversky)
    model.save(tmp_path / "model")
    again = load_ranker(tmp_path / "model")
    assert again.kernel == "tversky" and again.kernel_params == {"weight": 2.0}
    assert (again.scores(3, likes[3]) == model.scores(3, likes[3])).all()


def test_refusals(likes, tmp_path, monkeypatch):
    for call in (lambda: Unknown()(likes), lambda: Unknown()(likes, normalize=True), lambda: Unknown().less_one(likes), lambda: item_gram(likes, Unknown()), lambda: fitted(likes, kernel=Unknown()), lambda: StructuredGram(sparse_counts(likes), Unknown())):  # fmt: skip
        with pytest.raises(InputError, match=r"Unknown\(\) has a plan of code 99, .*CountKernel"):
            call()
    model = fitted(likes, kernel=jaccard)
    with pytest.raises(InputError, match="a file cannot keep kernel <function jaccard"):
        model.save(tmp_path / "model")
    with pytest.raises(CapabilityError, match="with a kernel function cannot be updated"):
        model.partial_fit(likes[:2])
    with pytest.raises(InputError, match="was fitted with another kernel: fit again"):
        model.set_params(kernel=cosine).scores(3, likes[3])
    with pytest.raises(InputError, match="a kernel is a name, a Kernel or a function"):
        fitted(likes, kernel=3)
    with pytest.raises(InputError, match="leave the others out"):
        fitted(likes, kernel=jaccard, degree=2)
    with pytest.raises(InputError, match=r"must return finite values of shape \(25, 25\)"):
        fitted(likes, kernel=lambda X, Z: np.ones(3))
