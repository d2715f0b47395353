"""`auto` against every other ranker, each tuned by the same number of trials on the same validation split.

The peers' parameters are in auto_tuned.csv; one that is not there is tuned for AUC + nDCG@10 on the first fold's training
part. All are then evaluated on the same folds, and paired differences to `auto` have bootstrap intervals over users.

python -m benchmarks.auto [--alone] [dataset/protocol …]      --alone: `auto` beside its row on file, nothing written
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import pandas as pd

from benchmarks.folds import as_committed, load
from benchmarks.lab.common import Results
from recsys import InputError, evaluate, list_rankers
from recsys.evaluation.significance import compare
from recsys.tuning import tunable, tune

TRIALS = 8
METRICS = ("auc", "ndcg@10", "map@10")
KERNELS = ("linear", "hp", "tanimoto", "mc", "md", "mdnf", "mcnf")
NO_PEERS = ("auto", "blend", "pair-dnn", "honfm")
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
COLUMNS = (
    "setting",
    "peer",
    "model",
    *METRICS,
    *(f"{metric} of auto less this{end}" for metric in METRICS for end in ("", ", low", ", high")),
    "fit seconds",
    "left out",
)


def peers() -> list[str]:
    """Return every ranker but `auto` and blends; CF-KOMD with each of its kernels."""
    kernels = [f"cf-komd:kernel={kernel}" for kernel in KERNELS]
    return kernels + [name for name in list_rankers() if name not in (*NO_PEERS, "cf-komd")]


def tuned(data: Any, setting: str, peer: str) -> str:
    """Return a peer's specification, from the file or tuned now."""
    results = Results("auto_tuned", TUNED, 2)
    frame = results.frame().query("setting == @setting and peer == @peer").dropna(subset="model")
    if len(frame):
        return str(frame["model"].iloc[0])
    if peer.partition(":")[0] not in tunable():
        return peer
    started = time.process_time()
    best = tune(data, peer, TRIALS, metric="auc+ndcg@10", protocol=setting.split("/")[1])
    seconds = time.process_time() - started
    results.add((setting, peer, best.spec, best.value, seconds, TRIALS, "", ""))
    return best.spec


def measure(setting: str, alone: bool) -> None:
    """Evaluate in one setting, print the values and write them."""
    name, protocol = setting.split("/")
    data = as_committed(load(name), protocol)
    models = {"auto": "auto"}
    failed: dict[str, str] = {}
    for peer in [] if alone else peers():
        try:
            models[peer] = tuned(data, setting, peer)
        except InputError as error:
            failed[peer] = str(error)
    started = time.process_time()
    report = evaluate(
        data,
        models,
        protocol=protocol,
        metrics=METRICS,
        only_folds=SETTINGS[setting],
        n_jobs=1 if alone else None,
    )
    rows = []
    for peer in models:
        row: dict[str, Any] = {"setting": setting, "peer": peer, "model": models[peer]}
        if peer in report.failed:
            row["left out"] = report.failed[peer]
        else:
            result = report.result(peer)
            row |= {metric: result.metrics[metric].mean for metric in METRICS}
            row["fit seconds"] = result.fit_seconds / SETTINGS[setting]
            for metric in METRICS:
                pair = (report.values[one, metric].to_numpy() for one in ("auto", peer))
                paired = compare(*pair)
                less = (
                    (0.0, 0.0, 0.0) if paired is None else (paired.difference, paired.low, paired.high)
                )
                for end, value in zip(("", ", low", ", high"), less, strict=True):
                    row[f"{metric} of auto less this{end}"] = value
        rows.append(row)
    rows += [{"setting": setting, "peer": peer, "left out": reason} for peer, reason in failed.items()]
    results = Results("auto", COLUMNS, 2)
    frame = results.frame()
    if alone:
        seconds = time.process_time() - started
        before = frame.query("setting == @setting and peer == 'auto'").iloc[0]
        change = {metric: round(rows[0][metric] - float(before[metric]), 4) for metric in METRICS}
        print(setting, "less the row on file:", change, f"{seconds:.0f} processor seconds", flush=True)
        return
    frame = pd.concat([frame[frame["setting"] != setting], pd.DataFrame(rows, columns=list(COLUMNS))])
    results.replace(frame.astype(object).where(frame.notna(), "").to_numpy().tolist())


def main() -> None:
    """Measure the settings that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto")
    parser.add_argument("settings", nargs="*", metavar="dataset/protocol")
    parser.add_argument("--alone", action="store_true")
    arguments = parser.parse_args()
    for setting in arguments.settings or SETTINGS:
        measure(setting, arguments.alone)


if __name__ == "__main__":
    main()
