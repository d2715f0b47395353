"""The wheel on every supported Python that is found: `make test-pythons`.

    python -m tests.pythons FOLDER [--short]

Each gets an environment of its own in FOLDER with the wheel and its own requirements, a short use, and, unless --short is
given, the tests of the contract; --short leaves out the Python that runs this, on which the slow tier tries the wheel.
A version that is not found is said so, loudly, and is no failure.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests import wheel
from tests.lowest import USE

ROOT = Path(__file__).parents[1]


def supported():
    """Return the versions that pyproject.toml names: ("3.11", …)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [m[1] for line in project["classifiers"] if (m := re.fullmatch(r".*:: (3\.\d+)", line))]


def interpreters():
    """Return {version: path or None}: on the PATH, or among pyenv's."""
    found = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in supported():
        candidates = [
            shutil.which(f"python{version}"),
            *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True),
        ]
        found[version] = next((path for path in candidates if path and runs(path, version)), None)
    return found


def runs(path, version):
    """Whether a program is that Python, and can make environments; one of pyenv's shims may be neither."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version


def trial(version, python, folder, package, short):
    """Install the wheel, use it, and run the contract on it."""
    programs = wheel.environment(
        python,
        folder / version,
        package,
        "pytest>=8.3",
        "pytest-timeout>=2.3",
        "hypothesis>=6.110",
        "cloudpickle>=3.0",
        "polars>=1.0",
    )
    env = wheel.outside(folder / version)
    (folder / version / "use.py").write_text(USE, encoding="utf-8")
    print(
        wheel.must(programs / "python", "use.py", cwd=folder / version, env=env).strip().splitlines()[-1]
    )
    if short:
        return
    tests = folder / version / "clone"  # the tests without the sources: the package is the wheel's
    shutil.copytree(
        ROOT / "tests", tests / "tests", ignore=shutil.ignore_patterns("__pycache__", "app", "docs")
    )
    shutil.copy(ROOT / "pyproject.toml", tests)
    where = wheel.must(
        programs / "python", "-c", "import recsys; print(recsys.__file__)", cwd=tests, env=env
    )
    assert "site-packages" in where, where
    told = wheel.run(
        programs / "python",
        "-m",
        "pytest",
        "tests/contract",
        "-p",
        "no:cacheprovider",
        cwd=tests,
        env=env,
    )
    print(told.stdout.strip().splitlines()[-1])
    if told.returncode:
        raise SystemExit(f"Python {version}: {told.stdout[-4000:]}{told.stderr[-2000:]}")


def main():
    """Try each."""
    folder = Path(sys.argv[1]).resolve()
    package = wheel.build(folder / "dist")
    short = "--short" in sys.argv[2:]
    missing = []
    for version, python in interpreters().items():
        if short and version == f"{sys.version_info[0]}.{sys.version_info[1]}":
            continue
        if python is None:
            missing.append(version)
            continue
        print(f"Python {version}: {python}", flush=True)
        trial(version, python, folder, package, short)
    for version in missing:
        print(f"NOT TRIED: Python {version} is not on the PATH and not among pyenv's", file=sys.stderr)
    if len(missing) == len(supported()):
        raise SystemExit("no supported Python was found")


if __name__ == "__main__":
    main()
