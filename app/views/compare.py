"""Compare: models measured in the background, kept, compared and exported."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import state
from app.catalogues import Catalogue
from app.charts import evaluate as charts
from app.jobs import CANCELLED, Job, Progress
from app.parts.models import DEFAULT, metrics, models, summary
from app.parts.runs import Run, Settings, csv_of, json_of, runs, source_of
from app.parts.words import escaped
from app.session import ask, between, session
from recsys import InputError
from recsys.data import PROTOCOLS, find_protocol
from recsys.errors import counted
from recsys.evaluation import Report, evaluate
from recsys.evaluation.metrics import parse_metric
from recsys.rankers.registry import ranker_of

INTRO = (
    "A part of what users liked is hidden, each model predicts it from the rest, and is measured by "
    "what it puts first."
)
CHOSEN = ("popularity", "ease", DEFAULT)  # until the visitor chooses, as far as they are offered
MEASURED = ("auc", "map@10", "ndcg@10")
BEST = "font-weight: bold"
SHORT = 16  # characters of a model's name that leave room for three pictures beside each other
KIND = state.COMPARING  # of the jobs
COLOUR, WITHIN = "colour", ": 95% interval"  # columns of the table
MOST_FOLDS, MOST_SEED = 10, 10_000


def page() -> None:
    """Show the page."""
    st.header("Compare", anchor=False)
    catalogue = state.choose_data()
    st.caption(INTRO)
    settings = choose(catalogue)
    pressed = st.button("Run", type="primary", disabled=settings is None)
    if pressed and settings is not None:
        start(catalogue, settings)
        st.rerun()  # the address is written when a run of the page begins
    follow()
    show_runs()


# ---- what is evaluated


def choose(catalogue: Catalogue) -> Settings | None:
    """Show what is evaluated and how, each thing explained where it is; None if it cannot be run."""
    offered = models()
    chosen = ask(
        st.multiselect, "Models", name="evaluate.models", options=offered, select_all=False,
        default=[name for name in CHOSEN if name in offered], filter_mode="contains", wrap=True,
    )  # fmt: skip
    settings = st.expander("Settings: another model, what is hidden, metrics")
    with settings:
        more = ask(
            st.text_input, "Another model", name="evaluate.more", default="",
            placeholder="cf-komd:kernel=mdnf,d=2,c=2",
            help="A name with parameters, as on the command line.",
        )  # fmt: skip
        specs = [*chosen, *([more.strip()] if more.strip() else [])]
        st.text("\n".join(f"{spec}: {summary(spec)}" for spec in chosen))
        one, two, three = st.columns([2, 1, 1])
    with one:
        typed = session().get("evaluate.protocol", "half-profile")
        with_test = catalogue.data.held_out is not None
        known = [one for one in PROTOCOLS if with_test or one != "published"]
        known += [] if typed in known else [typed]
        protocol = ask(
            st.selectbox, "Protocol", name="evaluate.protocol", default="half-profile", options=known,
            accept_new_options=True, help="How the likes are divided. next- takes any number: next-3.",
        )  # fmt: skip
    try:
        way = find_protocol(protocol)
    except InputError as error:
        st.error(escaped(error))
        return None
    several = way.folds > 1
    with two:
        folds = ask(
            st.number_input, "Folds", 2 if way.grouped else 1, MOST_FOLDS, name="evaluate.folds",
            default=2, valid=between(2 if way.grouped else 1, MOST_FOLDS), disabled=not several,
            help="Groups of users, or windows of time. More take longer, and say more.",
        )  # fmt: skip
    with three:
        seed = ask(
            st.number_input, "Seed", 0, MOST_SEED, name="evaluate.seed", default=0,
            valid=between(0, MOST_SEED), help="The same seed hides the same likes.",
        )  # fmt: skip
    with settings:
        st.caption(" ".join([f"Hidden and to be predicted: {way.description}.", way.note]).strip())
        measured = ask(
            st.multiselect, "Metrics", name="evaluate.metrics", options=metrics(),
            default=list(MEASURED), filter_mode="contains", select_all=False, wrap=True,
        )  # fmt: skip
        st.caption("  \n".join(f"{name}: {definition(name)}." for name in measured))
    divided = int(folds) if several else None
    try:
        if not specs:
            raise InputError("choose at least one model")
        if not measured:
            raise InputError("choose at least one metric")
        if len(set(specs)) < len(specs):
            raise InputError(f"model {more.strip()} is chosen twice")
        for spec in specs:
            ranker_of(spec)  # refuses it
        way.check(catalogue.data, divided or way.folds)
    except InputError as error:
        st.warning(escaped(error))
        return None
    return Settings(
        source_of(catalogue), state.digest(catalogue.key), tuple(specs), tuple(measured), protocol,
        divided, int(seed),
    )  # fmt: skip


def definition(metric: str) -> str:
    """Return what a metric is, and whether more is better."""
    found, _, _ = parse_metric(metric)
    better = {"less": "; less is better", "more": "", "": "; neither more nor less is better"}
    return found.definition + better[found.better]


# ---- running


def start(catalogue: Catalogue, settings: Settings) -> None:
    """Start an evaluation in the background; one that is kept is shown at once."""
    here = session()
    if runs().find(settings.id) is not None:
        keep(settings.id)
        return
    key = (KIND, settings.id)
    found = state.jobs().find(key)
    if found is not None and found.over:
        state.jobs().forget(key)
    state.run(key, work_of(catalogue, settings), f"Evaluating on {catalogue.data.name}")
    here.set("evaluate.running", settings.id)


def work_of(catalogue: Catalogue, settings: Settings) -> Any:
    """Return the work of an evaluation: it keeps its run itself, whatever page is open by then."""

    def work(progress: Progress) -> str:
        chosen = [(spec, ranker_of(spec)) for spec in settings.models]
        report = evaluate(
            catalogue.data, chosen, protocol=settings.protocol, folds=settings.folds,
            metrics=settings.metrics, seed=settings.seed, progress=progress,
        )  # fmt: skip
        run = Run.now(settings, report)
        progress("drawing intervals", 1, 1)
        assert run.intervals  # drawn here, off the page
        runs().keep(settings.id, run, run.size)
        return settings.id

    return work


def keep(id: str) -> None:
    """Put a run first among those of this session, and show it."""
    here = session()
    own = here.get("evaluate.runs", [])
    here.set("evaluate.runs", [id, *(one for one in own if one != id)])
    here.set("evaluate.shown", id)
    here.forget("evaluate.running")


def follow() -> None:
    """Show the evaluation that runs, or what became of it."""
    here = session()
    id = here.get("evaluate.running", "")
    if not id:
        return
    job = state.jobs().find((KIND, id))
    if runs().find(id) is not None:
        keep(id)
        st.rerun()
    elif job is None:
        here.forget("evaluate.running")
        st.warning("The evaluation that ran here is no longer known to the server: press Run again.")
    elif job.running:
        running(job, (KIND, id))
    else:
        here.forget("evaluate.running")
        told = "The evaluation was cancelled." if job.error == CANCELLED else job.error
        (st.info if job.error == CANCELLED else st.error)(
            told or "The evaluation ended without a result."
        )
        state.jobs().forget((KIND, id))


@st.fragment(run_every=0.7)
def running(job: Job, key: tuple[Any, ...]) -> None:
    """Show where an evaluation is and the way out; a cancel is heard at once."""
    if not job.running:
        st.rerun()
    bar = st.empty()
    if not job.cancelled and st.button("Cancel", key="cancel evaluation"):
        state.cancel(key)
    if job.cancelled:
        bar.progress(job.share, text="Cancelling… The step that runs is the last one.")
        return
    bar.progress(job.share, text=state.told(job, job.text))
    st.caption("Other pages stay usable, and a reload of this one finds it again.")


# ---- what was found


def show_runs() -> None:
    """Show the runs of this session: one closely, several side by side."""
    here = session()
    own = here.get("evaluate.runs", [])
    kept = {id: run for id in own if (run := runs().find(id)) is not None}
    if len(kept) < len(own):
        gone = len(own) - len(kept)
        here.set("evaluate.runs", list(kept))
        are = "is" if gone == 1 else "are"
        st.caption(f"{counted(gone, 'earlier run')} {are} no longer kept: press Run to have them again.")
    if not kept:
        if not here.get("evaluate.running", ""):
            st.info(
                "Choose models and press Run. It runs in the background, and what it finds is kept here "
                "beside earlier runs."
            )
        return
    st.divider()
    names = {id: here.get(f"run.{id}", "") or run.settings.name() for id, run in kept.items()}
    shown = list(kept)[0]
    if len(kept) > 1:
        shown = ask(
            st.selectbox, "Run", name="evaluate.shown", default=shown, options=list(kept),
            format_func=lambda id: names[id],
        )  # fmt: skip
    show(kept[shown])
    if len(kept) > 1:
        side_by_side(kept, names)
    exports(kept, names, shown)


def show(run: Run) -> None:
    """Show a run: the decision, one table, and the rest folded."""
    report = run.report
    if told := report.decision():
        with st.container(border=True):
            st.text(told)
    frame = table(run)
    config = {name: st.column_config.Column(help=definition(name)) for name in report.definitions}
    for name in report.definitions:
        config[name + WITHIN] = st.column_config.TextColumn("95% interval")
    config[COLOUR] = st.column_config.TextColumn("", width=20)
    st.dataframe(styled(frame, report), hide_index=True, width="stretch", column_config=config)
    st.caption(
        "Means over users with their 95% bootstrap intervals; the best mean is bold. "
        "Each model has one colour in the table and in all pictures."
    )
    st.text(f"{report.dataset}: {report.about()}")
    for note in report.notes:
        st.caption(escaped(note))
    verdicts = report.verdicts()
    if verdicts:
        with st.expander("The best and the next model on each metric, with p-values"):
            st.text("\n".join(verdicts))
    with st.expander("Pictures of the intervals"):
        forests(run)
    with st.expander("A closer look: users, groups and folds"):
        closer(run)
    with st.expander("What the values mean"):
        skipped = [*verdicts, *report.notes]
        st.text("\n".join(one for one in report.sentences() if one not in skipped))


def table(run: Run) -> pd.DataFrame:
    """Return a row a model: each metric with its interval, and seconds without compiling."""
    report, (low, high) = run.report, run.intervals
    rows = []
    compiled = any(r.compile_seconds >= 0.05 for r in report.results)
    for r in report.results:
        row: dict[str, Any] = {COLOUR: "●", "model": r.model}
        for name in report.definitions:
            row[name] = r.metrics[name].mean
            ends = (low[r.model, name], high[r.model, name])
            row[name + WITHIN] = "{:.4f} to {:.4f}".format(*ends) if np.isfinite(ends).all() else ""
        row |= {"fit s": r.fit_seconds, "score s": r.score_seconds}
        if compiled:
            row["compiling s, besides"] = r.compile_seconds
        rows.append(row)
    return pd.DataFrame(rows)


def styled(frame: pd.DataFrame, report: Report) -> Any:
    """Return the table with each model's colour, and the best mean of each metric bold."""
    best, own = report.best(), charts.colours(frame["model"].tolist())
    seconds = {column: "{:.2f}" for column in frame.columns if column.endswith((" s", "besides"))}

    def mark(column: pd.Series) -> list[str]:
        return [BEST if value == best.get(str(column.name)) else "" for value in column]

    def dot(column: pd.Series) -> list[str]:
        return [f"color: {colour}" for colour in own.values()]

    means = frame.style.format(seconds, precision=4).apply(mark, subset=list(best))
    return means.apply(dot, subset=[COLOUR])


