"""`recsys kernels` and `recsys rules`: Boolean kernels and rules on tables of categories."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from recsys.cli import charts, terminal
from recsys.cli.app import app
from recsys.cli.options import Json
from recsys.datasets.categorical import OneHot, list_tables, load_table, read_categorical
from recsys.errors import InputError, counted
from recsys.explain import measure_rule
from recsys.kernels import list_kernels, make_kernel, margin, spectral_ratio
from recsys.utils.memory import check_memory
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_integer, check_real

TableFile = Annotated[
    Path | None,
    typer.Option("--data", help="ARFF, CSV, TSV or Parquet of categories, or tic-tac-toe, monks-1…3."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="Column of the class; the last by default.")
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", help="The class to describe; the more frequent of two by default."),
]


@app.command()
def kernels(
    data: TableFile = None,
    target: Target = None,
    positive: Positive = None,
    kernel: Annotated[
        list[str] | None, typer.Option("--kernel", help="NAME[:key=value,…]; repeat for more.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the Gram matrix of one kernel (.npy).")
    ] = None,
    curve: Annotated[
        Path | None, typer.Option("--curve", help="Draw spectral ratios over the degree (.png).")
    ] = None,
    up_to: Annotated[int, typer.Option("--up-to", help="Highest degree of the curve.")] = 10,
    json: Json = None,
) -> None:
    """List the kernels, or compute them on a table: spectral ratio, margin, Gram matrix, curves."""
    if data is None:
        if kernel or out or curve:
            raise InputError("pass --data FILE: a kernel is computed on a table")
        rows = [(name, *_describe(name)) for name in list_kernels()]
        terminal.table("", ("kernel", "parameters", "what"), rows)
        return
    table = _load(data, target, positive)
    check_memory(8 * 4 * len(table.y) ** 2, f"a Gram matrix of {len(table.y):,} rows")
    specs = kernel or (
        ["mc:degree=2", "md:degree=2"]
        if curve
        else ["linear", "mc:degree=2", "md:degree=2", "mdnf:d=2,c=2", "mcnf:d=2,c=2"]
    )
    if out is not None and len(specs) != 1:
        raise InputError("--out writes one Gram matrix; pass --kernel once")
    if curve is not None:
        charts.require("--curve")
        check_integer("--up-to", up_to, 1, 200)
        lines = {spec: _ratios(spec, table, up_to) for spec in specs}
        charts.draw_lines(curve, lines, "degree", "spectral ratio", data.stem)
        print(f"spectral ratios of {', '.join(lines)} over {up_to} degrees in {curve}")
        return
    found = []
    for spec in specs:
        name, params = parse_spec(spec)
        K = make_kernel(name, **params)(table.X, normalize=True)
        found.append((spec, spectral_ratio(K), spectral_ratio(K, standardized=True), margin(K, table.y)))
    if out is not None:
        buffer = io.BytesIO()
        np.save(buffer, K, allow_pickle=False)
        terminal.write_bytes(out, buffer.getvalue())
    if json is not None:
        keys = ("kernel", "spectral_ratio", "standardized", "margin")
        terminal.write_json(json, [dict(zip(keys, row, strict=True)) for row in found])
    if json != "-":
        title = f"{data}: {len(table.y):,} rows, {table.X.shape[1]} features, "
        title += f"{table.target} in {table.y.mean():.1%}"
        cells = [(spec, *(f"{value:.4f}" for value in values)) for spec, *values in found]
        terminal.table(title, ("kernel", "spectral ratio", "standardized", "margin"), cells)


@app.command()
def rules(
    data: TableFile = None,
    target: Target = None,
    positive: Positive = None,
    test_size: Annotated[float, typer.Option("--test-size", help="Share of rows held out.")] = 0.3,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    max_clauses: Annotated[int, typer.Option("--max-clauses")] = 10,
    max_literals: Annotated[int, typer.Option("--max-literals")] = 5,
    json: Json = None,
) -> None:
    """Learn a kernel machine on a table, and print the rule it follows."""
    if data is None:
        raise InputError("pass --data FILE, a table of categories")
    check_real("--test-size", test_size, 0.0, 0.9, open_low=True)
    check_integer("--seed", seed, 0, 2**32 - 1)
    check_integer("--max-clauses", max_clauses, 1, 100)
    check_integer("--max-literals", max_literals, 1, 20)
    table = _load(data, target, positive)
    check_memory(8 * 4 * len(table.y) ** 2, f"a Gram matrix of {len(table.y):,} rows")
    counts = np.bincount(table.y, minlength=2)
    if counts.min() < 4:
        raise InputError(
            f"{data}: only {counts.min()} rows of one class; a held-out part needs at least 4"
        )
    found = measure_rule(
        table.X, table.y, test_size=test_size, seed=seed, max_clauses=max_clauses,
        max_literals=max_literals, names=table.names,
    )  # fmt: skip
    rule = found.rule
    if json is not None:
        terminal.write_json(json, {
            "target": table.target, "rule": str(rule), "accuracy": found.accuracy,
            "fidelity": found.fidelity, "majority": found.majority, "rows": found.rows,
            "held_out": found.held_out, "seed": seed,
            "clauses": [[table.names[k] for k in clause] for clause in rule.clauses],
        })  # fmt: skip
    if json != "-":
        print(f"{table.target} if\n")
        print("  " + terminal.literal(str(rule)).replace(" ∨ ", "\n  ∨ ") + "\n")
        learned = f"{counted(found.rows, 'row')} learned from, {found.held_out:,} held out"
        print(f"{learned}; the larger class has {found.majority:.3f}")
        size = f"clauses {len(rule.clauses)}  literals {rule.literals}"
        print(f"accuracy {found.accuracy:.3f}  fidelity {found.fidelity:.3f}  {size}")


def _load(data: Path, target: str | None, positive: str | None) -> OneHot:
    if not data.exists() and str(data) in list_tables():
        table = load_table(str(data))
    else:
        values = None if positive is None else positive.split("|")
        table = read_categorical(data, target, values)
    for note in table.notes:
        terminal.say(f"note: {data}: {note}")
    return table


def _describe(name: str) -> tuple[str, str]:
    kind = type(make_kernel(name))
    fields = ", ".join(f"{f.name}={f.default}" for f in dataclasses.fields(kind))
    return fields, (kind.__doc__ or "").strip().split("\n")[0]


def _ratios(spec: str, table: OneHot, up_to: int) -> list[tuple[float, float]]:
    name, params = parse_spec(spec)
    out: list[tuple[float, float]] = []
    for degree in range(1, up_to + 1):
        given: dict[str, Any] = dict(params)
        given.update({"d": degree, "c": degree} if "nf" in name else {"degree": degree})
        try:
            K = make_kernel(name, **given)(table.X, normalize=True)
        except InputError as error:
            if out:
                break  # a degree above the features
            raise error from None
        out.append((degree, spectral_ratio(K, standardized=True)))
    return out
