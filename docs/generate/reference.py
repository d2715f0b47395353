"""The reference: one page for each public package, from `__all__` and the docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import recsys
from recsys.rankers.base import Ranker

# Packages of commands and pages, whose references are pages of their own.
ELSEWHERE = {"recsys.cli"}


def adapters() -> dict[str, tuple[str, list[str]]]:
    """Return the modules that need another library to be imported, with what they say and offer.

    Nothing is imported: the library need not be installed where the pages are built.
    """
    out = {}
    for path in sorted((Path(recsys.__file__).parent / "adapters").glob("[a-z]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ]
        if names:
            out[f"recsys.adapters.{path.stem}"] = ((ast.get_docstring(tree) or ""), names[0])
    return out


def adapter(name: str, about: str, offered: list[str]) -> str:
    """Return the page of such a module; Sphinx puts dummies in the place of the library."""
    lines = [name, "=" * len(name), "", f".. py:module:: {name}", "", about, ""]
    for thing in offered:
        directive = "autoclass" if thing[0].isupper() else "autofunction"
        lines += [thing, "-" * len(thing), "", f".. {directive}:: {name}.{thing}", ""]
    return "\n".join(lines)


def public_modules() -> list[ModuleType]:
    """Return what `docs/policy.md` calls public: `recsys`, and every package or top module with `__all__`."""
    found = [recsys]
    for module in pkgutil.walk_packages(recsys.__path__, "recsys."):
        if any(part.startswith("_") for part in module.name.split(".")) or module.name in ELSEWHERE:
            continue
        if module.ispkg or module.name.count(".") == 1:
            loaded = importlib.import_module(module.name)
            if getattr(loaded, "__all__", None):
                found.append(loaded)
    return found


def homes() -> dict[tuple[str, str], str]:
    """Return for each public (module, name) the full name under which the reference describes it."""
    out: dict[tuple[str, str], str] = {}
    described: dict[int, str] = {}
    for module in public_modules():
        for name in module.__all__:
            thing = getattr(module, name)
            full = f"{module.__name__}.{name}"
            if _is_described_by_itself(thing):
                full = described.setdefault(id(thing), full)
            out[module.__name__, name] = full
    return out


def _is_described_by_itself(thing: Any) -> bool:
    return callable(thing) and hasattr(thing, "__module__")


def first_line(thing: Any) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.getdoc(thing) or ""
    if not _is_described_by_itself(thing) and not inspect.ismodule(thing):
        return ""
    line = " ".join(text.split("\n\n")[0].split())
    return line.replace("|", "\\|").replace("*", "\\*").replace("`", "``")


def members(kind: type) -> Iterator[tuple[str, str]]:
    """Yield (directive, name) of what a class offers of its own; a ranker's protocol is told once."""
    seen: set[str] = set()
    fields = set(getattr(kind, "__dataclass_fields__", ())) | set(getattr(kind, "_fields", ()))
    for base in kind.__mro__:
        if not base.__module__.startswith("recsys") or (
            issubclass(kind, Ranker) and kind is not Ranker and base is not kind
        ):
            continue
        for name, value in vars(base).items():
            plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            if name.startswith("_") or name in seen or name in fields:
                continue
            seen.add(name)
            if isinstance(value, property) or type(value).__name__ == "cached_property":
                if inspect.getdoc(value):
                    yield "autoproperty", name
            elif inspect.isfunction(plain) and inspect.getdoc(getattr(kind, name)):
                yield "automethod", name


def entry(full: str, thing: Any) -> list[str]:
    """Return the lines of reStructuredText that describe one thing."""
    if inspect.isclass(thing):
        lines = [f".. autoclass:: {full}", ""]
        for directive, name in members(thing):
            lines += [f"   .. {directive}:: {full}.{name}", ""]
        if issubclass(thing, Ranker) and thing is not Ranker:
            lines += ["   The rest is the protocol of every ranker: :class:`recsys.Ranker`.", ""]
        return lines
    if _is_described_by_itself(thing):
        return [f".. autofunction:: {full}", ""]
    return [f".. autodata:: {full}", "   :no-value:", ""]


def page(module: ModuleType, where: dict[tuple[str, str], str]) -> str:
    """Return a module's page."""
    name = module.__name__
    about = inspect.getdoc(module) or ""
    lines = [name, "=" * len(name), "", f".. py:module:: {name}", "", *about.splitlines(), ""]
    own = [n for n in module.__all__ if where[name, n] == f"{name}.{n}"]
    lines += [".. list-table::", "   :widths: 30 70", "   :class: api", ""]
    for n in sorted(module.__all__, key=str.lower):
        full = where[name, n]
        told = first_line(getattr(module, n)) or "A constant."
        lines += [f"   * - :py:obj:`{n} <{full}>`", f"     - {told}"]
    lines.append("")
    for n in sorted(own, key=str.lower):
        lines += [n, "-" * len(n), "", *entry(f"{name}.{n}", getattr(module, n))]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write the pages of the reference and their list."""
    folder.mkdir(parents=True, exist_ok=True)
    where = homes()
    names = []
    for module in public_modules():
        (folder / f"{module.__name__}.rst").write_text(page(module, where), encoding="utf-8")
        names.append(module.__name__)
    for name, (about, offered) in adapters().items():
        (folder / f"{name}.rst").write_text(adapter(name, about, offered), encoding="utf-8")
        names.append(name)
    names.sort()
    index = [
        "Python",
        "======",
        "",
        "What is public: every name below (:doc:`/policy`). What is described",
        "on another page links there.",
        "",
        ".. toctree::",
        "   :maxdepth: 1",
        "",
    ]
    (folder / "index.rst").write_text(
        "\n".join([*index, *(f"   {n}" for n in names), ""]), encoding="utf-8"
    )