def forests(run: Run) -> None:
    """Show all means with their intervals, a picture a metric."""
    names = list(run.report.definitions)
    longest = max(len(r.model) for r in run.report.results)
    across_ = min(3 if longest <= SHORT else 2, len(names))
    for start in range(0, len(names), across_):
        some = names[start : start + across_]
        for place, metric in zip(st.columns(across_), some, strict=False):
            unit = f"{metric}, mean over users"
            if metric in run.report.per_fold:
                unit = f"{metric}, one value a fold"
            place.altair_chart(
                charts.forest(ends(run, metric), metric, unit), width="stretch",
                alt=f"Mean of {metric} of each model with its interval",
            )  # fmt: skip


def ends(run: Run, metric: str) -> pd.DataFrame:
    """Return a row a model: its mean and the ends of its interval."""
    low, high = run.intervals
    rows = []
    for r in run.report.results:
        mean = r.metrics[metric].mean
        rows.append(
            {"model": r.model, "mean": mean, "low": low[r.model, metric], "high": high[r.model, metric]}
        )  # fmt: skip
    return pd.DataFrame(rows)


def closer(run: Run) -> None:
    """Show one metric closely: user by user, against novelty and time, by profile length, by fold."""
    report = run.report
    names = list(report.definitions)
    metric = ask(st.selectbox, "Metric", name="evaluate.metric", default=names[0], options=names)
    labels = [r.model for r in report.results]
    left, right = st.columns(2)
    if metric in report.per_fold:
        left.caption(f"{metric} has one value for all users: there are no differences user by user.")
    elif len(labels) > 1:
        with left:
            two_models(run, metric, labels)
    with right:
        trade_offs(report, metric)
    left, right = st.columns(2)
    if metric not in report.per_fold:
        with left:
            by_length(run, metric)
    if report.folds > 1:
        with right:
            by_fold(report, metric)


