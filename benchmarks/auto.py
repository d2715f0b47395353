"""`auto` beside its peers at their usual settings, first fold of each setting; one line a model.

python -m benchmarks.auto > benchmarks/results/auto.txt
"""

from __future__ import annotations

import time

from recsys import make_ranker
from recsys.data import load_dataset
from recsys.evaluation import evaluate
from recsys.rankers import parse_spec

PEERS = (
    "auto", "ease:regularization=300", "als", "msdw", "slim", "cf-komd", "cf-komd:kernel=mc,degree=2",
    "cf-komd:kernel=tanimoto", "cf-komd:kernel=md,degree=10", "popularity",
)  # fmt: skip
SETTINGS = {
    ("movielens", "half-profile"): PEERS,
    ("movielens", "half-profile-time"): PEERS,
    ("filmtrust", "half-profile"): PEERS,
    ("bookcrossing", "half-profile"): PEERS,
    ("movielens-1m", "half-profile"): PEERS,
    ("ciaodvd", "half-profile"): (
        "auto", "als", "msdw", "cf-komd", "cf-komd:kernel=md,degree=300,unrated=mean", "popularity",
    ),
    ("gowalla", "half-profile"): ("auto", "als", "msdw:alpha=0.25,votes=0.6,locality=1.1", "popularity"),
}  # fmt: skip


def main() -> None:
    for (name, protocol), specs in SETTINGS.items():
        data = load_dataset(name)
        for spec in specs:
            kind, params = parse_spec(spec)
            started = time.time()
            report = evaluate(
                data, [(spec, params, make_ranker(kind, **params))], protocol=protocol, only_folds=1
            )
            result = report.results[0]
            figures = {key: round(value.mean, 4) for key, value in result.metrics.items()}
            print(name, protocol, spec, figures, round(result.fit_seconds, 2), round(result.score_seconds, 2), round(time.time() - started, 1), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
