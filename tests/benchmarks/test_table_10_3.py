import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import bpr, table_10_3
from benchmarks.bpr import UniformBPR
from benchmarks.folds import as_committed
from benchmarks.lab import common
from recsys.data import Interactions, split

PROFILES = st.lists(
    st.lists(st.integers(0, 11), min_size=3, max_size=8, unique=True), min_size=6, max_size=9
)


def make(profiles):
    users = [f"u{u}" for u, items in enumerate(profiles) for _ in items]
    items = [f"i{i}" for items in profiles for i in items]
    time = np.arange(len(users), dtype=float)
    return Interactions.from_ids(
        np.array(users, dtype=object), np.array(items, dtype=object), time=time, name="made"
    )


def pairs(data, matrix=None):
    if matrix is None:
        return {
            (data.user_ids[u], data.item_ids[i]) for u, i in zip(data.users, data.items, strict=True)
        }
    seen = matrix.tocoo()
    return {(data.user_ids[u], data.item_ids[i]) for u, i in zip(seen.row, seen.col, strict=True)}


def validated(data, protocol, folder, monkeypatch):
    """Run one method, and return what each validation shows it: the pairs of its two halves."""
    shown = []

    def look(spec, fold):
        parts = (fold.train, fold.test)
        shown.append([sorted(map(tuple, np.argwhere(part.toarray()).tolist())) for part in parts])
        return 0.0, 0.0

    (folder / "table_10_3.csv").unlink(missing_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(table_10_3, "measure", look)
        patch.setattr(common, "RESULTS", folder)
        patch.setitem(table_10_3.SETTINGS, "HP", ["a:b=1"])
        table_10_3.run(data, protocol, "HP")
    return shown[::2]  # a test follows each validation


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(PROFILES, st.sampled_from(["half-profile", "half-profile-time", "half-profile-file"]))
def test_settings_are_chosen_on_the_training_data_of_their_fold_and_on_all_of_it(profiles, protocol):
    data = make(profiles)
    for fold in split(data, protocol, seed=0):
        inside = table_10_3.inner(data, fold)
        assert not pairs(inside) & pairs(data, fold.test)
        assert pairs(inside) == pairs(data, fold.train)
        choice = table_10_3.validation(data, protocol, fold)
        assert choice.train.nnz + choice.test.nnz == fold.train.nnz


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(PROFILES)
def test_no_choice_changes_when_what_its_fold_tests_does(tmp_path_factory, profiles):
    """Every rating tested in a fold is replaced by an item that no user has."""
    folder = tmp_path_factory.mktemp("cells")
    data = make(profiles)
    with pytest.MonkeyPatch.context() as patch:
        before = validated(data, "half-profile-time", folder, patch)
        folds = split(as_committed(data, "half-profile-time"), "half-profile-time", seed=0)
        for number, fold in enumerate(folds):
            tested = pairs(data, fold.test)
            changed = [
                [100 + i if (f"u{u}", f"i{i}") in tested else i for i in items]
                for u, items in enumerate(profiles)
            ]
            after = validated(make(changed), "half-profile-time", folder, patch)
            assert after[number] == before[number]


def test_the_report_is_written_from_the_cells_alone(tmp_path, monkeypatch):
    """A finished and an unfinished cell: figures of the first, "not run" for the second, degrees of mD."""
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    specs = table_10_3.SETTINGS["mD"]
    value = {spec: 0.5 + k / 100 for k, spec in enumerate(specs)}
    common.Results("table_10_3", table_10_3.COLUMNS).add(
        *[
            (name, "half-profile", "mD", part, fold, spec, value[spec], 0.25)
            for name, folds in (("filmtrust", 5), ("jester", 4))
            for part in ("validated", "tested")
            for fold in range(1, folds + 1)
            for spec in specs
        ],
    )
    monkeypatch.setattr("sys.argv", ["table_10_3", "--report"])
    table_10_3.main()
    text = (tmp_path / "table_10_3.md").read_text()
    best = max(value.values())
    film, jester = text.split("## filmtrust")[1].split("## jester")
    assert (
        f"| {best:.4f} ±0.0000 | 0.2500 | {best:.4f} (`kernel=md,degree=500,unrated=mean`) | 0.971 |"
        in film
    )
    rows = (tmp_path / "figure_10_8.csv").read_text().splitlines()
    assert rows[1] == "filmtrust,2,kernel,0.5,0,0.25" and len(rows) == 1 + len(specs)
    assert not (tmp_path / "figure_10_7.csv").exists()


def test_wrmf_has_the_confidence_that_the_thesis_writes(planted):
    """C = 1 + αR with α = 1: a like weighs 2, anything else 1."""
    R = planted.matrix
    (spec,) = [s for s in table_10_3.SETTINGS["WRMF"] if s.endswith("regularization=10")]
    model = table_10_3.build(spec).fit(R, show_progress=False)
    Y = model.item_factors_.astype(float)
    for u in range(5):
        liked = R[u].toarray().ravel()
        C = np.diag(1.0 + 1.0 * liked)
        expected = np.linalg.solve(Y.T @ C @ Y + 10 * np.eye(Y.shape[1]), Y.T @ C @ liked)
        found = model._folded(sp.csr_matrix(R[u]))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_uniform_bpr_takes_the_steps_of_its_slow_twin(planted):
    R = sp.csr_matrix(planted.matrix)
    fast = UniformBPR(passes=2, factors=3, learning_rate=0.05, regularization=0.02, seed=4).fit(R)
    rng = np.random.default_rng(4)
    P, Q = rng.normal(0.0, 0.1, (R.shape[0], 3)), rng.normal(0.0, 0.1, (R.shape[1], 3))
    b = np.zeros(R.shape[1])
    dense, owner = R.toarray(), np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
    for _ in range(2):
        drawn = rng.integers(0, R.nnz, R.nnz)
        others = rng.integers(0, R.shape[1], (R.nnz, bpr.TRIES))
        for t, candidates in zip(drawn, others, strict=True):
            u, i = owner[t], R.indices[t]
            unseen = [j for j in candidates if dense[u, j] == 0]
            if not unseen:
                continue
            j = unseen[0]
            s = 1 / (1 + np.exp(b[i] - b[j] + P[u] @ (Q[i] - Q[j])))
            b[i], b[j] = b[i] + 0.05 * (s - 0.02 * b[i]), b[j] - 0.05 * (s + 0.02 * b[j])
            p, q, r = P[u].copy(), Q[i].copy(), Q[j].copy()
            P[u] += 0.05 * (s * (q - r) - 0.02 * p)
            Q[i] += 0.05 * (s * p - 0.02 * q)
            Q[j] -= 0.05 * (s * p + 0.02 * r)
    np.testing.assert_allclose(fast.P, P, atol=1e-12)
    np.testing.assert_allclose(fast.Q, Q, atol=1e-12)
    np.testing.assert_allclose(fast.b, b, atol=1e-12)
    np.testing.assert_allclose(fast.scores(np.array([3]), R[3])[0], P[3] @ Q.T + b, rtol=1e-5, atol=1e-6)
