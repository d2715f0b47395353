"""Which items are ranked: repeats, candidates of each user, sampled negatives."""

import re
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, Interactions, cli, evaluate
from recsys.data import split
from recsys.data.candidates import candidate_sets
from recsys.evaluation.ranked import Ranked
from tests.reference.metrics import value

NAMES = ("auc", "ndcg@3", "map@3", "recall@2", "mrr@3", "hit@2", "r-precision")
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=18, unique=True)


class Fixed:
    """Scores with ties, the same for all data."""

    def fit(self, user_items, show_progress=True, callback=None):
        self.shape_ = user_items.shape

    def scores(self, users, rows):
        return np.random.default_rng(5).integers(0, 3, self.shape_).astype(np.float32)[users]


def named(rows, **columns):
    return Interactions.from_ids([f"u{u}" for u, _ in rows], [f"i{i}" for _, i in rows], **columns)


def expected(data, train, test, allowed):
    """Means by the slow definitions: `allowed` are the items that a user is ranked, by number."""
    model = Fixed()
    model.fit(sp.csr_matrix((data.n_users, data.n_items)))
    scores = model.scores(np.arange(data.n_users), None)
    out = {}
    for name in NAMES:
        metric, _, k = name.partition("@")
        values = []
        for u in range(data.n_users):
            positives = test[u] & allowed[u]
            if positives and train[u]:
                left_out = set(range(data.n_items)) - allowed[u]
                values.append(value(metric, scores[u], left_out, positives, int(k or 1)))
        out[name] = np.array(values)
    return out


def sets_of(matrix):
    return [set(matrix[u].indices.tolist()) for u in range(matrix.shape[0])]


def assert_values(report, wanted, prefix=""):
    for name, values in wanted.items():
        found = report.results[0].per_user[prefix + name]
        np.testing.assert_allclose(found, values, atol=1e-6, err_msg=name)


def one_sentence(report):
    lines = [line for line in report.sentences() if line.startswith("Ranked:")]
    assert len(lines) == 1
    return lines[0]


@settings(max_examples=40, deadline=None)
@given(PAIRS, PAIRS, st.booleans())
def test_repeats_train_and_are_ranked(train, test, filter_liked):
    """With filter_liked=False a user's own items are ranked, and a pair of both halves is in both."""
    known, items = {u for u, _ in train}, {i for _, i in train}
    tested = [(u, i) for u, i in test if u in known]
    if not tested or not items & {i for _, i in test}:
        return
    ours, theirs = set(train), set(tested)
    data = named(train)
    found = data.with_test(named(test), repeats=not filter_liked)
    number = {name: k for k, name in enumerate(found.item_ids)}
    rows = {name: k for k, name in enumerate(found.user_ids)}
    trains, tests = ([set() for _ in rows] for _ in range(2))
    for into, pairs in ((trains, ours - theirs if filter_liked else ours), (tests, theirs)):
        for u, i in pairs:
            into[rows[f"u{u}"]].add(number[f"i{i}"])
    every = set(range(found.n_items))
    allowed = [every - own if filter_liked else every for own in trains]
    if not any(a and b for a, b in zip(trains, tests, strict=True)):
        return
    report = evaluate(data, Fixed(), test=named(test), filter_liked=filter_liked, metrics=list(NAMES))
    assert_values(report, expected(found, trains, tests, allowed))
    (fold,) = split(found, "published")
    assert sets_of(fold.train) == trains and sets_of(fold.test) == tests
    if not filter_liked:
        users = [u for u in range(found.n_users) if trains[u] and tests[u]]
        again, all_of = (
            sum(len(tests[u] & trains[u]) for u in users), sum(len(tests[u]) for u in users)
        )  # fmt: skip
        s = "" if all_of == 1 else "s"
        assert f"{again} of {all_of} test item{s} " in one_sentence(report)
        assert ("merged on reading" in " ".join(report.ranked)) == (again == 0)


