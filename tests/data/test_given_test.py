"""A test half that is given, and the protocol that tests it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, evaluate
from recsys.data import PROTOCOLS, Interactions, find_protocol, split
from recsys.data.splits import protocol_for

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=40, unique=True)


def pairs(data, held_out):
    """The pairs of ids that are held out, or that are not."""
    rows = zip(data.users, data.items, data.held_out, strict=True)
    return {(data.user_ids[u], data.item_ids[i]) for u, i, held in rows if held == held_out}


def named(rows, whole=False, **columns):
    """Interactions of numbered users and items, ids text or integers."""
    ids = ([u for u, _ in rows], [i for _, i in rows])
    return Interactions.from_ids(*(ids if whole else (list(map(str, part)) for part in ids)), **columns)


@settings(max_examples=150, deadline=None)
@given(PAIRS, PAIRS, st.booleans(), st.booleans())
def test_training_is_all_that_the_test_half_does_not_have(train, test, whole, as_whole):
    ours, theirs = {(str(u), str(i)) for u, i in train}, {(str(u), str(i)) for u, i in test}
    users, items = {u for u, _ in ours}, {i for _, i in ours}
    data = named(train, whole)
    if not users & {u for u, _ in theirs} or not items & {i for _, i in theirs}:
        with pytest.raises(InputError, match="no (user|item) id occurs in interactions; ids are such"):
            data.with_test(named(test, as_whole))
        return
    found = data.with_test(named(test, as_whole))
    tested = {pair for pair in theirs if pair[0] in users}
    texts = replace(
        found,
        **{
            ids: np.array([str(k) for k in getattr(found, ids)], object)
            for ids in ("user_ids", "item_ids")
        },
    )
    assert pairs(texts, True) == tested and pairs(texts, False) == ours - tested
    assert len(found.users) == len(ours | tested)  # each pair once
    assert texts.user_ids.tolist() == [str(k) for k in data.user_ids]  # a user more changes kernels
    assert texts.item_ids[: data.n_items].tolist() == [str(k) for k in data.item_ids]
    assert set(texts.item_ids) == items | {i for _, i in tested}
    assert {type(k) for k in found.item_ids} == {int if whole else str}
    (one,) = split(found, "published")
    row = {name: k for k, name in enumerate(texts.user_ids)}
    past = {u for u, _ in ours - tested}
    assert one.users.tolist() == sorted(row[u] for u in past & {u for u, _ in tested})
    assert one.cold == len({u for u, _ in tested} - past)
    assert one.train_only == len(past - {u for u, _ in tested})
    assert one.train.nnz == len(ours - tested) and one.test.nnz == len(tested)
    assert one.train.multiply(one.test).nnz == 0 and one.train.shape == (found.n_users, found.n_items)


def test_what_became_of_a_test_half_is_told():
    data = named([(0, 0), (0, 1), (1, 0)])
    found = data.with_test(named([(0, 1), (1, 2), (5, 0), (5, 1), (6, 3)]))
    assert found.notes == (
        "test half: pairs: 2, users: 2",
        "test half: not among the interactions, left out: users 2, with pairs 3",
        "test half: items that only it has, ranked, too: 1",
    )
    again = found.with_test(named([(0, 0)]))
    assert pairs(again, True) == {("0", "0")}
    assert again.notes == ("test half: pairs: 1, users: 1",)
    assert "held_out" in repr(again) and "held_out" not in repr(data)


def test_ratings_and_times_stay_where_both_have_them():
    rows, more = [(0, 0), (0, 1), (1, 0)], [(1, 1), (0, 0)]
    data = named(rows, rating=[1, 2, 3], time=[10, 20, 30])
    found = data.with_test(named(more, rating=[4, 5], time=[40, 50]))
    assert found.rating.tolist() == [1, 2, 3, 4] and found.time.tolist() == [10, 20, 30, 40]
    bare = data.with_test(named(more))
    assert bare.rating is None and bare.time is None
    assert "test half: it has no ratings: those of the interactions are left out" in bare.notes
    inside = data.with_test(named([(0, 0)]))  # nothing is added, and nothing missing
    assert inside.rating.tolist() == [1, 2, 3] and inside.time.tolist() == [10, 20, 30]


def test_columns_are_those_of_the_interactions_or_usual_ones(tmp_path):
    likes = pd.DataFrame(
        {"who": ["a", "a", "b", "b"], "what": ["x", "y", "x", "z"], "stars": [5, 4, 5, 1]}
    )
    data = Interactions.from_frame(likes, user="who", item="what", rating="stars", min_rating=4)
    assert data.n_items == 2
    for test in (
        pd.DataFrame({"who": ["b", "a"], "what": ["y", "y"], "stars": [5, 1]}),
        pd.DataFrame({"user": ["b"], "item": ["y"]}),
        pd.DataFrame({"user_id": ["b", "a"], "item_id": ["y", "y"], "rating": [4, 3]}),
    ):
        test.to_csv(tmp_path / "test.csv", index=False)
        for form in (test, tmp_path / "test.csv", str(tmp_path / "test.csv")):
            found = data.with_test(form)
            assert pairs(found, True) == {("b", "y")}, test
    with pytest.raises(InputError, match="test: no user column"):
        data.with_test(pd.DataFrame({"a": ["b"], "item": ["y"]}))
    low = pd.DataFrame({"user": ["b", "a"], "item": ["y", "x"], "rating": [2, 5]})
    assert pairs(data.with_test(low, min_rating=2), True) == {("b", "y"), ("a", "x")}
    whole = named([(0, 1)], whole=True)
    with pytest.raises(
        InputError, match="test: user ids such as 'a' are text, but ids of the interactions are in"
    ):
        whole.with_test(pd.DataFrame({"user": ["a"], "item": ["1"]}))


def test_item_features_of_items_that_only_the_test_half_has_are_missing():
    films = pd.DataFrame({"title": ["One", "Two"]}, index=["0", "1"])
    data = named([(0, 0), (0, 1), (1, 0)]).with_features(items=films)
    found = data.with_test(named([(1, 1), (1, 2)]))
    assert found.titles.tolist() == ["One", "Two", "2"]


def test_what_is_held_out_follows_its_pairs_and_nothing_else():
    data = named([(0, 0), (0, 1), (1, 0), (1, 1)], rating=[1, 5, 5, 5])
    found = data.with_test(named([(1, 1), (0, 0)]))
    assert pairs(found.rated(5), True) == {("1", "1")}
    with pytest.raises(InputError, match=r"held_out has shape \(2,\) for 4 pairs"):
        replace(data, held_out=np.ones(2, dtype=bool))


def test_published_needs_a_test_half_and_draws_nothing():
    data = named([(0, 0), (0, 1), (1, 0)])
    with pytest.raises(InputError, match="has no test half: pass --test"):
        split(data, "published")
    found = data.with_test(named([(0, 1)]))
    with pytest.raises(InputError, match="folds must be 1 for published"):
        split(found, "published", folds=2)
    assert find_protocol("published").description in {PROTOCOLS.get(n).description for n in PROTOCOLS}
    first, second = (next(split(found, "published", seed=seed)) for seed in (0, 1))
    assert (first.test != second.test).nnz == 0
    for name in set(PROTOCOLS) - {"published"}:
        assert find_protocol(name).validation(found) == name


@settings(max_examples=80, deadline=None)
@given(PAIRS, st.integers(0, 99))
def test_it_predicts_the_future_where_all_of_a_users_test_is_later(rows, seed):
    rng = np.random.default_rng(seed)
    held, time = rng.random(len(rows)) < 0.4, rng.integers(0, 4, len(rows)).astype(float)
    time[held] += rng.integers(0, 5)
    data = replace(named(rows, time=time), held_out=held)
    later = True
    for user in range(data.n_users):
        mine = data.users == user
        before, after = time[mine & ~held], time[mine & held]
        later &= not len(before) or not len(after) or before.max() <= after.min()
    protocol = find_protocol("published")
    assert protocol.predicts_future(data) == later
    assert protocol.validation(data) == ("leave-one-out" if later else "holdout")
    assert not protocol.predicts_future(replace(data, time=None))


def test_a_report_says_what_was_ranked_and_what_trained(planted):
    class Spy:
        uses = frozenset({"times"})
        times = []  # shared: an evaluation fits copies

        def fit(self, user_items, show_progress=True, callback=None, times=None):
            self.times.append(times)

        def scores(self, users, rows):
            return np.zeros(rows.shape, np.float32)

    rng = np.random.default_rng(0)
    held = rng.random(len(planted.users)) < 0.2
    for time, future in ((None, False), (rng.random(len(held)), False), (held + 1.0, True)):
        Spy.times.clear()
        data = replace(planted, time=time, held_out=held)
        report = evaluate(data, [("spy", Spy())], protocol="published", metrics="recall@20")
        (one,) = split(data, "published")
        assert "All interactions outside the test half train." in report.notes
        assert report.folds == 1
        assert len(Spy.times) and all((times is not None) == future for times in Spy.times)
        for times in Spy.times[-1:] if future else ():
            assert times.multiply(one.test).nnz == 0 and times.nnz == one.train.nnz
        assert report.rows.index.tolist() == one.users.tolist()


def test_a_given_test_half_is_what_evaluate_tests(planted, tmp_path):
    held = np.random.default_rng(1).random(len(planted.users)) < 0.2
    ids = [planted.user_ids[planted.users], planted.item_ids[planted.items]]
    train, test = (Interactions.from_ids(*(part[keep] for part in ids)) for keep in (~held, held))
    asked = {"metrics": ["recall@20", "ndcg@20"]}
    expected = evaluate(replace(planted, held_out=held), "ease", protocol="published", **asked)
    table = pd.DataFrame({"user": ids[0][held], "item": ids[1][held]})
    table.to_csv(tmp_path / "test.csv", index=False)
    for given_test in (test, table, tmp_path / "test.csv"):
        for data in (train, planted):
            report = evaluate(data, "ease", test=given_test, **asked)
            assert report.protocol == "published"
            for name, figure in report.results[0].metrics.items():
                assert figure.mean == pytest.approx(expected.results[0].metrics[name].mean, abs=1e-6)
    assert evaluate(train, "ease", test=test, protocol="published", metrics="auc").folds == 1
    with pytest.raises(InputError, match="'holdout' cannot be combined with a test half"):
        evaluate(train, "ease", test=test, protocol="holdout")
    assert (protocol_for(None, None), protocol_for("temporal", None)) == ("half-profile", "temporal")


def test_the_literatures_recall_and_ndcg_by_hand():
    """Every item but the training ones is ranked, recall ÷ positives, nDCG's ideal at min(k, positives)."""

    class Known:
        def fit(self, user_items, show_progress=True, callback=None):
            pass

        def scores(self, users, rows):
            return np.tile(np.array([9, 8, 7, 6, 5, 4], np.float32), (len(users), 1))

    data = named([(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)])  # items in order of appearance: 0 … 4
    found = data.with_test(named([(0, 2), (0, 4), (0, 5), (1, 0)]))
    report = evaluate(found, [("known", Known())], protocol="published", metrics=["recall@2", "ndcg@2"])
    values = report.values["known"]
    np.testing.assert_allclose(values["recall@2"], [1 / 3, 1.0])  # 0 gets 2 and 3, 1 gets 0 and 1
    np.testing.assert_allclose(values["ndcg@2"], [1 / (1 + 1 / np.log2(3)), 1.0])


