"""The models that `evaluate` accepts, each with its label in the report."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from recsys.errors import InputError
from recsys.utils.spec import format_spec


class Model(Protocol):
    """The interface of an evaluated model: implicit's `fit`, and `scores` or `recommend`."""

    def fit(self, user_items: Any, show_progress: bool = ..., callback: Any = ...) -> Any:
        """Fit on a (users, items) matrix."""


Models = str | Model | Sequence[Any] | Mapping[str, Any]


class NamedModel(NamedTuple):
    """An unfitted model, what a report calls it, and its parameters as JSON values."""

    label: str
    params: dict[str, Any]
    model: Any


def named_models(models: Models) -> list[NamedModel]:
    """Return models with labels that differ.

    They are given as to `recsys.evaluate`. Without a label, a specification is its own, a ranker is
    called by its name and the parameters that are not its defaults, and another object by its class.

    Examples
    --------
    >>> from recsys import EASE
    >>> [one.label for one in named_models(["popularity", EASE(100.0), ("mine", EASE())])]
    ['popularity', 'ease:regularization=100.0', 'mine']
    """
    given: list[Any]
    if isinstance(models, Mapping):
        given = list(models.items())
    elif isinstance(models, (str, bytes)) or hasattr(models, "fit"):
        given = [models]
    else:
        try:
            given = list(models)  # type: ignore[arg-type]
        except TypeError:
            given = [models]
    found: list[NamedModel] = []
    for one in given:
        for label, model in one.items() if isinstance(one, Mapping) else [_pair(one)]:
            found.append(_named(label, model))
    if not found:
        raise InputError("name at least one model")
    labels = [one.label for one in found]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(
                f"model {label!r} is asked for twice: give each a label of its own, as in "
                "('first', model)"
            )
    return found


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function takes an argument of this name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # compiled code tells nothing: implicit's arguments are assumed
        return True
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _pair(one: Any) -> tuple[str | None, Any]:
    if not isinstance(one, tuple):
        return None, one
    if len(one) != 2 or not isinstance(one[0], str):
        raise InputError(f"a tuple among the models must be (label, model), not {str(one)[:80]}")
    return one


def _named(label: str | None, model: Any) -> NamedModel:
    if isinstance(label, str) and not label.strip():
        raise InputError("a model's label must not be empty")
    if label is not None and not isinstance(label, str):
        raise InputError(f"a model's label must be text, not {str(label)[:80]!r}")
    if isinstance(model, str):
        label = label or model
    model = _unwrapped(model)
    if inspect.isclass(model):
        raise InputError(f"{model.__name__} is a class: pass a model of it, as in {model.__name__}()")
    if not callable(getattr(model, "fit", None)) or not any(
        callable(getattr(model, method, None)) for method in ("scores", "recommend")
    ):
        raise InputError(
            f"{str(model)[:80]!r} cannot be evaluated: a model has fit(user_items), and "
            "recommend(userid, user_items, N) or scores(userid, user_items)"
        )
    params = _params(model)
    return NamedModel(label or _called(model), {k: _plain(v) for k, v in params.items()}, model)


def _unwrapped(given: Any) -> Any:
    """Make a ranker of a specification, and take out the one that a `Recommender` holds."""
    # Late: the rankers use the metrics of this package.
    from recsys.rankers.registry import ranker_of
    from recsys.recommender.recommender import Recommender

    if isinstance(given, Recommender):
        given = given.model
    return ranker_of(given) if isinstance(given, str) else given


def _params(model: Any) -> dict[str, Any]:
    """Return the model's parameters; of another object, its public plain attributes."""
    if callable(getattr(model, "get_params", None)):
        return dict(model.get_params())
    plain = (bool, int, float, str)
    known = getattr(model, "__dict__", {})
    return {k: v for k, v in known.items() if k[:1] != "_" and k[-1:] != "_" and isinstance(v, plain)}


def _called(model: Any) -> str:
    """Return a ranker's specification without defaults, or the name of the class."""
    name = getattr(model, "name", None)
    if not isinstance(name, str) or not dataclasses.is_dataclass(model):
        return type(model).__name__
    changed = {}
    for field in dataclasses.fields(model):
        factory = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        value = getattr(model, field.name)
        if not _alike(value, default):
            changed[field.name] = value
    if not all(isinstance(value, (bool, int, float, str, dict)) for value in changed.values()):
        return name  # rankers within a blend, say, are no text
    try:
        return format_spec(name, changed)
    except InputError:
        return name


def _alike(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # arrays
        return False


def _plain(value: Any) -> Any:
    """Return a JSON value: what is none becomes text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return str(value)
