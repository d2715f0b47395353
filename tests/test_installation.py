"""The name of the distribution, wherever a person reads how to install it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from recsys.utils.extras import install_hint

ROOT = Path(__file__).parents[1]
OLD = re.compile(r"pip install +(--\S+ +)*['\"]?recsys(?![\w-])|['\"`]recsys\[(?!')")
READ = ("recsys", "app", "docs", "notebooks", "README.md", "Dockerfile", "compose.yaml", "CONTRIBUTING.md", "SECURITY.md",
        "constraints.txt", "Makefile", "pyproject.toml")  # fmt: skip


def test_nobody_is_sent_to_another_authors_package():
    wrong = []
    for name in READ:
        top = ROOT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.suffix in (".py", ".md", ".toml", ".txt", ".yaml", ".ipynb", "") and path.is_file():
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    if OLD.search(line):
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line", ["pip install recsys", "pip install 'recsys[app]'", "needs `recsys[deep]`"]
)
def test_the_old_words_would_be_found(line):
    assert OLD.search(line)


def test_a_message_says_what_works_in_a_clone():
    assert install_hint("app") == f"pip install '{ROOT}[app]'"


FAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from recsys.doctor import findings
print(dict(findings()).get("installation"))
"""


@pytest.mark.slow
def test_doctor_tells_of_two_distributions_that_own_the_folder(tmp_path):
    for name in ("RecSys-0.0.1a3", "recsys_cpu-0.1.0"):
        info = tmp_path / f"{name}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.split('-')[0]}\nVersion: 1\n"
        )
        (info / "top_level.txt").write_text("recsys\n")
        (info / "RECORD").write_text("recsys/__init__.py,,\n")
    out = subprocess.run(
        [sys.executable, "-c", FAKE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "RecSys" in out.stdout and "own the folder recsys: pip uninstall RecSys" in out.stdout
    out = subprocess.run(
        [sys.executable, "-c", FAKE, str(tmp_path / "none")], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "None"


# What Windows lacks, of modules that it has.
ELSEWHERE = """
import os, sys, signal
import filelock, pandas, platformdirs, psutil, pyarrow, scipy.sparse, sklearn, typer, threadpoolctl  # they ask first
for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "fchmod", "fchown", "chown", "geteuid", "getuid", "getegid",
             "getgid", "fork", "register_at_fork", "getpgid", "setsid", "killpg", "mkfifo", "mknod", "sysconf",
             "posix_fallocate", "sched_getaffinity", "uname", "statvfs", "pread", "pwrite", "umask_", "setpgid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "setitimer", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
import recsys
data = recsys.load_dataset("sample")
model = recsys.Recommender("ease").fit(data)
model.save("m.recsys")
again = recsys.load("m.recsys")
assert again.recommend("u0001", n=3).equals(model.recommend("u0001", n=3))
again.recommend_all("top.csv")
from recsys.cli import call
assert call(["fit", "--dataset", "sample", "--model", "popularity", "--out", "p", "--quiet"]) == 0
assert call(["recommend", "--ranker", "p", "--user", "u0001", "--out", "list.csv"]) == 0
"""


@pytest.mark.slow
def test_saving_loading_and_listing_use_nothing_that_windows_lacks(tmp_path):
    out = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert out.returncode == 0, out.stderr[-2000:]
    assert {"m.recsys", "top.csv", "list.csv"} <= {path.name for path in tmp_path.iterdir()}
