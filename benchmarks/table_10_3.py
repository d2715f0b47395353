"""Rerun Table 10.3 of Polato's thesis (AUC on half profiles, 5 folds of users), and Figures 10.7, 10.8.

    python -m benchmarks.table_10_3 [--dataset NAME]… [--method NAME]… [--again] [--report]
    python -m benchmarks.table_10_3 --orders | --ties | --cold | --halves

The thesis reports, for each method, the setting that is best on the test halves, over all folds.
`best` is that figure. Beside it stands an honest one: in every fold the setting is chosen inside that
fold's training data, which is divided once more by the same protocol, so that no rating that is
tested in the fold has a part in the choice of its setting (`inner` and `choose`). What is tested in
*other* folds is training data of this one, as in any nested cross-validation.

Every dataset and method has a file results/table_10_3/DATASET-METHOD.json, written anew after each fit:
an interrupted run goes on where it stopped, and --again starts over. --report writes table_10_3.md,
figure_10_7.csv and figure_10_8.csv from what is there. What its sentences say is measured apart: --orders writes
table_10_3_jester_orders.csv, --ties table_10_3_ciaodvd_ties.csv, --cold table_10_3_cold.csv, --halves
table_10_3_halves.csv.

Left out: Netflix (not distributed any more). Bounded, because a fit takes 10 to 30 s on one core: BPR has at
most 60 passes over the two sets of a million likes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bpr import UniformBPR
from benchmarks.folds import as_committed
from benchmarks.lab.common import read_csv, write_csv
from recsys import make_ranker
from recsys.data import Fold, Interactions, split
from recsys.datasets import load_dataset
from recsys.evaluation import metrics as M
from recsys.utils.spec import parse_spec

RESULTS = Path(__file__).parent / "results"
CELLS = RESULTS / "table_10_3"
DEGREES = (2, 5, 10, 20, 50, 100, 200, 300, 500)
# How items nobody in training has are scored; the thesis does not say what it does.
UNRATED = ("kernel", "mean")
SETTINGS = {
    "MSDw": [f"msdw:alpha={a}" for a in (0, 0.15, 0.25, 0.5, 0.75, 1)],
    # The thesis' λ is l1, its β is l2/2; the solver's 50 sweeps are its default.
    "SLIM": [f"slim:l1={l1},l2={2 * b},iterations=50" for l1 in (0.1, 0.5, 1, 2) for b in (1, 3, 5)],
    # What β is measured in, the thesis does not say: counts, as here, or shares of the users.
    "SLIM, larger β": [f"slim:l1=0.1,l2={l2},iterations=50" for l2 in (100, 1000, 10_000, 100_000)],
    # C = 1 + αR with α = 1 is 2 for a like, which is implicit's alpha=2.
    "WRMF": [f"als:factors=50,alpha=2,regularization={r}" for r in (1, 10, 100, 300)],
    "BPR-MF": [f"bpr-uniform:passes={n}" for n in (10, 40, 100, 200)],
    "BPR-MF, implicit": [
        f"bpr:factors=50,learning_rate=0.01,regularization=0.0025,iterations={n}" for n in (10, 40, 100, 200)
    ],
    "ECF-OMD": ["ecf-omd:regularization=0.1"],
    "HP": [f"cf-komd:kernel=hp,degree=2,unrated={u}" for u in UNRATED],
    "Tanimoto": [f"cf-komd:kernel=tanimoto,unrated={u}" for u in UNRATED],
    "mC": [f"cf-komd:kernel=mc,degree={d},unrated={u}" for d in (2, 3, 5) for u in UNRATED],
    "mD": [f"cf-komd:kernel=md,degree={d},unrated={u}" for d in DEGREES for u in UNRATED],
}  # fmt: skip
# A million likes: fewer passes say as much (a pass is 30 of FilmTrust's), and fewer settings.
LARGE = ("jester", "movielens-1m")
BOUNDED = {
    **{(name, "BPR-MF"): [f"bpr-uniform:passes={n}" for n in (5, 20, 60)] for name in LARGE},
    **{
        (name, "BPR-MF, implicit"): [
            f"bpr:factors=50,learning_rate=0.01,regularization=0.0025,iterations={n}"
            for n in (5, 20, 60)
        ]
        for name in LARGE
    },
}
# Columns of Table 10.3. "Movielens" is MovieLens 1M; movielens (100K) is not in the thesis.
COLUMNS = ("MSDw", "SLIM", "WRMF", "BPR-MF", "ECF-OMD", "HP", "Tanimoto", "mC", "mD")
PRINTED = {
    "bookcrossing": (0.743, 0.714, 0.739, 0.691, 0.731, 0.748, 0.744, 0.695, 0.751),
    "ciaodvd": (0.824, 0.788, 0.755, 0.848, 0.718, 0.731, 0.734, 0.540, 0.841),
    "filmtrust": (0.961, 0.969, 0.956, 0.959, 0.961, 0.961, 0.964, 0.951, 0.971),
    "jester": (0.727, 0.658, 0.739, 0.649, 0.602, 0.601, 0.626, 0.601, 0.727),
    "movielens-1m": (0.875, 0.861, 0.877, 0.874, 0.896, 0.893, 0.895, 0.892, 0.895),
    "movielens": None,
}
# In which order a half is "the first", the thesis does not say. The divisions that its author published in part
# (github.com/makgyver/pyros, datasets/) halve Ciao in the order of the file, which is that of the movies,
# FilmTrust in another, and Jester, where profiles are long, in one fixed order of the jokes that is not
# known: the file's (by number) is the nearest thing, and `orders` says how much depends on it. On MovieLens
# 1M the order in time was chosen because it gives the printed figures, which random halves do not: `halves`.
PROTOCOL = {
    "movielens-1m": "half-profile-time", "jester": "half-profile-file", "ciaodvd": "half-profile-file",
}  # fmt: skip
SEED = 0
BLOCK = 2000


def build(spec: str) -> Any:
    if spec.startswith("bpr-uniform:passes="):
        return UniformBPR(int(spec.split("=")[1]))
    name, params = parse_spec(spec)
    return make_ranker(name, **params)


def measure(spec: str, fold: Fold) -> dict[str, float]:
    """Return the means over the fold's users of AUC and nDCG@10."""
    model = build(spec)
    model.fit(fold.train, show_progress=False)
    auc, ndcg = [], []
    for begin in range(0, len(fold.users), BLOCK):
        users = fold.users[begin : begin + BLOCK]
        train, test = fold.train[users], fold.test[users]
        scores = model.scores(users, train)
        auc.append(M.auc(scores, train, test))
        ndcg.append(M.ndcg(scores, train, test))
    return {
        "auc": float(np.nanmean(np.concatenate(auc))), "ndcg@10": float(np.nanmean(np.concatenate(ndcg)))
    }  # fmt: skip


