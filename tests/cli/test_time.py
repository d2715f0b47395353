"""Histories in order, with times, and lists as of a date, at the command line."""

from pathlib import Path

import numpy as np
import pytest

from recsys.explain import reasons
from recsys.explain.text import ago
from recsys.rankers import load_package
from recsys.utils.sparse import row_of

DATED = "user,item,time\n" + "".join(
    f"u{u},i{(u * 3 + k * k * (u % 3 + 1)) % 11},2024-{1 + (u + 5 * k) % 12:02}-{1 + (u * k) % 28:02}\n"
    for u in range(12)
    for k in range(6)
)


@pytest.fixture
def ranker(recsys, tmp_path):  # noqa: F811
    (tmp_path / "likes.csv").write_text(DATED)
    code, _, err = recsys(
        "fit", "--interactions", "likes.csv", "--model", "ease:recency=1", "--out", "m", "--quiet"
    )
    assert code == 0, err
    return "m"


@pytest.fixture
def lists(recsys):  # noqa: F811
    def asked(*arguments, ranker="m"):
        code, _, err = recsys("recommend", "--ranker", ranker, *arguments, "-n", 20, "--out", "l.csv")
        assert code == 0, err
        found = {}
        for line in Path("l.csv").read_text().splitlines()[1:]:
            user, _, item, _, score, *_ = line.split(",")
            found.setdefault(user, []).append((item, float(score)))
        return found, err

    return asked


def told(package, items, when, N=20):
    """Return the list of somebody who liked these items then, as the ranker has it."""
    row = row_of(package.items(items), len(package.item_ids))
    times = np.zeros((1, len(package.item_ids)))
    times[0, package.items(items)] = when
    ids, scores = package.ranker.recommend(0, row, N=N, recalculate_user=True, times=times)
    return [
        (str(package.item_ids[k]), pytest.approx(float(s), rel=1e-6))
        for k, s in zip(ids, scores, strict=True)
    ]


def test_a_history_is_in_order_oldest_first(ranker, lists):
    package = load_package(ranker)
    for items in (["i1", "i4", "i9"], ["i9", "i1", "i4"]):
        assert lists("--history", ",".join(items))[0]["new"] == told(package, items, [1, 2, 3])
    forward, back = (lists("--history", h)[0] for h in ("i1,i4,i9", "i9,i1,i4"))
    assert forward != back


def test_a_history_may_carry_times(ranker, lists):
    package = load_package(ranker)
    order = lists("--history", "i4,i9,i1")[0]
    assert lists("--history", "i1@2024-03-01,i4@2024-01-01T10:00,i9@2024-02-01")[0] == order
    assert lists("--history", "i1@30,i4@10,i9@20")[0] == order
    alike = lists("--history", "i1@5,i4@5,i9@5")[0]["new"]
    assert alike == told(package, ["i1", "i4", "i9"], [0, 0, 0]) and alike != order["new"]
    cut, err = lists("--history", "i1@30,i4@10,i9@20", "--as-of", "30")
    assert (
        cut["new"] == told(package, ["i4", "i9"], [1, 2])
        and "note: ranked by what was liked before 30" in err
    )


def test_ids_may_hold_an_at_sign(recsys, lists, tmp_path):  # noqa: F811
    (tmp_path / "likes.csv").write_text(DATED.replace("i1,", "i1@home,"))
    recsys("fit", "--interactions", "likes.csv", "--model", "ease:recency=1", "--out", "m", "--quiet")
    plain = lists("--history", "i1@home,i4")[0]
    assert lists("--history", "i1@home@1,i4@2024-01-01")[0] == plain


@pytest.mark.thorough
@pytest.mark.parametrize("day", ["2024-05-01", "2024-01-20"])
def test_as_of_ranks_by_what_was_liked_before(ranker, lists, day):
    package = load_package(ranker)
    rows = [line.split(",") for line in DATED.splitlines()[1:]]
    when = {(u, i): t for u, i, t in rows}  # the latest row of a pair comes last or is the later
    for u, i, t in rows:
        when[u, i] = max(when[u, i], t)
    found, err = lists("--all", "--as-of", day)
    assert (
        f"note: ranked by what was liked before {day}; the model was fitted on what came later, too\n"
        in err
    )
    empty = 0
    for user in sorted({u for u, _, _ in rows}):
        before = sorted((t, i) for (u, i), t in when.items() if u == user and t < day)
        items = [i for _, i in before]
        stamps = [np.datetime64(t, "s").astype(float) for t, _ in before]
        assert found[user] == told(package, items, stamps), user
        assert not set(items) & {item for item, _ in found[user]}, (
            "what was liked later may be recommended"
        )
        empty += not items
        alone, one = lists("--user", user, "--as-of", day)
        assert alone[user] == found[user]
        assert ("1 user without interactions before" in one) == (not items)
        varied, _ = lists("--user", user, "--as-of", day, "--diversity", "0.3")
        assert {i for i, _ in varied[user]} == {i for i, _ in found[user]}
    assert (
        f"note: {empty} users without interactions before {day} get the most popular ones" in err
    ) == (empty > 1)
    assert day != "2024-01-20" or empty > 1


