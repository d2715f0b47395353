"""`auto` against every other ranker, each tuned by the same number of trials on the same validation split.

For every setting each peer gets the same number of trials of `tune` for AUC + nDCG@10, on the first fold's training
part; then all are evaluated on the same folds, and the paired differences to `auto` have bootstrap intervals over
users. A peer is left out of a setting, and named with the reason, if a trial takes longer than `--seconds`, if it takes more
than `--memory`, or if it refuses.

Goes on where it was stopped: a tuned row is kept while the peer's search space and the trials are the same, and values
per user lie in the user's cache while the parameters are the same (of `auto`: while the sources are). `--again PEER`
forgets both. A trial's seconds are the processor's, so that what runs beside it takes none.

`--neighbours` measures instead what `user-knn`, `cosine`, `tfidf` and `bm25` would be worth as candidates, on
validation only: inside the training part of the first fold, `auto` is fitted with them and without.

python -m benchmarks.auto --neighbours [dataset/protocol …]
python -m benchmarks.auto [--seconds 120] [--memory 12] [--again PEER] [--summary] [dataset/protocol …]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import platformdirs
import psutil

import recsys
from benchmarks.folds import as_committed, load
from benchmarks.lab.common import RESULTS, read_csv, write_csv
from recsys import evaluate, list_rankers, make_ranker
from recsys.data import find_protocol
from recsys.evaluation.significance import compare
from recsys.rankers.base import Candidate
from recsys.rankers.registry import RANKERS
from recsys.tuning import training_part, tunable, tune
from recsys.utils.spec import parse_spec

TRIALS = {"gowalla/half-profile": 4, "yelp2018/half-profile": 4}  # else 8
METRICS = ("auc", "ndcg@10", "map@10")
JUDGED = ("auc", "ndcg@10")  # in which `auto` is to be first or tied
KERNELS = ("linear", "hp", "tanimoto", "mc", "md", "mdnf", "mcnf")
NO_PEERS = {"auto": "what is compared", "blend": "made of peers, as auto is"}
# setting, dataset/protocol: the first so many folds
SETTINGS = {
    "movielens/half-profile": 5,
    "movielens/half-profile-time": 5,
    "filmtrust/half-profile": 5,
    "bookcrossing/half-profile": 5,
    "movielens-1m/half-profile": 2,
    "ciaodvd/half-profile": 2,
    "gowalla/half-profile": 1,
    "yelp2018/half-profile": 1,
}
TUNED = ("setting", "peer", "model", "validation", "seconds", "trials", "space", "left out")
FIGURES = (
    "setting", "peer", "model", *METRICS,
    *(f"{metric} of auto less this{end}" for metric in METRICS for end in ("", ", low", ", high")),
    "fit seconds", "left out",
)  # fmt: skip
CACHE = Path(platformdirs.user_cache_dir("recsys")) / "benchmarks" / "auto"
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Limits:
    """What a peer may take: processor seconds a trial, and bytes in memory."""

    seconds: float = 120.0
    memory: float = 12e9

    @property
    def slow(self) -> str:
        """The reason for leaving out what takes longer."""
        return f"a trial takes longer than {self.seconds:g} processor seconds"

    @property
    def large(self) -> str:
        """The reason for leaving out what takes more memory."""
        return f"takes more than {self.memory / 1e9:g} GB"

    def stands(self, reason: str) -> bool:
        """Return whether what was left out would be so again: it refused, or the limits are the same."""
        return reason in (self.slow, self.large) or not re.match(
            "a trial takes longer|takes more", reason
        )


@dataclass
class Outcome:
    """What a process of one peer found; `left_out` is the reason if it was ended, or refused."""

    spec: str = ""
    validation: float = 0.0
    tune_seconds: float = 0.0
    values: dict[str, np.ndarray] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    left_out: str = ""


def peers() -> list[str]:
    """Return every ranker but `auto` and blends; CF-KOMD with each of its kernels, MSDw also unsharpened."""
    out: list[str] = []
    for name in list_rankers():
        if name == "cf-komd":
            out += [f"cf-komd:kernel={kernel}" for kernel in KERNELS]
        elif name not in NO_PEERS:
            out += [name, "msdw:sharpening=0"] if name == "msdw" else [name]
    return out


def space_of(peer: str, in_time: bool) -> str:
    """Return a digest of what `tune` searches for a peer; trials of another space cannot be compared."""
    name, fixed = parse_spec(peer)
    ranker = RANKERS.get(name)
    searched = {
        key: [*space, *ranker.searched_where.get(key, ())]
        for key, space in ranker.search_space.items()
        if key not in fixed and (in_time or space[-1] != "times")
    }
    return _digest(searched) if searched else ""


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:8]


def sources() -> str:
    """Return a digest of the package's sources."""
    root = Path(recsys.__file__).parent
    texts = [path.read_bytes() for path in sorted(root.rglob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:8]


# ---- one peer, in a process of its own


def _work(wire: Connection, setting: str, peer: str, spec: str, trials: int, folds: int) -> None:
    """Tune a peer unless a specification is given, and measure it, telling how far it is."""
    name, protocol = setting.split("/")
    try:
        data = as_committed(load(name), protocol)
        if not spec:
            best = tune(
                data, peer, trials, metric="auc+ndcg@10", protocol=protocol,
                progress=lambda text, done, total: wire.send(("trial", done < total)),
            )  # fmt: skip
            wire.send(("tuned", (best.spec, best.value)))
            spec = best.spec
        report = evaluate(data, spec, protocol=protocol, metrics=METRICS, only_folds=folds, n_jobs=1)
        result = report.results[0]
        means = {metric: figure.mean for metric, figure in result.metrics.items()}
        values = {metric: report.values[result.model, metric].to_numpy() for metric in METRICS}
        wire.send(("measured", (values, means, result.fit_seconds / folds)))
    except (recsys.InputError, MemoryError) as error:
        wire.send(("left out", str(error) or type(error).__name__))
    finally:
        wire.close()


def run(setting: str, peer: str, spec: str, trials: int, folds: int, limits: Limits) -> Outcome:
    """Return what a process found, which is ended if it takes too long for a trial or too much memory."""
    outcome, context = Outcome(spec), get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, setting, peer, spec, trials, folds))
    process.start()
    theirs.close()
    begun, since, in_trial = time.perf_counter(), 0.0, False
    try:
        while True:
            if ours.poll(POLL_SECONDS):
                try:
                    kind, told = ours.recv()
                except EOFError:
                    process.join()
                    outcome.left_out = f"its process ended with code {process.exitcode}"
                    return outcome
                if kind == "trial":
                    since, in_trial = _processor_seconds(process.pid), told
                elif kind == "tuned":
                    outcome.spec, outcome.validation = told
                    outcome.tune_seconds, in_trial = time.perf_counter() - begun, False
                elif kind == "measured":
                    outcome.values, outcome.means, outcome.fit_seconds = told
                    return outcome
                else:
                    outcome.left_out = told
                    return outcome
            if in_trial and _processor_seconds(process.pid) - since >= limits.seconds:
                outcome.left_out = limits.slow
                return outcome
            if _resident(process.pid) > limits.memory:
                outcome.left_out = limits.large
                return outcome
    finally:
        process.kill()
        process.join()


