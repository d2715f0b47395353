"""Categorical tables, one-hot: ARFF and CSV files, and the benchmark tables of Boolean learning.

Every column becomes one 0/1 feature a value, named `column=value`, so that each row has as
many ones as there are columns; dna alone comes in bits, and has not. Rows with a missing value
(`?` or empty) are dropped and counted, but in primary-tumor.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import some
from recsys.data.encoding import encode_table
from recsys.data.tables import read_table, read_text
from recsys.errors import DatasetError, InputError, counted
from recsys.registry import Registry, did_you_mean

MISSING = ("?", "")


@dataclass(frozen=True)
class OneHot:
    """A two-class table over 0/1 features."""

    X: NDArray[np.uint8]  # (rows, features)
    y: NDArray[np.int64]  # (rows,), 1 for the positive class
    names: tuple[str, ...]  # of features, `column=value`
    target: str  # what y = 1 means, `column=value`
    notes: tuple[str, ...] = field(default=())


def read_categorical(
    path: str | Path, target: str | None = None, positive: str | Sequence[str] | None = None
) -> OneHot:
    """Read an ARFF or delimited file of categories and encode it.

    The class is the last column when no `target` is given. `positive` is the value, or values, to be
    learned; of two values the more frequent one when not given.
    """
    names, rows = read_rows(path)
    return encode(names, rows, target, positive, str(path))


def read_rows(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the rows of cells of an ARFF or delimited file."""
    path = Path(path)
    return _read_arff(path) if path.suffix == ".arff" else _read_delimited(path)


def encode(
    names: list[str],
    rows: list[list[str]],
    target: str | None,
    positive: str | Sequence[str] | None,
    source: str,
) -> OneHot:
    """Encode rows of categories; arguments and errors as in `read_categorical`."""
    target = names[-1] if target is None else target
    if target not in names:
        hint = did_you_mean(target, names)
        near = f" ({hint})" if hint.startswith("did") else ""
        raise InputError(f"{source}: no column {target!r}{near}; found: {some(names)}")
    cells = np.array(rows, dtype=object).reshape(len(rows), len(names))
    known = ~np.isin(cells, MISSING).any(axis=1)
    dropped = int((~known).sum())
    cells = cells[known]
    if len(cells) == 0:
        raise InputError(f"{source}: no rows left; all {dropped:,} have a missing value")
    label = cells[:, names.index(target)]
    values, counts = np.unique(label, return_counts=True)
    if positive is None:
        if len(values) != 2:
            found = ", ".join(map(str, values[:12]))
            raise InputError(
                f"{source}: {target} has {len(values)} values ({found}); "
                "name the one to learn with --positive"
            )
        positive = [str(values[np.argmax(counts)])]
    wanted = [positive] if isinstance(positive, str) else list(positive)
    for value in wanted:
        if value not in values:
            raise InputError(
                f"{source}: {target} is never {value!r} ({did_you_mean(value, map(str, values))})"
            )
    y = np.isin(label, wanted).astype(np.int64)
    if y.min() == y.max():
        raise InputError(
            f"{source}: every row is {target}={'|'.join(wanted)}: there is nothing to learn"
        )
    others = [k for k, name in enumerate(names) if name != target]
    table = pd.DataFrame(cells[:, others], columns=[names[k] for k in others])
    encoded = encode_table(table, numbers="values", separator=None)
    note = f"{dropped:,} of {counted(len(rows), 'row')} with a missing value dropped"
    X = encoded.X.toarray().astype(np.uint8)
    return OneHot(X, y, encoded.names, f"{target}={'|'.join(wanted)}", (note,) if dropped else ())


def _read_arff(path: Path) -> tuple[list[str], list[list[str]]]:
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


def _read_delimited(path: Path) -> tuple[list[str], list[list[str]]]:
    table = read_table(path, header=True)
    if len(set(table.names)) != len(table.names):
        raise InputError(f"{path}: two columns have one name")
    columns = [table.texts(name) for name in table.names]
    return table.names, [list(row) for row in zip(*columns, strict=True)]