def two_models(run: Run, metric: str, labels: list[str]) -> None:
    """Show for whom one model is better than another."""
    sign = 1 if run.report.better.get(metric) == "less" else -1
    ranked = sorted(labels, key=lambda one: sign * run.report.result(one).metrics[metric].mean)
    pairs = {f"{a} – {b}": (a, b) for a, b in combinations(ranked, 2)}
    text = next(iter(pairs))
    if len(pairs) > 1:
        text = ask(st.selectbox, "Two models", name="evaluate.pair", default=text, options=list(pairs))
    first, second = pairs[text]
    differences = user_differences(run.report, metric, first, second)
    if len(differences) == 0:
        st.caption(f"No user has a value of {metric} for both models.")
        return
    frame = charts.binned(differences, first, second, -1.0 if sign > 0 else 1.0)
    st.altair_chart(
        charts.histogram(
            frame, (first, second), labels, f"{metric} of the first less that of the second",
            "Differences user by user",
        ),
        width="stretch", alt=f"Histogram of users by the difference of {first} and {second}",
    )  # fmt: skip
    ahead, behind = int((differences > 0).sum()), int((differences < 0).sum())
    if sign > 0:
        ahead, behind = behind, ahead
    of = f"{len(differences):,}"
    st.text(f"Users for whom {first} is better: {ahead:,} of {of}; {second}: {behind:,} of {of}.")