def inner(data: Interactions, fold: Fold) -> Interactions:
    """Return what models see in the fold, as interactions of its own in the order of the rows."""
    key = data.users.astype(np.int64) * data.n_items + data.items
    seen = fold.train.tocoo()
    keep = np.isin(key, seen.row.astype(np.int64) * data.n_items + seen.col)
    return Interactions.from_ids(
        data.user_ids[data.users[keep]], data.item_ids[data.items[keep]],
        time=None if data.time is None else data.time[keep], name=data.name,
    )  # fmt: skip


def validation(data: Interactions, protocol: str, fold: Fold) -> Fold:
    """Return a division of the fold's training data that settings are chosen on."""
    return next(iter(split(as_committed(inner(data, fold), protocol), protocol, seed=SEED)))


def choose(validated: dict[str, dict[str, float]]) -> str:
    """Return the setting of the largest AUC on validation, the first of equal ones."""
    return max(validated, key=lambda spec: validated[spec]["auc"])


def path(name: str, method: str) -> Path:
    return CELLS / f"{name}-{''.join(c for c in method.lower() if c.isascii() and c.isalnum())}.json"


def run(data: Interactions, protocol: str, method: str, specs: list[str], again: bool = False) -> dict:
    """Measure one method on one dataset, going on with what its file holds."""
    head = {
        "dataset": data.name, "method": method, "users": data.n_users, "items": data.n_items,
        "interactions": len(data.users), "protocol": protocol, "seed": SEED,
    }  # fmt: skip
    file = path(data.name, method)
    cell = head | {"seconds": 0.0, "validated": {}, "tested": {}}
    if file.exists() and not again:
        before = json.loads(file.read_text())
        if all(before[key] == value for key, value in head.items()):
            cell = before
    for number, fold in enumerate(split(as_committed(data, protocol), protocol, seed=SEED), 1):
        inside = None
        for what in ("validated", "tested"):
            done = cell[what].setdefault(str(number), {})
            for spec in specs:
                if spec in done:
                    continue
                if what == "validated" and inside is None:
                    inside = validation(data, protocol, fold)
                started = time.perf_counter()
                done[spec] = measure(spec, inside if what == "validated" else fold)  # type: ignore[arg-type]
                cell["seconds"] += time.perf_counter() - started
                print(data.name, method, what, number, spec, done[spec], flush=True)
                write(file, cell)
    return cell


