"""What campaigns share: a result, a clock, and cases that run in a process of their own.

This module imports nothing heavy: the memory of a forked case starts from what its campaign holds.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
KEPT = 20  # faults of a campaign that are told in full
PATIENCE = 120.0  # seconds beyond its budget after which a campaign is stopped
KIB = 1024


@dataclass
class Result:
    """What a campaign found.

    Attributes
    ----------
    tried : int
    counts : dict of str to int
        How the cases ended, in the campaign's words.
    failed : int
    faults : list of str
        The first failures, each told so that it can be tried again.
    slowest : float
        Seconds, of one case; `slowest_case` says which.
    memory : int
        Largest number of bytes that a case held, where that was looked at.
    notes : list of str
        What else belongs into the table: figures, and what was left out.
    skipped : str
        Why nothing was tried, if nothing could be.
    seed, seconds
        Set by the frame.
    """

    tried: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0
    slowest_case: str = ""
    memory: int = 0
    notes: list[str] = field(default_factory=list)
    skipped: str = ""
    seed: int = 0
    seconds: float = 0.0

    def add(
        self, case: str, ending: str, fault: str = "", seconds: float = 0.0, memory: int = 0
    ) -> None:
        """Count one case; `fault`, if there is one, says what is wrong with how it ended."""
        self.tried += 1
        self.counts[ending] += 1
        if seconds > self.slowest:
            self.slowest, self.slowest_case = seconds, case
        self.memory = max(self.memory, memory)
        if fault:
            self.failed += 1
            if len(self.faults) < KEPT:
                self.faults.append(f"{case}: {fault}"[:600])

    @property
    def ok(self) -> bool:
        """Whether it tried something, or said why not, and nothing failed."""
        return not self.failed and bool(self.tried or self.skipped)

    def ended(self) -> str:
        """Return how the cases ended, most frequent first."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        counted = ", ".join(f"{number:,} {ending}" for ending, number in self.counts.most_common())
        if self.failed:
            return f"**{self.failed:,} failed**; {counted}"
        return counted or "**nothing was tried**"

    def worst(self) -> str:
        """Return the slowest case, the most memory and the notes."""
        told = []
        if self.slowest:
            told.append(f"{self.slowest:.2g} s ({self.slowest_case})")
        if self.memory:
            told.append(f"{self.memory / 1e6:,.0f} MB")
        return "; ".join(told + self.notes)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"counts": dict(self.counts)}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Result:
        """Return what `as_json` gave."""
        return cls(**given | {"counts": Counter(given["counts"])})


def cases(seconds: float, seed: int, most: int | None = None) -> Iterator[tuple[int, Random]]:
    """Yield the number and the generator of one case after another until the time is up.

    At least one is yielded. A case depends on the seed and its number only, so the same seed gives the
    same cases again, more or fewer of them.
    """
    end = time.monotonic() + seconds
    number = 0
    while number == 0 or (time.monotonic() < end and (most is None or number < most)):
        yield number, Random(f"{seed}:{number}")
        number += 1


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """Give a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="recsys-attack-") as folder:
        yield Path(folder)


# ---- cases in processes of their own


@dataclass(frozen=True)
class Ended:
    """How a process ended: its code (−n after signal n), seconds, most bytes held, what it wrote."""

    code: int
    seconds: float
    memory: int
    out: str
    err: str
    late: bool = False  # it had to be stopped

    def fault(self, codes: tuple[int, ...] = (0, 2)) -> str:
        """Return what is wrong with it: another code than these, a traceback, no end."""
        last = self.err.strip().splitlines()[-1][:300] if self.err.strip() else ""
        if self.late:
            return f"did not end; {last}"
        if "Traceback (most recent call last)" in self.err:
            return f"traceback: {last}"
        return "" if self.code in codes else f"exit {self.code}: {last}"


def forked(
    function: Callable[[], int | None], seconds: float, folder: Path, address_space: int = 0
) -> Ended:
    """Call a function in a fork of this process, which it must leave by returning its exit code.

    Parameters
    ----------
    function : callable
    seconds : float
        After which it is killed.
    folder : path
        Where stdout and stderr of the process are kept.
    address_space : int
        Limit of it in bytes; 0 for none.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    outs = folder / "case.out", folder / "case.err"
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            for path, number in zip(outs, (1, 2), strict=True):
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(handle, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))
            if address_space:
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            code = function() or 0
            sys.stdout.flush()
            sys.stderr.flush()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:
            traceback.print_exc()
            with contextlib.suppress(Exception):
                sys.stderr.flush()
        finally:
            os._exit(code)
    return _wait(pid, started, seconds, outs)


def started(
    arguments: list[str],
    seconds: float,
    folder: Path,
    signals: tuple[tuple[float, int], ...] = (),
    ready: bool = False,
    **more: Any,
) -> Ended:
    """Run a program, send it signals, each so many seconds after its start, and wait for its end.

    With `ready` the clock starts when the program has written something to stdout.
    """
    outs = folder / "case.out", folder / "case.err"
    begun = time.monotonic()
    with outs[0].open("wb") as out, outs[1].open("wb") as err:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=more.pop("stdout", out),
            stderr=err,
            start_new_session=True,
            **more,
        )
    while ready and not outs[0].stat().st_size and child.poll() is None:
        time.sleep(0.0005)
        begun = time.monotonic()
    child.returncode = 0  # reaped below, with what it used
    return _wait(child.pid, begun, seconds, outs, signals)


def _wait(
    pid: int,
    begun: float,
    seconds: float,
    outs: tuple[Path, Path],
    signals: tuple[tuple[float, int], ...] = (),
) -> Ended:
    """Wait for a child that leads a process group; kill the group when the time is up."""
    late, left = False, list(signals)
    while True:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            break
        passed = time.monotonic() - begun
        while left and passed >= left[0][0]:
            os.kill(pid, left.pop(0)[1])
        if passed > seconds:
            late = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _, status, used = os.wait4(pid, 0)
            break
        time.sleep(0.002 if passed < 0.2 else 0.01)
    took = time.monotonic() - begun
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    told = [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in outs]
    return Ended(code, took, used.ru_maxrss * KIB, told[0], told[1], late)


# ---- campaigns in processes of their own


def module(name: str) -> Any:
    """Return the module of a campaign."""
    return importlib.import_module(f"benchmarks.attack.{name.replace('-', '_')}")


def run_here(name: str, seconds: float, seed: int) -> Result:
    """Run a campaign in this process; what it raises is its failure."""
    begun = time.monotonic()
    try:
        result = module(name).run(seconds, seed)
    except Exception as error:
        result = Result()
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
        result.add("the campaign", "stopped", told)
    result.seed, result.seconds = seed, round(time.monotonic() - begun, 1)
    return result


def run_apart(name: str, seconds: float, seed: int) -> Result:
    """Run a campaign in a process of its own, so that what kills it is one failure more."""
    with workspace() as folder:
        answer = folder / "answer.json"
        command = [sys.executable, "-m", "benchmarks.attack", name]
        command += ["--seconds", str(seconds), "--seed", str(seed), "--answer", str(answer)]
        ended = started(command, 2 * seconds + PATIENCE, folder, cwd=ROOT)
        if answer.exists() and ended.code == 0:
            return Result.from_json(json.loads(answer.read_text(encoding="utf-8")))
        result = Result(seed=seed, seconds=round(ended.seconds, 1))
        result.add("the campaign", "stopped", ended.fault((0,)) or "gave no result")
        return result
