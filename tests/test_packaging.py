"""The wheel, installed elsewhere: the command line works without the clone and a writable cache."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.lowest import minimums

ROOT = Path(__file__).parents[1]


def run(*command, **kwargs):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **kwargs)


def test_a_test_that_writes_into_the_checkout_fails_the_run(tmp_path):
    """The fixture of tests/checkout.py in a small project of its own."""
    tests = tmp_path / "tests"
    tests.mkdir()
    shutil.copy(ROOT / "tests" / "checkout.py", tests)
    (tests / "__init__.py").write_text("")
    (tests / "conftest.py").write_text("from tests.checkout import untouched_checkout\n")
    (tmp_path / "there.csv").write_text("before")
    (tmp_path / "gone.csv").write_text("before")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {"PYTHONPATH": ""}
    test = "from pathlib import Path\ndef test_it():\n"
    for passed_over in (".cache", "note.md"):
        test += f"    Path({passed_over!r}).write_text('x')\n"
    (tests / "test_it.py").write_text(test)
    done = run(*command, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout
    for written in ("model.recsys", "there.csv", "tests/new.csv"):
        test += f"    Path({written!r}).write_text('x')\n"
    (tests / "test_it.py").write_text(test + "    Path('gone.csv').unlink()\n")
    done = run(*command, cwd=tmp_path, env=env)
    told = "gone.csv is gone, model.recsys is new, tests/new.csv is new, there.csv was changed"
    assert done.returncode == 1 and told in done.stdout, done.stdout


def test_the_lowest_versions_are_declared_of_every_dependency():
    """`make test-lowest` installs and tries them; here only that it could."""
    pins = dict(line.split("==") for line in minimums())
    assert {"numpy", "scipy", "numba", "pandas", "pyarrow", "implicit", "scikit-learn"} <= pins.keys()
    # Before these, wheels were made for numpy 1: nothing could be imported.
    assert tuple(map(int, pins["pyarrow"].split("."))) >= (16, 1)
    assert tuple(map(int, pins["pandas"].split("."))) >= (2, 2, 2)


@pytest.mark.slow
def test_the_wheel_works_outside_the_clone_with_a_read_only_cache(tmp_path):
    built = run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT)
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    # The dependencies are those of this environment; only the package itself comes from the wheel.
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    installed = run(tmp_path / "env" / "bin" / "python", "-m", "pip", "install", "--no-deps", wheel)
    assert installed.returncode == 0, installed.stderr[-2000:]
    ours = [p for p in sys.path if p.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(ours) + "\n")
    cache = tmp_path / "cache"  # a file: no folder can be made under it, whoever runs this
    cache.write_text("")
    env = {k: v for k, v in os.environ.items() if k not in ("RECSYS_DATA", "PYTHONPATH")}
    env |= {"NUMBA_CACHE_DIR": str(cache), "XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    where = run(
        tmp_path / "env" / "bin" / "python",
        "-c",
        "import recsys; print(recsys.__file__)",
        cwd=tmp_path,
        env=env,
    )
    assert where.stdout.startswith(str(site)), where
    command = tmp_path / "env" / "bin" / "recsys"
    shown = run(
        command, "evaluate", "--model", "popularity", "--model", "cf-komd", cwd=tmp_path, env=env
    )
    assert shown.returncode == 0 and "sample: 400 users" in shown.stdout, shown.stderr
    assert run(command, "fit", "--model", "ease", "--out", "m", cwd=tmp_path, env=env).returncode == 0
    out = run(command, "recommend", "--ranker", "m", "--user", "u0001", cwd=tmp_path, env=env)
    assert out.returncode == 0 and "u0001" in out.stdout
    wrong = run(command, "evaluate", "--modle", "x", cwd=tmp_path, env=env)
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
