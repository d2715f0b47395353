"""The command line: parse, call, print. Everything it does is in the modules it calls."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numba
import numpy as np
import scipy.sparse as sp
import typer
from rich.text import Text

from recsys import __version__, doctor as health, terminal
from recsys.checks import check_integer
from recsys.data import PROTOCOLS, Interactions, list_datasets, load_dataset, read_features, read_interactions
from recsys.data.datasets import DATASETS
from recsys.errors import FitError, InputError, NotFittedError
from recsys.evaluation import Report, evaluate as run_evaluation
from recsys.rankers import Bundle, fit_bundle, load_bundle, make_ranker, parse_spec

MODELS = ("popularity", "msdw", "ease", "als", "ecf-omd", "cf-komd:kernel=mc,degree=2",
          "cf-komd:kernel=md,degree=2")
ClickException = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    help="Recommendation on CPU that says why.", add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]},
)
Protocol = Enum("Protocol", {name: name for name in PROTOCOLS}, type=str)

DatasetOption = Annotated[str | None, typer.Option("--dataset", help="A named dataset; see `recsys datasets`.")]
FileOption = Annotated[Path | None, typer.Option("--interactions", help="CSV, TSV or Parquet, plain or gzip.")]
UserCol = Annotated[str | None, typer.Option("--user-col", help="Column of user ids.")]
ItemCol = Annotated[str | None, typer.Option("--item-col", help="Column of item ids.")]
RatingCol = Annotated[str | None, typer.Option("--rating-col", help="Column of ratings.")]
TimeCol = Annotated[str | None, typer.Option("--time-col", help="Column of times.")]
MinRating = Annotated[float | None, typer.Option("--min-rating", help="Drop rows rated below this.")]
ItemsOption = Annotated[Path | None, typer.Option("--items", help="Table of item features and titles.")]
ItemId = Annotated[str | None, typer.Option("--item-id", help="Its id column.")]
UsersOption = Annotated[Path | None, typer.Option("--users", help="Table of user features.")]
UserId = Annotated[str | None, typer.Option("--user-id", help="Its id column.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder of datasets, looked in first.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Processors to use, all by default.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes.")]
Json = Annotated[str | None, typer.Option("--json", help="Write JSON to a file, or to stdout for -.")]
RankerFile = Annotated[Path, typer.Option("--ranker", help="A file that `recsys fit` wrote.")]
Count = Annotated[int, typer.Option("-n", "--number", help="How many.")]
History = Annotated[str | None, typer.Option("--history", help="Item ids a new user likes: ID,ID.")]


@app.callback(invoke_without_command=True)
def main(context: typer.Context, version: Annotated[bool, typer.Option("--version")] = False) -> None:
    """Recommendation on CPU that says why."""
    if version:
        print(f"recsys {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def doctor(
    warmup: Annotated[bool, typer.Option("--warmup", help="Compile everything ahead.")] = False,
) -> None:
    """Print versions, threads, BLAS, cache and memory."""
    terminal.table("", ("what", "value"), health.findings())
    if warmup:
        with terminal.progress(True) as progress:
            seconds = health.warm_up(progress)
        print(f"compiled in {seconds:.1f} s")


@app.command()
def datasets(data_dir: DataDir = None) -> None:
    """List the named datasets."""
    rows = []
    for name in list_datasets():
        entry = DATASETS.get(name)
        rows.append((name, entry.title, entry.licence or "", entry.where(data_dir)))
    terminal.table("", ("name", "what", "licence", "found"), rows)


@app.command()
def evaluate(
    dataset: DatasetOption = None, interactions: FileOption = None, user_col: UserCol = None,
    item_col: ItemCol = None, rating_col: RatingCol = None, time_col: TimeCol = None,
    min_rating: MinRating = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="NAME[:key=value,…]; repeat for more.")] = None,
    protocol: Annotated[Protocol, typer.Option("--protocol")] = Protocol["half-profile"],
    folds: Annotated[int | None, typer.Option("--folds")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", help="NAME[@k]; repeat for more.")] = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    items: ItemsOption = None, item_id: ItemId = None, users: UsersOption = None, user_id: UserId = None,
    data_dir: DataDir = None, json_file: Json = None, threads: Threads = None, quiet: Quiet = False,
) -> None:
    """Compare models under one protocol, with paired tests between them."""
    _use_threads(threads)
    chosen = _split_commas(model) or list(MODELS)
    models = []
    for text in chosen:
        name, params = parse_spec(text)
        ranker = make_ranker(name, **params)
        models.append((text, ranker.params(), ranker))
    names = [part for text in metric or () for part in text.split(",")] or ["auc", "ndcg@10", "map@10"]
    data = _data(dataset, interactions, data_dir, user_col, item_col, rating_col, time_col, min_rating,
                 items, item_id, users, user_id, quiet)
    with terminal.progress(not quiet) as progress:
        report = run_evaluation(data, models, protocol=protocol.value, folds=folds, metrics=names, seed=seed,
                                progress=progress)
    if json_file:
        terminal.write_json(json_file, report.as_dict() | {"versions": health.versions()})
    if json_file != "-":
        _print_report(report)


@app.command()
def fit(
    out: Annotated[Path, typer.Option("--out", help="The ranker file to write.")],
    model: Annotated[str, typer.Option("--model", help="NAME[:key=value,…]")] = "cf-komd",
    dataset: DatasetOption = None, interactions: FileOption = None, user_col: UserCol = None,
    item_col: ItemCol = None, rating_col: RatingCol = None, time_col: TimeCol = None,
    min_rating: MinRating = None, items: ItemsOption = None, item_id: ItemId = None,
    data_dir: DataDir = None, threads: Threads = None, quiet: Quiet = False,
) -> None:
    """Fit a ranker and write it, with ids, titles and histories, to one file."""
    _use_threads(threads)
    name, params = parse_spec(model)
    ranker = make_ranker(name, **params)
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: the folder {out.parent} does not exist")
    data = _data(dataset, interactions, data_dir, user_col, item_col, rating_col, time_col, min_rating,
                 items, item_id, None, None, quiet)
    start = time.perf_counter()
    fit_bundle(ranker, data, show_progress=not quiet and sys.stderr.isatty()).save(out)
    if not quiet:
        print(f"{name} fitted on {data.n_users:,} users and {data.n_items:,} items in "
              f"{time.perf_counter() - start:.1f} s, written to {terminal.literal(out)}")


@app.command()
def recommend(
    ranker: RankerFile,
    user: Annotated[list[str] | None, typer.Option("--user", help="User id; repeat for more.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users.")] = False,
    history: History = None, number: Count = 10,
    out: Annotated[Path | None, typer.Option("--out", help="CSV file to write (.json for JSON).")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
) -> None:
    """Print or write the best items for users, or for a history given by item ids."""
    _use_threads(threads)
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError("name whom to recommend to by exactly one of --user ID, --all and --history ID,ID")
    bundle = load_bundle(ranker)
    labels, ids, rows, fold_in = _whom(bundle, user, everyone, history)
    found = bundle.ranker.recommend(ids, rows, N=number, recalculate_user=fold_in)
    if found.fallback.any():
        terminal.say(f"note: {int(found.fallback.sum()):,} without liked items get the most popular ones")
    lines = [
        (labels[u], place + 1, bundle.item_ids[i], bundle.titles[i], float(found.scores[u, place]))
        for u in range(len(labels)) for place, i in enumerate(found.ids[u]) if i >= 0
    ]
    columns = ("user_id", "rank", "item_id", "title", "score")
    if out is not None and out.suffix == ".json":
        terminal.write_json(str(out), [dict(zip(columns, line, strict=True)) for line in lines])
    elif out is not None:
        terminal.write_text(out, terminal.csv_text(columns, lines, raw))
    elif everyone:
        sys.stdout.write(terminal.csv_text(columns, lines, raw))
    else:
        _print_items(bundle, [(*line[:4], f"{line[4]:.4g}") for line in lines], columns)


@app.command()
def similar(
    ranker: RankerFile, item: Annotated[str, typer.Option("--item", help="Item id.")], number: Count = 10,
) -> None:
    """Print the items most similar to one."""
    bundle = load_bundle(ranker)
    index = int(Interactions.lookup("item", bundle.item_ids, [item])[0])
    check_integer("-n", number, 1)
    ids, scores = bundle.ranker.similar_items(index, N=number, filter_items=[index])
    lines = [(place + 1, bundle.item_ids[i], bundle.titles[i], f"{score:.4g}")
             for place, (i, score) in enumerate(zip(ids, scores, strict=True))]
    _print_items(bundle, lines, ("rank", "item_id", "title", "similarity"), f"Similar to {bundle.titles[index]}")


@app.command()
def explain(
    ranker: RankerFile, item: Annotated[str, typer.Option("--item", help="Item id to explain.")],
    user: Annotated[str | None, typer.Option("--user", help="User id.")] = None,
    history: History = None, number: Count = 10,
) -> None:
    """Print which liked items an item's score comes from."""
    if (user is None) == (history is None):
        raise InputError("name whom to explain to by exactly one of --user ID and --history ID,ID")
    bundle = load_bundle(ranker)
    index = int(Interactions.lookup("item", bundle.item_ids, [item])[0])
    _, ids, rows, _ = _whom(bundle, None if user is None else [user], False, history)
    why = bundle.ranker.explain(int(ids[0]), rows, index, N=number)
    lines = [(bundle.item_ids[i], bundle.titles[i], f"{value:+.4g}") for i, value in why.contributions]
    rest = "everything else" if lines else "popularity: nothing is liked"
    lines += [("", rest, f"{why.bias:+.4g}"), ("", "score", f"{why.score:.4g}")]
    _print_items(bundle, lines, ("item_id", "because you like", "share"), f"Why {bundle.titles[index]}")


