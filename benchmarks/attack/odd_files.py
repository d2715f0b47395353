"""Data files nobody should write, and bombs: exit 0 or 2, one line, below 1 GB and 20 s each."""

from __future__ import annotations

import gzip
import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.attack.common import Result, cases, forked, workspace

MOST_SECONDS, MOST_BYTES = 20.0, 10**9
LEAST = 3  # files made by hand that are tried whatever the time
ADDRESSES = 5 * 10**9  # bytes of address space, so that a bomb that gets through stops here
LONGEST_LINE = 1500  # characters of a message
ROWS = "".join(f"u{k % 9},i{k * 7 % 11},{1 + k % 5}\n" for k in range(60))
WHOLE = "user_id,item_id,rating\n" + ROWS
ODD = (
    "", "\n", ",", ",,,", '"', '"a', "#", "#1,i1,3", "u,\0,1", "\ufeff", "=1+1,i,1", "u1\ti1\t2", "u1;i1;2",
    "u1|i1|2", "nan,nan,nan", "u,i,inf", "u,i,1e999", "u,i,-1", "u,i,1,2,3,4", "é,ü,1", "\u202e,\u200b,1",
    '"u\n1",i,1', "u,i," + "9" * 400, "u" * 100_000 + ",i,1", "\r\r\r", "u,i,0x10", "u,i,１", "1e5,2e5,1",
)  # fmt: skip
HEADERS = (
    "user_id,item_id,rating", "item_id,user_id,rating", "user,item", "a,b", "user_id,user_id,rating",
    "user_id,item_id,rating,user|x", "user_id,item_id;x,rating", "", "1,2,3", "user_id, item_id ,rating",
    ",".join(f"c{k}" for k in range(20_000)), "USER_ID,ITEM_ID", '"user_id","item_id","rating"',
    "user_id\titem_id", "user_id::item_id", "{", "[1]",
)  # fmt: skip


def text_file(random: Random) -> tuple[str, bytes]:
    lines = WHOLE.splitlines()
    if random.random() < 0.4:
        lines[0] = random.choice(HEADERS)
    for _ in range(random.choice((0, 1, 1, 3))):
        lines.insert(random.randint(1, len(lines)), random.choice(ODD))
    end = random.choice(("\n", "\r\n", "\r", "\n\n"))
    made = (end.join(lines) + end).encode(
        random.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252")), "replace"
    )
    if random.random() < 0.3:
        made = flipped(made, random)
    return random.choice(("r.csv", "r.tsv", "r.txt", "r.dat", "u.data", "r")), made


def flipped(content: bytes, random: Random) -> bytes:
    out = bytearray(content)
    for _ in range(random.choice((1, 3, 20))):
        out[random.randrange(len(out))] = random.randrange(256)
    return bytes(out[: random.randrange(1, len(out))]) if random.random() < 0.3 else bytes(out)


def gzip_file(random: Random) -> tuple[str, bytes]:
    inner = random.choice((text_file(random)[1], WHOLE.encode(), b"", gzip.compress(WHOLE.encode())))
    made = gzip.compress(inner, 1)
    return "r.csv.gz", flipped(made, random) if random.random() < 0.5 else made


def parquet_columns(random: Random) -> dict[str, object]:
    """Return columns, most of them fine, one or two odd."""
    import pyarrow as pa

    n = 60
    users, items = [f"u{k % 9}" for k in range(n)], [f"i{k * 7 % 11}" for k in range(n)]
    odd = random.choice(
        (
            pa.array([name.encode() for name in users]), pa.array([[k] for k in range(n)]),
            pa.array([{"a": k} for k in range(n)]), pa.array([None] * n), pa.array(range(n)),
            pa.array([k / 7 for k in range(n)]), pa.array([None, *users[1:]]), pa.array([True] * n),
            pa.array([b"\xff\xfe"] * n), pa.array(users).dictionary_encode(), pa.array(users, pa.large_string()),
            pa.array(range(n), pa.timestamp("ns")), pa.array([float("nan")] * n), pa.array([""] * n),
            pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        )
    )  # fmt: skip
    columns = {"user_id": pa.array(users), "item_id": pa.array(items), "rating": pa.array([3.0] * n)}
    columns[random.choice(("user_id", "item_id", "rating", "unused"))] = odd
    return columns


def parquet_file(random: Random) -> tuple[str, bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(
        pa.table(parquet_columns(random)), out, compression=random.choice(("none", "snappy", "zstd"))
    )
    made = out.getvalue()
    return "r.parquet", flipped(made, random) if random.random() < 0.5 else made


def workbook(random: Random) -> tuple[str, bytes]:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "xl/workbook.xml", "<workbook><sheets/></workbook>" * random.choice((0, 1, 1000))
        )
    made = out.getvalue()
    return "r.xlsx", flipped(made, random) if random.random() < 0.5 else made


def noise(random: Random) -> tuple[str, bytes]:
    name = random.choice(("r.csv", "r.parquet", "r.csv.gz", "r.xlsx", "r.json", "r.zip"))
    content = random.randbytes(random.choice((0, 1, 7, 500, 100_000)))
    if name == "r.json":
        content = json.dumps([{"user_id": "u", "item_id": "i"}] * 5).encode()
    return name, content


# ---- bombs: few bytes that are many


def parquet_bomb(rows: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    one = pa.array(["x" * 1_000_000])
    same = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), one)
    out = io.BytesIO()
    pq.write_table(
        pa.table({"user_id": same, "item_id": same}), out, compression="zstd", use_dictionary=True
    )
    return out.getvalue()


def parquet_wide(columns: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({f"c{k}": pa.array([1]) for k in range(columns)}), out)
    return out.getvalue()


