"""What a command writes is no input, no device, and not written twice."""

import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from recsys.cli import call


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "r.csv"
    rng = np.random.default_rng(0)
    rows = sorted({(u, i) for u in range(30) for i in rng.integers(0, 20, 8)})
    path.write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u, i in rows))
    return path


@pytest.fixture
def model(ratings, tmp_path):
    path = tmp_path / "m"
    assert (
        call(
            [
                "fit",
                "--interactions",
                str(ratings),
                "--model",
                "popularity",
                "--out",
                str(path),
                "--quiet",
            ]
        )
        == 0
    )
    return path


def refused(capsys, *arguments):
    assert call([str(one) for one in arguments]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def test_an_input_is_not_overwritten(capsys, ratings, model, tmp_path):
    (tmp_path / "hard").hardlink_to(ratings)
    (tmp_path / "soft").symlink_to(ratings)
    items = tmp_path / "items.csv"
    items.write_text("item,title\ni1,One\n")
    before = {path: path.read_bytes() for path in (ratings, model, items)}
    data = ("--interactions", ratings)
    for arguments, read in (
        *((("fit", *data, "--out", out), "--interactions") for out in (ratings, tmp_path / "hard", tmp_path / "soft")),
        (("fit", *data, "--items", items, "--out", items), "--items"),
        (("fit", "--from", model, "--out", model), "--from"),
        (("recommend", "--ranker", model, "--all", "--out", model), "--ranker"),
        (("evaluate", *data, "--json", tmp_path / "soft"), "--interactions"),
        (("export", "--ranker", model, "--items-out", model), "--ranker"),
        (("explain", "--ranker", model, "--user", "u1", "--people", "--json", model), "--ranker"),
        (("rules", "--data", ratings, "--json", ratings), "--data"),
        (("links", "--pairs", ratings, "--json", ratings), "--pairs"),
        (("tune", *data, "--model", "ease", "--json", ratings), "--interactions"),
        (("kernels", "--data", items, "--curve", items), "--data"),
    ):  # fmt: skip
        assert f"is the file that {read} reads; name another one" in refused(capsys, *arguments)
    assert {path: path.read_bytes() for path in before} == before


def test_two_outputs_are_two_files(capsys, model, tmp_path):
    out = tmp_path / "v.npy"
    told = refused(capsys, "export", "--ranker", model, "--users-out", out, "--items-out", out)
    assert "--users-out and --items-out are the same file" in told and not out.exists()


def test_devices_pipes_and_folders_are_refused_before_the_work(capsys, ratings, model, tmp_path):
    odd = {"pipe": "not a regular file", "folder": "is a folder", "absent/x": "does not exist"}
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    if os.geteuid() == 0:
        os.mknod(tmp_path / "device", stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
        odd["device"] = "not a regular file"
    for name, told in odd.items():
        path = tmp_path / name
        for arguments in (
            ("fit", "--interactions", ratings, "--out", path),
            ("recommend", "--ranker", model, "--all", "--out", path),
            ("evaluate", "--interactions", ratings, "--json", path),
            ("export", "--ranker", model, "--items-out", path),
        ):
            if (name, arguments[0]) != ("folder", "recommend"):  # which writes parts there
                assert told in refused(capsys, *arguments)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_null_takes_everything(capsys, ratings, model):
    before = os.stat(os.devnull)
    for arguments in (
        ("fit", "--interactions", ratings, "--model", "popularity", "--out", os.devnull),
        ("recommend", "--ranker", model, "--all", "--out", os.devnull),
    ):
        assert call([str(one) for one in arguments]) == 0
    assert os.path.samestat(before, os.stat(os.devnull))


@pytest.mark.slow
def test_standard_output_by_its_name_is_standard_output(model, tmp_path):
    def run(*arguments):
        command = [sys.executable, "-c", "from recsys.cli import run; run()", *map(str, arguments)]
        return subprocess.run(command, stdout=subprocess.PIPE, timeout=120, check=True).stdout

    lists = ("recommend", "--ranker", model, "--all", "-n", 2)
    assert run(*lists, "--out", "/dev/stdout") == run(*lists)
    ratings = tmp_path / "r.csv"
    whole = run("fit", "--interactions", ratings, "--model", "popularity", "--out", "/dev/stdout")
    assert whole == model.read_bytes()
    told = run("evaluate", "--interactions", ratings, "--model", "popularity", "--json", "/dev/stdout")
    assert json.loads(told)["results"]


def test_vectors_are_replaced_whole(ratings, tmp_path):
    model, out = tmp_path / "als", tmp_path / "v.npy"
    assert (
        call(
            [
                "fit",
                "--interactions",
                str(ratings),
                "--model",
                "als:factors=2",
                "--out",
                str(model),
                "--quiet",
            ]
        )
        == 0
    )
    out.write_text("old")
    out.chmod(0o600)
    assert call(["export", "--ranker", str(model), "--items-out", str(out)]) == 0
    assert np.load(out).shape == (20, 2) and stat.S_IMODE(out.stat().st_mode) == 0o600
    assert call(["export", "--ranker", str(model), "--items-out", str(tmp_path / "v.parquet")]) == 0
