"""The tables of Boolean learning of Polato's thesis, Table 3.1: readers of the official files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from recsys.data.tables import read_text
from recsys.datasets import categorical
from recsys.datasets.categorical import MISSING, OneHot, encode
from recsys.errors import DatasetError, InputError


def read_arff(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows of cells."""
    names: list[str] = []
    rows: list[list[str]] = []
    in_data = False
    for number, line in enumerate(read_text(path, "latin-1").split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            cells = [
                c.strip().strip("'\"")
                for c in next(csv.reader([text], quotechar="'", skipinitialspace=True))
            ]
            if len(cells) != len(names):
                raise InputError(
                    f"{path}, line {number}: {len(cells)} values for {len(names)} attributes"
                )
            rows.append(cells)
        elif text.lower().startswith("@attribute"):
            found = re.match(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", text, re.I)
            if found is None:
                raise InputError(f"{path}, line {number}: an attribute without a name")
            names.append(found.group(1).strip("'\""))
        elif text.lower().startswith("@data"):
            in_data = True
    if not names or not rows:
        raise InputError(f"{path}: no ARFF table (attributes and data) in it")
    return names, rows


def _kr_vs_kp(folder: Path) -> OneHot:
    return encode(*read_arff(_present(folder / "kr-vs-kp.arff")), None, "won", "kr-vs-kp")


def _present(path: Path) -> Path:
    if not path.is_file():
        raise DatasetError(f"{path} does not exist: put {path.name} there")
    return path


def _primary_tumor(folder: Path) -> OneHot:
    """Leave out the two often-missing attributes, and count "?" in the others as a value.

    So the table has the rows, features and ones of the thesis'. It does not say how it has grouped the
    classes.
    """
    names, rows = read_arff(_present(folder / "primary.tumor.arff"))
    keep = [k for k, name in enumerate(names) if name not in ("histologic-type", "degree-of-diffe")]
    target = "class" if "class" in names else names[0]
    rows = [["unknown" if row[k] in MISSING else row[k] for k in keep] for row in rows]
    kept = [names[k] for k in keep]
    share = _group(rows, kept.index(target), 0.42)
    return encode(kept, rows, target, share, "primary-tumor")


def _soybean(folder: Path) -> OneHot:
    """Take the largest classes as one: other groups have the thesis' shares, but not its ratios."""
    names, rows = read_arff(_present(folder / "soybean.arff"))
    rows = [row for row in rows[:307] if not any(cell in MISSING for cell in row)]
    return replace(
        encode(names, rows, "class", _group(rows, names.index("class"), 0.55), "soybean"),
        notes=("the first 307 rows, those with a missing value dropped",),
    )


def _group(rows: list[list[str]], column: int, share: float) -> list[str]:
    """Return the largest classes that together come nearest to a share: our two-class grouping."""
    values, counts = np.unique([row[column] for row in rows], return_counts=True)
    order = np.lexsort((values, -counts))
    total = np.cumsum(counts[order]) / counts.sum()
    best = int(np.argmin(np.abs(total - share))) + 1
    return [str(values[k]) for k in order[:best]]


def _spect(folder: Path) -> OneHot:
    parts = [read_arff(_present(folder / f"spect.{half}.arff")) for half in ("train", "test")]
    names = parts[0][0]
    target = next(name for name in names if name.lower() in ("class", "overall_diagnosis"))
    rows = parts[0][1] + parts[1][1]
    values = sorted({row[names.index(target)] for row in rows})
    return encode(names, rows, target, values[-1], "spect")


def _splice(folder: Path) -> OneHot:
    names, rows = read_arff(_present(folder / "splice.arff"))
    drop = [k for k, name in enumerate(names) if "name" in name.lower()]
    target = next(name for name in names if name.lower() == "class")
    keep = [k for k in range(len(names)) if k not in drop]
    bases = {"D", "N", "R", "S"}
    cleaned = [
        [
            "?" if cell in bases and names[k] != target else cell
            for k, cell in enumerate(row)
            if k in set(keep)
        ]
        for row in rows
    ]
    return encode([names[k] for k in keep], cleaned, target, ["EI", "IE"], "splice")


def _promoters(folder: Path) -> OneHot:
    text = read_text(_present(folder / "promoters.data"))
    rows = []
    for line in filter(str.strip, text.split("\n")):
        label, _, sequence = (part.strip() for part in line.split(","))
        rows.append([*sequence, label])
    return encode([*(f"p{k - 50}" for k in range(57)), "class"], rows, "class", "+", "promoters")


# Beside the other tables, or in the folder of the collection that it is published in.
DNA = ("dna.scale", "dna.scale.gz", "../libsvm/dna.scale", "../libsvm/dna.scale.gz")


def _dna(folder: Path) -> OneHot:
    """Read the splice sites of StatLog: 60 bases in three bits each, one base being 000.

    The three classes are grouped as the thesis' 47/53 has it: a site (1 and 2, 949 rows) against
    none (3, 1,051 rows). Its rows have 16 to 60 ones, 45.6 on average; the m = 47 of Table 3.1 is
    that of the first row.
    """
    path = next((p for p in (folder / f for f in DNA) if p.is_file()), folder / "dna.scale.gz")
    X, labels = load_svmlight_file(str(_present(path)), n_features=180)
    names = tuple(f"bit{k}=1" for k in range(1, 181))
    return OneHot(X.toarray().astype(np.uint8), (labels < 3).astype(np.int64), names, "class=1|2")


def _votes(folder: Path) -> OneHot:
    names, rows = read_arff(_present(folder / "vote.arff"))
    return encode(names, rows, names[-1], "democrat", "house-votes")


FILES: dict[str, Callable[[Path], OneHot]] = {
    "kr-vs-kp": _kr_vs_kp,
    "primary-tumor": _primary_tumor,
    "soybean": _soybean,
    "spect": _spect,
    "splice": _splice,
    "promoters": _promoters,
    "dna": _dna,
    "house-votes": _votes,
}


def list_tables() -> list[str]:
    """Return the names of the tables."""
    return sorted([*FILES, *categorical.TABLES])


def load_table(name: str, folder: str | Path) -> OneHot:
    """Return a table, read from a folder of official files or generated."""
    return FILES[name](Path(folder)) if name in FILES else categorical.load_table(name)
