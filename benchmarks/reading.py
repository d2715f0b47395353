"""How long a table takes to become interactions, against polars and SciPy; each measurement in a process of its own.

`python -m benchmarks.reading [rows]` makes tables of users, items and times up, with text and with integer
ids, as CSV, Parquet and a pandas frame, and writes results/reading.csv: seconds (of the clock and of the
processors), and the peak of the memory above what the imports and the frame take.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

WAYS = ("polars", "recsys")
KINDS = ("csv", "parquet", "frame")
FIELDS = ("rows", "ids", "kind", "way", "seconds", "processor_seconds", "peak_mb", "pairs")


def table(rows: int, text: bool) -> pd.DataFrame:
    """Return users by a long tail, items by a longer one, times within five years."""
    rng = np.random.default_rng(0)
    users = (rng.beta(1, 3, rows) * rows / 80).astype(np.int64)
    items = (rng.beta(1, 8, rows) * min(rows / 200, 60_000)).astype(np.int64)
    columns: dict[str, Any] = {"user_id": users, "item_id": items}
    if text:
        columns = {
            name: (name[0] + pd.Series(values).astype(str).str.zfill(8)).to_numpy(object)
            for name, values in columns.items()
        }
    return pd.DataFrame(columns | {"timestamp": rng.integers(1_500_000_000, 1_650_000_000, rows)})


def by_polars(source: Any) -> int:
    """Index both ids by first appearance, keep the latest row of a pair, build the matrix."""
    import polars as pl

    if isinstance(source, Path):
        frame = pl.read_csv(source) if source.suffix == ".csv" else pl.read_parquet(source)
    else:
        frame = pl.from_pandas(source)
    frame = frame.sort("timestamp", maintain_order=True).unique(["user_id", "item_id"], keep="last")
    codes = []
    for name in ("user_id", "item_id"):
        known = frame.select(pl.col(name).unique(maintain_order=True)).with_row_index("code")
        codes.append(frame.select(name).join(known, on=name, how="left")["code"].to_numpy())
    ones = np.ones(len(frame), dtype=np.float32)
    return int(sp.csr_matrix((ones, tuple(codes))).nnz)


def by_recsys(source: Any) -> int:
    """Read interactions, and build the matrix."""
    from recsys import Interactions

    return int(Interactions.from_frame(source).matrix.nnz)


def memory_mb(field: str) -> float:
    """Return the resident memory of this process (VmRSS), or its peak (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{field}:")[1].split()[0]) / 1024


def measure(way: str, kind: str, stem: str) -> None:
    """Print seconds, seconds of the processors, MB and pairs of one reading."""
    import polars  # noqa: F401
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    import recsys.data.reading  # noqa: F401

    source: Any = Path(f"{stem}.{kind}")
    if kind == "frame":
        source = pd.read_parquet(f"{stem}.parquet")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, start, busy = memory_mb("VmRSS"), time.perf_counter(), time.process_time()
    pairs = {"polars": by_polars, "recsys": by_recsys}[way](source)
    seconds = time.perf_counter() - start, time.process_time() - busy
    print(*seconds, memory_mb("VmHWM") - before, pairs)


def main(rows: int) -> None:
    from benchmarks.lab.common import Results

    results = Results("reading", FIELDS, 4)
    with tempfile.TemporaryDirectory() as folder:
        for ids in ("text", "integer"):
            missing = results.missing([(rows, ids, kind, way) for kind in KINDS for way in WAYS])
            stem = Path(folder) / ids
            if missing:
                pairs = table(rows, ids == "text")
                pairs.to_csv(f"{stem}.csv", index=False)
                pairs.to_parquet(f"{stem}.parquet", index=False)
                del pairs
            for key in missing:
                command = [sys.executable, "-m", "benchmarks.reading", key[3], key[2], str(stem)]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                seconds, processor, peak, count = done.stdout.split()
                results.add(
                    (*key, *(f"{float(value):.4g}" for value in (seconds, processor, peak)), count)
                )


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(*sys.argv[1:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 12_000_000)
