"""`recsys evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from recsys import doctor as health
from recsys.cli import terminal
from recsys.cli.options import DataOptions, Jobs, Json, Protocol, Quiet, Test, takes_data
from recsys.cli.terminal import Interrupted
from recsys.data import find_protocol
from recsys.data.splits import protocol_for
from recsys.errors import InputError
from recsys.evaluation import EvaluationInterrupted, Report, Result
from recsys.evaluation import evaluate as run_evaluation
from recsys.evaluation.metrics import parse_metric
from recsys.evaluation.models import default_comparison
from recsys.rankers.registry import ranker_of
from recsys.registry import did_you_mean
from recsys.utils.progress import bar


@takes_data
def evaluate(
    data: DataOptions,
    model: Annotated[list[str] | None, typer.Option(help="NAME[:key=value,…]; repeat for more.")] = None,
    protocol: Protocol = None,
    test: Test = None,
    folds: int | None = None,
    metric: Annotated[list[str] | None, typer.Option(help="NAME[@k]; repeat for more.")] = None,
    seed: int = 0,
    keep_liked: Annotated[
        bool, typer.Option("--keep-liked", help="Also rank the user's training items.")
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Also print values by group: profile length, popularity, or a column of --users."
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Seconds after which no further fit starts.")
    ] = None,
    json_file: Json = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Compare models under one protocol, with paired tests between them."""
    # Misspelt names are refused before data is read.
    find_protocol(protocol_for(protocol, test))
    models = [(spec, ranker_of(spec)) for spec in _split_commas(model)]
    names = [part for text in metric or () for part in text.split(",")] or ["auc", "ndcg@10", "map@10"]
    for name in names:
        parse_metric(name)
    loaded = data.load(quiet, test)
    known = [] if loaded.user_features is None else list(map(str, loaded.user_features.columns))
    for name in by or ():
        if name not in (attributes := ["profile length", "popularity", *known]):
            raise InputError(f"--by {name!r}: {did_you_mean(name, attributes)}")
    chosen, only_folds = protocol_for(protocol, test, loaded), None
    if not models:
        way = find_protocol(chosen)
        default = default_comparison(loaded, way.folds if way.grouped and folds is None else 1)
        models = [(spec, ranker_of(spec)) for spec in default.models]
        only_folds = default.only_folds
        if default.note and not quiet:
            terminal.say(f"note: {default.note}")

    def show(result: Result) -> None:
        means = ", ".join(f"{name} {value.mean:.4f}" for name, value in result.metrics.items())
        terminal.say(f"{result.model}: {means} ({result.fit_seconds + result.score_seconds:.1f} s)")

    stopped = None
    try:
        with bar(not quiet) as progress:
            report = run_evaluation(
                loaded,
                models,
                protocol=chosen,
                folds=folds,
                only_folds=only_folds,
                metrics=names,
                seed=seed,
                filter_liked=not keep_liked,
                n_jobs=jobs,
                budget=budget,
                progress=progress,
                on_result=None if quiet or len(models) == 1 else show,
            )
    except EvaluationInterrupted as error:
        report, stopped = error.report, str(error)
    groups = {attribute: report.by(attribute) for attribute in by or ()}
    if json_file != "-":
        _print_report(report, loaded.notes)
        for name, table in groups.items():
            cells = table.round(4).to_numpy(dtype=object).tolist()
            terminal.table(f"By {name}, with 95% intervals over users", list(table.columns), cells)
    if json_file:
        answer = report.as_dict() | {"versions": health.versions()}
        if groups:
            answer["groups"] = {name: table.to_dict("records") for name, table in groups.items()}
        terminal.write_json(json_file, answer)
    if stopped is not None:
        raise Interrupted(stopped)


def _print_report(report: Report, known: Sequence[str]) -> None:
    names = list(report.definitions)
    best = report.best()
    rows = []
    for r in report.results:
        cells = []
        for name in names:
            value = r.metrics[name]
            text = f"{value.mean:.4f}" + (f" ±{value.std:.4f}" if report.folds > 1 else "")
            cells.append(Text(text, style="bold" if value.mean == best.get(name) else ""))
        rows.append([r.model, *cells, f"{r.fit_seconds:.2f}", f"{r.score_seconds:.2f}"])
    terminal.table(f"{report.dataset}: {report.about()}", ("model", *names, "fit s", "score s"), rows)
    for line in report.sentences():
        if line not in known:  # notes on the data are on stderr
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
