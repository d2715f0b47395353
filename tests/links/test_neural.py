"""The link predictors on PyTorch: `make test-torch`."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import normalize

from benchmarks.lab.graphs import load_graph
from recsys import FitError, InputError
from recsys.links import (
    HONFM,
    ConcatDNN,
    PairDNN,
    PairNet,
    link_reasons,
    load_link_predictor,
    make_link_predictor,
    split_pairs,
)
from recsys.utils import model_file
from recsys.utils.progress import listening
from tests.links.contract import BAD, check_contract, check_refusal, name_of, world
from tests.links.networks import NETWORKS, WIDTH, layers_of, write_network
from tests.neural import TORCH
from tests.reference import links as reference
from tests.test_doctests import FLAGS

pytestmark = TORCH
QUICK = {"epochs": 2, "hidden": 8, "layers": 1, "n_components": 4}
SHAPE = {"epochs": 15, "hidden": 32, "batch_size": 32}
DEEP = [
    *(PairDNN(degree=m, **SHAPE) for m in (2, 3, 4)),
    *(HONFM(degree=m, **SHAPE) for m in (2, 3, 4)),
    ConcatDNN(**SHAPE),
]
KINDS = [PairDNN, HONFM, ConcatDNN]


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("model", DEEP, ids=name_of)
def test_the_contract(model, one):
    check_contract(model, one)


@pytest.mark.parametrize(("change", "message"), BAD)
@pytest.mark.parametrize("model", [DEEP[0], DEEP[3], DEEP[6]], ids=name_of)
def test_bad_input(model, change, message):
    check_refusal(model, change, message)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PairDNN(degree=5), "degree must be an integer from 2 to 4, not 5"),
        (HONFM(degree=1), "degree must be an integer from 2 to 4"),
        (PairDNN(n_components=0), "n_components must be"),
        (HONFM(hidden=2.5), "hidden must be"),
        (ConcatDNN(epochs=0), "epochs must be"),
        (PairDNN(batch_size=0), "batch_size must be"),
        (PairDNN(layers=-1), "layers must be an integer from 0 to 100"),
        (PairDNN(layers=101), "layers must be"),
        (HONFM(dropout=1.0), "dropout must be"),
        (ConcatDNN(learning_rate=0), "learning_rate must be"),
        (PairDNN(random_state=-1), "random_state must be"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(InputError, match=message) as found:
        model.fit(*world())
    assert "\n" not in str(found.value)


def test_features_that_are_too_large_for_single_precision_say_so():
    A, B, pairs, y = world()
    with pytest.raises(FitError, match=r"the loss is (nan|inf) in epoch 1: scale the features"):
        PairDNN(degree=4, **QUICK).fit(A * 1e20, B, pairs, y)


# The layers and the network, by enumeration


@st.composite
def networks(draw):
    """A network's name, its options and widths, and objects of both ends with many zeros."""
    name = draw(st.sampled_from(NETWORKS))
    one = draw(st.booleans())
    widths = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    widths = (widths[0], widths[0]) if one else widths
    seed = draw(st.integers(0, 2**32 - 1))
    options = {
        "degree": draw(st.integers(2, 4)),
        "layers": draw(st.integers(0, 2)),
        "symmetric": one and name == "pair-dnn" and draw(st.booleans()),
        "seed": seed,
    }
    rng = np.random.default_rng(seed)
    density = draw(st.sampled_from([0.0, 0.3, 1.0]))
    A, B = (
        rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
        for n, d in zip((4, 3), widths, strict=True)
    )
    return name, options, A, B


