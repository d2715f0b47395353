"""The wheel, installed elsewhere: the command line works without the clone and a writable cache."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.test_app import answers, free_port
from tests.lowest import minimums
from tests.wheel import build, environment, install, must, outside, run

ROOT = Path(__file__).parents[1]


def test_the_lowest_versions_are_declared_of_every_dependency():
    """`make test-lowest` installs and tries them; here only that it could."""
    pins = dict(line.split("==") for line in minimums())
    assert {"numpy", "scipy", "numba", "pandas", "pyarrow", "implicit", "scikit-learn"} <= pins.keys()
    # Before these, wheels were made for numpy 1: nothing could be imported.
    assert tuple(map(int, pins["pyarrow"].split("."))) >= (16, 1)
    assert tuple(map(int, pins["pandas"].split("."))) >= (2, 2, 2)


@pytest.mark.slow
def test_the_wheel_works_outside_the_clone_with_a_read_only_cache(tmp_path):
    wheel = build(tmp_path / "dist")
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
    assert shown.returncode == 0 and "sample: users: 400" in shown.stdout, shown.stderr
    assert run(command, "fit", "--model", "ease", "--out", "m", cwd=tmp_path, env=env).returncode == 0
    out = run(command, "recommend", "--ranker", "m", "--user", "u0001", cwd=tmp_path, env=env)
    assert out.returncode == 0 and "u0001" in out.stdout
    wrong = run(command, "evaluate", "--modle", "x", cwd=tmp_path, env=env)
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1


# What an extra is for, in code that ends with a word; and what says so without it.
EXTRAS = {
    "app": ("import altair, streamlit", None),
    "benchmark": ("import cvxopt", None),
    "excel": ("import python_calamine", None),
    "plot": (
        "import recsys; recsys.evaluate(recsys.load_dataset('sample'), 'popularity', folds=2).plot()",
        "matplotlib",
    ),
    "service": ("from recsys.service import create_app; create_app('model.recsys')", None),
    "tune": (
        "import recsys, recsys.tuning; recsys.tuning.tune(recsys.load_dataset('sample'), 'ease', trials=1)",
        "optuna",
    ),
}
COMMANDS = {
    "app": r"recsys: app needs streamlit and altair: pip install 'recsys-cpu\[app\] @ file:\S*\.whl'",
    "service": r"recsys: serve needs [\w, ]+: pip install 'recsys-cpu\[service\] @ file:\S*\.whl'",
}
FRONT = """
import recsys
data = recsys.Interactions.from_frame("likes.csv")
model = recsys.Recommender("ease").fit(data)
model.save("model.recsys")
print(recsys.load("model.recsys").recommend("u0001", n=1)["item"][0])
"""


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """An environment with the wheel and its own requirements only, resolved by pip."""
    folder = tmp_path_factory.mktemp("empty")
    wheel = build(folder / "dist")
    programs = environment(sys.executable, folder / "env", wheel)
    shutil.copy(ROOT / "data" / "sample" / "interactions.csv", folder / "likes.csv")
    return folder, wheel, programs


@pytest.mark.slow
def test_the_wheel_alone_works_and_says_what_is_missing(empty):
    folder, _, programs = empty
    env = outside(folder)
    must(programs / "python", "-m", "pip", "check")
    assert must(programs / "python", "-c", FRONT, cwd=folder, env=env).strip().startswith("m")
    for name, (code, lacking) in EXTRAS.items():
        done = run(programs / "python", "-c", code, cwd=folder, env=env)
        assert done.returncode, f"{name} is there without its extra"
        if lacking:
            last = done.stderr.splitlines()[-1]
            assert lacking in last.lower() and "pip install" in last, done.stderr
    for name, told in COMMANDS.items():
        command = ["serve", "--ranker", "model.recsys"] if name == "service" else [name]
        done = run(programs / "recsys", *command, cwd=folder, env=env)
        assert done.returncode == 2 and re.fullmatch(told, done.stderr.strip()), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_alone_brings_what_it_is_for(extra, empty, tmp_path):
    folder, wheel, base = empty
    # The wheel's own requirements are those of the first environment; the extra's come into another.
    programs = environment(sys.executable, tmp_path / "env")
    site = must(base / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    mine = must(
        programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    ).strip()
    Path(mine, "base.pth").write_text(site + "\n")
    install(programs, f"{wheel}[{extra}]")
    env = outside(folder)
    if not (folder / "model.recsys").exists():
        must(base / "python", "-c", FRONT, cwd=folder, env=env)
    must(programs / "python", "-c", EXTRAS[extra][0], cwd=folder, env=env)
    port = free_port()
    started = {
        "app": (["app", "--headless", "--port", port], "/_stcore/health", "ok"),
        "service": (["serve", "--ranker", "model.recsys", "--port", port], "/health", '"status":"ok"'),
    }
    if extra in started:
        command, page, told = started[extra]
        process = subprocess.Popen(
            [str(p) for p in (programs / "python", "-c", "from recsys.cli import run; run()", *command)],
            cwd=folder,
            env=env,
            stdout=subprocess.DEVNULL,
        )
        try:
            assert told in answers(f"http://127.0.0.1:{port}{page}", process)
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.slow
def test_the_lines_of_the_image_run_in_an_empty_environment(empty, tmp_path):
    """Without a daemon: what the Dockerfile runs, in its order, with its paths under a folder."""
    _, wheel, _ = empty
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    final = text[text.rindex("\nFROM") :]
    shutil.copytree(wheel.parent, tmp_path / "wheels", ignore=lambda *_: ["env"])
    (tmp_path / "tmp").mkdir()
    shutil.copy(ROOT / "constraints.txt", tmp_path / "tmp")
    variables = {}
    for line in final.splitlines():
        word, _, rest = line.partition(" ")
        rest = re.sub(
            r"(?<![\w/.-])/(?=(opt|wheels|tmp|var|models|events|home)\b)", f"{tmp_path}/", rest
        )
        rest = rest.replace("$PATH", os.environ["PATH"])
        if word == "ENV":
            variables |= dict(part.split("=", 1) for part in rest.split())
        if word == "RUN":
            rest = rest.replace("python -m venv", f"{sys.executable} -m venv")
            rest = (
                rest.split("&&", 1)[1].split("&& chown")[0] if "useradd" in rest else rest
            )  # no other users here
            must("bash", "-c", rest, cwd=tmp_path, env=outside(tmp_path, **variables))
    env = outside(tmp_path, **variables)
    compiled = list((tmp_path / "var" / "cache" / "recsys").rglob("*.nbi"))
    assert len(compiled) > 20, "compiled code is made with the image"
    must(
        tmp_path / "opt" / "recsys" / "bin" / "recsys",
        "fit",
        "--model",
        "cf-komd",
        "--out",
        tmp_path / "models" / "model.recsys",
        env=env,
    )
    (command,) = [line for line in final.splitlines() if line.startswith("CMD ")]
    port = free_port()
    words = [w.replace("/models", f"{tmp_path}/models") for w in json.loads(command[4:])]
    words[words.index("--port") + 1] = str(port)
    words[0] = str(tmp_path / "opt" / "recsys" / "bin" / "recsys")
    process = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    try:
        assert '"status":"ok"' in answers(f"http://127.0.0.1:{port}/health", process)
        check = re.search(
            r"    CMD python -c \"(.+)\"$",
            text[text.index("HEALTHCHECK") :].replace("     CMD", "\n    CMD"),
            re.M,
        )[1]
        health = env | {"RECSYS_HEALTH": f"http://127.0.0.1:{port}/health"}
        must(tmp_path / "opt" / "recsys" / "bin" / "python", "-c", check, env=health)
        health["RECSYS_HEALTH"] = f"http://127.0.0.1:{free_port()}/health"
        assert run(tmp_path / "opt" / "recsys" / "bin" / "python", "-c", check, env=health).returncode
    finally:
        process.terminate()
        process.wait(20)
