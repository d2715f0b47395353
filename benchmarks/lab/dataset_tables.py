"""The papers' tables of datasets: what they print beside what the readers and the studies here have.

    python -m benchmarks.lab.dataset_tables [hofm] [links] [sparse_fm] [random_features]

Sizes of parts are of the study that stands for the printed one; nothing where the data are not at hand.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.lab import random_feature_machines as machines
from benchmarks.lab import sparse_fm_table_3
from benchmarks.lab.common import write_csv
from benchmarks.lab.links import coauthors, rated
from recsys.datasets.graphs import load_graph

COLUMNS = ("table", "data", "what", "printed", "ours", "difference")
Row = tuple[str, str, str, int, "int | None"]


def hofm() -> list[Row]:
    """Table 2 of Blondel et al. 2016."""
    nips, films = (load_graph(name, os.environ["RECSYS_DATA"]) for name in ("nips", "movielens"))
    assert films.B is not None
    absent = {
        "Enzyme": {"links": 2_994, "objects": 668, "features": 325},
        "GD": {
            "links": 3_954, "diseases": 3_209, "features of diseases": 3_209, "genes": 12_331,
            "features of genes": 25_275,
        },
    }  # fmt: skip
    return [
        ("2", "NIPS", "links", 4_140, len(nips.links)),
        ("2", "NIPS", "authors", 2_037, nips.A.shape[0]),
        ("2", "NIPS", "features", 13_649, nips.A.shape[1]),
        *(("2", data, what, count, None) for data, own in absent.items() for what, count in own.items()),
        ("2", "MovieLens 100K", "links", 21_201, len(films.links)),
        ("2", "MovieLens 100K", "users", 943, films.A.shape[0]),
        ("2", "MovieLens 100K", "features of users", 49, films.A.shape[1]),
        ("2", "MovieLens 100K", "movies", 1_682, films.B.shape[0]),
        ("2", "MovieLens 100K", "features of movies", 29, films.B.shape[1]),
    ]


def sized(table: str, data: str, printed: tuple[int, ...], ours: tuple[int, ...] | None) -> list[Row]:
    """Return features and rows of the three parts."""
    names = ("features", "training rows", "validation rows", "test rows")
    found: Any = ours if ours is not None else [None] * len(names)
    return [(table, data, *row) for row in zip(names, printed, found, strict=True)]


def parts(three: Any) -> tuple[int, ...]:
    return (three[0][0].shape[1], *(X.shape[0] for X, _ in three))


def task(made: machines.Task) -> tuple[int, ...]:
    return (made.X.shape[1], len(made.train), len(made.valid), len(made.test))


def links() -> list[Row]:
    """Table 3.1 of Atarashi's thesis: features of both ends, pairs of the three parts."""
    nips, films = (load_graph(name, os.environ["RECSYS_DATA"]) for name in ("nips", "movielens"))
    authors, some = coauthors(nips, 0)
    pairs, few = rated(0)
    assert films.B is not None
    return [
        ("3.1", "DBLP", "features", 9_264, None),
        ("3.1", "DBLP", "training pairs", 22_416, None),
        ("3.1", "DBLP", "validation pairs", 1_000, None),
        ("3.1", "DBLP", "test pairs", 21_264, None),
        ("3.1", "NIPS", "features", 13_649, nips.A.shape[1]),
        ("3.1", "NIPS", "training pairs", 3_134, len(authors.train)),
        ("3.1", "NIPS", "validation pairs", 134, len(some.test)),
        ("3.1", "NIPS", "test pairs", 3_000, len(authors.test)),
        ("3.1", "MovieLens 100K", "features of users", 49, films.A.shape[1]),
        ("3.1", "MovieLens 100K", "features of movies", 29, films.B.shape[1]),
        ("3.1", "MovieLens 100K", "training pairs", 21_200, len(pairs.train)),
        ("3.1", "MovieLens 100K", "validation pairs", 1_000, len(few.test)),
        ("3.1", "MovieLens 100K", "test pairs", 20_200, len(pairs.test)),
    ]


def sparse_fm() -> list[Row]:
    """Table 2 of Atarashi et al. 2021."""
    return [
        *sized(
            "2", "MovieLens 100K", (2_703, 64_000, 16_000, 20_000), parts(sparse_fm_table_3.divided(0))
        ),
        *sized("2", "a9a", (123, 26_048, 6_513, 16_281), parts(sparse_fm_table_3.a9a())),
        *sized("2", "RCV1", (47_236, 16_193, 4_049, 677_399), None),
        *sized("2", "Flight Delay", (696, 16_000, 4_000, 80_000), None),
    ]


def maps() -> list[Row]:
    """Tables 4.1 and 4.5 of Atarashi's thesis."""
    return [
        *sized("4.1", "MovieLens 100K", (78, 21_200, 1_000, 20_202), task(machines.movielens())),
        *sized("4.1", "phishing", (30, 9_000, 555, 1_500), task(machines.phishing())),
        *sized("4.1", "IJCNN", (22, 35_000, 14_900, 91_701), None),
        *sized("4.5", "RCV1", (47_236, 558_112, 69_764, 69_765), None),
        *sized(
            "4.5",
            "MovieLens 1M",
            (13_410, 800_167, 100_022, 100_022),
            task(machines.one_hot_movielens()),
        ),
    ]


if __name__ == "__main__":
    every = {"hofm": hofm, "links": links, "sparse_fm": sparse_fm, "random_features": maps}
    for name, rows in {key: every[key] for key in sys.argv[1:] or every}.items():
        found = [(*row, "" if row[-1] is None else row[-1] - row[-2]) for row in rows()]
        write_csv(
            f"{name}_datasets",
            COLUMNS,
            [["" if cell is None else cell for cell in row] for row in found],
        )
        print(*found, sep="\n", flush=True)
