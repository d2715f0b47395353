"""`recsys evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from recsys import doctor as health
from recsys.cli import terminal
from recsys.cli.data_options import DataOptions, Protocol, Test, TestFrom, takes_data
from recsys.cli.exits import Interrupted
from recsys.cli.options import EngineName, Json, Quiet, Scratch, Seed, Threads, Workers, use_threads
from recsys.data import find_protocol
from recsys.data.splits import protocol_for
from recsys.errors import InputError, counted
from recsys.evaluation import EvaluationInterrupted, Groups, Report
from recsys.evaluation import evaluate as run_evaluation
from recsys.evaluation.groups import check_attribute
from recsys.rankers.registry import COMPARED, ranker_of
from recsys.utils.progress import bar

DEPTH = 100  # items of a list that a run keeps


@takes_data
def evaluate(
    data: DataOptions,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="NAME[:key=value,…]; repeat for more.")
    ] = None,
    protocol: Protocol = None,
    test: Test = None,
    test_from: TestFrom = None,
    folds: Annotated[int | None, typer.Option("--folds")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="NAME[@k], calibration:COLUMN@k; repeat for more."),
    ] = None,
    seed: Seed = 0,
    keep_liked: Annotated[
        bool,
        typer.Option(
            "--keep-liked",
            help="Rank the user's own training items, too; test rows that occur in training stay there.",
        ),
    ] = False,
    candidates: Annotated[
        Path | None,
        typer.Option("--candidates", help="Only items to rank: a table with a row a user and item."),
    ] = None,
    sampled_negatives: Annotated[
        int | None,
        typer.Option(
            "--sampled-negatives",
            help="Rank test items among so many drawn ones only: faster, and biased.",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", help="Values by group, too: profile length, popularity, or a column of --users."
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", help=f"Folder for TREC files: qrels.txt and {DEPTH} items a user and model."
        ),
    ] = None,
    json_file: Json = None,
    engine: EngineName = "local",
    workers: Workers = None,
    threads: Threads = None,
    scratch: Scratch = None,
    quiet: Quiet = False,
) -> None:
    """Compare models under one protocol, with paired tests between them."""
    if engine == "local" and workers is None:
        use_threads(threads)
    find_protocol(protocol_for(protocol, test or test_from))  # an unknown one is told early
    # Before data is read: a misspelt name is refused at once.
    models = [(spec, ranker_of(spec)) for spec in _split_commas(model) or COMPARED]
    names = [part for text in metric or () for part in text.split(",")] or ["auc", "ndcg@10", "map@10"]
    if run is not None and run.exists() and not run.is_dir():
        raise InputError(f"--run {run}: this is a file; name a folder")
    found = data.load(quiet, test, repeats=keep_liked, test_from=test_from)
    chosen = find_protocol(protocol_for(protocol, test or test_from, found)).name
    for attribute in by or ():
        check_attribute(attribute, found.user_features)
    stopped = None
    try:
        with bar(not quiet) as progress:
            report = run_evaluation(
                found,
                models,
                protocol=chosen,
                folds=folds,
                metrics=names,
                seed=seed,
                keep_lists=None if run is None else DEPTH,
                progress=progress,
                engine=engine,
                workers=workers,
                threads=threads,
                scratch=scratch,
                filter_liked=not keep_liked,
                candidates=candidates,
                sampled_negatives=sampled_negatives,
            )
    except EvaluationInterrupted as error:
        report, stopped = error.report, str(error)
    groups = [report.by(attribute) for attribute in by or ()]
    written = [] if run is None else report.write_trec(run)
    if json_file:
        told: dict[str, Any] = report.as_dict() | {"versions": health.versions()}
        if groups:
            told["groups"] = {one.attribute: one.rows for one in groups}
        terminal.write_json(json_file, told)
    if json_file != "-":
        _print_report(report)
        for grouped in groups:
            _print_groups(grouped)
    if written:
        terminal.say(f"{counted(len(written), 'file')} in {run}")
    if stopped is not None:
        raise Interrupted(stopped)


def _print_report(report: Report) -> None:
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
        print(line)


def _print_groups(groups: Groups) -> None:
    rows: dict[tuple[str, str], list[str]] = {}
    for row in groups.rows:
        text = f"{row['mean']:.4f} [{row['low']:.4f}, {row['high']:.4f}]" if row["users"] else "–"
        rows.setdefault((row["group"], row["model"]), []).append(text)
    metrics = dict.fromkeys(row["metric"] for row in groups.rows)
    cells = [
        [group, f"{groups.sizes[group]:,}", model, *found] for (group, model), found in rows.items()
    ]
    terminal.table(f"By {groups.attribute}", (groups.attribute, "users", "model", *metrics), cells)
    print("[]: 95% bootstrap interval over the users of a group.")


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