def _data(
    dataset: str | None, file: Path | None, data_dir: Path | None, user_col: str | None, item_col: str | None,
    rating_col: str | None, time_col: str | None, min_rating: float | None, items: Path | None,
    item_id: str | None, users: Path | None, user_id: str | None, quiet: bool,
) -> Interactions:
    if dataset is not None and file is not None:
        raise InputError("pass --dataset or --interactions, not both")
    if file is not None:
        data = read_interactions(file, user_col=user_col, item_col=item_col, rating_col=rating_col,
                                 time_col=time_col, min_rating=min_rating)
    else:
        if any((user_col, item_col, rating_col, time_col)):
            raise InputError("column names are for --interactions FILE; a named dataset knows its own")
        data = load_dataset("sample" if dataset is None else dataset, data_dir)
        data = data if min_rating is None else data.rated(min_rating)
    if items is not None:
        data = data.with_features(items=read_features(items, item_id, "item"))
    if users is not None:
        data = data.with_features(users=read_features(users, user_id, "user"))
    if not quiet:
        for note in data.notes:
            terminal.say(f"note: {data.name}: {note}")
    return data


def _whom(
    bundle: Bundle, users: list[str] | None, everyone: bool, history: str | None
) -> tuple[list[str], Any, sp.csr_matrix, bool]:
    """Return labels, row numbers, rows, and whether the rows are of a user never seen."""
    if history is not None:
        row = bundle.history([part.strip() for part in history.split(",") if part.strip()])
        return ["new"], np.zeros(1, dtype=np.int64), row, "fold-in" in bundle.ranker.capabilities
    if everyone:
        return list(bundle.user_ids), np.arange(len(bundle.user_ids)), bundle.user_items, False
    ids, rows = bundle.rows(users or [])
    return list(users or []), ids, rows, False