def write(file: Path, cell: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(cell, indent=1) + "\n")
    os.replace(temporary, file)


def summary(cell: dict[str, Any], specs: list[str]) -> dict[str, Any] | None:
    """Return the figures of a finished cell, else None."""
    tested, validated = cell["tested"], cell["validated"]
    folds = [str(k) for k in range(1, 6)]
    if any(spec not in part.get(f, {}) for part in (tested, validated) for f in folds for spec in specs):
        return None
    chosen = [choose({spec: validated[f][spec] for spec in specs}) for f in folds]
    honest = [tested[f][spec] for f, spec in zip(folds, chosen, strict=True)]
    mean = {spec: float(np.mean([tested[f][spec]["auc"] for f in folds])) for spec in specs}
    best = max(specs, key=lambda spec: mean[spec])
    return {
        "chosen": Counter(chosen).most_common(), "auc": float(np.mean([h["auc"] for h in honest])),
        "std": float(np.std([h["auc"] for h in honest], ddof=1)),
        "ndcg": float(np.mean([h["ndcg@10"] for h in honest])), "best": best, "best_auc": mean[best],
        "best_std": float(np.std([tested[f][best]["auc"] for f in folds], ddof=1)),
    }  # fmt: skip


# ---- the report: figures are computed, reasons are ours


TIES = (
    "most candidates share no user with the profile and tie at 0; ties count one half here, and how else they "
    "are broken decides: MSDw on the first fold has {}."
)
SCALE = (
    "what its β is measured in is not known (counts here; the next row, where it was run, has larger ones, as a "
    "loss divided by the number of users would)."
)
STEPS = (
    "the thesis gives it a learning rate, that is gradient steps; here it is alternating least squares."
)
COLD = (
    "{} of what is tested are items nobody in training has, and the thesis does not say where they rank."
)
UNRATED_BY = (
    "the best setting scores an item nobody in training has by the mean of the other items' scores, with AUC {}; "
    "with what (10.4) gives for its null vector AUC is {}."
)
PASSES = "the thesis does not say how many passes over the likes it makes: {}."
ORDER = (
    "the author's division (one fold of it is public) halves most profiles in one order of the jokes, neither "
    "the file's nor known; {}."
)
ORDERS = {  # the model of `orders` that stands for a method
    "MSDw": "msdw", "WRMF": "als", "SLIM": "slim", "ECF-OMD": "ecf-omd", "HP": "cf-komd:kernel=hp",
    "Tanimoto": "cf-komd:kernel=tanimoto", "mC": "cf-komd:kernel=mc", "mD": "cf-komd:kernel=md",
}  # fmt: skip
REASONS: dict[tuple[str, str], str] = {
    ("ciaodvd", "MSDw"): TIES, ("ciaodvd", "SLIM"): f"{TIES} Also, {SCALE}",
    ("bookcrossing", "SLIM"): SCALE, ("filmtrust", "SLIM"): SCALE, ("movielens-1m", "SLIM"): SCALE,
    ("ciaodvd", "mC"): UNRATED_BY, ("bookcrossing", "BPR-MF"): PASSES,
    ("ciaodvd", "BPR-MF"): f"{COLD} Also, {PASSES}",
    **{("ciaodvd", method): COLD for method in ("ECF-OMD", "HP", "Tanimoto")},
    **{(name, "WRMF"): STEPS for name in ("ciaodvd", "filmtrust", "bookcrossing", "movielens-1m")},
}  # fmt: skip


