"""Link predictors in files: the same scores to the bit, and nothing else is read."""

import json
import struct
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from recsys import InputError, ModelFileError, load_ranker, make_ranker
from recsys.links import (
    LINKS,
    FactorizedBilinear,
    PairFactorizationMachine,
    PairNet,
    load_link_predictor,
    make_link_predictor,
)
from recsys.utils import model_file
from tests.links.contract import world
from tests.links.networks import NETWORKS, layers_of, write_network
from tests.reference import links as reference

SMALL = {"n_components": 2, "max_iter": 3}
KINDS = [
    ("bilinear", SMALL),
    ("low-rank-bilinear", SMALL),
    ("pairnet", SMALL),
    ("pairnet", {**SMALL, "degree": 4}),
    ("fm", SMALL),
    ("fm", {**SMALL, "degree": 3, "fit_lower": "augment"}),
    ("fm", {**SMALL, "fit_lower": None, "fit_linear": False}),
    ("fm", {**SMALL, "fit_lower": "augment", "symmetric": None}),
    ("pair-svm", {}),
    ("pair-svm", {"C": 0.1}),
]
ONE_KIND = [*KINDS, ("pairnet", {**SMALL, "similarity": True}), ("pair-svm", {"symmetric": False})]


def check_same(model, again, A, B, pairs, tmp_path):
    """Check that two predictors are the same to the bit, and so are their files."""
    assert type(again) is type(model)
    np.testing.assert_array_equal(
        again.decision_function(A, B, pairs), model.decision_function(A, B, pairs)
    )
    np.testing.assert_array_equal(again.predict(A, B, pairs), model.predict(A, B, pairs))
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    assert again.get_params() == model.get_params()
    model.save(tmp_path / "one")
    again.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("name", "params", "one"), [(*kind, False) for kind in KINDS] + [(*kind, True) for kind in ONE_KIND]
)
def test_what_is_read_scores_as_what_was_saved(name, params, one, tmp_path):
    A, B, pairs, y = world(one=one, n=150)
    A = sp.csr_matrix(np.where(np.abs(A) > 0.7, A, 0.0))
    model = make_link_predictor(name, **params).fit(A, B, pairs, y)
    model.save(tmp_path / "m")
    check_same(model, load_link_predictor(tmp_path / "m"), A, B, pairs, tmp_path)
    assert not hasattr(load_link_predictor(tmp_path / "m"), "history_")


@settings(max_examples=25, deadline=None)
@given(
    labels=st.one_of(
        st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=2, unique=True),
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2, unique=True),
        st.lists(st.text(st.characters(exclude_characters="\0")), min_size=2, max_size=2, unique=True),
        st.just([False, True]),
    ),
    thing=st.booleans(),
)
def test_labels_of_any_kind_come_back(labels, thing, tmp_path_factory):
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    given_labels = np.array(labels, dtype=object if thing and isinstance(labels[0], str) else None)
    model = FactorizedBilinear(**SMALL).fit(np.eye(2), np.eye(2), pairs, given_labels[[0, 1, 1, 0]])
    file = tmp_path_factory.getbasetemp() / "labels"
    model.save(file)
    again = load_link_predictor(file)
    np.testing.assert_array_equal(again.classes_, model.classes_)
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    assert [type(one) for one in again.classes_] == [type(one) for one in model.classes_]


def fitted(name="pairnet", **params):
    A, B, pairs, y = world(n=100)
    return make_link_predictor(name, **({**SMALL, **params} if name != "pair-svm" else params)).fit(
        A, B, pairs, y
    )


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="PairNet instance is not fitted yet"):
        PairNet().save(tmp_path / "m")


def test_a_generator_is_not_kept(tmp_path):
    A, B, pairs, y = world(n=100)
    model = PairNet(**SMALL, random_state=np.random.RandomState(3)).fit(A, B, pairs, y)
    model.save(tmp_path / "m")
    again = load_link_predictor(tmp_path / "m")
    assert again.random_state is None
    np.testing.assert_array_equal(
        again.decision_function(A, B, pairs), model.decision_function(A, B, pairs)
    )


