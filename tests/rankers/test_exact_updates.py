"""Rows and items that come, change and go: whatever happened, the ranker is the one a refit gives."""

import copy
import hashlib

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import CapabilityError, InputError, list_rankers, load_ranker, make_ranker
from recsys.rankers import _ease_update

# Settings that updates have to serve, beside the defaults.
CASES = {
    "msdw": [{}, {"locality": 2.0, "top_k": 3, "diagonal": False, "alpha": 0.6}, {"recency": 1.0}],
    "ease": [{"keep_inverse": True, "regularization": 2.0}, {"keep_inverse": True, "recency": 0.5}],
    "cf-komd": [
        {},
        {"recency": 1.0, "regularization": 0.5},
        {"kernel": "md", "degree": 3},
        {"kernel": "mc", "degree": 2},
        {"memory": 3000},
        {"kernel": "md", "degree": 6, "memory": 3000},
        {"kernel": "tanimoto"},
    ],
}
UPDATED = [
    (name, params)
    for name in list_rankers()
    if "updates" in make_ranker(name).capabilities
    for params in CASES.get(name, [{}])
]


def identifier(case):
    return ",".join([case[0], *(f"{key}={value}" for key, value in case[1].items())])


@pytest.fixture(params=UPDATED, ids=identifier)
def case(request):
    return request.param


def state(ranker):
    parts = [f"{ranker.n_users_} {ranker.n_items_}".encode()]
    learned = {key: value for key, value in vars(ranker).items() if key.endswith("_")}
    for key, value in sorted(learned.items()):
        arrays = (value.data, value.indices, value.indptr) if sp.issparse(value) else (value,)
        parts += [a.tobytes() for a in arrays if isinstance(a, np.ndarray)] + [key.encode()]
    return hashlib.sha256(b"|".join(parts)).hexdigest()


class World:
    """What is true of a growing matrix of likes, in the plainest form: a time, or −1, for each pair."""

    def __init__(self, rng, users, items, timed):
        self.rng, self.timed, self.now = rng, timed, 1000.0
        self.when = np.full((0, items), -1.0)
        self.when = self.rows(users)

    def rows(self, count):
        likes = self.rng.random((count, self.when.shape[1])) < 0.4
        self.now += 1.0
        return np.where(likes, self.now + self.rng.integers(0, 50, likes.shape), -1.0)

    @staticmethod
    def likes(when):
        return sp.csr_matrix((when >= 0).astype(np.float32))

    def times(self, when):
        return sp.csr_matrix(np.maximum(when, 0.0)) if self.timed else None

    def refit(self, name, params):
        return make_ranker(name, **params).fit(
            self.likes(self.when), show_progress=False, times=self.times(self.when)
        )

    def step(self, ranker):
        users, items = self.when.shape
        kind = self.rng.choice(["add", "change", "change", "forget", "items", "window"])
        if kind == "add" and users < 30:
            new = self.rows(int(self.rng.integers(1, 4)))
            ranker.partial_fit(self.likes(new), times=self.times(new))
            self.when = np.vstack([self.when, new])
        elif kind == "items" and items < 15:
            self.when = np.hstack([self.when, np.full((users, 1), -1.0)])
            ranker.add_items(1)
        elif kind == "forget":
            user = int(self.rng.integers(users))
            row = self.likes(self.when[[user]])
            if not row.nnz:
                with pytest.raises(InputError, match="has no interactions in this ranker"):
                    ranker.forget(user, row)
                return
            ranker.forget(user, row)
            self.when[user] = -1.0
        elif kind == "window" and self.timed:
            known = self.when[self.when >= 0]
            oldest = float(np.quantile(known, 0.1)) if len(known) else 0.0
            ranker.forget_before(oldest, self.likes(self.when), self.times(self.when))
            self.when[self.when < oldest] = -1.0
        else:
            some = self.rng.choice(users, size=min(users, 3), replace=False)
            new = self.rows(len(some))
            ranker.update_rows(some, self.likes(self.when[some]), self.likes(new), times=self.times(new))
            self.when[some] = new


def check(ranker, refit, world):
    assert (ranker.n_users_, ranker.n_items_) == (refit.n_users_, refit.n_items_) == world.when.shape
    np.testing.assert_array_equal(ranker.popularity_, refit.popularity_)
    np.testing.assert_array_equal(ranker.row_digests_, refit.row_digests_)
    if hasattr(refit, "counts_"):
        np.testing.assert_array_equal(ranker.counts_.toarray(), refit.counts_.toarray())
        assert ranker.counts_.dtype == refit.counts_.dtype
    everybody, likes = np.arange(len(world.when)), world.likes(world.when)
    found, expected = ranker.scores(everybody, likes), refit.scores(everybody, likes)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * scale)