def rows_of(file: str) -> list[dict[str, str]]:
    """Return the rows of a result, none where it has not been measured."""
    return read_csv(file) if (RESULTS / f"{file}.csv").exists() else []


def reason(name: str, method: str) -> str:
    if name != "jester":
        said = REASONS.get((name, method), "no reason found.")
        fill: dict[str, Any] = {
            TIES: lambda: [ties_of()], COLD: lambda: [cold_of(name)],
            PASSES: lambda: [passes_of(name, method)], UNRATED_BY: lambda: by_unrated(name, method),
        }  # fmt: skip
        for part, found in fill.items():
            if part in said:
                said = said.replace(part, part.format(*found()))
        return said
    found = [
        row for row in rows_of("table_10_3_jester_orders")
        if method in ORDERS and row["model"].startswith(ORDERS[method])
    ]  # fmt: skip
    auc = [float(row["auc"]) for row in found]
    said = "how much this model's AUC depends on it was not measured"
    if found:
        said = (
            f"on our first fold `{found[0]['model']}` has {min(auc):.3f} to {max(auc):.3f} over {len(auc)} "
            "orders of the jokes"
        )
    return ORDER.format(said) + (f" Also, {SCALE}" if method == "SLIM" else "")


def ties_of() -> str:
    rows = rows_of("table_10_3_ciaodvd_ties")
    return (
        ", ".join(f"{float(row['auc']):.3f} with ties {row['ties']}" for row in rows) or "not measured"
    )


def tested_of(name: str, method: str) -> dict[str, float]:
    """Return the mean AUC over the test halves of each setting of a cell, none where it is not run."""
    file = path(name, method)
    cell = json.loads(file.read_text()) if file.exists() else None
    specs = specs_of(name, method)
    if cell is None or summary(cell, specs) is None:
        return {}
    return {
        spec: float(np.mean([fold[spec]["auc"] for fold in cell["tested"].values()])) for spec in specs
    }


def by_unrated(name: str, method: str) -> tuple[str, str]:
    """Return the best AUC with the mean for items nobody has, and with their kernel (beside the print's)."""
    auc = tested_of(name, method)
    printed = PRINTED[name]
    if not auc or printed is None:
        return "not measured", "not measured"
    mean, kernel = (
        max(value for spec, value in auc.items() if spec.endswith(f"unrated={how}"))
        for how in ("mean", "kernel")
    )
    return f"{mean:.4f}", f"{kernel:.4f} ({kernel - printed[COLUMNS.index(method)]:+.3f})"