def gzip_bomb(megabytes: int, line: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as file:
        file.write(b"user_id,item_id\n")
        block = line * max(1, 1_000_000 // len(line))
        for _ in range(megabytes):
            file.write(block)
    return out.getvalue()


def zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<a>" + " " * 300_000_000)
    return out.getvalue()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip of 1,000 MB": ("b.csv.gz", lambda: gzip_bomb(1_000, b"u,i\n")),
    "parquet 2,000 strings of 1 MB": ("b.parquet", lambda: parquet_bomb(2_000)),
    "parquet 20,000 strings of 1 MB": ("b.parquet", lambda: parquet_bomb(20_000)),
    "parquet 20,000 columns": ("b.parquet", lambda: parquet_wide(20_000)),
    "gzip of 24 MB": ("b.csv.gz", lambda: gzip_bomb(24, b"u,i\n")),
    "gzip of 95 MB": ("b.csv.gz", lambda: gzip_bomb(95, b"u,i\n")),
    "gzip of 95 MB in one line": ("b.csv.gz", lambda: gzip_bomb(95, b"x")),
    "zip of 300 MB": ("b.xlsx", zip_bomb),
    "zip of tables": ("b.zip", lambda: archive(("a.csv", "../b.csv", "/etc/c.csv"))),
    "zip named .csv": ("b.csv", lambda: archive(("a.csv",))),
    "UTF-16": ("b.csv", lambda: WHOLE.encode("utf-16")),
    "UTF-32": ("b.csv", lambda: WHOLE.encode("utf-32")),
    "cp1252": ("b.csv", lambda: WHOLE.replace("u1,", "ü1,").encode("cp1252")),
}
KINDS = (text_file, text_file, text_file, gzip_file, parquet_file, parquet_file, workbook, noise)
SPECIAL = (
    "/dev/null",
    "/dev/zero",
    "/proc/self/mem",
    "/proc/self/environ",
    "/",
    "/nowhere/at/all",
    "x" * 5000,
)


def large_table() -> bytes:
    """Return a table of a million rows."""
    users = "".join(f"u{k % 5000},i{k * 7 % 1999}\n" for k in range(10_000))
    return b"user_id,item_id\n" + users.encode() * 100


def archive(names: tuple[str, ...]) -> bytes:
    """Return a zip archive of tables by these names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name, WHOLE)
    return out.getvalue()


# What must be read, within the same memory; every other file may be refused.
READ: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a million rows": ("l.csv", large_table),
    "a million rows, packed": ("l.csv.gz", lambda: gzip.compress(large_table(), 1)),
    "UTF-8": ("e.csv", lambda: WHOLE.replace("u1,", "ü1,").encode()),
    "UTF-8 with a mark": ("e.csv", lambda: WHOLE.encode("utf-8-sig")),
    "CR and LF": ("e.csv", lambda: WHOLE.replace("\n", "\r\n").encode()),
}


def evaluated(
    result: Result, case: str, path: str, folder: Path, codes: tuple[int, ...] = (0, 2)
) -> None:
    """Evaluate a model on a file in a fork, and judge how that ended."""
    from recsys import cli

    arguments = ["evaluate", "--interactions", path, "--model", "popularity", "--quiet"]
    ended = forked(lambda: cli.call(arguments), 2 * MOST_SECONDS, folder, ADDRESSES)
    lines = ended.err.strip().splitlines()
    fault = ended.fault(codes)
    if not fault and ended.seconds > MOST_SECONDS:
        fault = f"{ended.seconds:.0f} s"
    if not fault and ended.memory > MOST_BYTES:
        fault = f"{ended.memory / 1e6:,.0f} MB"
    if not fault and ended.code == 2 and len(lines) != 1:
        fault = f"{len(lines)} lines of error"
    if not fault and any(len(line) > LONGEST_LINE for line in lines):
        fault = f"a line of {max(map(len, lines)):,} characters"
    result.add(case, f"exit {ended.code}", fault, ended.seconds, ended.memory)


def prepared() -> None:
    """Import what every case needs, before the forks; nothing that starts threads is called."""
    import pyarrow.parquet  # noqa: F401

    import recsys.cli.commands as commands
    import recsys.data.readers  # noqa: F401

    commands.load("evaluate")


def run(seconds: float, seed: int) -> Result:
    result = Result()
    prepared()
    with workspace() as folder:
        began, made_by_hand = time.monotonic(), BOMBS | READ
        for number, (case, (name, make)) in enumerate(made_by_hand.items()):
            if number >= LEAST and time.monotonic() > began + seconds / 2:
                result.notes.append(f"no time for {len(made_by_hand) - number} files made by hand")
                break
            path = folder / name
            # Made in a fork: what the making takes must not count as the reader's.
            made = forked(lambda path=path, make=make: path.write_bytes(make()) and 0, 120, folder)
            if made.code:
                result.add(case, "not made", made.fault((0,)))
                continue
            codes = (0,) if case in READ else (0, 2)
            evaluated(result, f"{case}, {path.stat().st_size:,} bytes", str(path), folder, codes)
            path.unlink()
        for name in SPECIAL:
            evaluated(result, name[:60], name, folder)
        os.mkfifo(folder / "fifo")
        evaluated(result, "a named pipe", str(folder / "fifo"), folder)
        for number, random in cases(seconds / 2, seed):
            kind = random.choice(KINDS)
            name, content = kind(random)
            path = folder / name
            path.write_bytes(content)
            evaluated(result, f"case {number}, {kind.__name__} {name}", str(path), folder)
            path.unlink()
    result.notes.append(f"{len(BOMBS)} bombs and {len(SPECIAL) + 1} places that are no files among them")
    return result