@pytest.mark.slow
def test_after_a_thousand_batches_it_is_the_refit(case):
    name, params = case
    world = World(np.random.default_rng(0), 12, 8, timed=True)
    ranker = world.refit(name, params)
    for batch in range(1000):
        world.step(ranker)
        if batch % 100 == 99 and (world.when >= 0).any():
            check(ranker, world.refit(name, params), world)
    assert world.when.shape == (30, 15)


@pytest.mark.thorough
def test_without_times_too(case):
    name, params = case
    world = World(np.random.default_rng(1), 10, 8, timed=False)
    ranker = world.refit(name, params)
    for _ in range(50):
        world.step(ranker)
    check(ranker, world.refit(name, params), world)


@pytest.mark.thorough
def test_a_copy_made_before_goes_on_as_it_was(case, tmp_path):
    name, params = case
    world = World(np.random.default_rng(2), 20, 10, timed=True)
    ranker = world.refit(name, params)
    likes = world.likes(world.when)
    ranker.save(tmp_path / "before")
    kept, before, scores = copy.copy(ranker), state(ranker), ranker.scores(np.arange(20), likes)
    for _ in range(30):
        world.step(ranker)
    assert state(kept) == before != state(ranker)
    np.testing.assert_array_equal(kept.scores(np.arange(20), likes), scores)
    kept.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    ranker.save(tmp_path / "now")
    loaded = load_ranker(tmp_path / "now")
    likes = world.likes(world.when)
    everybody = np.arange(len(world.when))
    np.testing.assert_array_equal(loaded.scores(everybody, likes), ranker.scores(everybody, likes))
    for _ in range(5):
        world.step(loaded)
    check(loaded, world.refit(name, params), world)


def test_what_is_refused_leaves_it_as_it_was(case, monkeypatch):
    name, params = case
    world = World(np.random.default_rng(3), 20, 10, timed=True)
    ranker = world.refit(name, params)
    R, T = world.likes(world.when), world.times(world.when)
    before, other = state(ranker), next(u for u in range(1, 20) if (R[u] != R[0]).nnz)
    wrong = [
        (lambda: ranker.update_rows([0, 0], R[[0, 0]], R[[1, 1]]), "userids hold user 0 twice"),
        (lambda: ranker.update_rows([other], R[[0]], R[[1]]), f"is not the one user {other} was fitted with"),
        (lambda: ranker.update_rows([20], R[[0]], R[[1]]), "userids 20 is not within 0…19"),
        (lambda: ranker.update_rows([0], R[[0]], R[[0, 1]]), "after has 2 rows for 1 users"),
        (lambda: ranker.update_rows([0], R[[0]], R[[0], :5]), r"after has shape \(1, 5\)"),
        (lambda: ranker.update_rows([0], R[[0]], R[[1]], times=T[[0, 1]]), "times are of shape"),
        (lambda: ranker.forget([0, 1], R[[0]]), "forget takes one user at a time, not 2"),
        (lambda: ranker.forget(0, R[[other]]), "is not the one user 0 was fitted with"),
        (lambda: ranker.forget_before(-1, R, T), "time must be a finite number of at least 0"),
        (lambda: ranker.forget_before(5, R[:4], T[:4]), "4 rows for 20 users"),
        (lambda: ranker.forget_before(5, R, None), "forget_before needs times"),
        (lambda: ranker.forget_before(2000, R[::-1], T[::-1]), "is not the one user"),
        (lambda: ranker.add_items(0), "count must be an integer from 1"),
        (lambda: ranker.partial_fit(R[:2, :4]), "this ranker knows 10 items"),
    ]  # fmt: skip
    for call, text in wrong:
        with pytest.raises(InputError, match=text) as found:
            call()
        assert "\n" not in str(found.value) and state(ranker) == before
    ranker.popularity_ = ranker.popularity_ + np.float32(2**24)
    with pytest.raises(InputError, match="more than 16,777,216 users"):
        ranker.partial_fit(np.ones((2, 10)))
    ranker.popularity_ = ranker.popularity_ - np.float32(2**24)

    def fails(*args):
        raise MemoryError

    for hook in ("_change_rows", "_extend"):
        monkeypatch.setattr(ranker, hook, fails)
    before = {key: value for key, value in vars(ranker).items()}
    for call in (lambda: ranker.partial_fit(R[:2]), lambda: ranker.add_items(2)):
        with pytest.raises(MemoryError):
            call()
    assert vars(ranker) == before


