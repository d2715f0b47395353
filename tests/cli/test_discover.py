"""`recsys discover`: every number of its sentences counted from the files, its files, its errors."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recsys import load_dataset
from recsys.explain.rules.discovery import _mixed
from recsys.rankers import load_package
from tests.explain.test_all_users import by_hand

ROOT = Path(__file__).parents[2]
LIKES = ("--interactions", "likes.csv", "--items", "films.csv")


@pytest.fixture
def recsys(recsys):
    for name, source in (("likes", "interactions"), ("films", "items")):
        shutil.copy(ROOT / "data" / "sample" / f"{source}.csv", f"{name}.csv")
    return recsys


def films():
    """What each film is, from the file: genres, and the decade."""
    with open("films.csv", encoding="utf-8") as file:
        return {
            row["item_id"]: {*row["genres"].split("|"), f"{row['year'][:3]}0s"}
            for row in csv.DictReader(file)
        }


def liked():
    with open("likes.csv", encoding="utf-8") as file:
        out = {}
        for row in csv.DictReader(file):
            out.setdefault(row["user_id"], set()).add(row["item_id"])
        return out


def covered(rule, items):
    """Return those items that a rule in words is true of."""
    known = films()
    return {
        item for item in items
        if any(set(clause.split(" and ")) <= known[item] for clause in rule.split(", or "))
    }  # fmt: skip


LIKED = re.compile(
    r"(?P<user>u\d+) likes (?P<rule>.+): of (?P<tested>\d+) likes? set aside, (?P<hits>\d+) follows? it; "
    r"of (?P<others>\d+) items? not liked, (?P<theirs>\d+) \((?P<share>.+?)\)\.(?P<few>.*) q = (?P<q>\S+)$"
)
RANKED = re.compile(
    r"For (?P<user>u\d+) ease puts first (?P<rule>.+): of (?P<tested>\d+) items? of the first "
    r"(?P<top>\d+) set aside, (?P<hits>\d+) follows? it; of (?P<others>\d+) others?, (?P<theirs>\d+) "
    r"\((?P<share>.+?)\)\.(?P<few>.*) q = (?P<q>\S+)$"
)


def counted(match, held, others):
    """Compare a sentence with counts of what was set aside."""
    rule, of = match["rule"], match.groupdict()
    assert int(of["tested"]) == len(held) and int(of["others"]) == len(others)
    assert int(of["hits"]) == len(covered(rule, held))
    theirs = len(covered(rule, others))
    assert int(of["theirs"]) == theirs
    small = f" {len(held)} is a small number."
    assert of["few"] == (small if len(held) < 20 else "")
    words = of["share"].split()
    if words[:3] == ["about", "1", "in"]:
        assert int(words[3]) == round(len(others) / theirs)
    elif words[0] == "about":
        assert int(words[1]) == round(10 * theirs / len(others))
    else:
        assert words == (["none"] if theirs == 0 else ["all"])


def of_likes(match, data, seed):
    """Count a rule of likes: the half of them that the seed sets aside, and all that is not liked."""
    mine = liked()[match["user"]]
    place = {item: k for k, item in enumerate(data.item_ids)}
    mixed = _mixed(np.array(sorted(place[item] for item in mine)), seed)
    held = {data.item_ids[k] for k in mixed[: round(len(mixed) / 2)]}
    counted(match, held, set(films()) - mine)


def of_ranker(match, package, seed):
    """Count a rule of the ranker in the half of what it could recommend that is tested."""
    user, top = match["user"], int(match["top"])
    row = package.user_items[package.user_index[user]]
    scores = np.asarray(package.ranker.scores(package.user_index[user], row)).ravel()
    mine = liked()[user]
    unseen = [k for k, item in enumerate(package.item_ids) if item not in mine]
    first = sorted(unseen, key=lambda k: (-scores[k], k))[:top]
    mixed = _mixed(np.array(unseen), seed)
    testing = set(mixed[len(mixed) // 2 :].tolist())
    held = {package.item_ids[k] for k in testing & set(first)}
    counted(match, held, {package.item_ids[k] for k in testing - set(first)})


def found_by_hand(tests, level):
    """Return how many rules Benjamini and Yekutieli find, step by step."""
    p = sorted(test.p_value for _, test in tests)
    m = len(p)
    harmonic = sum(1 / k for k in range(1, m + 1))
    return max((k for k in range(1, m + 1) if p[k - 1] * m * harmonic <= level * k), default=0)


@pytest.mark.slow
def test_each_number_of_likes_rules_is_counted(recsys):
    users = [f"u{k:04}" for k in range(1, 25)]
    asked = [part for user in users for part in ("--user", user)]
    code, out, err = recsys(
        "discover", *LIKES, *asked, "--seed", 1, "--level", 0.1, "-n", 100, "--quiet"
    )
    assert (code, err) == (0, "")
    data = load_dataset("sample")
    tests = by_hand(data, [list(data.user_ids).index(user) for user in users], seed=1)
    lines = out.splitlines()
    rules = [found for line in lines if (found := LIKED.match(line))]
    assert len(rules) == found_by_hand(tests, 0.1) > 2
    known = films()
    names = set().union(*known.values())
    many = sum(3 <= sum(name in of for of in known.values()) <= len(known) - 3 for name in names)
    assert lines[1].startswith(f"A rule over {many} attributes of {len(known)} items was learned")
    assert lines[1].endswith(f", for {len(users)} of {len(liked())} users.")
    assert lines[2].startswith(f"{len(tests)} of {len(users)} rules of likes could be tested")
    assert lines[0].startswith(f"{len(rules)} rules found: the expected share of false ones")
    assert "is at most 10%, however the tests depend" in lines[0]
    for match in rules:
        of_likes(match, data, 1)
    assert any(match["few"] for match in rules)
    q = [float(match["q"]) for match in rules]
    assert q == sorted(q) and q[-1] <= 0.1


@pytest.mark.slow
def test_a_rankers_rules_are_counted_and_written(recsys):
    assert recsys("fit", *LIKES, "--model", "ease", "--out", "m.recsys", "--quiet")[0] == 0
    arguments = ("discover", "--ranker", "m.recsys", "--top", 40, "--most-users", 10)
    code, out, err = recsys(*arguments, "-n", 3, "--out", "rules.csv", "--json", "rules.json", "--quiet")
    assert (code, err) == (0, "")
    said = json.loads(Path("rules.json").read_text())
    assert said["searched"] == 10 and said["drawn"] and said["ranker"] == "ease" and said["top"] == 40
    package, data = load_package("m.recsys"), load_dataset("sample")
    sources = {"likes": 0, "ranker": 0}
    for rule in said["rules"]:
        line = f"{rule['text']} q = {rule['q_value']:.2g}"
        match = LIKED.match(line) or RANKED.match(line)
        sources[rule["of"]] += 1
        if rule["of"] == "likes":
            of_likes(match, data, 0)
        else:
            of_ranker(match, package, 0)
        kept = [set(clause) for clause in rule["clauses"]]
        assert [set(part.split(" and ")) for part in rule["rule"].split(", or ")] == kept
    assert min(sources.values()) > 0
    shown = [line for line in out.splitlines() if LIKED.match(line) or RANKED.match(line)]
    kinds = [[rule for rule in said["rules"] if rule["of"] == of] for of in ("likes", "ranker")]
    first = [rule for kind in kinds for rule in kind[:3]]
    assert shown == [f"{rule['text']} q = {rule['q_value']:.2g}" for rule in first]
    lines = out.splitlines()
    for kind, title in zip(kinds, ("What users like", "What ease puts first"), strict=True):
        place = lines.index(title)
        assert LIKED.match(lines[place + 1]) or RANKED.match(lines[place + 1])
        told = f"{len(kind) - 3} more: raise --number, or write all with --out FILE."
        assert (told in lines) == (len(kind) > 3)
    for sentence in said["text"]:
        assert sentence in out
    written = pd.read_csv("rules.csv")
    for name in ("user_id", "of", "rule", "tested", "hits", "others", "others_hits", "learned"):
        assert written[name].tolist() == [rule[name] for rule in said["rules"]]
    assert written["q_value"].tolist() == pytest.approx([rule["q_value"] for rule in said["rules"]])
    code, out, _ = recsys(*arguments, "--out", "rules.parquet", "--json", "-", "--quiet")
    assert code == 0 and json.loads(out) == said
    assert pd.read_parquet("rules.parquet")["p_value"].tolist() == [
        rule["p_value"] for rule in said["rules"]
    ]


def test_a_file_without_what_is_known_of_items_takes_a_table(recsys):
    assert recsys("fit", *LIKES[:2], "--model", "ease", "--out", "bare", "--quiet")[0] == 0
    code, _, err = recsys("discover", "--ranker", "bare", "--quiet")
    assert code == 2 and "nothing is known of the items" in err and err.count("\n") == 1
    assert recsys("fit", *LIKES, "--model", "ease", "--out", "full", "--quiet")[0] == 0
    asked = ("--user", "u0001", "--user", "u0002", "--json", "-", "--quiet")
    _, one, _ = recsys("discover", "--ranker", "bare", "--items", "films.csv", *asked)
    _, two, _ = recsys("discover", "--ranker", "full", *asked)
    assert json.loads(one) | {"data": ""} == json.loads(two) | {"data": ""}


def test_where_nothing_is_found_that_is_said(recsys):
    code, out, _ = recsys("discover", *LIKES, "--user", "u0001", "--level", 0, "--quiet")
    assert code == 0 and "No rule found at a level of 0%" in out and " q = " not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*LIKES, "--user", "u1"), "'u1'"),
        ((*LIKES, "--level", "2"), "level must be"),
        ((*LIKES, "--dependence", "some"), "dependence must be one of any, positive"),
        ((*LIKES, "--most-users", "0"), "--most-users"),
        ((*LIKES, "-n", "0"), "--number"),
        ((*LIKES, "--top", "10"), "--top is for --ranker FILE"),
        (LIKES[:2], "nothing is known of the items"),
        (("--ranker", "absent"), "absent"),
        (("--ranker", "films.csv", *LIKES), "not both"),
        (("--ranker", "films.csv", "--item-id", "x"), "--item-id names a column of --items FILE"),
        ((*LIKES, "--out", "no/where.csv"), "no/where.csv"),
        ((*LIKES, "--out", "films.csv"), "is the file that --items reads"),
    ],
)
def test_errors_are_one_line(recsys, arguments, message):
    code, out, err = recsys("discover", *arguments, "--quiet")
    assert code == 2 and message in err and err.count("\n") == 1 and out == "", err