def _print_items(bundle: Bundle, lines: list[Any], columns: tuple[str, ...], title: str = "") -> None:
    """Print a table, without the titles where they only repeat the ids."""
    if "title" in columns and all(a == b for a, b in zip(bundle.titles, bundle.item_ids, strict=True)):
        drop = columns.index("title")
        lines = [line[:drop] + line[drop + 1 :] for line in lines]
        columns = columns[:drop] + columns[drop + 1 :]
    terminal.table(title, columns, lines)


def _print_report(report: Report) -> None:
    title = (f"{report.dataset}: {report.users:,} users, {report.items:,} items, {report.interactions:,} "
             f"interactions; {report.protocol}, {report.folds} fold{'s' if report.folds > 1 else ''}, "
             f"seed {report.seed}")
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


def _use_threads(threads: int | None) -> None:
    if threads is not None:
        most = numba.config.NUMBA_NUM_THREADS
        check_integer("--threads", threads, 1)
        if threads > most:
            terminal.say(f"note: --threads {threads} is more than this machine has; using {most}")
        numba.set_num_threads(min(threads, most))


def _leave_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process within two seconds, also inside compiled code.

    Python's own handlers run between bytecodes only; a watcher woken by the signal itself
    gives the main thread a moment to clean up and then ends the process.
    """

    def stop(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def watch() -> None:
        number = os.read(reading, 1)[0]
        time.sleep(1.5)
        os._exit(128 + number)

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    signal.set_wakeup_fd(writing)
    threading.Thread(target=watch, daemon=True).start()


def run() -> NoReturn:
    """Run the command line and exit: 0 done, 1 our fault, 2 the user's, 130 interrupted."""
    try:
        _leave_on_signals()
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except (InputError, NotFittedError, FitError) as error:
        code = _complain(str(error), 2)
    except ClickException as error:
        code = _complain(error.format_message(), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("interrupted", 130)
    except MemoryError:
        code = _complain("out of memory: keep fewer users or items, or choose another model", 1)
    except Exception as error:
        if os.environ.get("RECSYS_DEBUG"):
            traceback.print_exc()
        where = f"{type(error).__name__}: {error}".splitlines()[0]
        code = _complain(f"internal error, please report it: {where} (RECSYS_DEBUG=1 shows more)", 1)
    sys.exit(code)


def _complain(message: str, code: int) -> int:
    terminal.say(f"recsys: {' '.join(message.split())}")
    return code