def passes_of(name: str, method: str) -> str:
    """Say how AUC goes with the passes, between which the print lies, and where the grid ends too early."""
    auc = {int(spec.split("=")[1]): value for spec, value in tested_of(name, method).items()}
    printed = PRINTED[name]
    if not auc or printed is None:
        return "how much AUC depends on it was not measured"
    said = ", ".join(f"{value:.4f}" for value in auc.values()) + " with " + ", ".join(map(str, auc))
    value = printed[COLUMNS.index(method)]
    grid = list(auc)
    for few, more in zip(grid, grid[1:], strict=False):
        if min(auc[few], auc[more]) <= value <= max(auc[few], auc[more]):
            said += f", the printed {value:.3f} between {few} and {more}"
    ends = [
        other for other, theirs in PRINTED.items()
        if theirs is not None and (found := tested_of(other, method)) and max(found, key=found.get) == list(found)[-1]  # type: ignore[arg-type]
    ]  # fmt: skip
    if name in ends:
        said += (
            f"; the best of the grid is its largest on {', '.join(ends)}, where more may be better still"
        )
    return f"AUC is {said}"


def cold_of(name: str) -> str:
    rows = [row for row in rows_of("table_10_3_cold") if row["dataset"] == name]
    if not rows:
        return "a part that was not measured"
    tested, new = (np.array([int(row[key]) for row in rows]) for key in ("tested", "of_new_items"))
    share = 100 * new / tested
    return f"{100 * new.sum() / tested.sum():.1f}% ({share.min():.1f}% to {share.max():.1f}% by fold)"


def firsts() -> str:
    """Say which half of a profile is the first one, and why."""
    ways = {
        "half-profile-file": "the half that stands first in the file on {}",
        "half-profile-time": "the older half on {}", "half-profile": "a random half on {}",
    }  # fmt: skip
    taken = [
        way.format(", ".join(name for name in PRINTED if PROTOCOL.get(name, "half-profile") == protocol))
        for protocol, way in ways.items()
    ]
    said = "Which half of a profile trains, the thesis does not say. Here: " + "; ".join(taken) + "."
    rows = rows_of("table_10_3_halves")
    if rows:
        name, printed = rows[0]["dataset"], dict(zip(COLUMNS, PRINTED[rows[0]["dataset"]], strict=True))
        told = []
        for method in dict.fromkeys(row["method"] for row in rows):
            auc = {row["protocol"]: float(row["auc"]) for row in rows if row["method"] == method}
            told.append(
                f"{method} {auc['half-profile-time']:.4f} by time and {auc['half-profile']:.4f} at random "
                f"(printed {printed[method]:.3f})"
            )
        said += (
            f" On {name} the order in time was chosen because it gives the printed figures (the copy that was "
            f"measured has the order of each user's ratings, not their times); on its first fold AUC is: {', '.join(told)}."
        )
    return said


def specs_of(name: str, method: str) -> list[str]:
    return BOUNDED.get((name, method), SETTINGS[method])


def markdown() -> str:
    lines = [
        "# Table 10.3 of Polato's thesis, rerun", "",
        "AUC over 5 folds of users, written by `benchmarks/table_10_3.py`. *nested*: in every fold the setting "
        "is chosen inside that fold's training data (how often which: `setting`). *best*: the setting of the "
        "best mean on the test halves, as the thesis chooses; the last column is this one less the printed value. "
        "BPR-MF draws unseen items uniformly, as the thesis; implicit's draws them by popularity. Netflix: "
        "not run, it is not distributed any more.", "", firsts(), "",
    ]  # fmt: skip
    for name, printed in PRINTED.items():
        rows, notes, size = [], [], ""
        for method in SETTINGS:
            file = path(name, method)
            cell = json.loads(file.read_text()) if file.exists() else None
            found = summary(cell, specs_of(name, method)) if cell else None
            if cell is None or found is None:
                rows.append(f"| {method} | not run | | | | | |")
                continue
            size = (
                f"{cell['users']:,} users, {cell['items']:,} items, {cell['interactions']:,} interactions; "
                f"`{cell['protocol']}`. One value on the command line, with a setting of the table: "
                f"`recsys evaluate --dataset {name} --protocol {cell['protocol']} "
                "--model SETTING --metric auc`."
            )
            said = "–"
            gap = ""
            if printed is not None and method in COLUMNS:
                value = printed[COLUMNS.index(method)]
                said, gap = f"{value:.3f}", f"{found['best_auc'] - value:+.3f}"
                if abs(found["best_auc"] - value) > 0.02:
                    notes.append(f"- {method} ({gap}): {reason(name, method)}")
            setting = ", ".join(
                f"`{spec}`" + (f" ×{k}" if len(found["chosen"]) > 1 else "")
                for spec, k in found["chosen"]
            )
            rows.append(
                f"| {method} | {setting} | {found['auc']:.4f} ±{found['std']:.4f} | {found['ndcg']:.4f} | "
                f"{found['best_auc']:.4f} (`{found['best'].split(':')[1]}`) | {said} | {gap} |"
            )
        lines += [
            f"## {name}", "", size, "",
            "| method | setting | nested AUC | nested nDCG@10 | best AUC | thesis | best − thesis |",
            "|---|---|---|---|---|---|---|", *rows, "",
        ]  # fmt: skip
        lines += ["Where we differ by more than 0.02:", "", *notes, ""] if notes else []
    return "\n".join(lines)


