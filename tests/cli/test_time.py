"""Histories in order and with times, at the command line."""

from pathlib import Path

import numpy as np
import pytest

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


def test_ids_may_hold_an_at_sign(recsys, lists, tmp_path):  # noqa: F811
    (tmp_path / "likes.csv").write_text(DATED.replace("i1,", "i1@home,"))
    recsys("fit", "--interactions", "likes.csv", "--model", "ease:recency=1", "--out", "m", "--quiet")
    plain = lists("--history", "i1@home,i4")[0]
    assert lists("--history", "i1@home@1,i4@2024-01-01")[0] == plain


REFUSED = {
    "twice": (["--history", "i1,i2,i1"], "item 'i1' is in the history twice: list each item once"),
    "some times": (
        ["--history", "i1@3,i2"],
        "--history has times for 1 of 2 items: give all items a time (ID@TIME), or none",
    ),
    "no time": (
        ["--history", "i1@31/12/2020"],
        "time of item 'i1', '31/12/2020' is not a time: use a number or an ISO date such as 2024-01-31",
    ),
    "empty time": (["--history", "i1@"], "time of item 'i1', '' is not a time"),
    "NaN": (["--history", "i1@nan"], "time of item 'i1', 'nan' is not a time"),
    "before 1970": (["--history", "i1@1969-01-01"], "time of item 'i1', '1969-01-01' is before 1970"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_time_is_one_line(ranker, recsys, case):  # noqa: F811
    arguments, text = REFUSED[case]
    code, out, err = recsys("recommend", "--ranker", "m", *arguments)
    assert code == 2 and out == "" and err.count("\n") == 1 and text in err, err
    if "--all" not in arguments:
        code, out, err = recsys("explain", "--ranker", "m", "--item", "i2", *arguments)
        assert code == 2 and out == "" and err.count("\n") == 1 and text in err, err