def test_explanations_say_how_long_ago(ranker, recsys):  # noqa: F811
    package = load_package(ranker)
    user = "u3"
    for as_of in ((), ("--as-of", "2024-11-01")):
        profile = package.profile(user, as_of=as_of[1] if as_of else None)
        code, out, err = recsys("explain", "--ranker", "m", "--user", user, "--item", "i2", *as_of)
        assert code == 0 and ("the model was fitted on what came later" in err) == bool(as_of), err
        found = reasons(
            package.ranker, profile.userid, profile.row, int(package.items(["i2"])[0]), times=profile.times, as_of=profile.as_of
        )  # fmt: skip
        assert len(found.ages) == profile.row.nnz >= 3
        for k, value in found.items:
            assert f"{package.titles[k]} ({ago(found.ages[k])})" in out and f"{value:+.4g}" in out
    out = recsys("explain", "--ranker", "m", "--history", "i1,i4,i9", "--item", "i2")[1]
    assert "i9 (your latest like)" in out and "i4 (1 like ago)" in out and "i1 (2 likes ago)" in out


REFUSED = {
    "twice": (["--history", "i1,i2,i1"], "item 'i1' is in the history twice: name each item once"),
    "some times": (["--history", "i1@3,i2"], "--history has times for 1 of 2 items: give all of them one, ID@TIME, or none"),
    "no time": (["--history", "i1@31/12/2020"], "time of item 'i1', '31/12/2020': no time; a number or an ISO date such as 2024-01-31"),
    "empty time": (["--history", "i1@"], "time of item 'i1', '': no time"),
    "NaN": (["--history", "i1@nan"], "time of item 'i1', 'nan': no time"),
    "before 1970": (["--history", "i1@1969-01-01"], "time of item 'i1', '1969-01-01': before 1970"),
    "as of no time": (["--user", "u1", "--as-of", "yesterday"], "as of 'yesterday': no time"),
    "as of before 1970": (["--user", "u1", "--as-of", "-5"], "as of '-5': before 1970"),
    "as of a number": (["--all", "--as-of", "2024"], "as of '2024': the times of these data are dates from 2024-01-01 to 2024-12-"),
    "as of an order": (["--history", "i1,i2", "--as-of", "2024-05-01"], "a history without times cannot be cut"),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_time_is_one_line(ranker, recsys, case):  # noqa: F811
    arguments, text = REFUSED[case]
    code, out, err = recsys("recommend", "--ranker", "m", *arguments)
    assert code == 2 and out == "" and err.count("\n") == 1 and text in err, err
    if "--all" not in arguments:
        code, out, err = recsys("explain", "--ranker", "m", "--item", "i2", *arguments)
        assert code == 2 and out == "" and err.count("\n") == 1 and text in err, err


def test_as_of_needs_times_and_a_model_that_folds_in(recsys, tmp_path):  # noqa: F811
    (tmp_path / "likes.csv").write_text(
        "\n".join(line.rpartition(",")[0] for line in DATED.splitlines())
    )
    recsys("fit", "--interactions", "likes.csv", "--model", "ease", "--out", "m", "--quiet")
    code, _, err = recsys("recommend", "--ranker", "m", "--user", "u1", "--as-of", "2024-05-01")
    assert (
        code == 2
        and "as of '2024-05-01': these data have no times; fit on interactions that have some" in err
    )
    (tmp_path / "likes.csv").write_text(DATED)
    recsys(
        "fit",
        "--interactions",
        "likes.csv",
        "--model",
        "bpr:factors=2,iterations=2",
        "--out",
        "m",
        "--quiet",
    )
    for asked, text in (
        (["--user", "u1", "--as-of", "2024-05-01"], "bpr ranks users by all that it was fitted on"),
        (["--history", "i1"], "bpr ranks the users that it was fitted on, and no history"),
    ):
        code, _, err = recsys("recommend", "--ranker", "m", *asked)
        assert code == 2 and text in err and err.count("\n") == 1, err