def degrees(method: str) -> list[tuple[Any, ...]]:
    """Return AUC and nDCG@10 by degree on the test halves (Figures 10.7, 10.8)."""
    rows = []
    for name in PRINTED:
        file = path(name, method)
        cell = json.loads(file.read_text()) if file.exists() else {"tested": {}}
        for spec in SETTINGS[method]:
            found = [fold[spec] for fold in cell["tested"].values() if spec in fold]
            if len(found) == 5:
                given = parse_spec(spec)[1]
                auc = [f["auc"] for f in found]
                rows.append(
                    (
                        name, given["degree"], given["unrated"], float(np.mean(auc)),
                        float(np.std(auc, ddof=1)), float(np.mean([f["ndcg@10"] for f in found])),
                    )
                )  # fmt: skip
    return rows


def report() -> None:
    (RESULTS / "table_10_3.md").write_text(markdown())
    for figure, method in (("figure_10_7", "mC"), ("figure_10_8", "mD")):
        rows = degrees(method)
        if rows:
            write_csv(figure, ("dataset", "degree", "unrated", "auc", "std", "ndcg@10"), rows)


def orders(data_dir: str | None, count: int = 10) -> None:
    """Measure AUC on Jester's first fold, all profiles halved in the file's order, and in ten others."""
    data = replace(load_dataset("jester", data_dir), item_features=None, user_features=None)
    specs = [
        "popularity", "msdw:alpha=0", "als:factors=50,alpha=2,regularization=300", "slim:l1=0.5,l2=10",
        "ecf-omd:regularization=0.1", "cf-komd:kernel=tanimoto", "cf-komd:kernel=hp,degree=2",
        "cf-komd:kernel=mc,degree=3", "cf-komd:kernel=md,degree=50",
    ]  # fmt: skip
    rows = []
    for number in range(count + 1):
        rank = np.arange(data.n_items)
        if number:
            rank = np.random.default_rng(number).permutation(data.n_items)
            order = np.lexsort((rank[data.items], data.users))
            turned = replace(data, users=data.users[order], items=data.items[order], rating=None)
        else:
            turned = data
        fold = next(iter(split(turned, "half-profile-file", seed=SEED)))
        for spec in specs:
            rows.append((f"order {number}" if number else "file", spec, measure(spec, fold)["auc"]))
            print(rows[-1], flush=True)
        write_csv("table_10_3_jester_orders", ("order of the jokes", "model", "auc"), rows)