def test_of_data_with_a_test_half_that_half_is_taken():
    train, test = named([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]), named([(0, 3), (1, 0)])
    wanted = train.with_test(test)
    found = train.with_test(wanted)
    np.testing.assert_array_equal(found.matrix.toarray(), wanted.matrix.toarray())
    np.testing.assert_array_equal(found.held_out, wanted.held_out)
    assert found.held_out.sum() == 2 and not any("test half: test half" in n for n in found.notes)


def test_weights_of_the_test_half_are_read_as_those_of_the_interactions(tmp_path):
    """What is returned, a weight below 0, is nothing to predict."""
    before = pd.DataFrame({"user": list("aabb"), "item": list("xyxz"), "n": [1, 2, 3, 4]})
    after = pd.DataFrame({"user": list("aab"), "item": list("zwy"), "n": [2, -1, 5]})
    after.to_csv(tmp_path / "after.csv", index=False)
    likes = Interactions.from_frame(before, user="user", item="item", weight="n")
    for test in (after, tmp_path / "after.csv"):
        found = likes.with_test(test)
        tested = {
            (found.user_ids[u], found.item_ids[i])
            for u, i, held in zip(found.users, found.items, found.held_out, strict=True)
            if held
        }
        assert tested == {("a", "z"), ("b", "y")}
        assert not any("may be counts" in note for note in found.notes)
    assert likes.with_test(after[["user", "item"]]).held_out.sum() == 3
