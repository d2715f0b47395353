"""The reference: one page for each public package, from `__all__` and the docstrings."""

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import recsys
from recsys.rankers.base import Ranker

APART = {"recsys.cli"}  # has a page of its own


def public_modules() -> list[ModuleType]:
    """Return `recsys`, and every package or top module with `__all__`."""
    modules = [recsys]
    for info in pkgutil.walk_packages(recsys.__path__, "recsys."):
        if "._" in info.name or info.name in APART or info.name == "recsys.__main__":
            continue
        if info.ispkg or info.name.count(".") == 1:
            module = importlib.import_module(info.name)
            if getattr(module, "__all__", None):
                modules.append(module)
    return modules


def homes() -> dict[tuple[str, str], str]:
    """Return for each public (module, name) the full name under which it is described, once."""
    out: dict[tuple[str, str], str] = {}
    described: dict[int, str] = {}
    for module in public_modules():
        for name in module.__all__:
            thing, full = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.isclass(thing) or inspect.isfunction(thing):
                full = described.setdefault(id(thing), full)
            out[module.__name__, name] = full
    return out


def entry(full: str, thing: Any) -> list[str]:
    """Return the directives that describe one name."""
    if inspect.isclass(thing):
        options = ["   :members:"]
        if issubclass(thing, Ranker) and thing is not Ranker:
            options = ["", "   The methods are those of every ranker: :class:`recsys.Ranker`."]
        return [f".. autoclass:: {full}", *options, ""]
    if callable(thing) and hasattr(thing, "__module__"):
        return [f".. autofunction:: {full}", ""]
    return [f".. autodata:: {full}", "   :no-value:", ""]


def page(module: ModuleType, where: dict[tuple[str, str], str]) -> str:
    """Return a module's page."""
    name = module.__name__
    lines = [name, "=" * len(name), "", f".. py:module:: {name}", "", inspect.getdoc(module) or "", ""]
    for n in sorted(module.__all__, key=str.lower):
        full = where[name, n]
        if full == f"{name}.{n}":
            lines += [n, "-" * len(n), "", *entry(full, getattr(module, n))]
    elsewhere = [full for (m, n), full in where.items() if m == name and full != f"{name}.{n}"]
    if elsewhere:
        lines += ["Also here: " + ", ".join(f":py:obj:`{full}`" for full in sorted(elsewhere)) + ".", ""]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write the pages of the reference and their list."""
    folder.mkdir(parents=True, exist_ok=True)
    where = homes()
    names = sorted(module.__name__ for module in public_modules())
    for module in public_modules():
        (folder / f"{module.__name__}.rst").write_text(page(module, where), encoding="utf-8")
    lines = ["Python", "======", "", ".. toctree::", "   :maxdepth: 1", "", *(f"   {n}" for n in names)]
    (folder / "index.rst").write_text("\n".join([*lines, ""]), encoding="utf-8")
