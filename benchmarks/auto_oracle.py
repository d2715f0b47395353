"""`auto` against the best single model by test, which cannot be known beforehand: the loss on every set.

    python -m benchmarks.auto_oracle

Reads what `auto.py` (random and later halves, singles tuned on validation), `next_item.py` (the last item) and
`next_click.py` (sessions) measured, and prints nDCG@10 of both with the loss in percent, negative where `auto` is ahead
of every single model, the median loss and the worst. Writes results/auto_oracle.csv.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.lab.common import read_csv, write_csv

METRIC = "ndcg@10"
COLUMNS = ("setting", "auto", "best single model", "of the best", "loss, percent", "single models")
AUTO = "auto"


def measured() -> Iterator[tuple[str, str, float]]:
    """Yield the setting, the model and its nDCG@10 of every measured pair of the two."""
    for row in read_csv("auto"):
        if not row["left out"]:
            yield row["setting"], row["model"], float(row[METRIC])
    for row in read_csv("next_item"):
        yield f"{row['set']}/last item", row["model"], float(row[METRIC])
    for row in read_csv("next_click"):
        yield "yoochoose-100k/next click", row["model"], float(row[METRIC])


def losses() -> list[tuple[str, float, str, float, float, int]]:
    """Return a row of COLUMNS for each setting, the largest loss first."""
    found: dict[str, dict[str, float]] = {}
    for setting, model, value in measured():
        found.setdefault(setting, {})[model] = value
    rows = []
    for setting, values in found.items():
        single = {model: value for model, value in values.items() if model.split(":")[0] != AUTO}
        autos = [value for model, value in values.items() if model.split(":")[0] == AUTO]
        if not single or not autos:
            print(f"{setting}: left out, {'auto' if single else 'no single model'} was not measured")
            continue
        [ours] = autos
        best = max(single, key=single.__getitem__)
        rows.append((setting, ours, best, single[best], 100 * (1 - ours / single[best]), len(single)))
    return sorted(rows, key=lambda row: -row[4])


def main() -> None:
    """Print the rows, the median and the worst loss."""
    rows = losses()
    write_csv("auto_oracle", COLUMNS, rows)
    for setting, ours, best, value, loss, singles in rows:
        print(f"{setting:32} {ours:.4f}  {value:.4f} {best[:60]:60} {loss:+.2f} %  of {singles}")
    print(f"median {np.median([row[4] for row in rows]):+.2f} %, worst {rows[0][4]:+.2f} %")


if __name__ == "__main__":
    main()
