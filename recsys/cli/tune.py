"""`recsys tune`: search a ranker's parameters on a validation split."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.data_options import DataOptions, Protocol, Test, TestFrom, takes_data
from recsys.cli.options import EngineName, Json, Quiet, Scratch, Seed, Threads, Workers, use_threads
from recsys.data import find_protocol
from recsys.data.splits import protocol_for
from recsys.errors import InputError
from recsys.tuning import tune as search
from recsys.utils.progress import bar


@takes_data
def tune(
    model: Annotated[str, typer.Option("--model", help="NAME[:key=value, held fixed].")],
    data: DataOptions,
    trials: Annotated[int, typer.Option("--trials", help="In total, earlier ones included.")] = 20,
    metric: Annotated[str, typer.Option("--metric", help="NAME[@k]; + sums several.")] = "ndcg@10",
    protocol: Protocol = None,
    test: Test = None,
    test_from: TestFrom = None,
    seed: Seed = 0,
    study: Annotated[
        str | None,
        typer.Option(
            "--study",
            help="File, or URL of a data base, that keeps the trials: to go on later, or for several "
            "calls at once that share them.",
        ),
    ] = None,
    json_file: Json = None,
    engine: EngineName = "local",
    workers: Workers = None,
    threads: Threads = None,
    scratch: Scratch = None,
    quiet: Quiet = False,
) -> None:
    """Search parameters on a validation split that never sees what is tested."""
    if engine == "local" and workers is None:
        use_threads(threads)
    find_protocol(protocol_for(protocol, test or test_from))  # an unknown one is told early
    if study is not None and "://" not in study and not Path(study).parent.is_dir():
        raise InputError(f"--study {study}: the folder {Path(study).parent} does not exist")
    given = data.load(quiet, test, test_from=test_from)
    chosen = find_protocol(protocol_for(protocol, test or test_from, given)).name
    with bar(not quiet) as progress:
        found = search(
            given, model, trials, metric=metric, protocol=chosen, seed=seed, storage=study,
            progress=progress, engine=engine, workers=workers, threads=threads, scratch=scratch,
        )  # fmt: skip
    if json_file:
        terminal.write_json(
            json_file,
            {
                "model": found.spec, "params": found.params, "metric": metric, "value": found.value,
                "dataset": given.name, "protocol": chosen, "seed": seed,
                "trials": [{"params": params, "value": value} for params, value in found.trials],
            },
        )  # fmt: skip
    if json_file != "-":
        best = sorted(found.trials, key=lambda trial: -trial[1])[:5]
        rows = [(", ".join(f"{k}={v}" for k, v in p.items()), f"{value:.4f}") for p, value in best]
        title = f"{given.name}: {model}, {len(found.trials)} trials on training rows, {metric}"
        terminal.table(title, ("parameters", metric), rows)
        print(f"--model {found.spec}")
