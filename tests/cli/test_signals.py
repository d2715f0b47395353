"""SIGINT and SIGTERM end a command with their exit codes, after cleaning up, without a traceback."""

import json
import signal
import subprocess
import sys
import time

import pytest

from recsys import evaluate, load_dataset

ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
# Runs a command whose body is this function instead.
INSTEAD = """
import sys, time
import recsys.cli.commands as commands
from recsys.cli import run
def instead():
    print("ready", flush=True)
    {body}
class Module:
    datasets = staticmethod(instead)
sys.modules["recsys.cli.info"] = Module()
sys.argv[1:] = ["datasets"]
run()
"""


def start(body):
    program = INSTEAD.format(body=body)
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    time.sleep(0.2)  # the call itself
    return child


def end(child):
    try:
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert "Traceback" not in err and "Exception ignored" not in err, err
    return child.returncode, err


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_signal_ends_a_command_after_it_has_cleaned_up(tmp_path, number, code):
    body = (
        f"from recsys.utils.files import replacing\n    with replacing({str(tmp_path / 'x')!r}) as file:\n"
        "        file.write(b'half'); time.sleep(60)"
    )
    child = start(body)
    child.send_signal(number)
    assert end(child) == (code, "recsys: interrupted\n" if code == 130 else "")
    assert not list(tmp_path.iterdir())


MODELS = ["popularity", "ease", "als"]
STOPS = """
import os, signal, sys, time
import recsys.cli.evaluate as command
from recsys.cli import run
whole = command.run_evaluation
def interrupted(*given, progress, **named):
    def heard(step, done, total):
        if step.startswith({step!r}):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        progress(step, done, total)
    return whole(*given, progress=heard, **named)
command.run_evaluation = interrupted
sys.argv[1:] = ["evaluate", "--dataset", "sample", "--folds", "2", "--quiet", *{arguments!r}]
run()
"""


def stopped(tmp_path, step, *arguments):
    """Run `recsys evaluate`, into which Ctrl-C comes as soon as a step begins."""
    given = [part for one in MODELS for part in ("--model", one)] + [str(one) for one in arguments]
    program = STOPS.format(step=step, arguments=given)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


@pytest.mark.thorough
def test_an_evaluation_that_is_interrupted_keeps_what_is_measured(tmp_path):
    file = tmp_path / "report.json"
    done = stopped(tmp_path, "als, fold 1", "--json", file)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "recsys: interrupted: not measured: als"
    assert "Traceback" not in done.stderr and "ease" in done.stdout
    told = json.loads(file.read_text())
    assert [one["model"] for one in told["results"]] == MODELS[:2] and told["folds"] == 2
    assert "interrupted: not measured: als" in told["notes"]
    whole = evaluate(load_dataset("sample"), MODELS[:2], folds=2)
    for one, other in zip(told["results"], whole.results, strict=True):
        assert {name: found["mean"] for name, found in one["metrics"].items()} == {
            name: figure.mean for name, figure in other.metrics.items()
        }


@pytest.mark.thorough
def test_of_a_first_model_that_is_interrupted_whole_folds_are_kept(tmp_path):
    done = stopped(tmp_path, "popularity, fold 2", "--json", "-")
    assert done.returncode == 130
    expected = "recsys: interrupted: not measured: ease, als; folds: 1 of 2"
    assert done.stderr.splitlines() == [expected]
    told = json.loads(done.stdout)
    assert [one["model"] for one in told["results"]] == ["popularity"] and told["folds"] == 1


@pytest.mark.thorough
def test_an_evaluation_that_has_measured_nothing_is_interrupted_like_any_command(tmp_path):
    done = stopped(tmp_path, "popularity, fold 1", "--json", tmp_path / "none.json")
    assert done.returncode == 130 and done.stdout == ""
    assert done.stderr == "recsys: interrupted\n" and not list(tmp_path.iterdir())


SWALLOWED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "recsys.cli.terminal":
            try:
                os.kill(os.getpid(), signal.{name})
                for _ in range(1000):
                    pass
            except BaseException:
                pass

from recsys.cli import run
sys.meta_path.insert(0, Finder())
sys.argv = ["recsys", "datasets"]
run()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_an_import_would_lose_ends_the_command(name, code):
    ended = subprocess.run(
        [sys.executable, "-c", SWALLOWED.replace("{name}", name)], capture_output=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", b"")
