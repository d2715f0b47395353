"""The models that `evaluate` accepts, each with its label, and those that it compares by default."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from recsys.data import Interactions
from recsys.errors import InputError
from recsys.registry import format_spec

PLAIN = (bool, int, float, str)
COMPARED = (
    "popularity",
    "ease",
    "cf-komd:kernel=mc,degree=2",
    "msdw",
    "als",
    "sparse-fm",
    "fm",
    "pairnet",
    "auto",
)
USUAL_PAIRS = 100_000  # interactions up to which everything is measured as it is
USUAL_ITEMS = 2_500  # up to which a dense inverse takes no more than its share
AUTO_ITEMS = 8_000  # up to which all candidates of `auto` do
ITEM_PAIRS = 40_000_000  # co-occurrence counts up to which models made of them do
BY_COUNTS = ("ease", "cf-komd", "msdw", "auto")
ITERATIONS, LEAST_ITERATIONS = {"fm": 20, "sparse-fm": 20, "pairnet": 10}, 3
AUTO_SECONDS = 40.0  # of all folds


class NamedModel(NamedTuple):
    """An unfitted model, its label in reports, and its parameters as JSON values."""

    label: str
    params: dict[str, Any]
    model: Any


def named_models(models: Any) -> list[NamedModel]:
    """Return models with distinct labels.

    The default label is the specification, the name of a ranker with its changed parameters, or the
    class of another object.
    """
    if isinstance(models, Mapping):
        models = list(models.items())
    elif isinstance(models, (str, bytes)) or hasattr(models, "fit") or not hasattr(models, "__iter__"):
        models = [models]
    named: list[NamedModel] = []
    for entry in models:
        for pair in entry.items() if isinstance(entry, Mapping) else [entry]:
            label, model = pair if isinstance(pair, tuple) and len(pair) == 2 else (None, pair)
            named.append(_named(label, model))
    if not named:
        raise InputError("pass at least one model")
    labels = [one.label for one in named]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"two models have the label {label!r}: set labels, as in ('first', model)")
    return named


def _named(label: Any, model: Any) -> NamedModel:
    # Late: the rankers use the metrics of this package.
    from recsys.rankers.registry import ranker_of
    from recsys.recommender.recommender import Recommender

    if label is not None and not (isinstance(label, str) and label.strip()):
        raise InputError(f"a model's label must be text that is not empty, not {str(label)[:80]!r}")
    if isinstance(model, str):
        label, model = label or model, ranker_of(model)
    if isinstance(model, Recommender):
        model = model.model if not isinstance(model.model, str) else ranker_of(model.model)
    if inspect.isclass(model):
        raise InputError(f"{model.__name__} is a class: pass an object, as in {model.__name__}()")
    if not callable(getattr(model, "fit", None)) or not any(
        callable(getattr(model, method, None)) for method in ("scores", "recommend")
    ):
        raise InputError(
            f"{str(model)[:80]!r} cannot be evaluated: a model has fit(user_items), and "
            "recommend(userid, user_items, N) or scores(userid, user_items)"
        )
    params = {key: _plain(value) for key, value in _params(model).items()}
    return NamedModel(label or _default_label(model), params, model)


def _params(model: Any) -> dict[str, Any]:
    """Return the model's parameters; of another object, its public plain attributes."""
    if callable(getattr(model, "get_params", None)):
        return dict(model.get_params())
    return {
        key: value
        for key, value in getattr(model, "__dict__", {}).items()
        if key.strip("_") == key and isinstance(value, PLAIN)
    }


def _default_label(model: Any) -> str:
    """Return a ranker's specification without defaults, or the name of the class."""
    name = getattr(model, "name", None)
    if not isinstance(name, str) or not dataclasses.is_dataclass(model):
        return type(model).__name__
    default: Any = type(model)()  # type: ignore[misc]
    values = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    if not all(value is None or isinstance(value, (*PLAIN, dict)) for value in values.values()):
        return name  # rankers within a blend, say, are no text
    try:
        return format_spec(name, {k: v for k, v in values.items() if v != getattr(default, k)})
    except InputError:
        return name


def _plain(value: Any) -> Any:
    """Return a JSON value; other values become text."""
    if value is None or isinstance(value, PLAIN):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else str(value)


class Comparison(NamedTuple):
    """Models, number of folds to measure (None for all), and a note on reduced settings."""

    models: list[str]
    only_folds: int | None
    note: str


def default_comparison(data: Interactions, folds: int) -> Comparison:
    """Return the models to compare on a table, the slow ones set smaller where it is large."""
    pairs, items = len(data.users), data.n_items
    only = max(1, min(folds, folds * USUAL_PAIRS // pairs))
    lengths = np.bincount(data.users).astype(np.float64)
    counts = min(float(items) ** 2, float(lengths @ lengths))
    models, left_out = [], []
    for spec in COMPARED:
        name = spec.partition(":")[0]
        if counts > ITEM_PAIRS and name in BY_COUNTS:
            left_out.append(name)
            continue
        if name == "ease" and items > USUAL_ITEMS:
            spec = "ease:top_k=100"
        elif name in ITERATIONS and pairs > USUAL_PAIRS:
            iterations = max(LEAST_ITERATIONS, ITERATIONS[name] * USUAL_PAIRS // pairs)
            spec = f"{name}:iterations={iterations}"
        elif name == "auto" and (pairs > USUAL_PAIRS or items > AUTO_ITEMS):
            spec = f"auto:budget={AUTO_SECONDS / only:g}"
        models.append(spec)
    changed = [spec for spec in models if spec not in COMPARED]
    said = [f"set smaller for this table: {', '.join(changed)}"] * bool(changed)
    if left_out:
        said.append(f"left out, for {counts / 1e6:.0f} million pairs of items: {', '.join(left_out)}")
    if only < folds:
        said.append(f"folds measured: {only} of {folds}")
    note = f"{'; '.join(said)} (--model and --folds overrule it)" if said else ""
    return Comparison(models, only if only < folds else None, note)
