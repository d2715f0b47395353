"""Standard streams that are full, closed, or in an encoding that lacks characters."""

import os
import subprocess
import sys

import pytest


def run_with(redirection, *arguments):
    command = f'exec "{sys.executable}" -c "from recsys.cli import run; run()" {" ".join(arguments)} {redirection}'
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)


@pytest.mark.thorough
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--version"], ["datasets"]])
def test_a_full_stdout_is_one_line(arguments):
    out = run_with("> /dev/full", *arguments)
    assert out.returncode == 2
    assert out.stderr == (
        "recsys: standard output, or a file, cannot be written or read: No space left on device\n"
    )


TITLES = "item_id,title\ni1,映画 – „Żółć“ ✓\ni2,b\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["recommend", "--ranker", "m", "--user", "u1"],
        ["recommend", "--ranker", "m", "--all"],
        ["similar", "--ranker", "m", "--item", "i1"],
        ["explain", "--ranker", "m", "--user", "u1", "--item", "i1"],
        ["--help"],
        ["doctor"],
        ["datasets"],
    ],
)
def test_no_encoding_of_stdout_ends_a_command(tmp_path, encoding, arguments, monkeypatch):
    rows = [f"u{u},i{i}" for u in range(6) for i in range(1, 6) if (u * i) % 4]
    (tmp_path / "r.csv").write_text("user_id,item_id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "items.csv").write_text(TITLES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    from recsys.cli import call

    assert (
        call(
            [
                "fit",
                "--interactions",
                "r.csv",
                "--items",
                "items.csv",
                "--item-id",
                "item_id",
                "--model",
                "ease",
                "--out",
                "m",
                "--quiet",
            ]
        )
        == 0
    )
    out = subprocess.run(
        [sys.executable, "-c", "from recsys.cli import run; run()", *arguments],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        timeout=120,
    )
    said = out.stdout.decode(encoding) + out.stderr.decode(encoding)
    assert out.returncode == 0 and "error" not in said, said
    if encoding == "utf-8" and "--all" in arguments:
        assert "u2" in said
