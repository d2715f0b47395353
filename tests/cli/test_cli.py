import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from recsys import doctor, load_ranker
from recsys.utils.export import csv_text

FILE = "user_id,item_id,rating,timestamp\n" + "".join(
    f"u{u},i{(u * 3 + k * k) % 11},{1 + (u + k) % 5},{100 * u + k}\n"
    for u in range(12)
    for k in range(6)
)


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(FILE)
    return path


@pytest.fixture
def ranker(recsys, ratings, tmp_path):
    items = tmp_path / "items.csv"
    titles = ["=1+1", "@SUM(A1)", "-2+3", "\tTab", "[red]x[/red]\x1b]0;evil\x07", "+5", "-7", "plain"]
    items.write_text("item_id,title\n" + "".join(f'i{k},"{title}"\n' for k, title in enumerate(titles)))
    code, out, err = recsys(
        "fit",
        "--interactions",
        ratings,
        "--items",
        items,
        "--model",
        "ease:regularization=1",
        "--out",
        tmp_path / "model",
    )
    assert code == 0, err
    assert "ease fitted on 12 users and 11 items" in out
    return tmp_path / "model"


FAULTS = {
    "unknown command": (["evalute"], "Did you mean 'evaluate'"),
    "unknown option": (["evaluate", "--modle", "x"], "--model"),
    "unknown model": (["evaluate", "--model", "eas"], "did you mean 'ease'"),
    "unknown key": (["evaluate", "--model", "ease:regularisation=1"], "did you mean 'regularization'"),
    "bad value": (["evaluate", "--model", "ease:regularization=-5"], "above 0, not -5"),
    "no value": (["evaluate", "--model", "ease:regularization"], "not key=value"),
    "twice": (["evaluate", "--model", "ease", "--model", "ease"], "two models have the label"),
    "unknown kernel": (["evaluate", "--model", "cf-komd:kernel=mcc"], "did you mean 'mc'"),
    "unknown metric": (["evaluate", "--metric", "ndgc"], "did you mean 'ndcg'"),
    "bad cutoff": (["evaluate", "--metric", "ndcg@0"], "at least 1"),
    "folds 0": (["evaluate", "--folds", "0"], "folds"),
    "folds 1": (["evaluate", "--folds", "1"], "folds must be from 2"),
    "folds many": (
        ["evaluate", "--folds", "1000000"],
        "folds must be from 2 to 400",
    ),
    "folds x": (["evaluate", "--folds", "x"], "--folds"),
    "protocol": (["evaluate", "--protocol", "halves"], "half-profile-time"),
    "misspelt protocol": (["tune", "--model", "ease", "--protocol", "next_5"], "did you mean 'next-5'"),
    "next 0": (["evaluate", "--protocol", "next-0"], "did you mean 'next-10'"),
    "windows": (["evaluate", "--protocol", "rolling", "--folds", "10"], "folds must be from 1 to 9"),
    "dataset": (["evaluate", "--dataset", "../../etc/passwd"], "unknown dataset"),
    "file": (["evaluate", "--interactions", "absent.csv"], "absent.csv does not exist"),
    "both": (["evaluate", "--interactions", "a.csv", "--dataset", "sample"], "not both"),
    "column": (["evaluate", "--user-col", "u"], "--interactions FILE"),
    "threads 0": (["evaluate", "--threads", "0"], "--threads"),
    "threads -1": (["evaluate", "--threads", "-1"], "--threads"),
    "seed": (["evaluate", "--seed", "-1"], "seed"),
    "json": (["evaluate", "--json", "absent/x.json"], "does not exist"),
    "no time": (["evaluate", "--dataset", "filmtrust", "--data-dir", "absent"], "does not exist"),
    "fit": (["fit"], "--out"),
    "recommend": (["recommend"], "--ranker"),
    "similar": (["similar"], "--ranker"),
    "explain": (["explain"], "--ranker"),
    "no ranker": (["recommend", "--ranker", "absent", "--all"], "is not a file"),
    "out": (["fit", "--out", "absent/model"], "does not exist"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_users_fault_ends_with_2_and_one_line(recsys, case, tmp_path):
    arguments, text = FAULTS[case]
    code, out, err = recsys(*arguments)
    assert code == 2 and out == "" and err.count("\n") == 1 and text in err, (code, out, err)
    assert "Traceback" not in err and not list(tmp_path.iterdir())


def test_an_empty_dataset_is_one_line(recsys, tmp_path):
    (tmp_path / "ratings.csv").write_text("user_id,item_id\n")
    code, _, err = recsys("evaluate", "--interactions", tmp_path / "ratings.csv")
    assert code == 2 and err.count("\n") == 1 and "no interactions" in err


def test_a_fault_of_ours_is_1_and_one_line(recsys, monkeypatch):
    monkeypatch.setattr(doctor, "findings", lambda: 1 / 0)
    code, out, err = recsys("doctor")
    assert code == 1 and err.count("\n") == 1 and "please report it: ZeroDivisionError" in err


def test_help_lists_the_commands(recsys):
    for arguments in ([], ["--help"]):
        code, out, _ = recsys(*arguments)
        assert code == 0 and all(name in out for name in ("evaluate", "fit", "recommend", "doctor"))
    assert recsys("--version")[1].startswith("recsys ")


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "recsys", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("recsys ")


def test_doctor_and_datasets(recsys):
    code, out, _ = recsys("doctor")
    assert code == 0 and "numba" in out and "memory" in out
    code, out, _ = recsys("datasets")
    assert code == 0 and "MovieLens 100K" in out and "sample" in out


def test_evaluate_prints_a_table_and_what_it_means(recsys):
    code, out, err = recsys(
        "evaluate",
        "--model",
        "popularity",
        "--model",
        "cf-komd:kernel=mc,degree=2",
        "--metric",
        "auc",
        "--metric",
        "map-full@5",
    )
    assert code == 0 and [line.split(": auc")[0] for line in err.splitlines()] == [
        "popularity",
        "cf-komd:kernel=mc,degree=2",
    ]
    head = "sample: users: 400, items: 300, interactions: 10,746; half-profile, folds: 5, seed: 0"
    assert head in " ".join(out.split())
    assert (
        "cf-komd:kernel=mc,degree=2" in out
        and "map-full@5: average precision at k, divided by all" in out
    )
    assert "Wilcoxon p" in out and "\x1b" not in out


def test_evaluate_tells_groups(recsys):
    arguments = ("evaluate", "--model", "popularity,ease", "--metric", "auc,coverage@3", "--folds", "2")
    more = ("--by", "region", "--by", "profile length")
    code, out, err = recsys(*arguments, *more)
    assert code == 0, err
    assert "By region" in out and "By profile length" in out and "south" in out and "3–8" in out
    code, out, err = recsys(*arguments, *more, "--json", "-")
    told = json.loads(out)
    assert code == 0 and set(told["groups"]) == {"region", "profile length"}
    assert {row["metric"] for row in told["groups"]["region"]} == {"auc"}
    code, out, err = recsys(*arguments, "--by", "regon", "--quiet")
    assert code == 2 and "did you mean 'region'" in err and not out


def stripped(text):
    report = json.loads(text)
    for result in report["results"]:
        for key in ("fit_seconds", "score_seconds", "peak_mb"):
            assert result.pop(key) >= 0
    return report


def test_json_is_pure_and_deterministic(recsys, tmp_path, ratings):
    arguments = (
        "evaluate",
        "--interactions",
        ratings,
        "--model",
        "popularity,ease,cf-komd:kernel=md,degree=2",
        "--metric",
        "auc,ndcg@3,coverage@3,novelty@3",
    )
    code, out, err = recsys(*arguments, "--json", "-")
    note, *rows = err.splitlines()  # how the file was read, and each model
    assert [row.split(": auc ")[0] for row in rows] == [r["model"] for r in json.loads(out)["results"]]
    assert code == 0 and note.startswith("note: ratings.csv: user = user_id, item = item_id")
    report = stripped(out)
    assert [r["model"] for r in report["results"]] == [
        "popularity",
        "ease",
        "cf-komd:kernel=md,degree=2",
    ]
    assert set(report["results"][0]["metrics"]) == {"auc", "ndcg@3", "coverage@3", "novelty@3"}
    assert report["results"][2]["params"]["kernel"] == "md"
    assert {
        "dataset",
        "protocol",
        "folds",
        "seed",
        "users",
        "items",
        "interactions",
        "versions",
        "comparisons",
        "definitions",
        "notes",
    } <= set(report)
    assert len(report["comparisons"]) == 9 and "p_holm" in report["comparisons"][0]
    code, shown, _ = recsys(*arguments, "--json", tmp_path / "r.json", "--jobs", "1")
    assert code == 0 and "novelty@3" in shown
    assert stripped((tmp_path / "r.json").read_text()) == report
    other = stripped(recsys(*arguments, "--json", "-", "--seed", "5")[1])
    assert other["results"] != report["results"]


def test_users_with_nothing_to_predict_are_counted(recsys, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user_id,item_id\na,x\nb,x\nb,y\nc,y\nc,z\nc,x\nd,z\n")
    code, out, _ = recsys("evaluate", "--interactions", path, "--folds", "2", "--model", "popularity")
    assert code == 0 and "Left out, users with nothing to predict: 2." in out


def test_reading_notes_go_to_stderr_unless_quiet(recsys, ratings):
    ratings.write_text(FILE + "u0,i0,5,1\n")
    arguments = ("evaluate", "--interactions", ratings, "--model", "popularity", "--min-rating", "2")
    code, _, err = recsys(*arguments)
    assert (
        code == 0
        and "repeated pairs merged, the latest row kept: 1" in err
        and "rated below 2, left out" in err
    )
    assert recsys(*arguments, "--quiet")[2] == ""


@pytest.mark.parametrize(
    "protocol",
    ["half-profile-time", "leave-one-out", "holdout", "temporal", "rolling", "next-5", "next-3"],
)
def test_protocols(recsys, ratings, protocol):
    code, out, err = recsys(
        "evaluate", "--interactions", ratings, "--protocol", protocol, "--model", "popularity"
    )
    assert code == 0 and protocol in out
    assert ("Training holds" in out or "training holds" in out) == (protocol != "holdout")
    untimed = ratings.with_name("untimed.csv")
    untimed.write_text("".join(line.rsplit(",", 1)[0] + "\n" for line in FILE.splitlines()))
    code, out, err = recsys(
        "evaluate", "--interactions", untimed, "--protocol", protocol, "--model", "popularity"
    )
    if protocol in ("temporal", "half-profile-time", "rolling"):
        assert code == 2 and "needs times" in err
    else:
        assert code == 0


def test_recommend_similar_explain(recsys, ranker):
    code, out, err = recsys("recommend", "--ranker", ranker, "--user", "u1", "--user", "u2", "-n", "3")
    assert code == 0 and out.count("u1") == 3 and out.count("u2") == 3
    code, out, _ = recsys("recommend", "--ranker", ranker, "--history", "i1, i2", "-n", "2")
    assert code == 0 and "new" in out
    code, out, _ = recsys("similar", "--ranker", ranker, "--item", "i7")
    assert code == 0 and "Similar to plain" in out
    code, out, _ = recsys("explain", "--ranker", ranker, "--user", "u1", "--item", "i7")
    assert code == 0 and "base value" in out and "adds to the score" in out
    assert "share" not in out
    for arguments, text in (
        (("recommend", "--user", "nobody"), "unknown user id 'nobody'"),
        (("recommend", "--history", "i1,zzz"), "unknown item id 'zzz'"),
        (("recommend", "--user", "u1", "--all"), "exactly one of"),
        (("recommend", "--user", "u1", "-n", "0"), "at least 1"),
        (("similar", "--item", "zzz"), "unknown item id"),
        (("explain", "--item", "i1"), "exactly one of"),
    ):
        code, out, err = recsys(arguments[0], "--ranker", ranker, *arguments[1:])
        assert code == 2 and text in err and err.count("\n") == 1


PEOPLE = re.compile(
    r"(?P<weight>[+-][\d.e-]+): (?P<who>u\d+ and u\d+) both like (?P<total>\d+) items?, (?P<mine>\d+) of the "
    r"(?P<liked>\d+) that (?P<user>u1|somebody) likes and (?P<others>\d+) of the (?P<rest>\d+) others? "
)


def test_the_file_holds_an_ordinary_ranker(ranker):
    assert load_ranker(ranker).name == "ease"


def test_titles_are_shown_literally(recsys, ranker):
    out = recsys("recommend", "--ranker", ranker, "--history", "i1", "-n", "11")[1]
    assert "[red]x[/red]\\x1b]0;evil\\x07" in out and "\x1b" not in out and "\x07" not in out


def test_csv_cells_that_a_spreadsheet_would_run_get_an_apostrophe(recsys, ranker, tmp_path):
    path = tmp_path / "out.csv"
    code, out, err = recsys("recommend", "--ranker", ranker, "--all", "-n", "20", "--out", path)
    assert code == 0 and out == ""
    rows = read_csv(path)
    titles = {row["item_id"]: row["title"] for row in rows}
    assert titles["i0"] == "'=1+1" and titles["i1"] == "'@SUM(A1)" and titles["i2"] == "'-2+3"
    assert titles["i3"] == "'\tTab" and titles["i7"] == "plain" and titles["i9"] == "i9"
    assert csv_text(("a", "b"), [(-1.5, "-x")]) == "a,b\n-1.5,'-x\n"
    recsys("recommend", "--ranker", ranker, "--all", "-n", "20", "--out", path, "--raw")
    assert {row["title"] for row in read_csv(path)} >= {"=1+1", "-2+3", "\tTab"}
    code, out, _ = recsys("recommend", "--ranker", ranker, "--all", "-n", "1")
    assert code == 0 and out.splitlines()[0] == "user_id,rank,item_id,title,score"
    code, _, _ = recsys("recommend", "--ranker", ranker, "--user", "u1", "--out", tmp_path / "out.json")
    assert code == 0 and json.loads((tmp_path / "out.json").read_text())[0]["rank"] == 1


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_odd_ids_round_trip(recsys, tmp_path):
    ids = ["NA", "null", "001", "1.0", str(2**63), "🎬", "a b"]
    (tmp_path / "r.csv").write_text(
        "user_id,item_id\n" + "".join(f"{u},{i}\n" for u in ids for i in ids if u != i)
    )
    assert (
        recsys("fit", "--interactions", tmp_path / "r.csv", "--model", "msdw", "--out", tmp_path / "m")[
            0
        ]
        == 0
    )
    recsys("recommend", "--ranker", tmp_path / "m", "--all", "--out", tmp_path / "o.csv")
    rows = read_csv(tmp_path / "o.csv")
    assert {(row["user_id"], row["item_id"]) for row in rows} == {(x, x) for x in ids}


def command(*arguments, **env):
    return [sys.executable, "-c", "from recsys.cli import run; run()", *map(str, arguments)]


@pytest.mark.slow
def test_signals_stop_a_fit_and_leave_nothing(tmp_path):
    rng = np.random.default_rng(0)
    lines = (f"{u},{i}\n" for u in range(4000) for i in rng.choice(3000, 60, replace=False))
    with gzip.open(tmp_path / "r.csv.gz", "wt", compresslevel=1) as file:
        file.writelines(["user_id,item_id\n", *lines])
    model = "als:iterations=1000000"  # each pass returns to Python, where a signal is heard
    children = {}
    for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        given = ("fit", "--interactions", tmp_path / "r.csv.gz", "--out", tmp_path / "model")
        children[number, expected] = subprocess.Popen(
            command(*given, "--model", model), stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
    time.sleep(15)  # reading takes both a few seconds; the solver would take hours
    for (number, expected), child in children.items():
        assert child.poll() is None, child.communicate()
        child.send_signal(number)
        child.communicate(timeout=120)
        assert child.returncode == expected
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv.gz"]


@pytest.mark.thorough
def test_a_closed_pipe_is_no_error(ranker, tmp_path):
    out = subprocess.run(
        " ".join(
            [
                "exec",
                sys.executable,
                "-c",
                "'from recsys.cli import run; run()'",
                "recommend",
                "--ranker",
                str(ranker),
                "--all",
                "-n",
                "10",
                "|",
                "head",
                "-n",
                "1",
            ]
        ),
        shell=True,
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0 and out.stderr == "" and out.stdout.startswith("user_id,")


@pytest.mark.slow
def test_the_environment_does_not_change_the_figures(ratings, tmp_path):
    reports = []
    settings = (
        ({}, []),
        (
            {"LANG": "C", "LC_ALL": "C", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7", "HOME": ""},
            [],
        ),
        ({"NUMBA_NUM_THREADS": "1"}, ["-O", "-W", "error"]),
    )
    for env, flags in settings:
        out = subprocess.run(
            [
                sys.executable,
                *flags,
                "-c",
                "from recsys.cli import run; run()",
                "evaluate",
                "--interactions",
                str(ratings),
                "--json",
                "-",
                "--model",
                "ease",
                "--model",
                "als:factors=4",
                "--model",
                "cf-komd",
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | env,
        )
        assert out.returncode == 0, out.stderr
        reports.append(stripped(out.stdout))
    assert reports[0] == reports[1] == reports[2]


@pytest.mark.thorough
def test_an_address_limit_gives_the_bytes_needed(tmp_path):
    resource = pytest.importorskip("resource")
    lines = "".join(f"u{k % 50},i{k}\n" for k in range(60_000))
    (tmp_path / "r.csv").write_text("user_id,item_id\n" + lines)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, 6_000_000_000))

    out = subprocess.run(
        command(
            "fit",
            "--interactions",
            tmp_path / "r.csv",
            "--model",
            "ease:top_k=60000",
            "--out",
            tmp_path / "m",
        ),
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert out.returncode == 2 and "EASE on 60,000 items: needs 86.4 GB" in out.stderr, out


def test_a_misspelt_parameter_is_told_its_nearest_name_the_rankers_or_its_kernels(recsys):
    code, _, err = recsys("evaluate", "--model", "cf-komd:kernl=md,degree=2")
    assert code == 2 and "cf-komd" in err and "did you mean 'kernel'?" in err
    code, _, err = recsys("evaluate", "--model", "cf-komd:kernel=mdnf,q1=3")
    assert code == 2 and "'cf-komd' has no parameter 'q1': did you mean 'q'?" in err
    code, _, err = recsys("evaluate", "--model", "cf-komd:kernel=mdnf,cc=3")
    assert code == 2 and "'cf-komd' has no parameter 'cc': did you mean 'c'?" in err
