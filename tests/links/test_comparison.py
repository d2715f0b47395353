"""Comparisons, strongest links and their reasons against counting and enumeration."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.lab.graphs import load_graph
from recsys import InputError
from recsys.datasets import load_dataset
from recsys.datasets.graphs import Graph, Objects, encode_objects, graph_of, read_graph
from recsys.links import (
    LinkPredictor,
    LowRankBilinear,
    PairFactorizationMachine,
    PairNet,
    PairSVM,
    compare_links,
    fit_on_all_links,
    link_metrics,
    link_reasons,
    make_link_predictor,
    split_objects,
    split_pairs,
    strongest_links,
)
from recsys.links.comparison import auc_error
from recsys.utils.progress import listening
from tests.reference import links as reference

SUMS = [
    PairNet(n_components=3, max_iter=5),
    PairNet(degree=3, n_components=2, max_iter=4),
    PairNet(degree=4, n_components=2, max_iter=3, beta=1e-3),
    LowRankBilinear(n_components=3, max_iter=5),
    PairFactorizationMachine(degree=3, n_components=2, max_iter=4),
    PairFactorizationMachine(fit_lower=None, fit_linear=False, max_iter=4),
    PairFactorizationMachine(degree=3, fit_lower="simplex", n_components=2, max_iter=4),
    PairFactorizationMachine(fit_lower="inhomogeneous", theta=(0.5, 2.0), symmetric=None, max_iter=4),
    PairFactorizationMachine(degree=3, fit_lower="augment", n_components=2, max_iter=4),
    PairFactorizationMachine(symmetric=True, n_components=2, max_iter=4),
    PairFactorizationMachine(fit_lower="augment", symmetric=None, n_components=2, max_iter=4),
    PairSVM(),
]


def objects(n, width, noun="object"):
    return Objects.of(noun, [f"{noun} {k}" for k in range(n)], [f"f{k}" for k in range(width)])


def planted(one=True, seed=0, n=40):
    """Objects of groups: links within a group."""
    rng = np.random.default_rng(seed)
    groups, others = rng.integers(0, 3, n), rng.integers(0, 3, n - 5)
    A = (rng.random((n, 9)) < np.where(np.arange(9)[None] // 3 == groups[:, None], 0.8, 0.1)) * 1.0
    if one:
        links = [
            (a, b)
            for a, b in itertools.combinations(range(n), 2)
            if groups[a] == groups[b] and rng.random() < 0.5
        ]
        return Graph(sp.csr_matrix(A), None, np.array(links), objects(n, 9), objects(n, 9))
    B = (rng.random((n - 5, 9)) < np.where(np.arange(9)[None] // 3 == others[:, None], 0.8, 0.1)) * 1.0
    links = [
        (a, b) for a in range(n) for b in range(n - 5) if groups[a] == others[b] and rng.random() < 0.5
    ]
    return Graph(
        sp.csr_matrix(A),
        sp.csr_matrix(B[:, :7]),
        np.array(links),
        objects(n, 9, "user"),
        objects(n - 5, 7, "item"),
    )


def test_the_error_of_the_auc_is_that_of_delong():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([1, 0], [60, 90]))
    scores = rng.normal(size=150) + 0.7 * labels
    _, covariance = reference.auc_covariance(labels, scores[None])
    assert auc_error(labels, scores) == pytest.approx(np.sqrt(covariance[0, 0]), rel=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize(
    "model", [*SUMS, PairNet(similarity=True, n_components=2, max_iter=4)], ids=lambda m: repr(m)[:50]
)
def test_reasons_sum_to_the_score(model, one):
    graph = planted(one)
    if not one and (getattr(model, "symmetric", None) or getattr(model, "similarity", False)):
        pytest.skip("for one kind of objects")
    split = split_pairs(graph.links, *graph.sizes, test_size=0.3)
    model.fit(graph.A, graph.B, split.train, split.train_labels)
    for i, j in split.test[:6]:
        every = link_reasons(model, graph.A, graph.B, i, j, 1000)
        assert every.kind == "exact" and every.unlisted == 0 and every.others == pytest.approx(0)
        total = every.base + every.left + every.right + sum(value for *_, value in every.pairs)
        score = model.decision_function(graph.A, graph.B, [[i, j]])[0]
        assert total == pytest.approx(score, abs=1e-9) and every.score == score
        few = link_reasons(model, graph.A, graph.B, i, j, 3)
        assert few.pairs == every.pairs[:3] and few.unlisted == len(every.pairs[3:])
        assert few.others == pytest.approx(sum(value for *_, value in every.pairs[3:]))
        sizes = [abs(value) for *_, value in every.pairs]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("model", SUMS[:-1], ids=lambda m: repr(m)[:50])
def test_reasons_are_those_of_enumeration(model, one):
    if not one and getattr(model, "symmetric", None):
        pytest.skip("for one kind of objects")
    graph = planted(one, seed=3, n=20)
    split = split_pairs(graph.links, *graph.sizes, test_size=0.3)
    model.fit(graph.A, graph.B, split.train, split.train_labels)
    A = graph.A.toarray()
    B = A if one else graph.B.toarray()
    ones = model.degree - 1 if getattr(model, "fit_lower", "") == "augment" else 0
    A = np.hstack([A, np.ones((len(A), ones))])
    B = np.hstack([B, np.ones((len(B), ones))]) if model.symmetric_ else B
    terms = [(t.coefficients, t.left, t.right, t.weights) for t in model.terms_]
    if getattr(model, "theta_", None) is not None:  # the last term has every order
        _, *tables = terms.pop()
        terms += [(weight * np.ones(r + 1), *tables) for r, weight in enumerate(model.theta_, 1)]
    for i, j in split.test[:2]:
        pairs, left, right = reference.parts(terms, A[i], B[j], model.symmetric_)
        parts = model.parts(graph.A[[i]], (graph.A if one else graph.B)[[j]])
        if ones:  # pairs with a column of ones are the other feature's
            n, m = graph.A.shape[1], graph.A.shape[1] if one else graph.B.shape[1]
            left, right = left + pairs[:n, m:].sum(), right + pairs[n:, :m].sum()
            pairs = pairs[:n, :m]
        used = np.ix_(A[i, : pairs.shape[0]] != 0, B[j, : pairs.shape[1]] != 0)
        np.testing.assert_allclose(parts.pairs, pairs[used], atol=1e-10)
        assert np.abs(pairs).sum() == pytest.approx(np.abs(parts.pairs).sum())
        assert (parts.left, parts.right) == pytest.approx((left, right), abs=1e-10)


class Hidden(LinkPredictor):
    """A model that is no sum over pairs of features."""

    def check_parameters(self):
        pass

    def _fit(self, task):
        self.weights_ = np.arange(task.A.shape[1]), 0.5 * np.arange(task.B.shape[1])

    def _score(self, A, B, left, right):
        return np.tanh(A @ self.weights_[0])[left] + np.sin(B @ self.weights_[1])[right]


@pytest.mark.parametrize("one", [True, False])
def test_models_that_are_no_sum_tell_changes(one):
    graph = planted(one)
    split = split_pairs(graph.links, *graph.sizes, test_size=0.3)
    model = Hidden().fit(graph.A, graph.B, split.train, split.train_labels)
    found = link_reasons(model, graph.A, graph.B, 3, 4, 100)
    A, B = graph.A.toarray(), (graph.A if one else graph.B).toarray()
    expected = {}
    for end, row in ((0, A[3]), (1, B[4])):
        for f in np.flatnonzero(row):
            ends = [A[[3]].copy(), B[[4]].copy()]
            ends[end][0, f] = 0
            if one:
                score = model.decision_function(np.vstack(ends), None, [[0, 1]])[0]
            else:
                score = model.decision_function(*ends, [[0, 0]])[0]
            expected[end, f] = found.score - score
    assert {(e, f): v for e, f, v in found.changes} == pytest.approx(expected)
    assert found.kind == "changes" and not found.pairs
    sizes = [abs(v) for *_, v in found.changes]
    assert sizes == sorted(sizes, reverse=True)
    assert len(link_reasons(model, graph.A, graph.B, 3, 4, 2).changes) == 2


def test_a_pair_without_features_rests_on_the_constant():
    graph = planted()
    split = split_pairs(graph.links, *graph.sizes, test_size=0.3)
    model = PairNet(degree=3, max_iter=2).fit(graph.A, None, split.train, split.train_labels)
    empty = sp.csr_matrix(np.vstack([graph.A.toarray(), np.zeros(9)]))
    found = link_reasons(model, empty, None, 0, 40)
    assert found.pairs == () and found.score == pytest.approx(found.base) and found.unlisted == 0


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("one", [False, True])
def test_a_comparison_is_that_of_its_steps(one, cold):
    graph = planted(one)
    models = ["bilinear:n_components=3,max_iter=20", "pair-svm", "bilinear:n_components=3,max_iter=20"]
    seen = []
    with listening(lambda *said: seen.append(said)):
        found = compare_links(graph, models, cold=cold, seed=4)
    cut = split_objects if cold else split_pairs
    split = cut(graph.links, *graph.sizes, test_size=0.3, seed=4)
    assert [r.model for r in found] == models[:2], "a model named twice counts once"
    for result, (name, params) in zip(
        found, [("bilinear", {"n_components": 3, "max_iter": 20}), ("pair-svm", {})], strict=True
    ):
        model = make_link_predictor(name, **params).fit(
            graph.A, graph.B, split.train, split.train_labels
        )
        scores = model.decision_function(graph.A, graph.B, split.test)
        assert result.metrics == link_metrics(split.test_labels, scores)
        assert result.auc_error == auc_error(split.test_labels, scores)
    dones = [done for _, done, _ in seen]
    assert dones == sorted(dones) and dones[0] == 0 and 1 <= dones[-1] < seen[0][2] == 2
    assert seen[1][0].startswith(models[0]) and seen[-1][0].startswith(models[1])


def test_progress_that_raises_ends_a_fit_of_every_kind():
    class Enough(Exception):
        pass

    def stop(*said):
        if said[1] > 0 or "svm" in said[0]:
            raise Enough

    for spec in ("bilinear", "pairnet:degree=3", "fm", "pair-svm", "low-rank-bilinear"):
        with pytest.raises(Enough), listening(stop):
            compare_links(planted(), [spec])


def test_what_cannot_be_compared():
    graph = planted()
    with pytest.raises(InputError, match="unseen objects have no features"):
        compare_links(graph._replace(by_id=True), "bilinear", cold=True)
    for links in (3, 4):
        with pytest.raises(InputError, match="too few links"):
            compare_links(graph._replace(links=graph.links[:links]), "bilinear")


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize(
    "spec", ["bilinear:n_components=3,max_iter=20", "fm:n_components=3,max_iter=20"]
)
def test_strongest_links_are_the_best_of_all_that_are_free(one, spec):
    graph = planted(one)
    model = fit_on_all_links(graph, spec, seed=1)
    known = {tuple(pair) for pair in graph.links.tolist()}
    for index in (5, 7):
        scores = {}
        for other in range(graph.A.shape[0] if one else graph.B.shape[0]):
            pair = (index, other)
            if pair in known or (one and (pair[::-1] in known or index == other)):
                continue
            # An end of a pair of one kind is the lower one, as in the pairs that are learned from.
            scores[other] = model.decision_function(graph.A, graph.B, [sorted(pair) if one else pair])[0]
        objects, found = strongest_links(model, graph, index, 4)
        best = sorted(scores, key=lambda other: -scores[other])[:4]
        np.testing.assert_allclose(found, [scores[k] for k in best])
        assert objects.tolist() == best


def test_an_object_with_every_link_has_none_to_predict():
    graph = planted()
    full = np.array([[0, k] for k in range(1, 40)] + [[1, 2]])
    graph = graph._replace(links=full)
    model = fit_on_all_links(graph, "bilinear:max_iter=2")
    assert [len(found) for found in strongest_links(model, graph, 0)] == [0, 0]
    with pytest.raises(InputError, match="index"):
        strongest_links(model, graph, 40)


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return [folder / f"{name}.csv" for name in files]


NODES = "id,words,size,title\nn1,net|gene,1,First\nn2,net,0.5,Second\nn3,gene,0,Third\n"


def test_a_graph_is_read_from_tables(tmp_path):
    nodes, edges = write(tmp_path, nodes=NODES, edges="from,to\nn1,n2\nn2,n1\nn3,n3\nn2,n3\n")
    graph = read_graph(edges, nodes)
    assert graph.links.tolist() == [[0, 1], [1, 2]] and graph.B is None and not graph.by_id
    assert graph.left.features == ("words=gene", "words=net", "size")
    assert graph.left.ids.tolist() == ["n1", "n2", "n3"]
    assert graph.left.labels.tolist() == ["First", "Second", "Third"]
    assert graph.A.toarray().tolist() == [[1, 1, 1], [0, 1, 0.5], [1, 0, 0]]
    assert graph.notes == (
        "pairs of an object with itself, left out: 1",
        "repeated pairs, counted once: 1",
    )
    np.testing.assert_allclose(np.linalg.norm(graph.weighted().A.toarray(), axis=1), 1)
    assert graph.weighted("none").A is graph.A
    with pytest.raises(InputError, match="weighting"):
        graph.weighted("some")


def test_pairs_alone_make_a_graph_of_ids(tmp_path):
    (one,) = write(tmp_path, one="source,target\na,b\nb,c\nc,a\n")
    graph = read_graph(one)
    assert graph.by_id and graph.B is None and graph.A.toarray().tolist() == np.eye(3).tolist()
    assert graph.left.features == ("object=a", "object=b", "object=c")
    assert graph.links.tolist() == [[0, 1], [1, 2], [0, 2]]


def test_two_kinds_of_objects(tmp_path):
    pairs, people, films = write(
        tmp_path,
        pairs="person,film,when\np2,f1,2000\np1,f2,2001\np1,f1,2002\n",
        people="id,age\np1,20\np2,30\n",
        films="id,year\nf1,1990\nf2,2000\n",
    )
    graph = read_graph(pairs, people, films)
    assert graph.links.tolist() == [[1, 0], [0, 1], [0, 0]] and graph.sizes == (2, 2)
    assert read_graph(pairs, None, films).left.ids.tolist() == ["p2", "p1"]
    swapped = read_graph(pairs, films, people, left_col="film", right_col="person")
    assert swapped.links.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_tables_that_make_no_graph(tmp_path):
    nodes, edges, other = write(tmp_path, nodes=NODES, edges="from,to\nn1,n2\n", other="a,b\n1,2\n")
    with pytest.raises(InputError, match="unknown object id"):
        read_graph(other, nodes)
    (self,) = write(tmp_path, self="from,to\nn1,n1\n")
    with pytest.raises(InputError, match="the graph has no links"):
        read_graph(self, nodes)
    (narrow,) = write(tmp_path, narrow="from\nn1\n")
    with pytest.raises(InputError, match="needs two columns"):
        read_graph(narrow, nodes)
    (twice,) = write(tmp_path, twice="id,x\nn1,a\nn2,a\nn1,b\n")
    with pytest.raises(InputError, match=r"twice.csv, row 3: object id 'n1' occurs twice"):
        read_graph(edges, twice)


def test_which_columns_describe_objects():
    import pandas as pd

    table = pd.DataFrame(
        {
            "name": ["a", "b", "c", "d"] * 5,
            "note": [f"n{k}" for k in range(20)],
            "year": np.arange(20) + 1990,
            "counts": [0] * 12 + list(range(8)),
            "part": np.linspace(-1, 1, 20),
            "kind": ["x", "y"] * 10,
        }
    )
    found, dropped = encode_objects(table)
    assert dropped == ("name", "note")
    assert set(found.columns) == {"year", "counts", "part", "kind"}
    assert found.columns.count("counts") == found.columns.count("part") == 1
    assert found.columns.count("kind") == 2 and found.columns.count("year") == 10
    years = [v for c, v in zip(found.columns, found.values, strict=True) if c == "year"]
    assert years[:2] == ["1990–1991", "1992–1993"] and "2008–2009" in years
    salary = encode_objects(pd.DataFrame({"salary": 1_000_000 + np.arange(20)}))[0].names
    assert salary[:2] == ("salary=1000000–1000001", "salary=1000002–1000003")


def test_users_and_items_are_a_graph():
    data = load_dataset("sample")
    graph = graph_of(data)
    assert graph.sizes == (data.n_users, data.n_items) and not graph.by_id
    assert len(graph.links) == len(data.users)
    wide = graph_of(data, ids=True)
    assert wide.A.shape[1] == graph.A.shape[1] + data.n_users
    assert wide.right.features[-1] == f"item={data.item_ids[-1]}"


@pytest.mark.thorough
def test_real_graphs_have_names(data_dir):
    for name, noun in (("nips", "author"), ("movielens", "user")):
        graph = load_graph(name, data_dir)
        assert graph.left.noun == noun and len(graph.left.ids) == graph.A.shape[0]
        assert len(graph.left.features) == graph.A.shape[1]
        other = graph.A if graph.B is None else graph.B
        assert len(graph.right.features) == other.shape[1] and len(graph.right.ids) == other.shape[0]
        assert len(set(graph.left.ids)) == len(graph.left.ids)
    nips = load_graph("nips", data_dir)
    assert nips.left.features[:2] == ("network", "learning") and nips.left.ids[0] == "Aazhang_B"


def test_movielens_has_the_features_of_the_papers_table(data_dir):
    graph = load_graph("movielens", data_dir)
    assert graph.A.shape == (943, 49) and graph.B.shape == (1682, 29)
    names = np.array(graph.right.features)
    decades = graph.B[:, [k for k, name in enumerate(names) if name.startswith("year=")]]
    assert decades.shape[1] == 10 and (decades.sum(axis=1) == 1).all()
    of = dict(zip(graph.right.ids, graph.B, strict=True))
    for item, decade in {
        "1": "1995–2004",
        "50": "1975–1984",
        "98": "1985–1994",
        "267": "unknown",
    }.items():
        assert f"year={decade}" in names[of[item].indices]
