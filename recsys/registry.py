"""Names to classes: registration at the definition, discovery of modules, did-you-mean."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from recsys.errors import InputError

T = TypeVar("T")


# What other libraries and papers call it.
OTHER_NAMES = {
    "movielens-100k": "movielens",
    "ml-100k": "movielens",
    "ml-1m": "movielens-1m",
    "ml-20m": "movielens-20m",
    "k": "top_k",
    "n_neighbors": "top_k",
    "n_components": "factors",
    "n_factors": "factors",
    "epochs": "iterations",
    "reg": "regularization",
    "hr": "hit",
    "loo": "leave-one-out",
    "itemknn": "cosine",
    "userknn": "user-knn",
    "mf": "als",
}


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "did you mean …?" with the nearest known name, or "known: …" with all names.

    >>> did_you_mean("EASE", ["als", "ease"]), did_you_mean("K", ["shrink", "top_k"])
    ("did you mean 'ease'?", "did you mean 'top_k'?")
    """
    names = sorted(known)
    lower = {name.lower(): name for name in names}
    usual = OTHER_NAMES.get(given.lower(), given).lower()
    near = [usual] if usual in lower else difflib.get_close_matches(usual, lower, n=1, cutoff=0.5)
    return f"did you mean {lower[near[0]]!r}?" if near else f"known: {', '.join(names)}"


class Registry(Generic[T]):
    """Named things of one kind, filled by a decorator where each thing is defined.

    Parameters
    ----------
    kind : str
        What the entries are, for messages: "ranker", "kernel", "metric".
    package : str, optional
        Package whose modules are imported before the first look-up, so that a new
        module registers itself and no list has to be edited.
    homes : mapping, optional
        Names of entries that share a module to the module's name, so that looking one of them up imports
        that module alone.
    """

    def __init__(
        self, kind: str, package: str | None = None, homes: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._package = package
        self._homes = homes or {}
        self._entries: dict[str, T] = {}
        self._discovering: set[int] = set()  # threads

    def add(self, *names: str) -> Callable[[T], T]:
        """Register the decorated object under each of `names`."""

        def register(entry: T) -> T:
            for name in names:
                if name in self._entries and self._entries[name] is not entry:
                    raise ValueError(f"{self.kind} {name!r} is registered twice")
                self._entries[name] = entry
            return entry

        return register

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._discover()
        return sorted(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def get(self, name: str) -> T:
        """Return the entry called `name`.

        Raises
        ------
        InputError
            If there is none; the message suggests the nearest name.
        """
        if isinstance(name, str) and name not in self._entries:
            self._import_module_of(name)
        if not isinstance(name, str) or name not in self._entries:
            self._discover()
        if not isinstance(name, str) or name not in self._entries:
            raise InputError(f"unknown {self.kind} {name!r}: {did_you_mean(str(name), self._entries)}")
        return self._entries[name]

    def _import_module_of(self, name: str) -> None:
        """Import the entry's home, or the module named like it, if there is one: all cost seconds."""
        if self._package is not None and threading.get_ident() not in self._discovering:
            home = self._homes.get(name, name.replace("-", "_"))
            module = f"{self._package}.{home}"
            if name.replace("-", "").isalnum() and importlib.util.find_spec(module) is not None:
                importlib.import_module(module)

    def _discover(self) -> None:
        # Another thread waits for the modules, too; this one, asked by a module it imports, does not.
        name, here = self._package, threading.get_ident()
        if name is None or here in self._discovering:
            return
        self._discovering.add(here)
        try:
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{name}.{module.name}")
            self._package = None
        finally:
            self._discovering.discard(here)


def check_parameters(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse parameter names that `kind` does not have, suggesting the nearest one."""
    accepted = list(known)
    for key in given:
        if key not in accepted:
            hint = did_you_mean(key, accepted) if accepted else "it takes none"
            raise InputError(f"{kind} has no parameter {key!r}: {hint}")
