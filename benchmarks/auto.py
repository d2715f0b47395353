"""`auto` against its peers, each tuned by the same number of trials on the same validation split.

For every setting each peer gets the same number of trials of `tune` for AUC + nDCG@10, what `auto` maximises too, on the
first fold's training part; then all are evaluated on the same folds, and the paired differences to
`auto` have bootstrap intervals over users. Goes on where it was stopped: delete the CSVs to start again.

python -m benchmarks.auto [dataset/protocol …]
"""

from __future__ import annotations

import sys
import time

from benchmarks.lab.common import finished, write_csv
from recsys import evaluate
from recsys.datasets import load_dataset
from recsys.evaluation.significance import compare
from recsys.tuning import tune
from recsys.utils.spec import parse_spec

TRIALS = {"gowalla/half-profile": 4}  # else 8
METRICS = ("auc", "ndcg@10", "map@10")
KERNELS = ("linear", "hp", "tanimoto", "mc", "md", "mdnf", "mcnf")
PEERS = (
    "popularity", "ease", "als", "bpr", "slim", "msdw:sharpening=0",
    *(f"cf-komd:kernel={kernel}" for kernel in KERNELS),
)  # fmt: skip
# (dataset, protocol): folds, peers left out (memory or hours)
SETTINGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "movielens/half-profile": (5, ()),
    "movielens/half-profile-time": (5, ()),
    "filmtrust/half-profile": (5, ()),
    "bookcrossing/half-profile": (5, ()),
    "movielens-1m/half-profile": (2, ()),
    "ciaodvd/half-profile": (2, ("ease", "slim")),
    "gowalla/half-profile": (1, ("ease", "slim", "cf-komd:kernel=mdnf", "cf-komd:kernel=mcnf")),
}  # fmt: skip
TUNED = ("setting", "peer", "model", "validation", "seconds")
FIGURES = (
    "setting", "model", *METRICS,
    *(f"{metric} of auto less this{end}" for metric in METRICS for end in ("", ", low", ", high")),
    "fit seconds",
)  # fmt: skip


def tuned(setting: str, peers: list[str]) -> list[str]:
    """Return the peers' specifications after tuning."""
    name, protocol = setting.split("/")
    rows = finished("auto_tuned")
    for peer in peers:
        if (setting, peer) in {(row[0], row[1]) for row in rows}:
            continue
        started = time.perf_counter()
        kind, _ = parse_spec(peer)
        if kind == "popularity":
            found, value = peer, 0.0
        else:
            best = tune(
                load_dataset(name), peer, TRIALS.get(setting, 8), metric="auc+ndcg@10", protocol=protocol
            )
            found, value = best.spec, best.value
        rows.append((setting, peer, found, value, time.perf_counter() - started))
        write_csv("auto_tuned", TUNED, rows)
        print(rows[-1], flush=True)
    return [next(row[2] for row in rows if (row[0], row[1]) == (setting, peer)) for peer in peers]


def measure(setting: str) -> None:
    """Tune, evaluate and compare in one setting."""
    rows = finished("auto")
    if setting in {row[0] for row in rows}:
        return
    folds, without = SETTINGS[setting]
    name, protocol = setting.split("/")
    specs = ["auto", *tuned(setting, [peer for peer in PEERS if peer not in without])]
    data = load_dataset(name)
    results = []
    for spec in specs:  # one at a time: their score matrices need not lie side by side
        report = evaluate(data, spec, protocol=protocol, metrics=METRICS, only_folds=folds)
        results.append(report.results[0])
        print(setting, spec, {k: round(v.mean, 4) for k, v in results[-1].metrics.items()}, flush=True)
    for result in results:
        cells = []
        for metric in METRICS:
            found = compare(results[0].per_user[metric], result.per_user[metric])
            cells += [0.0, 0.0, 0.0] if found is None else [found.difference, found.low, found.high]
        means = [result.metrics[metric].mean for metric in METRICS]
        rows.append((setting, result.model, *means, *cells, result.fit_seconds / folds))
    write_csv("auto", FIGURES, rows)


if __name__ == "__main__":
    for setting in sys.argv[1:] or SETTINGS:
        measure(setting)