# The tables of Boolean learning (Polato's thesis, Table 3.1), each a reader of the folder of files


@dataclass(frozen=True)
class Table:
    """An entry of the registry: how a table is read from files of a folder, or made without one."""

    read: Callable[[Path], OneHot]
    generated: bool = False
    files: tuple[str, ...] = ()


TABLES: Registry[Table] = Registry("table", package="recsys.datasets")


def table(name: str, *files: str, generated: bool = False) -> Callable[..., Callable[[Path], OneHot]]:
    """Register the decorated reader, of one of these files; `generated` says that it needs none."""

    def register(read: Callable[[Path], OneHot]) -> Callable[[Path], OneHot]:
        TABLES.add(name)(Table(read, generated, files))
        return read

    return register


def list_tables() -> list[str]:
    """Return the names that `load_table` takes."""
    return TABLES.names()


def load_table(name: str, folder: str | Path | None = None) -> OneHot:
    """Return a table of Boolean learning.

    Parameters
    ----------
    name : str
        One of `list_tables()`.
    folder : path, optional
        Where the official files lie; tic-tac-toe and MONK's are generated.

    Raises
    ------
    DatasetError
        If it is unknown, or its file is absent.
    """
    if not isinstance(name, str) or name not in list_tables():
        raise DatasetError(f"unknown table {name!r}: {did_you_mean(str(name), list_tables())}")
    return TABLES.get(name).read(Path(folder) if folder is not None else Path())


def tic_tac_toe() -> OneHot:
    """Return all 958 boards at which a game that x began may end; positive: x has won."""
    squares = [
        f"{row}-{column}"
        for row in ("top", "middle", "bottom")
        for column in ("left", "middle", "right")
    ]
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    ends: dict[str, bool] = {}

    def play(board: str, player: str) -> None:
        for k in range(9):
            if board[k] == "b":
                after = board[:k] + player + board[k + 1 :]
                won = any(all(after[s] == player for s in line) for line in lines)
                if won or "b" not in after:
                    ends[after] = won and player == "x"
                else:
                    play(after, "o" if player == "x" else "x")

    play("b" * 9, "x")
    rows = [[*board, "positive" if ends[board] else "negative"] for board in sorted(ends)]
    return encode([*squares, "class"], rows, "class", "positive", "tic-tac-toe")


def monks(number: int) -> OneHot:
    """Return MONK's problem 1, 2 or 3 over all 432 robots, without the noise of 3's training half."""
    sizes = (3, 3, 2, 3, 4, 2)
    names = ("head_shape", "body_shape", "is_smiling", "holding", "jacket_color", "has_tie")
    rows = []
    for a in product(*(range(1, size + 1) for size in sizes)):
        if number == 1:
            positive = a[0] == a[1] or a[4] == 1
        elif number == 2:
            positive = sum(value == 1 for value in a) == 2
        else:
            positive = (a[4] == 3 and a[3] == 1) or (a[4] != 4 and a[1] != 3)
        rows.append([*map(str, a), str(int(positive))])
    return encode([*names, "class"], rows, "class", "1", f"monks-{number}")


@table("tic-tac-toe", generated=True)
def _tic_tac_toe(folder: Path) -> OneHot:
    return tic_tac_toe()


for _number in (1, 2, 3):
    table(f"monks-{_number}", generated=True)(lambda folder, number=_number: monks(number))


@table("kr-vs-kp", "kr-vs-kp.arff")
def _kr_vs_kp(folder: Path) -> OneHot:
    return read_categorical(_present(folder / "kr-vs-kp.arff"), None, "won")


def _present(path: Path) -> Path:
    if not path.is_file():
        raise DatasetError(f"{path} does not exist: put {path.name} there")
    return path


