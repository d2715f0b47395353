"""The wheel, installed elsewhere: the command line works without the clone and a writable cache."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, **kwargs):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **kwargs)


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
    env = {k: v for k, v in os.environ.items() if k != "RECSYS_DATA"}
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
