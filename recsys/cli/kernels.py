"""`recsys kernels`: Boolean kernels, listed or computed on a table of categories."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from recsys.cli import charts, terminal
from recsys.cli.options import Json
from recsys.cli.table_options import Positive, TableFile, Target, load_categories
from recsys.datasets.categorical import OneHot
from recsys.errors import InputError
from recsys.kernel_machines import select_by_ratio
from recsys.kernels import list_kernels, make_kernel, margin, spectral_ratio
from recsys.utils.memory import check_memory
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_integer

KEYS = ("kernel", "spectral_ratio", "standardized", "margin")
HEADS = ("kernel", "spectral ratio", "standardized", "margin")


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
    select: Annotated[
        bool,
        typer.Option(
            "--select",
            help="Tell the kernel of the smallest radius-margin ratio: a choice without held-out rows.",
        ),
    ] = False,
    json: Json = None,
) -> None:
    """List the kernels, or compute them on a table: spectral ratio, margin, Gram matrix, curves."""
    if data is None:
        if kernel or out or curve or select:
            raise InputError("pass --data FILE: a kernel is computed on a table")
        rows = [(name, *_describe(name)) for name in list_kernels()]
        terminal.table("", ("kernel", "parameters", "what"), rows)
        return
    table = load_categories(data, target, positive)
    check_memory(8 * 4 * len(table.y) ** 2, f"a Gram matrix of {len(table.y):,} rows")
    specs = kernel or (
        ["mc:degree=2", "md:degree=2"]
        if curve
        else ["linear", "mc:degree=2", "md:degree=2", "mdnf:d=2,c=2", "mcnf:d=2,c=2"]
    )
    if select and (out is not None or curve is not None):
        raise InputError("--select compares kernels: leave out --out and --curve")
    if out is not None and len(specs) != 1:
        raise InputError("--out writes one Gram matrix; pass --kernel once")
    if curve is not None:
        charts.require("--curve")
        check_integer("--up-to", up_to, 1, 200)
        lines = {spec: _ratios(spec, table, up_to) for spec in specs}
        charts.draw_lines(curve, lines, "degree", "spectral ratio", data.stem)
        print(f"spectral ratios of {', '.join(lines)} over {up_to} degrees in {curve}")
        return
    found: list[tuple[Any, ...]] = []
    keys, heads = list(KEYS), list(HEADS)
    made = [make_kernel(name, **params) for name, params in map(parse_spec, specs)]
    for spec, one in zip(specs, made, strict=True):
        K = one(table.X, normalize=True)
        found.append((spec, spectral_ratio(K), spectral_ratio(K, standardized=True), margin(K, table.y)))
    chosen = select_by_ratio(made, table.X, table.y) if select else None
    if chosen is not None:
        found = [(*row, float(ratio)) for row, ratio in zip(found, chosen.ratios, strict=True)]
        keys.append("radius_margin_ratio")
        heads.append("radius-margin ratio")
    if out is not None:
        buffer = io.BytesIO()
        np.save(buffer, K, allow_pickle=False)
        terminal.write_bytes(out, buffer.getvalue())
    if json is not None:
        terminal.write_json(json, [dict(zip(keys, row, strict=True)) for row in found])
    if json != "-":
        title = f"{data}: {len(table.y):,} rows, {table.X.shape[1]} features, "
        title += f"{table.target} in {table.y.mean():.1%}"
        cells = [(spec, *(f"{value:.4f}" for value in values)) for spec, *values in found]
        terminal.table(title, tuple(heads), cells)
        if chosen is not None:
            best = f"{specs[chosen.position]}, {chosen.ratios[chosen.position]:.4f}"
            print(terminal.literal(f"Smallest radius-margin ratio: {best}."))


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
