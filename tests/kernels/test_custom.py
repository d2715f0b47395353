"""Kernels that are defined outside the package: a class of one method, and functions of matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, load_ranker
from recsys.kernel_machines import KOMD, EasyMKL
from recsys.kernels import MonotoneConjunctiveKernel, item_gram, make_kernel
from recsys.kernels.base import KERNELS
from recsys.rankers.margin import CFKOMD
from tests.outside.kernels import Tversky, cosine


@pytest.fixture(scope="module")
def likes():
    R = (np.random.default_rng(0).random((40, 25)) < 0.25) * 1.0
    R[:, 7] = 0.0  # an item without users
    return sp.csr_matrix(R)


def fitted(likes, **params):
    return CFKOMD(**params).fit(likes, show_progress=False)


def test_a_kernel_of_counts_is_one_like_any_other(likes):
    ours, theirs = fitted(likes, kernel=Tversky()), fitted(likes, kernel="tanimoto")
    users = np.arange(40)
    np.testing.assert_allclose(ours.scores(users, likes), theirs.scores(users, likes), atol=1e-6)
    np.testing.assert_array_equal(item_gram(likes, Tversky()), item_gram(likes, make_kernel("tanimoto")))
    X = likes.toarray()
    np.testing.assert_array_equal(Tversky(0.5)(X), Tversky(0.5)(X, X))


@pytest.mark.parametrize(("kernel", "name"), [(cosine, "linear"), (Tversky(), "tanimoto")])
@pytest.mark.parametrize("normalize", [False, True])
def test_machines_take_them(likes, kernel, name, normalize):
    X, y = (likes.toarray() > 0) * 1.0, np.arange(40) % 2
    for make in (
        lambda k: KOMD(kernel=k, normalize=normalize),
        lambda k: EasyMKL(kernels=[k, "mc"], normalize=normalize),
    ):
        ours, theirs = (make(k).fit(X, y).decision_function(X) for k in (kernel, name))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_registered_kernel_has_a_name_and_a_file(likes, tmp_path):
    KERNELS.add("tversky")(Tversky)
    try:
        by_object, by_name = (
            fitted(likes, kernel=Tversky(weight=0.5)),
            fitted(likes, kernel="tversky", kernel_params={"weight": 0.5}),
        )
        scores = by_object.scores(np.arange(40), likes)
        np.testing.assert_array_equal(by_name.scores(np.arange(40), likes), scores)
        by_object.save(tmp_path / "m.recsys")
        again = load_ranker(tmp_path / "m.recsys")
        np.testing.assert_array_equal(again.scores(np.arange(40), likes), scores)
    finally:
        KERNELS._entries.pop("tversky", None)


def test_what_cannot_be_kept_or_is_no_kernel_is_refused(likes, tmp_path):
    with pytest.raises(InputError, match="a file cannot keep"):
        fitted(likes, kernel=Tversky()).save(tmp_path / "m.recsys")
    for wrong in (3, Tversky, cosine):
        with pytest.raises(InputError, match="kernel must be a name"):
            fitted(likes, kernel=wrong)
    with pytest.raises(InputError, match="kernel must be a name"):
        fitted(likes, kernel=MonotoneConjunctiveKernel(2), degree=3)
    with pytest.raises(InputError, match="must return finite values of shape"):
        KOMD(kernel=lambda X, Z: np.zeros((1, 1))).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("name", ["mdnf", "mc", "tanimoto", "md"])
def test_each_distinct_triple_of_counts_is_evaluated_once(name, monkeypatch):
    kernel, seen = make_kernel(name), []
    plain = type(kernel).of_counts

    def counted(self, s, a, b, n):
        seen.append(len(s))
        return plain(self, s, a, b, n)

    monkeypatch.setattr(type(kernel), "of_counts", counted)
    X = (np.random.default_rng(0).random((300, 12)) < 0.5).astype(int)
    S, a = X @ X.T, X.sum(axis=1)
    kernel(X)
    triples = {(int(S[i, j]), int(a[i]), int(a[j])) for i in range(300) for j in range(300)}
    assert seen == [len(triples)]
