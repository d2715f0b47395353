"""Rerun Table 10.3 of Polato's thesis (AUC on half profiles, 5 folds of users).

    python benchmarks/table_10_3.py [--dataset NAME]… [--data-dir DIR]

The thesis reports, for each method, its best setting on the test half. Here a setting is
chosen on a validation split of the first fold's training half only; `best` is what the
thesis' way of choosing would have given, for comparison. Netflix is not run: it is not
distributed any more.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from recsys import make_ranker
from recsys.data import Interactions, load_dataset, split
from recsys.evaluation import evaluate
from recsys.rankers import parse_spec

RESULTS = Path(__file__).parent / "results"
DEGREES = (2, 5, 10, 20, 50, 100, 200, 300, 500)
# How items nobody in training has are scored; the thesis does not say what it does.
UNRATED = ("kernel", "mean")
SETTINGS = {
    "MSDw": [f"msdw:alpha={a}" for a in (0, 0.15, 0.25, 0.5, 0.75, 1)],
    "SLIM": [f"slim:l1={l1},l2=10,iterations=10" for l1 in (0.5, 1, 2)],
    "WRMF": [f"als:factors=50,regularization={r}" for r in (1, 10, 100, 300)],
    "BPR-MF": ["bpr:factors=50,learning_rate=0.01,regularization=0.0025"],
    "ECF-OMD": ["ecf-omd:regularization=0.1"],
    "HP": [f"cf-komd:kernel=hp,degree=2,unrated={u}" for u in UNRATED],
    "Tanimoto": [f"cf-komd:kernel=tanimoto,unrated={u}" for u in UNRATED],
    "mC": [f"cf-komd:kernel=mc,degree=2,unrated={u}" for u in UNRATED],
    "mD": [f"cf-komd:kernel=md,degree={d},unrated={u}" for d in DEGREES for u in UNRATED],
}
# Columns of Table 10.3. "Movielens" is MovieLens 1M; halves in time order reproduce it.
THESIS = {
    "bookcrossing": (0.743, 0.714, 0.739, 0.691, 0.731, 0.748, 0.744, 0.695, 0.751),
    "ciaodvd": (0.824, 0.788, 0.755, 0.848, 0.718, 0.731, 0.734, 0.540, 0.841),
    "filmtrust": (0.961, 0.969, 0.956, 0.959, 0.961, 0.961, 0.964, 0.951, 0.971),
    "jester": (0.727, 0.658, 0.739, 0.649, 0.602, 0.601, 0.626, 0.601, 0.727),
    "movielens-1m": (0.875, 0.861, 0.877, 0.874, 0.896, 0.893, 0.895, 0.892, 0.895),
    "movielens": None,
}
PROTOCOL = {"movielens-1m": "half-profile-time"}


def models(specs):
    out = []
    for text in specs:
        name, params = parse_spec(text)
        out.append((text, params, make_ranker(name, **params)))
    return out


def training_half(data, protocol):
    """Return what the models see in the first fold, as interactions of its own."""
    fold = next(iter(split(data, protocol, seed=0)))
    key = data.users.astype(np.int64) * data.n_items + data.items
    coo = fold.train.tocoo()
    keep = np.isin(key, coo.row.astype(np.int64) * data.n_items + coo.col)
    return Interactions.from_ids(
        data.user_ids[data.users[keep]], data.item_ids[data.items[keep]],
        time=None if data.time is None else data.time[keep], name=data.name,
    )  # fmt: skip


def run(name, data_dir):
    data = replace(load_dataset(name, data_dir), item_features=None, user_features=None)
    protocol = PROTOCOL.get(name, "half-profile")
    inner = training_half(data, protocol)
    rows = {}
    for method, specs in SETTINGS.items():
        start = time.perf_counter()
        if len(specs) > 1:
            validated = evaluate(inner, models(specs), protocol=protocol, metrics=["auc"], only_folds=1)
            chosen = max(validated.results, key=lambda r: r.metrics["auc"].mean).model
        else:
            chosen = specs[0]
        tested = specs if method == "mD" else [chosen]
        report = evaluate(data, models(tested), protocol=protocol, metrics=["auc"])
        figures = {r.model: r.metrics["auc"] for r in report.results}
        best = max(figures, key=lambda spec: figures[spec].mean)
        rows[method] = {
            "setting": chosen, "auc": figures[chosen].mean, "std": figures[chosen].std,
            "best_setting": best, "best": figures[best].mean, "seconds": time.perf_counter() - start,
            "all": {spec: figure.mean for spec, figure in figures.items()},
        }  # fmt: skip
        print(
            f"{name:14s} {method:9s} {chosen:52s} {figures[chosen].mean:.4f} ±{figures[chosen].std:.4f}",
            flush=True,
        )
    return {"dataset": name, "users": data.n_users, "items": data.n_items, "interactions": len(data.users),
            "protocol": protocol, "rows": rows}  # fmt: skip


# One sentence for each difference above 0.02. The figures are computed, the reasons are ours.
TIES = (
    "most candidates share no user with the profile and tie at 0, and ties count one half here; broken by "
    "popularity they gave {} on the first fold."
)
COLD = (
    "12% of what is tested are items nobody in training has, and the thesis does not say where they rank: on the "
    "first fold the linear kernel gives .693 with them last, .738 without them and .745 by (10.4), which is used here."
)
BPR = (
    "implicit's BPR, 100 passes; it overfits (FilmTrust, first fold: .829 after 100 passes, .769 after 1,000) and "
    "its stopping was not tuned here."
)
JESTER = (
    "the printed figures do not come out of the plain reading (positive ratings liked, users of at most 90 "
    "ratings), under which every method but BPR is above .84; how the thesis made its data binary is not known."
)
REASONS: dict[tuple[str, str], str] = {
    (
        "bookcrossing",
        "SLIM",
    ): "most candidates share no user with the profile and tie at 0, as on CiaoDVD; not tested further.",
    ("ciaodvd", "MSDw"): TIES.format(".812 instead of .734"),
    ("ciaodvd", "SLIM"): TIES.format(".814 instead of .635"),
    ("filmtrust", "SLIM"): TIES.format(".951 instead of .927"),
    ("ciaodvd", "WRMF"): "no reason was found; λ is of the thesis' grid, chosen on validation.",
    (
        "ciaodvd",
        "mC",
    ): "an item with fewer than two raters is null under mC; here such items score by (10.4), and "
    "those nobody has as the mean, which validation preferred (.5625 by (10.4) alone).",
    **{("ciaodvd", method): COLD for method in ("ECF-OMD", "HP", "Tanimoto")},
    **{(name, "BPR-MF"): BPR for name in ("ciaodvd", "filmtrust", "movielens-1m", "bookcrossing")},
    **{("jester", method): JESTER for method in SETTINGS},
    (
        "movielens-1m",
        "SLIM",
    ): "the best of the grid is at its edge (l1 = 2), after ten sweeps; not followed further.",
}


def markdown(results):
    lines = ["# Table 10.3 of Polato's thesis, rerun", "",
             "AUC, mean ± deviation over 5 folds of users, written by `benchmarks/table_10_3.py`. Settings chosen "
             "on a validation split of the first fold's training half; `best` chooses on the test half, as the "
             "thesis does, and is shown where it differs.", ""]  # fmt: skip
    for result in results:
        name = result["dataset"]
        thesis = THESIS[name]
        lines += [f"## {name}", "", f"{result['users']:,} users, {result['items']:,} items, "
                  f"{result['interactions']:,} interactions; {result['protocol']}.", "",
                  "| method | setting | ours | best | thesis | difference |", "|---|---|---|---|---|---|"]  # fmt: skip
        notes = []
        for k, (method, row) in enumerate(result["rows"].items()):
            best = (
                f"{row['best']:.4f} ({row['best_setting'].split(':')[1]})"
                if row["best"] > row["auc"]
                else ""
            )
            printed, gap = "–", ""
            if thesis is not None:
                printed, difference = f"{thesis[k]:.3f}", row["auc"] - thesis[k]
                gap = f"{difference:+.3f}"
                if abs(difference) > 0.02:
                    notes.append(
                        f"- {method} ({difference:+.3f}): {REASONS.get((name, method), 'no reason found.')}"
                    )
            lines.append(
                f"| {method} | `{row['setting']}` | {row['auc']:.4f} ±{row['std']:.4f} | {best} | {printed} | {gap} |"
            )
        lines += ["", *(["Where we differ by more than 0.02:", "", *notes, ""] if notes else [])]
    return "\n".join([*lines, "Netflix: not run, it is not distributed any more.", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", action="append", choices=list(THESIS))
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--report", action="store_true", help="only write the report from earlier runs")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in [] if options.report else options.dataset or list(THESIS):
        result = run(name, options.data_dir)
        (RESULTS / f"table_10_3-{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    kept = [RESULTS / f"table_10_3-{name}.json" for name in THESIS]
    (RESULTS / "table_10_3.md").write_text(
        markdown([json.loads(p.read_text()) for p in kept if p.exists()])
    )


if __name__ == "__main__":
    main()
