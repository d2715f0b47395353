"""Runs and judgements as ranx and ir_measures take them, and as TREC files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.evaluation.evaluated import Evaluated, Lists
from recsys.utils.atomic import replacing
from recsys.utils.topn import LOWEST

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]

KEEP = "pass keep_lists=100 to evaluate, for lists of 100 items"


def query_names(who: Evaluated) -> list[str]:
    """Return a name for each row: the user's id, with the fold where users are in several."""
    names = _texts(who.user_ids, "user")
    repeated = len(np.unique(who.users)) < len(who.users)
    rows = zip(who.users.tolist(), who.folds.tolist(), strict=True)
    return [f"{names[user]}/fold{fold + 1}" if repeated else names[user] for user, fold in rows]


def run_of(who: Evaluated, lists: Lists | None) -> Run:
    """Return a model's lists as {user: {item: score}}."""
    if lists is None:
        raise InputError(f"no lists were kept: {KEEP}")
    items = _texts(who.item_ids, "item")
    return {
        name: {
            items[j]: score
            for j, score in zip(ids, scores, strict=True)
            if j >= 0 and score > LOWEST  # a model that lists only some items scores the rest lowest
        }
        for name, ids, scores in zip(
            query_names(who), lists.ids.tolist(), lists.scores.tolist(), strict=True
        )
    }


def qrels_of(who: Evaluated) -> Qrels:
    """Return the test interactions as {user: {item: 1}}."""
    if who.tested is None:
        raise InputError(f"what was tested was not kept: {KEEP}")
    items, test = _texts(who.item_ids, "item"), who.tested
    return {
        name: {items[j]: 1 for j in test.indices[test.indptr[row] : test.indptr[row + 1]]}
        for row, name in enumerate(query_names(who))
    }


def file_names(labels: list[str]) -> dict[str, str]:
    """Return for each label a name that files and tags can have, no two alike."""
    out: dict[str, str] = {}
    for label in labels:
        plain = re.sub(r"[^A-Za-z0-9._=-]+", "_", label).strip("._")[:100] or "model"
        name, number = plain, 2
        while name.lower() in {taken.lower() for taken in out.values()} or name.lower() == "qrels":
            name, number = f"{plain}-{number}", number + 1
        out[label] = name
    return out


def write(folder: str | Path, qrels: Qrels, runs: dict[str, Run]) -> list[Path]:
    """Write qrels.txt and a .run file a model."""
    folder = Path(folder)
    for what, names in (
        ("user", qrels),
        ("item", {item for judged in qrels.values() for item in judged}),
        ("item", {item for run in runs.values() for found in run.values() for item in found}),
    ):
        for name in names:
            if not name or re.search(r"\s", name):
                raise InputError(
                    f"{what} id {name[:60]!r} has a blank or no character: TREC files part their "
                    "columns by blanks; rename it, or use Report.run and Report.qrels"
                )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made a folder: {error.strerror or error}") from error
    lines = [f"{user} 0 {item} {grade}\n" for user, of in qrels.items() for item, grade in of.items()]
    written = [_write(folder / "qrels.txt", lines)]
    for label, tag in file_names(list(runs)).items():
        lines = [
            f"{user} Q0 {item} {rank} {score:.9g} {tag}\n"
            for user, found in runs[label].items()
            for rank, (item, score) in enumerate(found.items(), 1)
        ]
        written.append(_write(folder / f"{tag}.run", lines))
    return written


def _write(path: Path, lines: list[str]) -> Path:
    with replacing(path) as file:
        file.write("".join(lines).encode("utf-8"))
    return path


def _texts(ids: Any, what: str) -> list[str]:
    texts = [str(name) for name in ids]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"two {what} ids are both {twice!r} as text: give all of one type")
    return texts
