"""Commands where something around them is wrong: done, or refused in one line, and what is done is right.

Few descriptors, a clock that was set back or jumps, no home, a full or closed standard output, one that is
not UTF-8, and a cache of compiled code that was cut short or overwritten.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.attack.common import Ended, Result, cases, forked, prepared_once, workspace
from benchmarks.attack.full_disk import called, ratings_file
from benchmarks.attack.tables import save_package

YEAR = 365 * 86400.0


def compiled(model: Path) -> Callable[[], int]:
    """Return a call that computes a list in compiled code."""

    def call() -> int:
        from recsys._jit import compile_at_once
        from recsys.rankers import load_package

        compile_at_once()
        package = load_package(model)
        print(package.ranker.recommend([0, 1, 2], package.user_items[:3], 5))
        return 0

    return call


def calls(model: Path, ratings: Path, out: Path) -> dict[str, Callable[[], int]]:
    """Return what is tried, by name."""
    lists = ["recommend", "--ranker", str(model)]
    evaluate = ["evaluate", "--interactions", str(ratings), "--model", "popularity", "--quiet"]
    fit = ["fit", "--interactions", str(ratings), "--model", "ease", "--quiet", "--out", str(out)]
    words = {
        "recommend": [*lists, "--user", "u1"], "recommend all": [*lists, "--all", "--out", f"{out}.csv"],
        "similar": ["similar", "--ranker", str(model), "--item", "i1"],
        "explain": ["explain", "--ranker", str(model), "--user", "u1", "--item", "i1"], "fit": fit, "evaluate": evaluate,
    }  # fmt: skip
    return {name: called(each) for name, each in words.items()} | {"compiled": compiled(model)}


def few_descriptors(folder: Path, random: Random) -> str:
    most = random.choice((3, 6, 10, 16, 24, 40))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return f"{most} descriptors"


def clock(folder: Path, random: Random) -> str:
    """Set the clock back for good, or let each look at it give another time."""
    real, jumps, back = time.time, random.random() < 0.5, random.choice((1.0, YEAR, 40 * YEAR))
    time.time = lambda: real() - (random.uniform(0, back) if jumps else back)
    return f"a clock that {'jumps' if jumps else 'is back'} by {back:.0f} s"


def no_home(folder: Path, random: Random) -> str:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "NUMBA_CACHE_DIR"):
        os.environ[name] = random.choice(("/nowhere", "/dev/null", "/proc/self", "", "relative"))
    os.chdir(folder)
    return "no home"


def full_output(folder: Path, random: Random) -> str:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    return "standard output full"


def closed_output(folder: Path, random: Random) -> str:
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    return "standard output a broken pipe"


def narrow_output(folder: Path, random: Random) -> str:
    encoding = random.choice(("cp1252", "ascii", "latin-1", "utf-16"))
    for name, number in (("stdout", 1), ("stderr", 2)):
        setattr(sys, name, open(number, "w", encoding=encoding, closefd=False))
    return f"an output in {encoding}"


def damaged_code(folder: Path, random: Random) -> str:
    """Let compiled code be read from a cache with files cut short, emptied or overwritten."""
    own = folder / "code"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(Path(os.environ["RECSYS_ATTACK_CODE"]), own)
    files = sorted(path for path in own.rglob("*.nb[ic]"))
    how = random.choice(("empty", "cut", "zeros", "noise", "absent"))
    ending = random.choice((".nbi", ".nbc", ".nb"))
    for path in files:
        if ending in path.name and random.random() < 0.7:
            content = path.read_bytes()
            made = {"empty": b"", "cut": content[: len(content) // 2], "zeros": bytes(len(content))}
            path.write_bytes(made.get(how, random.randbytes(200)))
            if how == "absent":
                path.unlink()
    os.environ["NUMBA_CACHE_DIR"] = str(own)
    return f"compiled code: {ending} {how}"


# Each with the exit codes that are right: what hinders no work must end in 0.
AROUND: tuple[tuple[Callable[[Path, Random], str], tuple[int, ...]], ...] = (
    (few_descriptors, (0, 2)), (clock, (0,)), (no_home, (0, 2)), (full_output, (0, 2)), (closed_output, (0, 1, 2, 141)),
    (narrow_output, (0,)), (damaged_code, (0,)),
)  # fmt: skip


def judged(ended: Ended, codes: tuple[int, ...], name: str, around: str, wanted: str) -> str:
    """Return what is wrong with how a command ended."""
    fault = ended.fault(codes)
    if not fault and "internal error" in ended.err:
        fault = ended.err.strip()[-200:]
    if not fault and ended.code == 2 and len(ended.err.strip().splitlines()) != 1:
        fault = f"{len(ended.err.strip().splitlines())} lines: {ended.err.strip()[:200]}"
    same = around in ("few_descriptors", "clock", "no_home", "damaged_code") and name not in (
        "fit",
        "evaluate",
    )
    if not fault and ended.code == 0 and same and ended.out != wanted:
        fault = f"another answer: {ended.out.strip()[:150]}"
    return fault


def run(seconds: float, seed: int) -> Result:
    result = Result()
    with workspace() as folder:
        model, ratings = folder / "model", folder / "ratings.csv"
        forked(lambda: save_package("ease", model), 300, folder)
        ratings_file(ratings)
        code = prepared_once("code", lambda path: compiled_into(path, model))
        os.environ["RECSYS_ATTACK_CODE"] = str(code)
        os.environ["NUMBA_CACHE_DIR"] = str(code)
        known = calls(model, ratings, folder / "out")
        wanted = {name: forked(call, 120, folder).out for name, call in known.items()}
        for number, random in cases(seconds, seed):
            around, codes = AROUND[number % len(AROUND)]
            name = "compiled" if around is damaged_code else random.choice(sorted(known))
            (folder / "told").write_text("")

            def call(around=around, name=name, random=random) -> int:
                with (folder / "told").open(
                    "w"
                ) as file:  # opened first: there may be no descriptor left
                    file.write(around(folder, random))
                return known[name]()

            ended = forked(call, 120, folder)
            told = (folder / "told").read_text() or around.__name__
            fault = judged(ended, codes, name, around.__name__, wanted[name])
            result.add(f"case {number}, {name}, {told}", f"exit {ended.code}", fault, ended.seconds)
    return result


def compiled_into(folder: Path, model: Path) -> None:
    """Fill a cache of compiled code."""
    folder.mkdir()
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    compiled(model)()
