"""`recsys tune`: search a ranker's parameters on a validation split."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.options import DataOptions, Jobs, Json, Protocol, Quiet, Test, takes_data
from recsys.data import find_protocol
from recsys.data.splits import protocol_for
from recsys.errors import InputError
from recsys.evaluation.metrics import parse_metric
from recsys.rankers.registry import ranker_of
from recsys.tuning import tune as search
from recsys.utils.progress import bar


@takes_data
def tune(
    model: Annotated[str, typer.Option(help="NAME[:key=value,…] with fixed parameters.")],
    data: DataOptions,
    trials: Annotated[int, typer.Option(help="Total number of trials, including earlier ones.")] = 20,
    metric: Annotated[str, typer.Option(help="NAME[@k]; join several by + to sum them.")] = "ndcg@10",
    protocol: Protocol = None,
    test: Test = None,
    seed: int = 0,
    study: Annotated[
        str | None, typer.Option(help="File or database URL of the trials, to resume or share them.")
    ] = None,
    json_file: Json = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Search parameters on a validation split of the training rows."""
    # Misspelt names are refused before data is read.
    find_protocol(protocol_for(protocol, test))
    ranker_of(model)
    for name in metric.split("+"):
        parse_metric(name)
    if study is not None and "://" not in study and not Path(study).parent.is_dir():
        raise InputError(f"--study {study}: the folder {Path(study).parent} does not exist")
    loaded = data.load(quiet, test)
    chosen = protocol_for(protocol, test, loaded)
    with bar(not quiet) as progress:
        result = search(
            loaded,
            model,
            trials,
            metric=metric,
            protocol=chosen,
            seed=seed,
            storage=study,
            progress=progress,
            n_jobs=1 if jobs is None else jobs,
        )
    if json_file:
        terminal.write_json(
            json_file,
            {
                "model": result.spec,
                "params": result.params,
                "metric": metric,
                "value": result.value,
                "dataset": loaded.name,
                "protocol": chosen,
                "seed": seed,
                "trials": [{"params": params, "value": value} for params, value in result.trials],
            },
        )
    if json_file != "-":
        best = sorted(result.trials, key=lambda trial: -trial[1])[:5]
        rows = [(", ".join(f"{k}={v}" for k, v in p.items()), f"{value:.4f}") for p, value in best]
        title = f"{loaded.name}: {model}, {len(result.trials)} trials on training rows, {metric}"
        terminal.table(title, ("parameters", metric), rows)
        print(f"--model {result.spec}")
