"""What fuzz tests share: a result, a clock, and cases that run in a process of their own.

This module imports nothing heavy: the memory of a forked case starts from what its fuzz test holds.
"""

from __future__ import annotations

import atexit
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
KEPT = 20  # faults of a fuzz test that are told in full
PATIENCE = 180.0  # seconds beyond its budget after which a fuzz test is stopped
KIB = 1024
GROUPS = "RECSYS_ATTACK_GROUPS"  # variable that names the file of `noted`
SHARED = "RECSYS_ATTACK_SHARED"  # variable that names the folder of `prepared_once`


@dataclass
class Result:
    """What a fuzz test found; `seed` and `seconds` are set by the frame."""

    tried: int = 0
    counts: Counter[str] = field(
        default_factory=Counter
    )  # how the cases ended, in the fuzz test's words
    failed: int = 0
    # the first failures, each told so that it can be tried again
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0  # seconds, of one case
    slowest_case: str = ""
    memory: int = 0  # the most bytes that a case held, where that was looked at
    # what else belongs into the table: figures, and what was left out
    notes: list[str] = field(default_factory=list)
    skipped: str = ""  # why nothing was tried, if nothing could be
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


def prepared_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return a file that several fuzz tests of a run read; the first one that asks makes it.

    The folder is that of `SHARED`, which the process that runs all of them sets, or one of this process.
    """
    if SHARED not in os.environ:
        own = tempfile.TemporaryDirectory(prefix="recsys-attack-")
        atexit.register(own.cleanup)
        os.environ[SHARED] = own.name
    path = Path(os.environ[SHARED]) / name
    if not path.exists():
        fresh = path.with_name(f"{name}.{os.getpid()}")  # another one may have been killed here
        # In a fork: what was fitted in this process has used threads, after which it cannot be forked.
        with workspace() as folder:
            ended = forked(lambda: make(fresh) and None, 600, folder)
        if ended.code:
            raise RuntimeError(f"{name} could not be prepared: {ended.fault((0,))}")
        fresh.rename(path)
    return path


# ---- cases in processes of their own


def noted(group: int, begins: bool = True) -> None:
    """Keep that a process group begins, or has ended, for whoever must end it after a kill."""
    if GROUPS in os.environ:
        with open(os.environ[GROUPS], "a", encoding="utf-8") as file:
            file.write(f"{group if begins else -group}\n")


def living(file: Path) -> set[int]:
    """Return the process groups that began and did not end."""
    numbers = list(map(int, file.read_text().split())) if file.exists() else []
    return {one for one in numbers if one > 0 and numbers.count(one) > numbers.count(-one)}


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

    It is killed after so many seconds; the folder keeps its stdout and stderr. `address_space` limits
    its bytes; 0 for no limit.
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


def members(group: int) -> list[int]:
    """Return the ids of the processes of a group that live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return sorted(found)


BATCH = 25  # calls in one fork; after a signal the next fork goes on behind the call that ended it


def in_batches(
    result: Result,
    seconds: float,
    seed: int,
    attempt: Callable[[int], tuple[str, str, str]],
    told: Callable[[int], str],
    patience: float = 60.0,
    address_space: int = 0,
) -> None:
    """Make calls in forks of this process until the time is up; one that ends its fork is one failure.

    `attempt` makes the call of a number and returns its description, how it ended, and what is wrong
    with that; `told` describes it without making it. A fork is killed after `patience` processor seconds
    of one call.
    """

    def batch(first: int, log: Path) -> int:
        # Before and after each call a line is written.
        with log.open("w", encoding="utf-8", errors="replace") as file:
            for number in range(first, first + BATCH):
                began = time.perf_counter()
                # Without handlers they end the fork. Processor time counts: the machine may be busy.
                signal.setitimer(signal.ITIMER_PROF, patience)
                signal.setitimer(signal.ITIMER_REAL, 5 * patience)
                lines = [" ".join(part.split()) for part in attempt(number)]
                took = f"{time.perf_counter() - began:.4f}"
                file.write("\t".join([str(number), took, *lines]) + "\n")
                file.flush()
                if time.monotonic() > until:
                    break
        return 0

    number, until = 0, time.monotonic() + seconds
    with workspace() as folder:
        log = folder / "log"
        for _ in cases(seconds, seed):
            log.write_text("")
            limit = 5 * BATCH * patience
            ended = forked(lambda first=number: batch(first, log), limit, folder, address_space)
            done = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]
            for which, took, case, ending, *fault in done:
                result.add(f"case {which}, {case}", ending, fault[0] if fault else "", float(took))
            number += len(done)
            if ended.code in (-signal.SIGALRM, -signal.SIGPROF):
                result.add(f"case {number}, {told(number)}", "not ended in time")
                result.notes.append(f"not ended in time: case {number}, {told(number)[:80]}")
                number += 1
            elif ended.code:
                result.add(f"case {number}, {told(number)}", "killed", ended.fault((0,)))
                number += 1


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
    noted(pid)
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
    noted(pid, False)
    took = time.monotonic() - begun
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    told = [path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in outs]
    return Ended(code, took, used.ru_maxrss * KIB, told[0], told[1], late)


# ---- fuzz tests in processes of their own


def module(name: str) -> Any:
    """Return the module of a fuzz test."""
    return importlib.import_module(f"benchmarks.attack.{name.replace('-', '_')}")


def run_here(name: str, seconds: float, seed: int) -> Result:
    """Run a fuzz test in this process; what it raises is its failure."""
    begun = time.monotonic()
    try:
        result = module(name).run(seconds, seed)
    except Exception as error:
        result = Result()
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
        result.add("the fuzz test", "stopped", told)
    result.seed, result.seconds = seed, round(time.monotonic() - begun, 1)
    return result


def run_apart(name: str, seconds: float, seed: int) -> Result:
    """Run a fuzz test in a process of its own, so that what kills it is one failure more."""
    with workspace() as folder:
        answer = folder / "answer.json"
        command = [sys.executable, "-m", "benchmarks.attack", name]
        command += ["--seconds", str(seconds), "--seed", str(seed), "--answer", str(answer)]
        own = os.environ | {GROUPS: str(folder / "groups")}
        ended = started(command, 2 * seconds + PATIENCE, folder, cwd=ROOT, env=own)
        for group in living(folder / "groups"):  # what it started, had it no time to end that
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        if answer.exists() and ended.code == 0:
            return Result.from_json(json.loads(answer.read_text(encoding="utf-8")))
        result = Result(seed=seed, seconds=round(ended.seconds, 1))
        result.add("the fuzz test", "stopped", ended.fault((0,)) or "gave no result")
        return result