@pytest.mark.parametrize(
    "name, params, text",
    [
        ("msdw", {"votes": 0.5}, "msdw with votes or sharpening has no exact updates: fit again"),
        ("msdw", {"sharpening": 0.5}, "msdw with votes or sharpening has no exact updates: fit again"),
        ("ease", {}, "fit it with keep_inverse=True, or fit again"),
    ],
    ids=str,
)
def test_settings_without_updates_say_what_to_do(name, params, text, liked):
    ranker = make_ranker(name, **params).fit(liked)
    calls = [
        lambda: ranker.partial_fit(liked[:2]), lambda: ranker.update_rows([0], liked[0], liked[1]),
        lambda: ranker.forget(0, liked[0]), lambda: ranker.add_items(1), ranker.check_updates,
        lambda: ranker.forget_before(0, liked, liked),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(CapabilityError, match=text):
            call()
    assert not hasattr(ranker, "row_digests_")


def test_a_refit_with_other_settings_keeps_nothing_of_the_updates(liked, tmp_path):
    for ranker, change in (
        (make_ranker("msdw"), {"votes": 1.0}),
        (make_ranker("ease", keep_inverse=True), {"keep_inverse": False}),
    ):
        ranker.fit(liked).set_params(**change).fit(liked[:30])
        with pytest.raises(CapabilityError):
            ranker.partial_fit(liked[:2])
        ranker.save(tmp_path / "m")
        load_ranker(tmp_path / "m")


def test_files_without_what_updates_need_are_refused_for_updates_only(liked):
    ranker = make_ranker("msdw").fit(liked)
    del ranker.counts_, ranker.row_digests_
    with pytest.raises(CapabilityError, match="written without its counts: fit again"):
        ranker.partial_fit(liked[:2])
    ranker = make_ranker("ease", keep_inverse=True).fit(liked)
    del ranker.row_digests_
    with pytest.raises(CapabilityError, match="written before digests of rows were kept: fit again"):
        ranker.partial_fit(liked[:2])


# ---- EASE's inverse


def test_the_inverse_is_that_of_the_changed_rows():
    rng = np.random.default_rng(4)
    R = (rng.random((40, 12)) < 0.4) * 1.0
    A = R.T @ R + 3.0 * np.eye(12)
    taken, added = R[:5], (rng.random((7, 12)) < 0.3) * 1.0
    found = _ease_update.changed_inverse(np.linalg.inv(A), sp.csr_matrix(taken), sp.csr_matrix(added))
    np.testing.assert_allclose(found, np.linalg.inv(A + added.T @ added - taken.T @ taken), atol=1e-13)
    np.testing.assert_array_equal(found, found.T)


def test_probes_of_a_grown_catalogue_begin_with_the_old_ones():
    Z = _ease_update.probes(50)
    np.testing.assert_array_equal(_ease_update.probes(20), Z[:20])
    assert set(np.unique(Z)) == {-1.0, 1.0} and (np.abs(Z.mean(axis=0)) < 0.5).all()


def test_an_update_that_would_cost_accuracy_is_refused(liked):
    ranker = make_ranker("ease", keep_inverse=True, regularization=1.0).fit(liked)
    before = state(ranker)
    ranker.inverse_ = ranker.inverse_ * (1 + 1e-7)  # what a thousand bad updates would have left
    with pytest.raises(
        InputError, match="the updated inverse of EASE is off by 1e-0[67], above 1e-09: fit again"
    ):
        ranker.partial_fit(liked[:2])
    ranker.inverse_ = ranker.inverse_ / (1 + 1e-7)
    assert ranker.n_users_ == 60 and before
    # Without a ridge the rows that go take the inverse with them.
    alone = make_ranker("ease", keep_inverse=True, regularization=1e-13).fit(np.eye(4))
    with pytest.raises(InputError, match="fit again"):
        alone.forget(0, np.eye(4)[[0]])
    assert alone.popularity_[0] == 1 and alone.row_digests_[0]


def test_more_rows_than_a_fit_is_worth_are_refused():
    many = sp.csr_matrix(np.ones((101, 400)))
    with pytest.raises(
        InputError, match="101 rows come and go at once, of 400 items: to fit again is cheaper"
    ):
        _ease_update.changed_inverse(np.eye(400), many[:0], many)


def test_a_forged_inverse_is_refused(liked, tmp_path):
    from recsys import ModelFileError

    ranker = make_ranker("ease", keep_inverse=True).fit(liked)
    ranker.inverse_ = ranker.inverse_ * 1.001
    ranker.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="inverse_ is not that of probes_"):
        load_ranker(tmp_path / "m")
