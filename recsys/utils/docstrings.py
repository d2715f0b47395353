"""Docstrings of estimators that list all their parameters, those of their bases included.

A dataclass has the parameters of its bases; its docstring should have their descriptions, too. They are
written once, where the parameter is defined, and joined into each class at its definition.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, TypeVar

__all__ = ["documented", "documented_names"]

T = TypeVar("T")

SECTIONS = ("Parameters", "Attributes", "Raises", "Returns", "See Also", "Notes", "Examples")
HEADING = re.compile(rf"^({'|'.join(SECTIONS)})\n-+\n", re.MULTILINE)


def documented(cls: type[T]) -> type[T]:
    """Complete a dataclass' numpydoc docstring with what its bases say of its parameters and attributes.

    An entry of the class itself stands before those of its bases, and in the place of what they say of
    the same name. A parameter's default is added to its type. A parameter must be described somewhere.

    >>> @dataclasses.dataclass
    ... class Base:
    ...     '''Has a rank.
    ...
    ...     Parameters
    ...     ----------
    ...     rank : int
    ...     '''
    ...
    ...     rank: int = 8
    >>> @documented
    ... @dataclasses.dataclass
    ... class Model(Base):
    ...     '''Has a degree, too.
    ...
    ...     Parameters
    ...     ----------
    ...     degree : int
    ...     '''
    ...
    ...     degree: int = 2
    >>> Model.__doc__.splitlines()[-2:]
    ['degree : int, default 2', 'rank : int, default 8']
    """
    if cls.__doc__ is None:  # python -OO
        return cls
    lead, own = _sections(cls)
    fields = {
        field.name: field.default
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        if field.init
    }
    parameters = _joined(cls, "Parameters", own, set(fields))
    missing = [name for name in fields if not any(name in names for names, _ in parameters)]
    if missing:
        raise TypeError(f"the docstring of {cls.__name__} and its bases do not describe {missing}")
    parts = [lead.strip()]
    body = "\n".join(_with_defaults(names, text, fields) for names, text in parameters)
    parts.append(_titled("Parameters", body))
    attributes = _joined(cls, "Attributes", own, None)
    if attributes:
        parts.append(_titled("Attributes", "\n".join(text for _, text in attributes)))
    for title in SECTIONS[2:]:
        if title in own:
            parts.append(_titled(title, own[title]))
    cls.__doc__ = "\n\n".join(parts)
    return cls


def documented_names(cls: type[Any]) -> set[str]:
    """Return the names under *Parameters* in a class' own docstring."""
    return {name for names, _ in _entries(_sections(cls)[1].get("Parameters", "")) for name in names}


def _titled(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body}"


def _sections(cls: type[Any]) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and each section's text."""
    pieces = HEADING.split(inspect.cleandoc(cls.__dict__.get("__doc__") or ""))
    return pieces[0], {
        title: text.strip("\n") for title, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def _entries(section: str) -> list[tuple[list[str], str]]:
    """Return the names and the text of each entry of a section."""
    found: list[tuple[list[str], str]] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(" : ")[0].split(",")]
            found.append((names, line))
        elif found:
            names, text = found.pop()
            found.append((names, f"{text}\n{line}"))
    return [(names, text.rstrip()) for names, text in found]


def _joined(
    cls: type[Any], title: str, own: dict[str, str], wanted: set[str] | None
) -> list[tuple[list[str], str]]:
    """Return the entries of a class and its bases, each name once, the nearest description of it."""
    out: list[tuple[list[str], str]] = []
    seen: set[str] = set()
    for base in cls.__mro__:
        section = own if base is cls else _sections(base)[1]
        for names, text in _entries(section.get(title, "")):
            new = [name for name in names if name not in seen and (wanted is None or name in wanted)]
            if new:
                seen.update(new)
                out.append((new, text.replace(", ".join(names), ", ".join(new), 1)))
    return out


def _with_defaults(names: list[str], text: str, fields: dict[str, Any]) -> str:
    head, _, rest = text.partition("\n")
    defaults = [fields[name] for name in names]
    if any(default is dataclasses.MISSING for default in defaults):
        return text
    if len({repr(default) for default in defaults}) == 1:
        defaults = defaults[:1]
    head = re.sub(r", default .*", "", head)  # of a base that was completed, too
    head = f"{head}, default {', '.join(map(repr, defaults))}"
    return f"{head}\n{rest}" if rest else head