@settings(max_examples=150, deadline=None)
@given(drawn=networks())
def test_scores_are_those_of_enumeration(drawn, tmp_path_factory):
    name, options, A, B = drawn
    path = tmp_path_factory.mktemp("networks") / "m"
    arrays = write_network(path, name, (A.shape[1], B.shape[1]), **options)
    model = load_link_predictor(path)
    pairs = np.array([(i, j) for i in range(len(A)) for j in range(len(B))])
    tables, dense = layers_of(arrays)
    expected = [
        reference.network(
            name, tables, dense, A[i].astype(np.float32), B[j].astype(np.float32), options["symmetric"]
        )
        for i, j in pairs
    ]
    np.testing.assert_allclose(model.decision_function(A, B, pairs), expected, rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("kind", [PairDNN, HONFM])
def test_a_layer_is_that_of_the_definition(kind, degree, tmp_path):
    """One unit behind the layer, with weight 1 for one of its components: the score is the component."""
    rng = np.random.default_rng(degree)
    name = "pair-dnn" if kind is PairDNN else "honfm"
    A, B = rng.normal(size=(5, 6)), rng.normal(size=(5, 4))
    pairs = np.array([(i, j) for i in range(5) for j in range(5)])
    for s in range(WIDTH):
        arrays = write_network(tmp_path / "m", name, (6, 4), degree=degree, layers=0)
        manifest, arrays = model_file.read(tmp_path / "m")
        arrays["weights_.0"] = np.eye(WIDTH, dtype=np.float32)[[s]]
        arrays["biases_.0"] = np.zeros(1, np.float32)
        model_file.write(
            tmp_path / "m", {k: v for k, v in manifest.items() if k not in ("format", "sha256")}, arrays
        )
        tables, _ = layers_of(arrays)
        expected = [reference.interactions(tables, A[i], B[j], kind is HONFM)[s] for i, j in pairs]
        found = load_link_predictor(tmp_path / "m").decision_function(A, B, pairs)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_trained_scores_as_enumeration_has_it(kind, tmp_path):
    A, B, pairs, y = world(n=80)
    degree = {} if kind is ConcatDNN else {"degree": 3}
    model = kind(**QUICK, **degree).fit(A, B, pairs, y)
    model.save(tmp_path / "m")
    manifest, arrays = model_file.read(tmp_path / "m")
    tables, dense = layers_of(arrays)
    expected = [
        reference.network(manifest["link_predictor"], tables, dense, A[i], B[j], False) for i, j in pairs
    ]
    np.testing.assert_allclose(model.decision_function(A, B, pairs), expected, rtol=1e-3, atol=1e-4)


# One kind of objects


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_a_pair_of_one_kind_is_no_direction(degree):
    A, _, pairs, y = world(one=True)
    model = PairDNN(degree=degree, **QUICK).fit(A, None, pairs, y)
    assert model.symmetric_
    np.testing.assert_array_equal(
        model.decision_function(A, None, pairs[:, ::-1]), model.decision_function(A, None, pairs)
    )
    np.testing.assert_array_equal(
        model.decision_function(A, A, pairs), model.decision_function(A, None, pairs)
    )
    two = PairDNN(degree=degree, **QUICK).fit(A, A.copy(), pairs, y)  # given as two kinds
    assert not two.symmetric_
    assert (two.decision_function(A, A, pairs[:, ::-1]) != two.decision_function(A, A, pairs)).any()


@pytest.mark.parametrize("kind", [HONFM, ConcatDNN])
def test_the_others_tell_ends_apart(kind):
    A, _, pairs, y = world(one=True)
    model = kind(**QUICK).fit(A, None, pairs, y)
    assert not model.symmetric_
    assert (
        model.decision_function(A, None, pairs[:, ::-1]) != model.decision_function(A, None, pairs)
    ).any()


# Seeds


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_bits_and_leaves_the_global_state_alone(kind):
    import torch

    A, B, pairs, y = world()
    before = torch.random.get_rng_state()
    first, again, other = (
        kind(**QUICK, random_state=seed).fit(A, B, pairs, y).decision_function(A, B, pairs)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert torch.equal(torch.random.get_rng_state(), before)


# Input


@pytest.mark.parametrize("kind", KINDS)
def test_empty_rows_and_one_pair(kind):
    A, B = np.zeros((3, 4)), np.zeros((2, 5))
    model = kind(**QUICK).fit(A, B, [[0, 0], [1, 1]], [0, 1])
    same = model.decision_function(A, B, [[0, 0], [1, 1], [2, 0]])
    assert np.isfinite(same).all() and len(set(same.tolist())) == 1
    A[0, 0] = 1.0
    assert kind(**QUICK, batch_size=1).fit(A, B, [[0, 0], [1, 1], [2, 1]], [0, 1, 0]).predict(
        A, B, [[0, 1]]
    ).shape == (1,)
    with pytest.raises(InputError, match="y must have two classes, and has 1"):
        kind(**QUICK).fit(A, B, [[0, 0]], [1])


def test_other_objects_than_those_of_the_fit_are_scored():
    A, B, pairs, y = world()
    model = PairDNN(**QUICK).fit(A, B, pairs, y)
    alone = model.decision_function(A[[4]], B[[7]], [[0, 0]])
    np.testing.assert_allclose(alone, model.decision_function(A, B, [[4, 7]]), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="features; fit had 6 and 5"):
        model.decision_function(A[:, :5], B, pairs)


def test_many_pairs_are_scored_a_batch_at_a_time(monkeypatch):
    from recsys.links import neural

    monkeypatch.setattr(neural, "BATCH", 100)
    A, B, pairs, y = world()
    model = PairDNN(**QUICK).fit(A, B, pairs, y)
    many = np.tile(pairs, (7, 1))
    np.testing.assert_allclose(
        model.decision_function(A, B, many),
        np.tile(model.decision_function(A, B, pairs), 7),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("seed", range(4))
def test_products_and_their_slopes_are_those_of_dense_matrices(seed):
    import torch

    from recsys.links import neural

    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 8, 2)
    X = sp.csr_matrix(rng.normal(size=(n, d)) * (rng.random((n, d)) < seed / 3))  # the first is empty
    table = torch.tensor(rng.normal(size=(d, 5)).astype(np.float32), requires_grad=True)
    slope = rng.normal(size=(n, 5)).astype(np.float32)
    for power, product in enumerate(neural._power_sums(X, table, 3), start=1):
        table.grad = None
        product.backward(torch.tensor(slope), retain_graph=True)
        dense, P = X.toarray() ** power, table.detach().numpy()
        np.testing.assert_allclose(product.detach(), dense @ P**power, rtol=1e-4, atol=1e-5)
        expected = power * P ** (power - 1) * (dense.T @ slope)
        np.testing.assert_allclose(table.grad, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_that_of_the_definitions_slope(kind):
    """One batch of all pairs: Adam's first step goes by the learning rate against the slope's sign."""
    A, B, pairs, y = world(n=60)
    shape = {"n_components": 3, "hidden": 4, "layers": 1, "dropout": 0.0, "batch_size": len(y)}
    degree = {} if kind is ConcatDNN else {"degree": 3}
    model = kind(**shape, **degree, epochs=1, learning_rate=1e-9).fit(A, B, pairs, y)
    name = {PairDNN: "pair-dnn", HONFM: "honfm", ConcatDNN: "concat-dnn"}[kind]
    still = [table.astype(float) for table in model.tables_]
    moved = kind(**shape, **degree, epochs=1, learning_rate=0.01).fit(A, B, pairs, y).tables_
    # the dense layers' step is the same in both; the slope is taken where they were before it
    start = kind(**shape, **degree, epochs=1, learning_rate=0.01)
    start.classes_, start.n_features_ = model.classes_, model.n_features_
    dense = first_layers(start)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)

    def loss(tables):
        scores = np.array([reference.network(name, tables, dense, A[i], B[j], False) for i, j in pairs])
        return np.log1p(np.exp(-signs * scores)).mean()

    rng = np.random.default_rng(0)
    seen = 0
    for k, table in enumerate(still):
        for row, column in zip(*(rng.integers(0, size, 4) for size in table.shape), strict=True):
            near = []
            for step in (1e-4, -1e-4):
                other = [t.copy() for t in still]
                other[k][row, column] += step
                near.append(loss(other))
            slope = (near[0] - near[1]) / 2e-4
            if abs(slope) > 1e-5:
                step = float(moved[k][row, column]) - table[row, column]
                assert step == pytest.approx(-0.01 * np.sign(slope), rel=0.02)
                seen += 1
    assert seen > 4


def first_layers(model):
    """The dense layers as they are drawn, behind the tables."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.random_state)
        for k in range(2 * model._orders()):
            torch.randn((model.n_features_[k % 2], model.n_components))
        layers = [torch.nn.Linear(*size) for size in model._sizes()]
    return [
        tuple(part.detach().numpy().astype(float) for part in layer.parameters()) for layer in layers
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_no_bit(kind):
    import torch

    A, B, pairs, y = world()
    before, scores = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            scores.append(kind(**QUICK).fit(A, B, pairs, y).decision_function(A, B, pairs))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*scores)


def test_progress_and_history():
    A, B, pairs, y = world()
    heard = []
    with listening(lambda step, done, total: heard.append((step, done, total))):
        model = PairDNN(**{**QUICK, "epochs": 3}, batch_size=100).fit(A, B, pairs, y)
    assert [step for step, _, _ in heard[::7]] == ["epoch 1", "epoch 2", "epoch 3"]
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard) and heard[-1][2] == 3
    assert len(model.history_) == 3 and set(model.history_[0]) == {"loss"}

    class Stop(Exception):
        pass

    def stop(step, done, total):
        if step == "epoch 2":
            raise Stop

    with pytest.raises(Stop), listening(stop):
        PairDNN(**QUICK).fit(A, B, pairs, y)


def test_scikit_learn_and_names():
    model = make_link_predictor("honfm", degree=3, hidden=5)
    assert clone(model).get_params() == model.get_params() and type(model) is HONFM
    A, B, pairs, y = world()
    network = PairDNN(**QUICK).fit(A, B, pairs, y)
    assert link_reasons(network, A, B, 0, 0).kind == "changes"
    found = link_reasons(network, A, B, 0, 0, N=3)
    assert found.pairs == () and len(found.changes) == 3


# What each is there for


# Features of an end and training pairs, few enough that a plain network does not find the product
SIZES = {2: (20, 300), 3: (12, 400), 4: (8, 400)}


def interaction(order, n, width):
    """Pairs of objects that each are in one pair; the label is the sign of a product of `order` features."""
    rng = np.random.default_rng(0)
    A, B = rng.choice([-1.0, 1.0], (n, width)), rng.choice([-1.0, 1.0], (n, width))
    pairs = np.column_stack([np.arange(n), rng.permutation(n)])
    a, b = A[pairs[:, 0]], B[pairs[:, 1]]
    left = order // 2
    return A, B, pairs, np.prod(a[:, :left], axis=1) * np.prod(b[:, : order - left], axis=1) > 0


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("kind", [PairDNN, HONFM])
def test_an_interaction_of_its_order_is_learned(kind, order):
    width, seen = SIZES[order]
    A, B, pairs, y = interaction(order, seen + 400, width)
    train, test = slice(0, seen), slice(seen, None)
    shape = {"epochs": 30, "hidden": 32, "layers": 1, "batch_size": 32}
    model = kind(degree=order, n_components=16, learning_rate=0.02, **shape).fit(
        A, B, pairs[train], y[train]
    )
    plain = ConcatDNN(n_components=32, **shape).fit(A, B, pairs[train], y[train])
    found, without = model.score(A, B, pairs[test], y[test]), plain.score(A, B, pairs[test], y[test])
    assert found > 0.85 and found > without + 0.15


@pytest.mark.slow
def test_hopairdnn_beats_hopairnet_on_nips(data_dir):
    graph = load_graph("nips", data_dir)
    A = sp.csr_matrix(normalize(graph.A))
    split = split_pairs(graph.links, A.shape[0], seed=0)
    shallow = PairNet(degree=3, beta=1e-6, max_iter=8).fit(A, None, split.train, split.train_labels)
    scaled = A * np.sqrt(A.shape[1]) / 10.0
    deep = PairDNN(epochs=12, hidden=200).fit(scaled, None, split.train, split.train_labels)
    accuracy = shallow.score(A, None, split.test, split.test_labels)
    assert deep.score(scaled, None, split.test, split.test_labels) > accuracy > 0.8


# Files


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("model", DEEP, ids=name_of)
def test_what_is_read_scores_as_what_was_saved(model, one, tmp_path):
    import torch

    A, B, pairs, y = world(one=one, n=200)
    model = clone(model).set_params(epochs=2, hidden=8).fit(A, B, pairs, np.where(y, "b", "a"))
    model.save(tmp_path / "m")
    before = torch.random.get_rng_state()
    again = load_link_predictor(tmp_path / "m")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert type(again) is type(model) and again.get_params() == model.get_params()
    assert again.symmetric_ is model.symmetric_ and again.classes_.tolist() == ["a", "b"]
    for some in (pairs, pairs[:1], pairs[:, ::-1] % 25):
        np.testing.assert_array_equal(
            again.decision_function(A, B, some), model.decision_function(A, B, some)
        )
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    again.fit(A, B, pairs, y)  # what was read may be fitted anew
    np.testing.assert_array_equal(
        again.decision_function(A, B, pairs), model.decision_function(A, B, pairs)
    )


def test_the_examples():
    from recsys.links import neural

    assert doctest.testmod(neural, optionflags=FLAGS).failed == 0
