"""SIGINT and SIGTERM, at any moment and in any code: their exit codes, and no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
# Sends the signal when a module is about to be imported.
AT_AN_IMPORT = """
import os, sys
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Sender())
from recsys.cli import run
sys.argv[1:] = ["evaluate", "--model", "popularity"]
run()
"""
# Runs a command whose body is this function instead.
INSTEAD = """
import itertools, sys, time
import recsys.cli.commands as commands
from recsys.cli import run
def instead():
    print("ready", flush=True)
    {body}
class Module:
    datasets = staticmethod(instead)
sys.modules["recsys.cli.datasets"] = Module()
sys.argv[1:] = ["datasets"]
run()
"""


@pytest.mark.parametrize(("number", "code"), ENDS)
@pytest.mark.parametrize(
    "module", ["threading", "typer", "recsys.cli.commands", "llvmlite", "numpy", "scipy", "numba"]
)
def test_a_signal_while_modules_are_imported(module, number, code):
    program = AT_AN_IMPORT.format(module=module, number=int(number))
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert out.returncode == code, out.stderr
    assert "Traceback" not in out.stderr and "Exception ignored" not in out.stderr
    assert out.stdout == "" and len(out.stderr.splitlines()) <= 1


def test_the_handlers_stand_before_anything_heavy_is_imported():
    program = (
        "import sys; before = set(sys.modules); import recsys.cli\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    out = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True)
    light = {
        "recsys",
        "atexit",
        "signal",
        "enum",
        "importlib",
        "warnings",
        "types",
        "functools",
        "collections",
    }
    light |= {
        "operator",
        "os",
        "posixpath",
        "genericpath",
        "stat",
        "reprlib",
        "keyword",
        "itertools",
        "contextlib",
        "_weakrefset",
        "weakref",
    }
    found = {name for name in out.stdout.split() if not name.startswith("_")}
    assert "recsys" in found and found <= light, found - light


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
        out, err = child.communicate(timeout=20)
    finally:
        child.kill()
    assert "Traceback" not in err and "Exception ignored" not in err, err
    return child.returncode, err


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_signal_ends_code_that_keeps_the_interpreters_lock(number, code):
    """An endless loop in C, which neither gives the lock away nor looks for signals, as LAPACK's."""
    child = start("any(itertools.repeat(False))")
    child.send_signal(number)
    assert end(child) == (code, "")


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_signal_ends_code_that_swallows_what_is_raised(number, code):
    body = "while True:\n        try: time.sleep(60)\n        except BaseException: pass"
    child = start(body)
    child.send_signal(number)
    assert end(child) == (code, "")


def test_a_second_signal_does_not_disturb_the_cleaning_up(tmp_path):
    body = (
        "try: time.sleep(60)\n    finally:\n"
        f"        open({str(tmp_path / 'started')!r}, 'w').close(); time.sleep(0.6)\n"
        f"        open({str(tmp_path / 'cleaned')!r}, 'w').close()"
    )
    child = start(body)
    child.send_signal(signal.SIGTERM)
    for _ in range(1000):
        if (tmp_path / "started").exists():
            break
        time.sleep(0.005)
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGINT)
    assert end(child)[0] == 143
    assert (tmp_path / "cleaned").exists()


def test_other_signals_end_nothing():
    """A handler of another signal wakes the watching thread, too."""
    body = (
        "import signal, os; signal.signal(signal.SIGUSR1, lambda *_: None)\n"
        "    os.kill(os.getpid(), signal.SIGUSR1); time.sleep(2.5); print('whole')"
    )
    child = start(body)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (0, "whole\n", "")


def test_a_signal_to_a_forked_child_is_its_own():
    body = (
        "import os\n    pid = os.fork()\n    if pid == 0: time.sleep(60)\n"
        "    time.sleep(0.3); os.kill(pid, 15); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "    time.sleep(2.5); print('whole')"
    )
    child = start(body)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (0, "-15\nwhole\n", "")


def test_a_signal_after_the_work_is_done_ends_the_process_at_once():
    body = "import atexit; atexit.register(lambda: (print('over', flush=True), time.sleep(60)))"
    child = start(body)
    assert child.stdout.readline() == "over\n"
    child.send_signal(signal.SIGTERM)
    assert end(child) == (143, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_takes_itself_apart_is_no_end(number):
    """Its modules are cleared after it has put the system's handlers back."""
    body = (
        "import os\n    class Last:\n"
        f"        def __del__(self, kill=os.kill, pid=os.getpid()): kill(pid, {int(number)})\n"
        "    sys.modules['__main__'].last = Last()"
    )
    assert end(start(body)) == (0, "")


# ---- the streams


def run_with(redirection, *arguments):
    command = f'exec "{sys.executable}" -c "from recsys.cli import run; run()" {" ".join(arguments)} {redirection}'
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--version"], ["datasets"]])
def test_a_full_stdout_is_one_line(arguments):
    out = run_with("> /dev/full", *arguments)
    assert out.returncode == 2
    assert out.stderr == (
        "recsys: standard output, or a file, cannot be written or read: No space left on device\n"
    )


@pytest.mark.parametrize("arguments", [["--version"], ["datasets"]])
def test_a_closed_stdout_is_one_line(arguments):
    out = run_with(">&-", *arguments)
    assert out.returncode == 2
    assert (
        out.stderr
        == "recsys: standard output, or a file, cannot be written or read: Bad file descriptor\n"
    )
    assert run_with("2>&-", *arguments).returncode == 0
    assert run_with("<&-", *arguments).returncode == 0


def test_what_needs_no_stdout_works_without_one(tmp_path):
    (tmp_path / "r.csv").write_text(
        "user_id,item_id\n" + "".join(f"u{k % 5},i{k % 7}\n" for k in range(30))
    )
    out = run_with(
        ">&- 2>&- <&-", "fit", "--interactions", str(tmp_path / "r.csv"), "--model", "popularity",
        "--quiet", "--out", str(tmp_path / "m"),
    )  # fmt: skip
    from recsys import load_ranker

    assert load_ranker(tmp_path / "m").n_items_ == 7
    assert out.returncode in (0, 2)


@pytest.mark.parametrize(("number", "code"), ENDS)
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_ends_processes_and_leaves_nothing_of_theirs_behind(number, code, busy):
    """The tracker of multiprocessing would tell of semaphores that nobody gave back."""
    body = "from recsys.engines import engine\n    with engine('local=2') as one:\n        "
    if busy:
        body += "list(one.map(time.sleep, [0.0, 0.0])); "
    body += "print('busy', flush=True); list(one.map(time.sleep, [60.0, 60.0]))"
    child = start(body)
    assert child.stdout.readline() == "busy\n"
    time.sleep(0.3)
    child.send_signal(number)
    ended, err = end(child)
    assert ended == code
    assert "semaphore" not in err and len(err.splitlines()) <= 1, err
