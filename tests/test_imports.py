"""`import recsys` and `recsys --help` are light: what a name needs comes when it is asked for."""

import subprocess
import sys

import pytest

HEAVY = ("numba", "pandas", "pyarrow", "scipy", "sklearn", "numpy", "implicit", "torch", "streamlit")


def modules_after(code):
    """Return what is imported in a fresh interpreter that runs the code."""
    told = "import sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{told}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\n")[-2].split())


def test_importing_the_package_imports_nothing_heavy():
    assert not modules_after("import recsys; recsys.__version__; dir(recsys)") & set(HEAVY)


def test_a_worker_answers_uvicorn_before_the_service_is_imported():
    pytest.importorskip("uvicorn")
    assert not modules_after("import recsys.service.http") & {*HEAVY, "fastapi"}


@pytest.mark.thorough
def test_a_name_imports_what_it_needs_and_no_more():
    found = modules_after("from recsys import EASE; EASE(3.0)")
    assert not found & {"numba", "sklearn", "implicit", "torch", "streamlit", "optuna", "fastapi"}
