"""Options of every command with values nobody should give: exit 0 or 2, no traceback, an end."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attack.common import Result, cases, forked, workspace
from benchmarks.attack.full_disk import called, ratings_file
from benchmarks.attack.tables import save_package

PATIENCE = 60.0
VALUES = (
    "", " ", "0", "-1", "1", "3", "1e9", "1e999", "nan", "inf", "9" * 30, "2147483648", "0.5", "true", "none",
    "\u202e", "é", "a b", "'", '"', "[red]x[/red]", "\x1b[31m", "../..", "/", "/dev/null", "nowhere", "-", "--",
    "-n", "x" * 5000, "a,b", "a:b", "a=b", "ease:", ":", "ease:name=x", "ease:self=1", "ease:regularization=nan",
    "als:factors=1000000000", "als:factors=" + "9" * 400, "cf-komd:degree=99", "blend:models=blend",
    "random-features:n_components=1000000000000", "bpr:learning_rate=1e30", "slim:l1=-1", "u1", "u1,u2", "i1,i2,i3",
    "2020-01-01", "2020-13-45", "holdout", "sample", "\udcff",
)  # fmt: skip
UNWRITABLE = (
    "/dev/full",
    "/proc/nowhere",
    "/nowhere/at/all",
    "/proc/version",
    "x" * 300,
    "",
    ".",
    "/dev/null/x",
    "a\0b",
)
OUTPUTS = ("--out", "--json", "--users-out", "--items-out", "--curve", "--events")
# Those that start a browser, or compile for minutes, are not called.
LEFT_OUT = ("app", "compile")
SERVING = 10.0  # seconds after which a service that runs has taken its options


def options(command: str) -> list[tuple[str, bool]]:
    """Return the options of a command, each with whether it takes a value."""
    from recsys.cli import commands

    found = []
    for parameter in commands.load(command).params:
        if parameter.param_type_name == "option":
            longest = max(parameter.opts, key=len)
            found.append((longest, not getattr(parameter, "is_flag", False)))
    return found


def usual(command: str, model: Path, ratings: Path, folder: Path) -> list[str]:
    """Return arguments with which a command works, or nearly."""
    some = {
        "evaluate": ["--interactions", str(ratings), "--model", "popularity", "--quiet"],
        "fit": [
            "--interactions",
            str(ratings),
            "--model",
            "popularity",
            "--quiet",
            "--out",
            str(folder / "out"),
        ],
        "tune": ["--interactions", str(ratings), "--model", "msdw", "--trials", "1", "--quiet"],
        "recommend": ["--ranker", str(model), "--user", "u1"],
        "similar": ["--ranker", str(model), "--item", "i1"],
        "explain": ["--ranker", str(model), "--user", "u1", "--item", "i1"],
        "export": ["--ranker", str(model), "--items-out", str(folder / "vectors.parquet")],
        "serve": ["--ranker", str(model), "--port", "0"],
    }
    return some.get(command, [])


def run(seconds: float, seed: int) -> Result:
    from recsys.cli.commands import COMMANDS

    result = Result()
    names = [name for name in COMMANDS if name not in LEFT_OUT]
    known = {name: options(name) for name in names}
    with workspace() as folder:
        model, ratings = folder / "model", folder / "ratings.csv"
        forked(lambda: save_package("ease", model), 300, folder)  # in a fork: it uses threads
        ratings_file(ratings)
        for number, random in cases(seconds, seed):
            name = random.choice(names)
            place = folder / f"case{number}"
            place.mkdir()
            arguments = usual(name, model, ratings, place)
            for _ in range(random.choice((1, 1, 2, 3))):
                if not known[name]:
                    break
                option, valued = random.choice(known[name])
                arguments += [option, random.choice(VALUES)] if valued else [option]
            outputs = [option for option, _ in known[name] if option in OUTPUTS]
            if outputs and random.random() < 0.3:
                arguments += [random.choice(outputs), random.choice(UNWRITABLE)]
            if random.random() < 0.1:
                arguments.append(random.choice(VALUES))
            serves = name == "serve"
            ended = forked(inside(place, [name, *arguments]), SERVING if serves else PATIENCE, folder)
            shown = " ".join(argument[:60] for argument in arguments)
            fault = "" if serves and ended.late and "Traceback" not in ended.err else ended.fault()
            if not fault and "internal error" in ended.err:
                fault = ended.err.strip()[-200:]
            result.add(
                f"case {number}, {name} {shown}"[:300],
                f"exit {ended.code}",
                fault,
                ended.seconds,
                ended.memory,
            )
    return result


def inside(folder: Path, arguments: list[str]):
    """Return the call of a command in a folder of its own, for what it writes."""
    import os

    def call() -> int:
        os.chdir(folder)
        return called(arguments)()

    return call
