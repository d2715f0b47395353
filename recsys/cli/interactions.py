"""`recsys interactions`: what a factorization machine finds in features, one by one and together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from recsys import fm
from recsys.cli import charts, terminal
from recsys.cli.data_options import DataOptions, takes_data
from recsys.cli.options import Json, Quiet, Seed, Threads, ids_of, use_threads
from recsys.data.columns import some
from recsys.errors import InputError
from recsys.fm.findings import Epoch, Study
from recsys.fm.problem import Problem, pairs_problem, table_of, table_problem
from recsys.fm.selection import Selection
from recsys.fm.study import study
from recsys.fm.study_settings import MODELS, StudySettings
from recsys.utils.progress import bar
from recsys.utils.rows import write_rows

EPOCHS_SHOWN = 10


@takes_data
def interactions(
    data: DataOptions,
    table: Annotated[
        Path | None, typer.Option("--table", help="Table of features and a target, not interactions.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column of --table; of interactions: liked (default) or rating."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option("--positive", help="Class of the target to tell from the rest.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", help="What the target holds: auto, classes or numbers.")
    ] = "auto",
    numbers: Annotated[
        str, typer.Option("--numbers", help="Columns of numbers as ranges, or scaled.")
    ] = "ranges",
    buckets: Annotated[int, typer.Option("--buckets", help="Ranges of a column of numbers.")] = 5,
    categories: Annotated[
        str | None, typer.Option("--categories", help="Columns whose numbers are codes: NAME,NAME.")
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Users and items themselves are features, too.")
    ] = False,
    ratio: Annotated[int, typer.Option("--ratio", help="Pairs drawn for each liked one.")] = 1,
    rows: Annotated[int, typer.Option("--rows", help="Of more rows so many are drawn.")] = 50_000,
    model: Annotated[str, typer.Option("--model", help=f"One of {', '.join(MODELS)}.")] = "fm",
    degree: Annotated[
        int | None, typer.Option("--degree", help="Most features in a product; 3 for hofm, else 2.")
    ] = None,
    penalty: Annotated[
        str | None,
        typer.Option(
            "--penalty",
            help="l2, l1, ti, l21, cs, omega, l1-power or l21-power; ti for sparse-fm, else l2.",
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option("--strength", help="Regularization strength; the best of the path by default."),
    ] = None,
    strengths: Annotated[
        str | None, typer.Option("--strengths", help="Values for the path: NUMBER,NUMBER.")
    ] = None,
    path: Annotated[bool, typer.Option("--path/--no-path", help="Fit the path.")] = True,
    factors: Annotated[int, typer.Option("--factors", help="Components of a table.")] = 8,
    epochs: Annotated[int, typer.Option("--epochs", help="Most passes of a fit.")] = 50,
    refits: Annotated[
        int, typer.Option("--refits", help="Fits on rows drawn again, for intervals; 0 for none.")
    ] = 0,
    select: Annotated[
        bool,
        typer.Option("--select", help="Follow the path from nothing on, with refits; sparse-fm."),
    ] = False,
    halves: Annotated[
        int, typer.Option("--halves", help="With --select: pairs of random halves, for stability.")
    ] = 0,
    starts: Annotated[
        int, typer.Option("--starts", help="With --select: random starts at the chosen point.")
    ] = 0,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="With --select: draw the path (PNG).")
    ] = None,
    number: Annotated[int, typer.Option("-n", "--number", help="Interactions of each order.")] = 20,
    min_rows: Annotated[
        int | None,
        typer.Option("--min-rows", help="Rows that have all features of an interaction; 5 by default."),
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the interactions: .parquet, .json, else CSV.")
    ] = None,
    json: Json = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Fit a factorization machine to features, and print the products that matter in it."""
    use_threads(threads)
    if not select and (halves or starts or picture):
        raise InputError("--halves, --starts and --picture are for --select")
    if select and (strength is not None or strengths is not None or refits or not path):
        raise InputError(
            "--select follows a path of its own, with refits: leave out --strength, --strengths, "
            "--no-path and --refits"
        )
    if select and min_rows is not None:
        raise InputError(
            "--select takes interactions of any number of rows, and prints how many: leave out "
            "--min-rows"
        )
    if picture is not None:
        charts.require("--picture")
    settings = StudySettings(
        model=model, degree=degree, penalty=penalty, strength=strength,
        strengths=None if strengths is None else _numbers(strengths), path=path, factors=factors,
        epochs=epochs, refits=refits, number=number, min_rows=5 if min_rows is None else min_rows,
        seed=seed,
    ).resolved()  # fmt: skip
    codes = ids_of(categories or "")
    if table is not None:
        if data != DataOptions():
            raise InputError("pass --table, or interactions by --dataset or --interactions, not both")
        if ids or ratio != 1:
            raise InputError("--ids and --ratio are for interactions: leave them out with --table FILE")
        problem = table_problem(
            table_of(table), target, kind=kind, positive=positive, numbers=numbers, buckets=buckets,
            categories=codes, rows=rows, seed=seed, name=str(table),
        )  # fmt: skip
    else:
        if positive is not None or kind != "auto" or numbers != "ranges":
            raise InputError("--positive, --kind and --numbers are for --table FILE")
        problem = pairs_problem(
            data.load(quiet), target or "liked", ids=ids, ratio=ratio, buckets=buckets,
            categories=codes, rows=rows, seed=seed,
        )  # fmt: skip
    if select:
        _select(problem, settings, (halves, starts), (out, json, picture), quiet)
        return
    with bar(not quiet) as progress:
        found = study(problem, settings, progress)
    if not quiet:
        for note in found.notes:
            terminal.say(f"note: {note}")
    if out is not None:
        columns, lines = found.table()
        write_rows(out, columns, [lines])
    if json is not None:
        terminal.write_json(json, found.as_dict())
    if json != "-":
        _print(found)


