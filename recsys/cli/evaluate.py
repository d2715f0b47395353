"""`recsys evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from recsys import doctor as health
from recsys.cli import terminal
from recsys.cli.data_options import DataOptions, Protocol, takes_data
from recsys.cli.options import Json, Quiet, Threads, use_threads
from recsys.data import find_protocol
from recsys.errors import InputError, counted
from recsys.evaluation import Report
from recsys.evaluation import evaluate as run_evaluation
from recsys.rankers import make_ranker
from recsys.rankers.registry import compared_models
from recsys.utils.spec import parse_spec


@takes_data
def evaluate(
    data: DataOptions,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="NAME[:key=value,…]; repeat for more.")
    ] = None,
    protocol: Protocol = "half-profile",
    folds: Annotated[int | None, typer.Option("--folds")] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="NAME[@k]; repeat for more.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    json_file: Json = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compare models under one protocol, with paired tests between them."""
    use_threads(threads)
    find_protocol(protocol)
    if json_file not in (None, "-") and not Path(json_file).parent.is_dir():
        raise InputError(f"--json {json_file}: the folder {Path(json_file).parent} does not exist")
    models = []
    for text in _split_commas(model) or compared_models():  # a misspelt name is told before data is read
        name, params = parse_spec(text)
        models.append((text, make_ranker(name, **params)))
    names = [part for text in metric or () for part in text.split(",")] or ["auc", "ndcg@10", "map@10"]
    found = data.load(quiet)
    with terminal.progress(not quiet) as progress:
        report = run_evaluation(
            found,
            models,
            protocol=protocol,
            folds=folds,
            metrics=names,
            seed=seed,
            progress=progress,
        )
    if json_file:
        terminal.write_json(json_file, report.as_dict() | {"versions": health.versions()})
    if json_file != "-":
        _print_report(report)


def _print_report(report: Report) -> None:
    title = (
        f"{report.dataset}: {counted(report.users, 'user')}, {counted(report.items, 'item')}, "
        f"{counted(report.interactions, 'interaction')}; {report.protocol}, "
        f"{counted(report.folds, 'fold')}, seed {report.seed}"
    )
    names = list(report.definitions)
    best = {name: max(r.metrics[name].mean for r in report.results) for name in names}
    rows = []
    for r in report.results:
        cells = []
        for name in names:
            figure = r.metrics[name]
            text = f"{figure.mean:.4f}" + (f" ±{figure.std:.4f}" if report.folds > 1 else "")
            cells.append(Text(text, style="bold" if figure.mean == best[name] else ""))
        rows.append([r.model, *cells, f"{r.fit_seconds:.2f}", f"{r.score_seconds:.2f}"])
    terminal.table(title, ("model", *names, "fit s", "score s"), rows)
    for line in report.sentences():
        print(line)


def _split_commas(models: list[str] | None) -> list[str]:
    """Take `a,b:k=1` as two models and `a:k=1,l=2` as one: what has = belongs to the one before."""
    out: list[str] = []
    for text in models or ():
        for part in text.split(","):
            if out and "=" in part and ":" not in part and ":" in out[-1]:
                out[-1] += f",{part}"
            else:
                out.append(part.strip())
    return out