def test_the_two_kinds_of_files_are_told_apart(tmp_path, liked):
    make_ranker("popularity").fit(liked).save(tmp_path / "ranker")
    fitted().save(tmp_path / "links")
    with pytest.raises(
        ModelFileError,
        match="links holds a link predictor: read it with recsys.links.load_link_predictor",
    ):
        load_ranker(tmp_path / "links")
    with pytest.raises(
        ModelFileError, match="ranker contains no link predictor: read it with recsys.load_ranker"
    ):
        load_link_predictor(tmp_path / "ranker")
    with pytest.raises(ModelFileError, match="not a file"):
        load_link_predictor(tmp_path)


def forged(path, change):
    """Rewrite a file with a right checksum after change(manifest, arrays)."""
    manifest, arrays = model_file.read(path)
    change(manifest, arrays)
    model_file.write(path, {k: v for k, v in manifest.items() if k != "format"}, arrays)


def put(name, make):
    return lambda manifest, arrays: arrays.__setitem__(name, make(arrays[name]))


def state(name, value):
    return lambda manifest, arrays: manifest["state"].__setitem__(name, value)


def drop(name):
    return lambda manifest, arrays: (arrays if name in arrays else manifest["state"]).pop(name)


def params(**values):
    return lambda manifest, arrays: manifest["params"].update(values)


FORGED = [
    ("pairnet", put("weights_.0", lambda x: x * np.nan), "weights_ contains NaN"),
    ("pairnet", drop("classes_"), "'classes_'"),
    ("pairnet", state("_fit", 1), "'_fit' is not the name of a fitted attribute"),
    ("pairnet", state("classes_", [[0, 1], "float128x"]), "cannot be used"),
    ("pairnet", params(os="system"), "has no parameter 'os'"),
    ("pairnet", lambda m, a: m.update(link_predictor="os.system"), "unknown link predictor 'os.system'"),
    ("pair-svm", put("A_.indices", lambda x: x + 100), "the index arrays of A_ are broken"),
]


@pytest.mark.parametrize(("name", "change", "message"), FORGED)
def test_forged_files_with_a_right_checksum_are_refused(name, change, message, tmp_path):
    fitted(name).save(tmp_path / "m")
    forged(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match=message) as found:
        load_link_predictor(tmp_path / "m")
    assert str(tmp_path / "m") in str(found.value) and "\n" not in str(found.value)


def test_the_file_is_plain_safetensors(tmp_path):
    fitted().save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header["__metadata__"]["recsys"])
    assert manifest["link_predictor"] == "pairnet" and manifest["params"]["degree"] == 2
    assert header["lefts_.0"]["dtype"] == "F64" and "history_" not in manifest["state"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_scores_without_pytorch_and_says_what_a_fit_needs(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    arrays = write_network(tmp_path / "m", name, (4, 3))
    A, B = np.eye(4), np.eye(3)
    tables, dense = layers_of(arrays)
    found = load_link_predictor(tmp_path / "m").decision_function(A, B, [[1, 2]])
    assert found == pytest.approx([reference.network(name, tables, dense, A[1], B[2], False)], rel=1e-6)
    with pytest.raises(InputError, match=r"need PyTorch: pip install '.*\[deep\]'"):
        LINKS.get(name)().fit(*world())


def test_machines_of_all_shapes(tmp_path):
    """Widths of both ends, a column of ones or several: what is read is of the same shape."""
    A, _, pairs, y = world(one=True, n=80)
    for symmetric in (False, True, None):
        for lower in ("augment", "explicit", "simplex", "inhomogeneous"):
            model = PairFactorizationMachine(degree=3, symmetric=symmetric, fit_lower=lower, **SMALL)
            model.fit(A, None, pairs, y).save(tmp_path / "m")
            check_same(model, load_link_predictor(tmp_path / "m"), A, None, pairs, tmp_path)
