"""Fitting from partitioned Parquet by two workers: seconds of every stage, peak memory of every process.

`python -m benchmarks.partitioned [--likes 100000,1000000,10000000] [--engine local=2] [--folder DIR]` generates
likes (a partition a unit of work, through the engine as well), fits CF-KOMD from them, makes lists for 100,000
users, and adds lines to results/partitioned.csv. Every process is watched: what it holds for itself (uss) is
what bounds a machine; mapped pages (in rss) the system takes back.

The likes have popular items (Zipf), few long profiles among short ones (log-normal lengths) and tastes: half
of a user's likes come from one of so many groups of items. Partition k is drawn from seed k alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.lab.common import ROOT, write_csv  # noqa: F401
from recsys.engines import engine as make_engine
from recsys.partitioned import fit_partitions

PARTITION = 500_000  # likes
PROFILE, SPREAD = 10.0, 0.7  # mean and log-deviation of a profile's length
TASTES = 200  # items a group, at least
SKEW = 0.9  # exponent of popularity


def drawn(unit: tuple[str, int, int, int, int]) -> int:
    """Write one partition; return its likes."""
    folder, number, first, users, items = unit
    rng = np.random.default_rng([24, number])
    lengths = np.maximum(1, rng.lognormal(np.log(PROFILE) - SPREAD**2 / 2, SPREAD, users)).astype(np.int64)
    who = np.repeat(np.arange(first, first + users), lengths)
    n = len(who)
    groups = max(1, items // TASTES)
    taste = np.repeat(rng.integers(0, groups, users), lengths)
    # Inverse of a power law's distribution: rank x has probability ~ x^-SKEW.
    power = 1.0 - SKEW
    def ranks(count: int) -> Any:
        return np.minimum(((rng.random(n) * (count**power - 1) + 1) ** (1 / power)).astype(np.int64) - 1, count - 1)
    own = ranks(items // groups) * groups + taste  # within a group popular ones first, too
    any_item = ranks(items)
    what = np.where(rng.random(n) < 0.5, own, any_item)
    order = rng.permutation(n)
    table = pa.table({"user": who[order], "item": what[order] * 7 + 3})
    path = Path(folder) / f"part-{number:05d}.parquet"
    pq.write_table(table, path, row_group_size=1 << 18, compression="zstd")
    return n