@settings(max_examples=40, deadline=None)
@given(PAIRS, PAIRS, PAIRS, st.booleans(), st.booleans())
def test_candidates_are_all_that_is_ranked(train, test, chosen, filter_liked, as_frame):
    """A user's candidates less the training row; what is none of them is counted and left out."""
    known, items = {u for u, _ in train}, {i for _, i in train}
    if not {u for u, _ in test} & known or not {i for _, i in test} & items:
        return
    if not {u for u, _ in chosen} & known:
        return
    data = named(train)
    found = data.with_test(named(test), repeats=not filter_liked)
    if not {f"i{i}" for _, i in chosen} & set(found.item_ids):
        return
    (fold,) = split(found, "published")
    if not len(fold.users):
        return
    trains, tests = sets_of(fold.train), sets_of(fold.test)
    number = {name: k for k, name in enumerate(found.item_ids)}
    rows = {name: k for k, name in enumerate(found.user_ids)}
    sets = [set() for _ in rows]
    strangers = {u for u, _ in chosen if u not in known}
    unknown = 0
    mapping = {}
    for u, i in chosen:
        mapping.setdefault(f"u{u}", []).append(f"i{i}")
        if u in known and f"i{i}" in number:
            sets[rows[f"u{u}"]].add(number[f"i{i}"])
        elif u in known:
            unknown += 1
    frame = pd.DataFrame([(u, i) for u, own in mapping.items() for i in own], columns=["user", "item"])
    allowed = [s - t if filter_liked else s for s, t in zip(sets, trains, strict=True)]
    asked = [u for u in fold.users if sets[u]]
    left = [u for u in asked if tests[u] & allowed[u]]
    given_sets = frame if as_frame else mapping

    def run():
        return evaluate(
            data, Fixed(), test=named(test), filter_liked=filter_liked,
            candidates=given_sets, metrics=list(NAMES),
        )  # fmt: skip

    if not left:
        with pytest.raises(InputError, match="no user has a test item among the items that are ranked"):
            run()
        return
    report = run()
    assert_values(report, expected(found, trains, tests, allowed))
    assert report.evaluated.users.tolist() == left
    average = sum(len(allowed[u]) for u in left) / len(left)
    assert f": {average:.1f} on average of {len(left)} user" in one_sentence(report)
    told = " ".join(report.ranked)
    strange = sum(u in strangers for u, _ in chosen)
    missing = sum(len(tests[u] - allowed[u]) for u in asked)
    for number_of, pattern in (
        (len(strangers), r"candidates: (\d+) users? not among the interactions left out"),
        (strange, r"left out, with (\d+) pairs?\."),
        (unknown, r"candidates: (\d+) pairs? of items not among the interactions"),
        (len(fold.users) - len(asked), r"(\d+) users? without candidates"),
        (missing, r"(\d+) of \d+ test items? (?:is|are) not among the items ranked for"),
        (len(asked) - len(left), r"(\d+) users? without another test item"),
    ):
        assert [int(n) for n in re.findall(pattern, told)] == [number_of] * (number_of > 0), pattern


@settings(max_examples=40, deadline=None)
@given(PAIRS, st.integers(1, 6), st.integers(0, 9), st.booleans())
def test_sampled_negatives_are_drawn_beside_the_test_items(rows, negatives, seed, filter_liked):
    data = named(rows)
    try:
        (fold,) = split(data, "leave-one-out", seed=seed)
        assert len(fold.users)
    except (InputError, AssertionError):
        return
    ranked = Ranked(filter_liked, None, negatives, seed)
    part = ranked.of(fold, 0, data)
    assert part.fold.users.tolist() == fold.users.tolist()
    trains, tests, only = sets_of(fold.train), sets_of(fold.test), sets_of(part.only)
    left_out = part.left_out(fold.users)
    few = 0
    for place, u in enumerate(fold.users):
        others = set(range(data.n_items)) - tests[u] - (trains[u] if filter_liked else set())
        assert tests[u] <= only[u] and only[u] - tests[u] <= others
        assert len(only[u] - tests[u]) == min(negatives, len(others))
        assert set(left_out[place].indices) == set(range(data.n_items)) - only[u]
        few += len(others) < negatives
    assert part.few == few
    report = evaluate(
        data, Fixed(), protocol="leave-one-out", seed=seed, sampled_negatives=negatives,
        filter_liked=filter_liked, metrics=list(NAMES),
    )  # fmt: skip
    assert_values(report, expected(data, trains, tests, only), "biased ")
    order = np.random.default_rng(seed).permutation(len(rows))
    shuffled = named([rows[k] for k in order])
    (again,) = split(shuffled, "leave-one-out", seed=seed)
    other = ranked.of(again, 0, shuffled)
    assert by_ids(other, shuffled) == by_ids(part, data)


def by_ids(part, data):
    u, i = part.only.nonzero()
    return set(zip(data.user_ids[u], data.item_ids[i], strict=True))


