"""A table of ten million rows within two gigabytes: it is read, or refused in one line."""

import os
import subprocess
import sys

import pytest

ROWS, USERS, ITEMS = 10**7, 100_000, 5_000
MOST = 2 * 10**9  # bytes that the process may write to


@pytest.mark.slow
def test_ten_million_rows_in_two_gigabytes(tmp_path):
    pytest.importorskip("resource")
    if sys.platform != "linux":
        pytest.skip("RLIMIT_DATA limits memory on Linux")
    path, out = tmp_path / "likes.csv", tmp_path / "model.recsys"
    with path.open("w") as file:
        file.write("user_id,item_id\n")
        for first in range(0, ROWS // USERS):  # each user has an item once
            file.writelines(f"u{k},i{(k + 37 * first) % ITEMS}\n" for k in range(USERS))
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({MOST}, {MOST}))\n"
        "from recsys.cli import run; run()"
    )
    command = ["fit", "--interactions", path, "--model", "popularity", "--out", out, "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        env=os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
    )
    lines = done.stderr.strip().splitlines()
    assert (done.returncode, lines) == (0, []) or (done.returncode in (1, 2) and len(lines) == 1), done
    assert out.exists() == (done.returncode == 0)
    assert "internal error" not in done.stderr
