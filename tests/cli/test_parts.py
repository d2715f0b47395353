"""`recsys recommend --all --out top/`: parts, what is told of them, and what is refused."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.test_cli import FILE


@pytest.fixture
def ranker(recsys, tmp_path):  # noqa: F811
    (tmp_path / "r.csv").write_text(FILE)
    assert recsys("fit", "--model", "ease", "--interactions", "r.csv", "--out", "m", "--quiet")[0] == 0
    return "m"


OPTIONS = (
    (), ("--items", "i1,i5,i7,i9"), ("--filter-items", "i2"), ("--dislike", "i2"), ("--diversity", 0.4),
)  # fmt: skip


def test_parts_are_the_file_whatever_is_asked_for(recsys, ranker):  # noqa: F811
    lists = ("recommend", "--ranker", ranker, "--all", "-n", 3)
    for k, options in enumerate(OPTIONS):
        code, out, err = recsys(*lists, *options, "--out", f"top{k}/", "--block", 5, "--threads", 1)
        assert (code, out) == (0, "") and "3 parts written, 0 there before; lists of 12 users in" in err
        assert re.search(r"by 1 worker, whose own work took \d+\.\d s \(overhead \d+%\)", err)
        assert recsys(*lists, *options, "--out", "one.parquet")[0] == 0
        assert pq.read_table(f"top{k}").equals(pq.read_table("one.parquet"))
    assert sorted(os.listdir("top0")) == [
        "_MANIFEST.json", "_SUCCESS", "part-00000000.parquet", "part-00000005.parquet",
        "part-00000010.parquet",
    ]  # fmt: skip
    Path("top0/part-00000005.parquet").unlink()
    code, _, err = recsys(*lists, "--out", "top0", "--block", 5)  # it is there: no slash is needed
    assert code == 0 and "1 part written, 2 there before; lists of 5 users" in err
    code, _, err = recsys(*lists, "--out", "top0", "--block", 5, "--engine", "local=1")
    assert code == 0 and err.endswith("0 parts written, 3 there before\n")


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("--user", "u1", "--out", "top/"), "is a folder, of lists of all users"),
        (("--all", "--out", "top.csv", "--engine", "local=2"), "for --all with a folder: --out top/"),
        (("--all", "--out", "top/", "--raw"), "--raw is for CSV, and top/ is a folder"),
        (("--all", "--block", 7), "for --all with a folder"),
        (("--all", "--out", "top/", "--block", 0), "block must be"),
        (("--all", "--out", "top/", "--engine", "dusk"), "did you mean 'dask'"),
        (("--all", "--out", "top/", "--workers", 0), "workers must be"),
        (("--all", "--out", "top/", "--items", "zzz"), "unknown item id 'zzz'"),
        (("--all", "--out", "no/where/"), "cannot be written: No such file"),
        (("--all", "--out", "other/"), "holds other files"),
    ],
)
def test_one_line_for_what_cannot_be(recsys, ranker, arguments, told):  # noqa: F811
    Path("other").mkdir()
    Path("other/x").write_text("")
    code, out, err = recsys("recommend", "--ranker", ranker, *arguments)
    assert code == 2 and told in err and err.count("\n") == 1 and out == ""


def test_another_model_or_other_options_are_refused(recsys, ranker):  # noqa: F811
    lists = ("recommend", "--ranker", ranker, "--all", "--out", "top/")
    assert recsys(*lists)[0] == 0
    code, _, err = recsys(*lists, "-n", 3)
    assert code == 2 and "n is 10 there, 3 here; name another folder" in err and err.count("\n") == 1
    recsys("fit", "--model", "ease:regularization=3", "--interactions", "r.csv", "--out", "m", "--quiet")
    code, _, err = recsys(*lists)
    assert code == 2 and "model (its sha256) is" in err and err.count("\n") == 1


@pytest.mark.thorough
def test_a_run_that_is_told_to_stop_leaves_whole_parts(recsys, ranker, tmp_path):  # noqa: F811
    (tmp_path / "run.py").write_text(STOPPED)
    done = subprocess.run([sys.executable, "run.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 128 + signal.SIGTERM and done.stdout == ""
    assert sorted(os.listdir("top")) == ["_MANIFEST.json", "part-00000000.parquet"]
    lists = ("recommend", "--ranker", ranker, "--all", "--block", 5)
    assert recsys(*lists, "--out", "top/")[0] == 0 and recsys(*lists, "--out", "whole/")[0] == 0
    assert all(
        (tmp_path / "top" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        for name in os.listdir("whole")
    )


STOPPED = """
import os, signal, sys
from recsys.cli import run
from recsys.recommender import all_users
write = all_users.write_rows
def stopped(path, *given, **named):
    if path.name == "part-00000005.parquet":
        os.kill(os.getpid(), signal.SIGTERM)
    write(path, *given, **named)
all_users.write_rows = stopped
sys.argv = ["recsys", "recommend", "--ranker", "m", "--all", "--block", "5", "--out", "top/"]
run()
"""