def test_each_negative_is_drawn_as_often_as_any_other():
    data = named([("a", 0), ("a", 1), *(("b", k) for k in range(2, 8)), ("c", 8), ("c", 9)])
    draws = np.zeros(data.n_items)
    (fold,) = split(data, "leave-one-out")
    for seed in range(500):
        part = Ranked(sampled_negatives=3, seed=seed).of(fold, 0, data)
        draws[part.only[0].indices] += 1
    tested = fold.test[0].indices[0]
    rates = draws[[j for j in range(10) if j not in (0, 1)]] / 500
    assert draws[tested] == 500 and draws[1 - tested] == 0
    np.testing.assert_allclose(rates, 3 / 8, atol=0.08)  # 3.7 standard deviations
    first, second = (sets_of(Ranked(sampled_negatives=3).of(fold, k, data).only) for k in (0, 1))
    assert first != second  # each fold has draws of its own


def test_what_is_biased_is_called_so_wherever_it_is_printed(planted):
    asked = {"metrics": ["ndcg@10", "auc", "coverage@5"], "protocol": "leave-one-out"}
    report = evaluate(planted, ["popularity", "ease"], sampled_negatives=20, keep_lists=5, **asked)
    assert set(report.frame()["metric"]) == {"biased ndcg@10", "biased auc", "biased coverage@5"}
    table, _ = report.table()
    assert "biased ndcg@10" in table and "ndcg@10" not in table
    html = report.html()
    assert re.findall(r"(?<!biased )(?:ndcg@10|coverage@5)", html) == []
    assert all(c["metric"].startswith("biased ") for c in report.comparisons)
    assert "Krichene and Rendle 2020" in html and "Krichene" in " ".join(report.sentences())
    assert all("biased" in line for line in report.verdicts()) and "biased" in report.decision()
    assert {row["metric"] for row in report.by("popularity").rows} == {"biased ndcg@10", "biased auc"}
    assert "biased" in " ".join(str(cell) for row in report.table()[1] for cell in row)
    plain = evaluate(planted, ["popularity", "ease"], **asked)
    assert plain.ranked == [] and "biased" not in plain.html()
    values = [r.results[0].metrics for r in (plain, report)]
    assert values[1]["biased ndcg@10"].mean > values[0]["ndcg@10"].mean  # fewer to beat


def test_lists_hold_what_is_ranked(planted):
    mine = {
        user: [f"{item}" for item in planted.item_ids[:40]] for user in planted.user_ids[:30].tolist()
    }
    report = evaluate(planted, "ease", protocol="holdout", candidates=mine, keep_lists=50, metrics="auc")
    run, qrels = report.run(), report.qrels()
    assert set(run) <= set(map(str, mine)) and set(qrels) == set(run)
    allowed = set(map(str, planted.item_ids[:40]))
    assert all(set(own) <= allowed for own in run.values())
    assert all(own and set(own) <= allowed for own in qrels.values())


def test_times_of_repeats_are_those_of_the_first_and_decide_the_future():
    train = named([(0, 0), (0, 1), (1, 0)], time=[1, 2, 1])
    later = train.with_test(named([(0, 0), (1, 2)], time=[5, 6]), repeats=True)
    assert later.time.tolist() == [1, 2, 1, 6] and later.repeat_time[0] == 5
    from recsys.data import find_protocol

    protocol = find_protocol("published")
    assert protocol.predicts_future(later)
    earlier = train.with_test(named([(0, 0), (1, 2)], time=[1.5, 6]), repeats=True)
    assert not protocol.predicts_future(earlier)
    tied = train.with_test(named([(0, 0), (1, 2)], time=[2, 6]), repeats=True)
    (fold,) = split(tied, "published")
    assert protocol.predicts_future(tied) and fold.tied == 1
    bare = train.with_test(named([(0, 0)]), repeats=True)
    assert bare.time is None and bare.repeat_time.tolist()[0] == 0
    nested = train.with_test(later, repeats=True)  # the test half of data that have one
    assert nested.repeat_time[0] == 5 and nested.time.tolist() == [1, 2, 1, 6]
    assert "test half: 1 pair of it is among the interactions, and trains, too" in later.notes
    assert "Test interactions that also occur in training stay in training." in evaluate(
        train, "popularity", test=named([(0, 0), (1, 2)], time=[5, 6]), filter_liked=False,
        metrics="auc",
    ).conventions  # fmt: skip


def test_a_test_half_of_repeats_alone_is_not_ranked_where_they_are_left_out():
    data = named([(0, 0), (0, 1), (1, 0), (1, 1)]).with_test(named([(0, 0), (1, 2)]), repeats=True)
    report = evaluate(data, "popularity", protocol="published", metrics="recall@1")
    assert report.evaluated.users.tolist() == [1]
    told = report.ranked
    assert "1 of 2 test items is not among the items ranked for its user: it is not counted." in told
    assert "1 user without another test item is left out." in told
    again = evaluate(data, "popularity", protocol="published", metrics="recall@1", filter_liked=False)
    assert len(again.evaluated.users) == 2


