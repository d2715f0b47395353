"""Calls of every public class and function with arguments nobody should give: no error from the inside.

An error that says what was wrong with an argument is right, and so is Python's own TypeError, ValueError
or AttributeError. What only an inside can raise is a fault: a failed compilation, an index or a key that
is not there, a division by zero, a decomposition that did not converge.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import warnings
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import recsys
from benchmarks.attack.common import Result, in_batches
from benchmarks.attack.tables import interactions
from recsys.errors import RecsysError

INSIDE = (IndexError, KeyError, ArithmeticError, np.linalg.LinAlgError, SystemError, NameError, AssertionError,
          RecursionError)  # fmt: skip
PACKAGES_LEFT_OUT = (
    "recsys.cli",
    "recsys.service",
    "recsys.datasets",
    "recsys.engines",
    "recsys.adapters",
)
# What runs many fits takes longer than a case may.
LEFT_OUT = {
    "evaluate", "learning_curve", "tune", "compare_links", "study", "select", "stability_selection", "several_starts",
    "fit_on_all_links", "usual_link_models", "load_dataset", "fit_partitions", "recommend_partitions", "Auto",
    "Recommender", "regularization_path",
}  # fmt: skip
ROWS, COLUMNS = 14, 6
# Values of parameters by their names; what is not here keeps its default.
SOUND: dict[str, Any] = {
    "n": 3, "N": 3, "k": 3, "degree": 2, "n_components": 4, "factors": 2, "iterations": 2, "max_iter": 5, "epochs": 1,
    "rounds": 1, "users": 12, "seed": 0, "random_state": 0, "count": 3, "m": 2, "error": 0.1, "radius": 1.0,
    "kernel": "linear", "name": "ease", "loss": "logistic", "userid": 1, "itemid": 2, "itemids": [1, 2], "user": "u1",
    "item": "i1", "userids": [0, 1], "show_progress": False, "metric": "ndcg@10", "interval": 0.9,
}  # fmt: skip
METHODS_LEFT_OUT = {"save", "load", "export"}


@cache
def callables() -> dict[str, Any]:
    """Return all public classes and functions, by their full names."""
    found: dict[str, Any] = {}
    modules = [recsys]
    for each in pkgutil.walk_packages(recsys.__path__, "recsys."):
        private = any(part.startswith("_") for part in each.name.split("."))
        if each.ispkg and not private and not each.name.startswith(PACKAGES_LEFT_OUT):
            modules.append(importlib.import_module(each.name))
    for module in modules:
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            error = inspect.isclass(thing) and issubclass(thing, BaseException)
            # What is returned, and never made by a caller; estimators are dataclasses, too.
            made = inspect.isclass(thing) and issubclass(thing, BaseEstimator)
            record = inspect.isclass(thing) and (is_dataclass(thing) or issubclass(thing, tuple))
            odd = error or (record and not made) or inspect.isabstract(thing) or name in LEFT_OUT
            if callable(thing) and not odd:
                found.setdefault(name, thing)
    return found


def sound(name: str, random: Random) -> Any:
    """Return a value that is right for most parameters of this name."""
    rng = np.random.default_rng(random.randrange(5))
    if name in SOUND:
        return SOUND[name]
    if name in ("y", "labels", "target", "targets", "signs"):
        return np.where(np.arange(ROWS) % 3 > 0, 1.0, -1.0)
    if name in ("user_items", "rows", "likes", "history", "item_users"):
        return sp.csr_matrix((rng.random((ROWS, COLUMNS)) < 0.4).astype(np.float32))
    if name in ("data", "interactions"):
        return interactions(ROWS, COLUMNS)
    if name in ("pairs", "edges", "links"):
        return rng.integers(0, COLUMNS, (ROWS, 2))
    if name in ("ids", "items", "recommended", "actual", "relevant", "groups", "columns"):
        return rng.permutation(COLUMNS)
    if name in ("scores", "values", "weights", "times", "alpha", "p", "p_values", "a", "b"):
        return rng.random(ROWS)
    if name in ("model", "ranker", "models", "rankers"):
        return recsys.make_ranker("ease").fit(sound("user_items", random), show_progress=False)
    return rng.integers(0, 2, (ROWS, COLUMNS)).astype(float)


def hostile(random: Random) -> Any:
    """Return what nobody should give; nothing that only asks for much memory or time."""
    array = np.random.default_rng(random.randrange(5)).random((ROWS, COLUMNS))
    values: tuple[Any, ...] = (
        0, -1, 1, 2, 1.5, np.nan, np.inf, -np.inf, 1e-320, 1e200, True, None, "", "x", "\0", b"x", [], {}, (), set(),
        [[]], [None], ["a"], [1, [2]], object(), 2**70, np.int8(3), np.float32(0.5), np.array(3), 1j, len,
        array, array[:1], array[:, :1], array[:0], array[:, :0], array[0], array[None], array.astype(object),
        array.astype(complex), array.astype(">f8"), array.astype(str), array * np.nan, array * np.inf, array * 1e200,
        array * 0, np.ones((3, 3)), np.zeros(ROWS), np.ones(ROWS, int), np.ones(ROWS), -np.ones(ROWS, int),
        np.arange(ROWS) + 99, np.array(["a"] * ROWS), np.array([None] * ROWS), sp.csr_matrix(array),
        sp.csc_matrix(array.round()), sp.coo_matrix(array), sp.csr_matrix((0, 0)), sp.csr_matrix((ROWS, COLUMNS)),
        sp.csr_matrix(array.round()).astype(np.int64), {"a": 1}, {1: array}, iter([1]), range(3),
    )  # fmt: skip
    return random.choice(values)


def given(
    thing: Callable[..., Any], random: Random, share: float
) -> tuple[list[Any], dict[str, Any], str]:
    """Return arguments of a call, and a description; about this share of them is hostile."""
    first: list[Any] = []
    named: dict[str, Any] = {}
    told = []
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return first, named, "()"
    for one in parameters:
        if one.name == "self" or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            continue
        odd = random.random() < share
        if not odd and one.default is not one.empty and one.name not in SOUND:
            continue
        value = hostile(random) if odd else sound(one.name, random)
        if one.kind is one.POSITIONAL_ONLY:
            first.append(value)
        else:
            named[one.name] = value
        if odd:
            told.append(f"{one.name}={shown(value)}")
    return first, named, f"({', '.join(told)})"


def shown(value: Any) -> str:
    """Return a value for a description: of an array its kind and size."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{type(value).__name__} {value.dtype} {value.shape}"
    return " ".join(repr(value)[:40].split())