@table("primary-tumor", "primary.tumor.arff")
def _primary_tumor(folder: Path) -> OneHot:
    """Leave out the two often-missing attributes, and count "?" in the others as a value.

    So the table has the rows, features and ones of the thesis'. It does not say how it has grouped the
    classes.
    """
    names, rows = _read_arff(_present(folder / "primary.tumor.arff"))
    keep = [k for k, name in enumerate(names) if name not in ("histologic-type", "degree-of-diffe")]
    target = "class" if "class" in names else names[0]
    rows = [["unknown" if row[k] in MISSING else row[k] for k in keep] for row in rows]
    kept = [names[k] for k in keep]
    share = _group(rows, kept.index(target), 0.42)
    return encode(kept, rows, target, share, "primary-tumor")


@table("soybean", "soybean.arff")
def _soybean(folder: Path) -> OneHot:
    """Take the largest classes as one: other groups have the thesis' shares, but not its ratios."""
    names, rows = _read_arff(_present(folder / "soybean.arff"))
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


@table("spect", "spect.train.arff")
def _spect(folder: Path) -> OneHot:
    parts = [_read_arff(_present(folder / f"spect.{half}.arff")) for half in ("train", "test")]
    names = parts[0][0]
    target = next(name for name in names if name.lower() in ("class", "overall_diagnosis"))
    rows = parts[0][1] + parts[1][1]
    values = sorted({row[names.index(target)] for row in rows})
    return encode(names, rows, target, values[-1], "spect")


@table("splice", "splice.arff")
def _splice(folder: Path) -> OneHot:
    names, rows = _read_arff(_present(folder / "splice.arff"))
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


@table("promoters", "promoters.data")
def _promoters(folder: Path) -> OneHot:
    text = read_text(_present(folder / "promoters.data"))
    rows = []
    for line in filter(str.strip, text.split("\n")):
        label, _, sequence = (part.strip() for part in line.split(","))
        rows.append([*sequence, label])
    return encode([*(f"p{k - 50}" for k in range(57)), "class"], rows, "class", "+", "promoters")


# Beside the other tables, or in the folder of the collection that it is published in.
DNA = ("dna.scale", "dna.scale.gz", "../libsvm/dna.scale", "../libsvm/dna.scale.gz")


@table("dna", *DNA)
def _dna(folder: Path) -> OneHot:
    """Read the splice sites of StatLog: 60 bases in three bits each, one base being 000.

    The three classes are grouped as the thesis' 47/53 has it: a site (1 and 2, 949 rows) against
    none (3, 1,051 rows). Its rows have 16 to 60 ones, 45.6 on average; the m = 47 of Table 3.1 is
    that of the first row.
    """
    path = next((p for p in (folder / f for f in DNA) if p.is_file()), folder / "dna.scale.gz")
    width = 180
    X, labels = [], []
    for number, line in enumerate(read_text(_present(path)).split("\n"), 1):
        cells = line.split()
        if not cells:
            continue
        row = np.zeros(width, dtype=np.uint8)
        for cell in cells[1:]:
            found = re.fullmatch(r"(\d{1,3}):1(?:\.0*)?", cell)
            if found is None or not 1 <= int(found.group(1)) <= width:
                raise InputError(
                    f"{path}, line {number}: {cell!r} is no binary feature; INDEX:1 with an index from "
                    f"1 to {width} is expected"
                )
            row[int(found.group(1)) - 1] = 1
        if cells[0] not in ("1", "2", "3"):
            raise InputError(f"{path}, line {number}: class {cells[0]!r}; 1, 2 or 3 is expected")
        X.append(row)
        labels.append(cells[0])
    y = np.isin(labels, ("1", "2")).astype(np.int64)
    if len(y) == 0 or y.min() == y.max():
        raise InputError(f"{path}: the rows do not hold two classes")
    names = tuple(f"bit{k}=1" for k in range(1, width + 1))
    return OneHot(np.array(X), y, names, "class=1|2")


@table("house-votes", "vote.arff")
def _votes(folder: Path) -> OneHot:
    names, rows = _read_arff(_present(folder / "vote.arff"))
    return encode(names, rows, names[-1], "democrat", "house-votes")