@pytest.mark.slow
def test_workers_rank_the_same(planted):
    items = planted.item_ids.tolist()
    sets = {user: items[k % 5 :: 2] for k, user in enumerate(planted.user_ids.tolist())}
    for asked in (
        {"candidates": sets}, {"sampled_negatives": 7, "seed": 3}, {"filter_liked": False},
    ):  # fmt: skip
        both = [
            evaluate(
                planted, "popularity", protocol="holdout", folds=2, metrics=["auc", "ndcg@5"],
                threads=1, **asked, **where,
            )
            for where in ({}, {"engine": "local=1"})
        ]  # fmt: skip
        one, other = both
        assert one.ranked == other.ranked and one.ranked
        for name, values in one.results[0].per_user.items():
            np.testing.assert_array_equal(values, other.results[0].per_user[name])


def test_what_cannot_be_ranked_is_refused(planted, tmp_path):
    def run(**asked):
        return evaluate(planted, "popularity", metrics="auc", folds=2, **asked)

    with pytest.raises(InputError, match="sampled_negatives must not be given with candidates"):
        run(candidates={"u1": []}, sampled_negatives=3)
    with pytest.raises(InputError, match="sampled_negatives"):
        run(sampled_negatives=0)
    with pytest.raises(InputError, match="filter_liked"):
        run(filter_liked="no")
    user = planted.user_ids[0]
    with pytest.raises(InputError, match="candidates: user .* needs a list of items, not 'abc'"):
        run(candidates={user: "abc"})
    with pytest.raises(InputError, match="candidates: no user has one"):
        run(candidates={user: []})
    with pytest.raises(InputError, match="candidates: no user of it is in"):
        run(candidates={"nobody": [planted.item_ids[0]]})
    with pytest.raises(InputError, match="candidates: no item of it is in"):
        run(candidates={user: ["nothing"]})


@pytest.mark.parametrize("form", ["csv", "parquet", "txt"])
def test_candidates_in_a_file(form, tmp_path):
    data = Interactions.from_ids(["1", "1", "2"], ["10", "11", "10"])
    table = pd.DataFrame({"user": ["1", "2", "2"], "item": ["11", "10", "10"], "rating": [0, -1, 3]})
    path = tmp_path / f"sets.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "parquet":
        table.to_parquet(path)
    else:
        path.write_text("1 11\n2 10\n")
    found, notes = candidate_sets(data, path)
    assert found.toarray().tolist() == [[0, 1], [1, 0]] and notes == []  # ratings choose nothing
    whole = replace(data, user_ids=np.array([1, 2], object), item_ids=np.array([10, 11], object))
    assert (candidate_sets(whole, path)[0] != found).nnz == 0


def test_the_command_says_and_measures_what_python_does(tmp_path, capsys):
    numbers = count()
    rng = np.random.default_rng(2)
    rows = [(f"u{u}", f"i{i}") for u in range(12) for i in rng.choice(9, 5, replace=False)]
    train = pd.DataFrame(rows, columns=["user", "item"])
    test = pd.DataFrame(
        [(f"u{u}", f"i{i}") for u in range(12) for i in rng.choice(9, 3, replace=False)],
        columns=["user", "item"],
    )
    for name, table in (("train", train), ("test", test), ("sets", pd.concat([test, train[::2]]))):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = {name: str(tmp_path / f"{name}.csv") for name in ("train", "test", "sets")}
    for options, asked in (
        (["--keep-liked"], {"filter_liked": False}),
        (["--candidates", files["sets"]], {"candidates": files["sets"]}),
        (["--sampled-negatives", "2"], {"sampled_negatives": 2}),
    ):
        out = tmp_path / f"{next(numbers)}.json"
        cli.app(
            [
                "evaluate", "--interactions", files["train"], "--test", files["test"], "--model",
                "popularity", "--metric", "ndcg@3", "--quiet", "--json", str(out), *options,
            ],
            standalone_mode=False,
        )  # fmt: skip
        printed = " ".join(capsys.readouterr().out.split())
        report = evaluate(files["train"], "popularity", test=files["test"], metrics="ndcg@3", **asked)
        for line in report.ranked:
            assert line in printed
        assert f"{report.results[0].metrics[next(iter(report.definitions))].mean:.4f}" in printed
        assert ("biased ndcg@3" in printed) == ("sampled_negatives" in asked)