def user_differences(report: Report, metric: str, first: str, second: str) -> np.ndarray:
    """Return the first model's value less the second's for each user, the mean over folds."""
    difference = report.values[first, metric] - report.values[second, metric]
    return difference.groupby(report.rows.index.to_numpy()).mean().dropna().to_numpy()


def trade_offs(report: Report, metric: str) -> None:
    """Show accuracy against novelty, or against the seconds that a model takes."""
    frame = pd.DataFrame(
        [
            {
                "model": r.model,
                "seconds": max(r.fit_seconds + r.score_seconds, 1e-3),
                **{name: r.metrics[name].mean for name in report.definitions},
            }
            for r in report.results
        ]
    )
    others = [name for name in report.definitions if name != metric]
    novel = next((name for name in others if name.startswith("novelty")), None)
    options = ["seconds", *others]
    other = ask(
        st.selectbox, "Against", name="evaluate.against", default=novel or "seconds", options=options,
        format_func=lambda name: "time (fitting and scoring)" if name == "seconds" else name,
    )  # fmt: skip
    if other == "seconds":
        titles = (f"{metric} against time", "seconds of fitting and scoring, without compiling", metric)
    else:
        titles = (f"{metric} against {other}", other, metric)
    chart = charts.against(frame, other, metric, titles, log=other == "seconds")
    st.altair_chart(chart, width="stretch", alt=f"{titles[0]}, a mark a model")
    if novel is None:
        st.caption("To see accuracy against novelty, add novelty@10 to the metrics and run again.")