def _processor_seconds(pid: int | None) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    except psutil.NoSuchProcess:
        return 0.0


def _resident(pid: int | None) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


# ---- a setting


def _place(setting: str, spec: str, folds: int) -> Path:
    name, params = parse_spec(spec)
    known = [setting, folds, METRICS, name, make_ranker(name, **params).get_params()]
    return CACHE / f"{_digest([*known, sources() if name == 'auto' else ''])}.npz"


def _kept(path: Path) -> Outcome | None:
    """Return what was measured before."""
    if not path.exists():
        return None
    with np.load(path) as file:
        values = {metric: file[metric] for metric in METRICS}
        means = dict(zip(METRICS, file["means"].tolist(), strict=True))
        return Outcome(values=values, means=means, fit_seconds=float(file["fit_seconds"]))


def _keep(path: Path, found: Outcome) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    means = np.array([found.means[metric] for metric in METRICS])
    np.savez(path, means=means, fit_seconds=found.fit_seconds, **found.values)


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a result, none where it is absent."""
    return read_csv(name) if (RESULTS / f"{name}.csv").exists() else []


def _write(name: str, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    write_csv(name, columns, [[row.get(column, "") for column in columns] for row in rows])


def measure(setting: str, limits: Limits, again: Sequence[str] = ()) -> None:
    """Tune, evaluate and compare in one setting, writing each row as it is there."""
    folds, trials = SETTINGS[setting], TRIALS.get(setting, 8)
    name, protocol = setting.split("/")
    in_time = find_protocol(protocol).predicts_future(load(name))
    auto = _measured(setting, "auto", "auto", folds, limits, "auto" in again)
    figures = [row for row in rows_of("auto") if row["setting"] != setting]
    figures.append(_row(setting, "auto", auto, auto))
    if auto.left_out:
        _write("auto", FIGURES, figures)
        return
    for peer in peers():
        found = _tuned_and_measured(setting, peer, in_time, trials, folds, limits, peer in again)
        figures.append(_row(setting, peer, found, auto))
        _write("auto", FIGURES, figures)


def _measured(setting: str, peer: str, spec: str, folds: int, limits: Limits, again: bool) -> Outcome:
    """Return the figures of a specification, from the cache where they are there."""
    place = _place(setting, spec, folds)
    found = None if again else _kept(place)
    if found is None:
        found = run(setting, peer, spec, 0, folds, limits)
        if not found.left_out:
            _keep(place, found)
    found.spec = spec
    return found


def _tuned_and_measured(
    setting: str, peer: str, in_time: bool, trials: int, folds: int, limits: Limits, again: bool
) -> Outcome:
    """Return the figures of a peer with its tuned parameters, and write how it was tuned."""
    if parse_spec(peer)[0] not in tunable():
        return _measured(setting, peer, peer, folds, limits, again)
    space = space_of(peer, in_time)
    tuned = rows_of("auto_tuned")
    rows = [row for row in tuned if (row["setting"], row["peer"]) != (setting, peer)]
    for row in tuned:
        same = (row["setting"], row["peer"], row["space"], row["trials"]) == (
            setting, peer, space, str(trials),
        )  # fmt: skip
        if again or not same:
            continue
        if row["left out"] and limits.stands(row["left out"]):
            return Outcome(row["model"], left_out=row["left out"])
        if row["model"]:
            return _measured(setting, peer, row["model"], folds, limits, again)
    found = run(setting, peer, "", trials, folds, limits)
    rows.append(
        {
            "setting": setting, "peer": peer, "model": found.spec, "validation": found.validation,
            "seconds": found.tune_seconds, "trials": trials, "space": space, "left out": found.left_out,
        }
    )  # fmt: skip
    _write("auto_tuned", TUNED, rows)
    if not found.left_out:
        _keep(_place(setting, found.spec, folds), found)
    return found


def _row(setting: str, peer: str, found: Outcome, auto: Outcome) -> dict[str, Any]:
    """Return a row of the table, and print it."""
    row: dict[str, Any] = {"setting": setting, "peer": peer, "model": found.spec}
    if found.left_out:
        row["left out"] = found.left_out
    else:
        row |= found.means | {"fit seconds": found.fit_seconds}
        for metric in METRICS:
            paired = compare(auto.values[metric], found.values[metric])
            less = (0.0, 0.0, 0.0) if paired is None else (paired.difference, paired.low, paired.high)
            for end, value in zip(("", ", low", ", high"), less, strict=True):
                row[f"{metric} of auto less this{end}"] = value
    told = found.left_out or {metric: round(mean, 4) for metric, mean in found.means.items()}
    print(setting, found.spec or peer, told, flush=True)
    return row


# ---- neighbours as candidates

NEIGHBOURS = {  # folds inside the training part
    "sample/half-profile": 5, "filmtrust/half-profile": 1, "movielens/half-profile": 1,
}  # fmt: skip
TRIED = {
    "user-knn": {"user-knn": (Candidate("top_k=50"), Candidate("top_k=200"))},
    "cosine, tfidf, bm25": {
        name: (Candidate("top_k=20"), Candidate("top_k=200")) for name in ("cosine", "tfidf", "bm25")
    },
}


class _Watched(recsys.Auto):
    """`auto` with more candidates, which says what it chose and how long that took."""

    more: ClassVar[dict[str, tuple[Candidate, ...]]] = {}
    weights: ClassVar[list[float]]
    seconds: ClassVar[list[float]]

    def fit(self, user_items: Any, *given: Any, **known: Any) -> Any:
        """Fit with processor seconds taken; the candidates are declared meanwhile."""
        declared = {name: RANKERS.get(name).candidates for name in self.more}
        try:
            for name, more in self.more.items():
                RANKERS.get(name).candidates = more
            start = time.process_time()
            super().fit(user_items, *given, **known)
        finally:
            for name, before in declared.items():
                RANKERS.get(name).candidates = before
        self.seconds.append(time.process_time() - start)
        parts = zip(self.part_names_, self.part_weights_.tolist(), strict=True)
        self.weights.append(sum(weight for name, weight in parts if name.partition(":")[0] in self.more))
        return self


def neighbours(setting: str) -> list[dict[str, object]]:
    """Return a row for each set of candidates: the paired differences of `auto` with and without it."""
    name, protocol = setting.split("/")
    inner = training_part(as_committed(load(name), protocol), protocol, 0)
    models: dict[str, Any] = {}
    for label, more in {"": {}, **TRIED}.items():
        own = {"more": more, "weights": [], "seconds": []}
        models[label or "auto"] = type("Watched", (_Watched,), own)()
    folds = NEIGHBOURS[setting]
    report = evaluate(inner, models, protocol=protocol, only_folds=folds, metrics=METRICS, n_jobs=1)
    rows: list[dict[str, object]] = []
    for label in TRIED:
        weights, seconds = (getattr(models[label], key)[-folds:] for key in ("weights", "seconds"))
        row: dict[str, object] = {
            "setting": setting, "candidates": label, "folds": folds,
            "folds with them": sum(weight > 0 for weight in weights), "weight": float(np.mean(weights)),
        }  # fmt: skip
        for metric in METRICS:
            first, second = (report.values[one, metric].to_numpy() for one in (label, "auto"))
            found = compare(first, second)
            assert found is not None
            row |= {metric: found.difference, f"{metric}, low": found.low, f"{metric}, high": found.high}
        row |= {"seconds of auto": models["auto"].seconds[-1], "seconds with them": seconds[-1]}
        rows.append(row)
        print(row, flush=True)
    return rows


# ---- what came out


def standings(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return for each setting and judged metric whether `auto` is first, tied or behind, and of whom.

    Behind: the interval of some paired difference is below 0. Tied: none is, and some hold 0.
    """
    out = []
    for setting in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == setting and row["peer"] != "auto"]
        there = [row for row in mine if not row["left out"]]
        for metric in JUDGED:
            name = f"{metric} of auto less this"
            ends = [(row, float(row[f"{name}, low"]), float(row[f"{name}, high"])) for row in there]
            ahead = [
                f"{row['model']} ({float(row[name]):+.4f} [{low:+.4f}, {high:+.4f}])"
                for row, low, high in ends
                if high < 0
            ]
            level = [row["model"] for row, low, high in ends if low <= 0 <= high]
            out.append(
                {
                    "setting": setting, "metric": metric,
                    "auto": "behind" if ahead else "tied" if level else "first" if ends else "alone",
                    "ahead": "; ".join(ahead), "level": "; ".join(level), "peers": str(len(ends)),
                    "left out": "; ".join(f"{r['peer']}: {r['left out']}" for r in mine if r["left out"]),
                }
            )  # fmt: skip
    return out


