"""Names to classes: registration, discovery, did-you-mean; names with parameters as text."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from recsys.errors import InputError

T = TypeVar("T")

# What other libraries and papers call it.
OTHER_NAMES = dict(
    pair.split("=")
    for pair in "movielens-100k=movielens ml-100k=movielens ml-1m=movielens-1m ml-20m=movielens-20m "
    "k=top_k n_neighbors=top_k n_components=factors n_factors=factors epochs=iterations "
    "reg=regularization hr=hit loo=leave-one-out itemknn=cosine userknn=user-knn mf=als".split()
)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "did you mean …?" with the nearest known name, or "known: …" with all names."""
    names = sorted(known)
    lower = {name.lower(): name for name in names}
    usual = OTHER_NAMES.get(given.lower(), given).lower()
    near = [usual] if usual in lower else difflib.get_close_matches(usual, lower, n=1, cutoff=0.5)
    return f"did you mean {lower[near[0]]!r}?" if near else f"known: {', '.join(names)}"


class Registry(Generic[T]):
    """Registry of named objects of one kind, filled by a decorator.

    `kind` names them in messages. The modules of `package` register them, and are imported when a name
    needs it; `homes` says the module of each name that is not the name of its module.
    """

    def __init__(
        self, kind: str, package: str | None = None, homes: Mapping[str, str] | None = None
    ) -> None:
        self.kind, self._package, self._homes = kind, package, homes or {}
        self._entries: dict[str, T] = {}

    def add(self, *names: str) -> Callable[[T], T]:
        """Register the decorated object under each of `names`."""

        def register(entry: T) -> T:
            for name in names:
                if self._entries.setdefault(name, entry) is not entry:
                    raise ValueError(f"{self.kind} {name!r} is registered twice")
            return entry

        return register

    def names(self) -> list[str]:
        """Return all names, sorted."""
        if self._package is not None:
            for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
                importlib.import_module(f"{self._package}.{module.name}")
        return sorted(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def get(self, name: str) -> T:
        """Return the entry with this name; the error for an unknown name suggests the nearest."""
        if isinstance(name, str) and name not in self._entries and self._package is not None:
            module = self._homes.get(name, name.replace("-", "_"))
            if module.isidentifier() and importlib.util.find_spec(f"{self._package}.{module}"):
                importlib.import_module(f"{self._package}.{module}")  # all would cost seconds
        if not isinstance(name, str) or (name not in self._entries and name not in self.names()):
            raise InputError(f"unknown {self.kind} {name!r}: {did_you_mean(str(name), self.names())}")
        return self._entries[name]


def check_parameters(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse parameter names that `kind` does not have, suggesting the nearest one."""
    names = list(known)
    for key in given:
        if key not in names:
            hint = did_you_mean(key, names) if names else "it takes none"
            raise InputError(f"{kind} has no parameter {key!r}: {hint}")


def parse_spec(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of `name:key=value,key=value`.

    Values are read as integers, numbers, true/false/none, else text.
    """
    name, _, rest = text.partition(":")
    params: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"model {text!r}: {part!r} is not key=value, as in ease:regularization=500")
        if key in params:
            raise InputError(f"model {text!r} sets {key} twice")
        params[key] = _value(value)
    return name.strip(), params


def format_spec(name: str, params: dict[str, Any]) -> str:
    """Return `name:key=value,…`, which `parse_spec` reads; None and empty values are left out."""
    parts = []
    for key, value in params.items():
        if isinstance(value, dict):
            parts.append(format_spec("", value).removeprefix(":"))
        elif value is not None:
            if isinstance(value, str) and (set(value) & set(",;+:=") or _value(value) != value):
                raise InputError(f"{name}: {key}={value!r} cannot be written in a specification")
            parts.append(f"{key}={value!r}" if isinstance(value, float) else f"{key}={value}")
    text = ",".join(filter(None, parts))
    return f"{name}:{text}" if text else name


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