def ties(data_dir: str | None) -> None:
    """Measure MSDw's AUC on CiaoDVD's first fold with equal scores ordered in several ways."""
    data = replace(load_dataset("ciaodvd", data_dir), item_features=None, user_features=None)
    fold = next(iter(split(data, PROTOCOL["ciaodvd"], seed=SEED)))
    model = build("msdw:alpha=0").fit(fold.train)
    number = np.arange(data.n_items, dtype=float)
    rows = []
    for label, second in (
        ("counted one half", np.zeros(data.n_items)),
        ("by popularity", np.bincount(fold.train.indices, minlength=data.n_items).astype(float)),
        ("by item number, the first first", -number), ("by item number, the last first", number),
    ):  # fmt: skip
        found = []
        for begin in range(0, len(fold.users), 1000):
            users = fold.users[begin : begin + 1000]
            ranks = in_two_keys(model.scores(users, fold.train[users]), second)
            found.append(M.auc(ranks, fold.train[users], fold.test[users]))
        rows.append((label, float(np.nanmean(np.concatenate(found)))))
        print(rows[-1], flush=True)
    write_csv("table_10_3_ciaodvd_ties", ("ties", "auc"), rows)


def cold(data_dir: str | None) -> None:
    """Count the tested likes of items that nobody in training has, in each fold."""
    rows = []
    for name in PRINTED:
        data = replace(load_dataset(name, data_dir), item_features=None, user_features=None)
        protocol = PROTOCOL.get(name, "half-profile")
        for number, fold in enumerate(split(as_committed(data, protocol), protocol, seed=SEED), 1):
            raters = np.bincount(fold.train.indices, minlength=data.n_items)
            new = int((raters[fold.test.indices] == 0).sum())
            rows.append((name, protocol, number, fold.test.nnz, new, new / fold.test.nnz))
        print(rows[-1], flush=True)
    write_csv(
        "table_10_3_cold", ("dataset", "protocol", "fold", "tested", "of_new_items", "share"), rows
    )


def halves(data_dir: str | None) -> None:
    """Measure three methods on MovieLens 1M's first fold, its profiles halved by time and at random."""
    name = "movielens-1m"
    data = replace(load_dataset(name, data_dir), item_features=None, user_features=None)
    rows = []
    for protocol in ("half-profile-time", "half-profile"):
        fold = next(iter(split(as_committed(data, protocol), protocol, seed=SEED)))
        for method, spec in (
            ("ECF-OMD", "ecf-omd:regularization=0.1"), ("MSDw", "msdw:alpha=0.5"),
            ("Tanimoto", "cf-komd:kernel=tanimoto,unrated=kernel"),
        ):  # fmt: skip
            rows.append((name, protocol, method, spec, measure(spec, fold)["auc"]))
            print(rows[-1], flush=True)
    write_csv("table_10_3_halves", ("dataset", "protocol", "method", "model", "auc"), rows)


def in_two_keys(scores: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return ranks from 0 up, (users, items) float32, by score and then by `second`; equal in both, equal."""
    out = np.empty(scores.shape, dtype=np.float32)
    for row, ranks in zip(scores, out, strict=True):
        order = np.lexsort((second, row))
        ranks[order] = np.r_[0, np.cumsum((np.diff(row[order]) != 0) | (np.diff(second[order]) != 0))]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", action="append", choices=list(PRINTED))
    parser.add_argument("--method", action="append", choices=list(SETTINGS))
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--again", action="store_true", help="forget what the files hold")
    parser.add_argument("--report", action="store_true", help="only write the report from earlier runs")
    parser.add_argument("--orders", action="store_true", help="only Jester's halves in several orders")
    parser.add_argument("--ties", action="store_true", help="only CiaoDVD's ties broken in several ways")
    parser.add_argument("--cold", action="store_true", help="only count tested items that are new")
    parser.add_argument("--halves", action="store_true", help="only MovieLens 1M halved in two ways")
    options = parser.parse_args()
    for study in (ties, orders, cold, halves):
        if getattr(options, study.__name__):
            study(options.data_dir)
            report()
            return
    for name in [] if options.report else options.dataset or list(PRINTED):
        data = replace(load_dataset(name, options.data_dir), item_features=None, user_features=None)
        for method in options.method or list(SETTINGS):
            run(data, PROTOCOL.get(name, "half-profile"), method, specs_of(name, method), options.again)
            report()
    report()


if __name__ == "__main__":
    main()