def print_standings(rows: Sequence[dict[str, str]]) -> None:
    """Print them, what fails first in each line."""
    for one in standings(rows):
        fails = f"  FAILS: ahead is {one['ahead']}" if one["auto"] == "behind" else ""
        level = f"  level: {one['level']}" if one["level"] else ""
        of = f"of {one['peers']} peers"
        print(f"{one['setting']:28} {one['metric']:8} {one['auto']:6} {of}{fails}{level}")
        if one["left out"] and one["metric"] == JUDGED[-1]:
            print(f"{'':28} left out: {one['left out']}")


def main() -> None:
    """Measure the settings asked for, and print where `auto` stands in all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto")
    parser.add_argument("settings", nargs="*", metavar="dataset/protocol")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="of a trial")
    parser.add_argument("--memory", type=float, default=Limits.memory / 1e9, help="of a peer, GB")
    parser.add_argument("--again", action="append", default=[], metavar="PEER")
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    parser.add_argument("--neighbours", action="store_true", help="neighbours as candidates")
    asked = parser.parse_args()
    if asked.neighbours:
        chosen = asked.settings or list(NEIGHBOURS)
        have = read_csv("auto_neighbours") if (RESULTS / "auto_neighbours.csv").exists() else []
        rows = [row for row in have if row["setting"] not in chosen]
        rows += [row for setting in chosen for row in neighbours(setting)]  # type: ignore[misc]
        write_csv("auto_neighbours", tuple(rows[0]), [tuple(row.values()) for row in rows])
        return
    for setting in () if asked.summary else asked.settings or SETTINGS:
        measure(setting, Limits(asked.seconds, asked.memory * 1e9), asked.again)
    print_standings(rows_of("auto"))


if __name__ == "__main__":
    main()
