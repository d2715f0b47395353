"""Compiling ahead: what the first click would wait for, while the first list is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.jobs import Job, Jobs, Progress
from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.explain import (
    into_list,
    item_attributes,
    item_rule,
    out_of_list,
    reasons,
    taste_rule,
    what_if,
)
from recsys.reranking import diversify, rerank
from recsys.utils.spec import parse_spec

HEAD_START = 5.0  # seconds in which the first list is computed and drawn
KEY = ("ahead",)
TEXT = "Compiling for the next pages, once"


def compile_ahead(jobs: Jobs, spec: str) -> Job:
    """Start, once a process, to run on the sample what pages run for a list of this specification."""
    return jobs.get(KEY, lambda progress: _run(spec, progress), TEXT, delay=HEAD_START)


def _run(spec: str, progress: Progress) -> None:
    name, params = parse_spec(spec)
    data = load_dataset("sample")
    R, user = data.matrix, 0
    row = R[user]
    model = make_ranker(name, **params).fit(R, show_progress=False)
    ids = model.recommend(user, row, N=R.shape[1], recalculate_user=True).ids
    item = int(ids[0])
    popularity = np.asarray(R.sum(axis=0), dtype=np.float64).ravel()
    steps: list[tuple[str, Any]] = [
        ("rules of other users", lambda: item_rule(R, row.indices, item, exclude=user)),
        ("rules of taste", lambda: taste_rule(row.indices, item_attributes(data), popularity)),
        ("similar items", lambda: model.similar_items(item, N=6)),
        ("explanations", lambda: (reasons(model, user, row, item), what_if(model, user, row, item))),
        ("counterfactuals", lambda: _towards(model, user, row, ids)),
        ("dislikes", lambda: rerank(model, user, row, 10, dislikes=ids[1:2], recalculate_user=True)),
        ("variety", lambda: diversify(model.recommend(user, row, N=50), 10, 0.5, R)),
    ]
    for number, (text, step) in enumerate(steps):
        progress(text, number, len(steps))
        step()


def _towards(model: Any, user: int, row: Any, ids: Any) -> None:
    out_of_list(model, user, row, int(ids[0]))
    into_list(model, user, row, int(ids[5]), ids[10:20], most=1)