def call_of(number: int, seed: int) -> tuple[str, Callable[[], Any]]:
    """Return the call of a number, described."""
    random = Random(f"{seed}:{number}")
    name = random.choice(sorted(callables()))
    thing = callables()[name]
    share = random.choice((0.0, 0.3, 0.3, 0.6))
    if not inspect.isclass(thing):
        first, more, told = given(thing, random, share)
        return f"{name}{told}", lambda: thing(*first, **more)
    methods = [
        each for each, _ in inspect.getmembers(thing, inspect.isfunction)
        if not each.startswith("_") and each not in METHODS_LEFT_OUT
    ]  # fmt: skip
    first, more, told = given(thing, random, random.choice((0.0, 0.0, share)))
    steps = ["fit"] if "fit" in methods and random.random() < 0.8 else []
    steps += random.choices(methods, k=random.choice((1, 2))) if methods else []
    made = [(step, *given(getattr(thing, step), random, share)) for step in steps]

    def call() -> Any:
        one = thing(*first, **more)
        return [getattr(one, step)(*early, **late) for step, early, late, _ in made]

    return f"{name}{told}" + "".join(f".{step}{what}" for step, _, _, what in made), call


def attempt(number: int, seed: int) -> tuple[str, str, str]:
    """Make one call; return its description, its ending and what is wrong with that."""
    told, call = call_of(number, seed)
    os.chdir("/")  # nothing is written by a relative name
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            return told, *judged(error)
    return told, "answers", ""


def judged(error: Exception) -> tuple[str, str]:
    """Return the ending that an error is, and what is wrong with it."""
    kind, message = type(error), str(error).strip()
    if isinstance(error, RecsysError):
        return kind.__name__, "" if "\n" not in message else f"an error of several lines: {message}"
    inside = isinstance(error, INSIDE) or kind.__module__.startswith(("numba", "llvmlite"))
    tail = error.__traceback__
    while tail is not None and tail.tb_next is not None:
        tail = tail.tb_next
    where = f"{os.path.basename(tail.tb_frame.f_code.co_filename)}:{tail.tb_lineno}" if tail else ""
    fault = f"{kind.__name__}: {message} ({where})"[:300] if inside else ""
    return "error from the inside" if inside else "error of Python", fault


def run(seconds: float, seed: int) -> Result:
    result = Result()
    callables()
    in_batches(
        result, seconds, seed, lambda number: attempt(number, seed), lambda number: call_of(number, seed)[0],
        patience=15.0, address_space=8 << 30,
    )  # fmt: skip
    result.notes.append(f"{len(callables())} public classes and functions")
    return result