def _select(
    problem: Problem, settings: StudySettings, repeats: tuple[int, int],
    files: tuple[Path | None, str | None, Path | None], quiet: bool,
) -> None:  # fmt: skip
    """Follow the path, and print or write what it selects."""
    out, json, picture = files
    with bar(not quiet) as progress:
        found = fm.select(problem, settings, pairs=repeats[0], starts=repeats[1], progress=progress)
    if not quiet:
        for note in found.notes:
            terminal.say(f"note: {note}")
    if out is not None:
        columns, lines = found.table(found.taken)
        write_rows(out, columns, [lines])
    if picture is not None:
        charts.draw_lines(
            picture, _lines(found), "regularization strength (log)", f"validation {found.metric}",
            f"Path over {found.settings.penalty}: {found.wanted}", log=True,
        )  # fmt: skip
    if json is not None:
        terminal.write_json(json, found.as_dict())
    if json != "-":
        _print_selection(found, settings.number)


def _lines(found: Selection) -> dict[str, list[tuple[float, float]]]:
    """Return the path's metric values before and after the refit, and the two models beside."""
    ends = [point.strength for point in (found.points[0], found.points[-1])]
    after = [(point.strength, point.refitted) for point in found.points]
    return {
        "before the refit": [(point.strength, point.value) for point in found.points],
        "after the refit": [(x, y) for x, y in after if y is not None],
        found.linear.model: [(x, found.linear.choose) for x in ends],
        found.full.model: [(x, found.full.choose) for x in ends],
    }


def _print_selection(found: Selection, number: int) -> None:
    for sentence in found.sentences():
        print(terminal.literal(sentence))
    terminal.table(
        f"Path over the regularization strength of {found.settings.penalty}",
        ("strength", "features", "interactions", f"validation {found.metric}", "refitted", "EBIC", ""),
        [
            (f"{point.strength:.3g}", f"{point.features:,}", f"{point.interactions:,}",
             f"{point.value:.4f}", "" if point.refitted is None else f"{point.refitted:.4f}",
             "" if point.ebic is None else f"{point.ebic:,.1f}",
             found.marks.get(k, ""))
            for k, point in enumerate(found.points)
        ],
    )  # fmt: skip
    terminal.table(
        f"On {found.rows[2]:,} test rows",
        ("model", "interactions", f"validation {found.metric}", f"test {found.metric}"),
        [
            (one.model, f"{one.interactions:,}", f"{one.choose:.4f}", f"{one.measure:.4f}")
            for one in found.measured
        ],
    )
    chosen = found.points[found.taken].chosen
    if not chosen:
        print("Nothing is selected at this regularization strength.")
        return
    shares = [name for name in ("halves", "starts") if getattr(chosen[0], name) is not None]
    terminal.table(
        f"Selected, for {found.wanted}",
        ("interaction", "weight", "refitted", *shares, "rows"),
        [
            (one.text, f"{one.weight:+.4f}", "" if one.refitted is None else f"{one.refitted:+.4f}",
             *(f"{getattr(one, name):.2f}" for name in shares), f"{one.rows:,}")
            for one in chosen[:number]
        ],
    )  # fmt: skip


def _numbers(given: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in given.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--strengths takes numbers as in 1e-5,1e-4, not {given!r}") from None


def _print(found: Study) -> None:
    for sentence in found.sentences():
        print(terminal.literal(sentence))
    if found.path:
        chosen = found.settings.strength
        terminal.table(
            f"Path over the regularization strength of {found.settings.penalty}",
            ("strength", "features", "pairs", f"validation {found.metric}", ""),
            [
                (f"{step.strength:g}", f"{step.features:,}", f"{step.pairs:,}", f"{step.value:.4f}",
                 "taken" if step.strength == chosen else "")
                for step in found.path
            ],
        )  # fmt: skip
    terminal.table(
        "Learning curve",
        ("epoch", "objective", f"validation {found.metric}"),
        [
            (str(one.epoch), f"{one.objective:.5f}", f"{one.value:.4f}")
            for one in _spread(found.curve, EPOCHS_SHOWN)
        ],
    )
    for order, word in ((2, "two"), (3, "three")):
        if order in found.settings.orders:
            _print_interactions(found, order, word)
    _print_selected(found)


def _print_interactions(found: Study, order: int, word: str) -> None:
    mine = found.of_order(order)
    if not mine:
        print(f"No interaction of {word} features has a weight.")
        return
    between = found.settings.refits > 0
    columns = (f"interactions of {word}", "weight", *(("low", "high") if between else ()), "rows")
    terminal.table(
        f"For {found.wanted}",
        columns,
        [
            (one.text, f"{one.weight:+.4f}",
             *((f"{one.low:+.4f}", f"{one.high:+.4f}") if between else ()), f"{one.rows:,}")
            for one in mine
        ],
    )  # fmt: skip


def _print_selected(found: Study) -> None:
    number = found.settings.number
    terminal.table(
        "Features by themselves",
        ("feature", "weight", "rows", "in a product"),
        [
            (one.name, f"{one.weight:+.4f}", f"{one.rows:,}", "yes" if one.used else "no")
            for one in found.singles[:number]
        ],
    )
    left = [one.name for one in found.singles if not one.used]
    if left:
        print(f"In no product: {terminal.literal(some(left))}.")


def _spread(curve: Sequence[Epoch], most: int) -> list[Epoch]:
    """Return at most `most` epochs of a curve, evenly spaced, the first and the last among them."""
    if len(curve) <= most:
        return list(curve)
    return [curve[round(k * (len(curve) - 1) / (most - 1))] for k in range(most)]