def by_length(run: Run, metric: str) -> None:
    """Show metric values of groups of users by how many items they have in training."""
    frame = run.by("profile length")
    frame = frame[frame["metric"] == metric].assign(items=lambda rows: rows["group"] + " items")
    titles = ("By profile length", "items a user has in training", metric)
    st.altair_chart(
        charts.over(frame, "items", list(frame["items"].unique()), titles), width="stretch",
        alt=f"{metric} of each model for users of short and long profiles",
    )  # fmt: skip
    st.caption("Bars: 95% intervals.")


def by_fold(report: Report, metric: str) -> None:
    """Show the mean of each fold: a model that is better in one only is not better."""
    rows = [
        {"fold": str(k), "model": r.model, "mean": mean, "low": np.nan, "high": np.nan}
        for r in report.results
        for k, mean in enumerate(r.metrics[metric].folds, 1)
    ]
    order = [str(k) for k in range(1, report.folds + 1)]
    titles = ("Fold by fold", "fold", metric)
    if report.protocol == "rolling":
        titles = ("Window by window", "window of time, the earliest first", metric)
    st.altair_chart(
        charts.over(pd.DataFrame(rows), "fold", order, titles),
        width="stretch", alt=f"{metric} of each model in each fold",
    )  # fmt: skip


# ---- several runs


def side_by_side(kept: dict[str, Run], names: dict[str, str]) -> None:
    """Show the metric values of several runs in one table, and what they differ in."""
    with st.expander(f"Compare the {counted(len(kept), 'run')}", expanded=True):
        every = list(dict.fromkeys(m for run in kept.values() for m in run.report.definitions))
        metric = ask(
            st.selectbox, "Metric of all runs", name="evaluate.across", default=every[0], options=every
        )
        st.dataframe(
            across(kept, names, metric).style.format(precision=4), hide_index=True, width="stretch"
        )
        differ = differing([run.settings for run in kept.values()])
        if differ:
            st.caption(
                f"These runs differ in: {', '.join(differ)}. Values of different data or protocols are "
                "not comparable."
            )


def across(kept: dict[str, Run], names: dict[str, str], metric: str) -> pd.DataFrame:
    """Return a row a run and model that has the metric."""
    rows = []
    for id, run in kept.items():
        low, high = run.intervals
        for r in run.report.results:
            if metric in r.metrics:
                rows.append(
                    {
                        "run": names[id], "model": r.model, metric: r.metrics[metric].mean,
                        "95% from": low[r.model, metric], "to": high[r.model, metric],
                        "dataset": run.report.dataset, "protocol": run.report.protocol,
                        "folds": run.report.folds, "seed": run.report.seed,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def differing(settings: list[Settings]) -> list[str]:
    """Return what settings differ in, of all that metric values depend on but the models."""
    what = {
        "data": [s.data for s in settings], "protocol": [s.protocol for s in settings],
        "folds": [s.folds for s in settings], "seed": [s.seed for s in settings],
    }  # fmt: skip
    return [name for name, values in what.items() if len(set(values)) > 1]


def exports(kept: dict[str, Run], names: dict[str, str], shown: str) -> None:
    """Show the command that repeats a run, and the files of one or of all."""
    st.subheader("Repeat it, keep it", anchor=False)
    ask(
        st.text_input, "Name of this run", name=f"run.{shown}", default="", max_chars=80,
        placeholder=kept[shown].settings.name(),
    )  # fmt: skip
    st.caption("The same values on the command line:")
    st.code(kept[shown].how(), language=None, wrap_lines=True)
    chosen = list(kept)
    if len(kept) > 1:
        chosen = ask(
            st.multiselect, "Runs in the files", name="evaluate.files", default=[shown],
            options=list(kept), format_func=lambda id: names[id],
        ) or [shown]  # fmt: skip
    named = [(names[id], kept[id]) for id in chosen]
    stem = f"evaluation-{kept[shown].settings.source.dataset or 'upload'}-{shown}"
    for place, (label, made, ending, mime) in zip(
        st.columns(2),
        (
            ("Download JSON", json_of, "json", "application/json"),
            ("Download CSV", csv_of, "csv", "text/csv"),
        ),
        strict=True,
    ):
        place.download_button(
            label, lambda made=made: made(named), f"{stem}.{ending}", mime, on_click="ignore",
            width="stretch",
        )  # fmt: skip
