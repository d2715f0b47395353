"""Calls nobody should make, on every ranker: an InputError or right answers, and never a signal."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.attack.common import Result, in_batches
from benchmarks.attack.tables import likes, make, model_files
from recsys.errors import RecsysError
from recsys.rankers import Ranker, load_package

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
IDS: tuple[Any, ...] = (
    0, 3, -1, 60, 2**31, 2**63, 10**30, 1.5, np.nan, "3", None, True, [], [[1]], [0, 1], [60], ["a"], [None],
    np.array(3), np.int8(3), np.zeros((0,), int), np.array([1.0]), object(), {1}, [2**70],
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    1,
    5,
    40,
    10**6,
    0,
    -1,
    2**31,
    10**30,
    1.5,
    "5",
    None,
    np.nan,
    True,
    np.int64(3),
    [3],
)
ROWS: tuple[Any, ...] = (
    None, 0, "x", [], [[]], [1, 2], [[1, 2], [3]], np.zeros(40), np.zeros((1, 39)), np.full((1, 40), np.nan),
    np.full((1, 40), np.inf), np.full((1, 40), "a"), np.zeros((1, 40), complex), np.zeros((1, 1, 40)), {},
)  # fmt: skip
FIELDS = ("indptr", "indices", "data", "row", "col", "offsets")


def broken(matrix: sp.csr_matrix, random: Random) -> tuple[str, Any]:
    """Return a sparse matrix one of whose arrays was changed behind scipy's back."""
    kind = random.choice(FORMATS)
    made = sp.csr_matrix(matrix, copy=True).asformat(kind)
    names = [name for name in FIELDS if isinstance(getattr(made, name, None), np.ndarray)]
    if not names or kind in ("lil", "dok"):
        if kind == "lil" and made.rows.size:
            made.rows[random.randrange(len(made.rows))] = [random.choice((-1, 99, 2**40, 1.5, None))]
        return f"{kind} changed", made
    name = random.choice(names)
    array = np.array(getattr(made, name))
    how = random.choice(
        ("huge", "negative", "float", "nan", "2-D", "short", "long", "object", "falling", "uint")
    )
    where = random.randrange(len(array)) if len(array) else 0
    if how in ("huge", "negative", "falling") and array.ndim == 1 and len(array):
        array[where] = {"huge": 50_000_000, "negative": -3, "falling": 0}[how]
    elif how == "float":
        array = array.astype(float) + 0.7
    elif how == "nan" and array.ndim == 1 and len(array):
        array = array.astype(float)
        array[where] = np.nan
    elif how == "2-D":
        array = array[None]
    elif how == "short":
        array = array[:-1]
    elif how == "long":
        array = np.concatenate([array, array[-1:]])
    elif how == "object":
        array = array.astype(object)
    elif how == "uint" and array.dtype.kind == "i":
        array = array.astype(np.uint64)
    if name in ("row", "col"):
        made.coords = tuple(array if name == each else getattr(made, each) for each in ("row", "col"))
    else:
        setattr(made, name, array)
    return f"{kind} with {how} {name}", made


def rows_of(random: Random) -> tuple[str, Any]:
    whole = likes()
    kind = random.randrange(5)
    if kind == 0:
        given = random.choice(ROWS)
        return f"rows {type(given).__name__}", given
    some = whole[[3]] if random.random() < 0.5 else whole
    if kind < 4:
        return broken(some, random)
    form = random.choice(FORMATS)
    return f"sound {form}", some.asformat(form).astype(
        random.choice((np.float64, np.int8, bool, np.uint64))
    )


def call_of(random: Random, name: str, ranker: Ranker) -> tuple[str, Callable[[], Any], str]:
    """Return a call, described, and what kind of answer it gives."""
    told, rows = rows_of(random)
    user, number = random.choice(IDS), random.choice(NUMBERS)
    kind = random.choice(
        ("recommend", "recommend", "fold-in", "similar", "explain", "scores", "fit", "users", "embed")
    )
    shown = f"{kind}, user {user!r}, N {number!r}, {told}"[:160]
    if kind == "recommend":
        more = random.choice(
            ({}, {"items": random.choice(IDS)}, {"filter_items": random.choice(IDS)}, {"times": rows})
        )
        return f"{shown}, {list(more)}", lambda: ranker.recommend(user, rows, number, **more), "lists"
    if kind == "fold-in":
        return shown, lambda: ranker.recommend(user, rows, number, recalculate_user=True), "lists"
    if kind == "similar":
        return shown, lambda: ranker.similar_items(user, number), "lists"
    if kind == "users":
        return shown, lambda: ranker.similar_users(user, number), "users"
    if kind == "explain":
        return shown, lambda: ranker.explain(3, rows, user), "any"
    if kind == "scores":
        return shown, lambda: ranker.scores(user, rows), "scores"
    if kind == "embed":
        return shown, lambda: ranker.user_embeddings(rows), "any"
    return shown, lambda: make(name).fit(rows, show_progress=False).n_items_, "any"


def judged(answer: Any, kind: str, items: int, users: int) -> str:
    """Return what is wrong with an answer."""
    if kind in ("lists", "users"):
        ids, scores = np.asarray(answer[0]), np.asarray(answer[1])
        most = items if kind == "lists" else users
        if ids.size and (ids.max() >= most or ids.min() < -1):
            return "ids out of range"
        if not np.isfinite(scores).all():
            return "scores that are not finite"
        for line in np.atleast_2d(ids):
            named = line[line >= 0]
            if len(set(named.tolist())) != len(named):
                return "an item twice"
    if kind == "scores" and not np.isfinite(answer).all():
        return "scores that are not finite"
    return ""


def attempt(number: int, seed: int, rankers: dict[str, Ranker]) -> tuple[str, str, str]:
    """Make one call; return its description, its ending and what is wrong with it."""
    random = Random(f"{seed}:{number}")
    names = sorted(rankers)
    name = names[number % len(names)]
    told, call, kind = call_of(random, name, rankers[name])
    try:
        with np.errstate(all="ignore"):
            answer = call()
        return f"{name}, {told}", "answers", judged(answer, kind, 40, 60)
    except RecsysError as error:
        return f"{name}, {told}", type(error).__name__, ""
    except AttributeError as error:
        # What a ranker does not have at all is Python's to say.
        missing = str(error).endswith(("'user_embeddings'", "'similar_users'"))
        return f"{name}, {told}", "no such method", "" if missing else f"AttributeError: {error}"
    except Exception as error:
        return f"{name}, {told}", "other error", f"{type(error).__name__}: {error}"[:300]


def run(seconds: float, seed: int) -> Result:
    result = Result()
    rankers = {name: load_package(path).ranker for name, path in model_files().items()}
    in_batches(
        result, seconds, seed,
        lambda number: attempt(number, seed, rankers), lambda number: attempt_told(number, seed, rankers),
    )  # fmt: skip
    return result


def attempt_told(number: int, seed: int, rankers: dict[str, Ranker]) -> str:
    """Describe a call without making it."""
    names = sorted(rankers)
    name = names[number % len(names)]
    return f"{name}, {call_of(Random(f'{seed}:{number}'), name, rankers[name])[0]}"
