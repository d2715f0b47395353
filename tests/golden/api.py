"""The public names and their signatures, as text: `python -m tests.golden.api`, or `make api`, writes api.txt."""

import enum
import inspect
import re
from pathlib import Path

from docs.generate.reference import adapters, homes, public_modules
from recsys import Ranker

FILE = Path(__file__).with_name("api.txt")


def signature(thing):
    """Return parameters and their defaults; what is typed about them is the type checker's affair."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    return re.sub(r" at 0x[0-9a-f]+|<factory>", "", text)


def methods(kind):
    """Yield the public methods and properties that a class has of ours, with their signatures."""
    for name in sorted(
        {n for base in kind.__mro__ if base.__module__.startswith("recsys") for n in vars(base)}
    ):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(kind, name)
        if (
            kind is not Ranker
            and issubclass(kind, Ranker)
            and value is inspect.getattr_static(Ranker, name, None)
        ):
            continue  # a ranker's protocol is told once
        if isinstance(value, property) or type(value).__name__ == "cached_property":
            yield f".{name}"
        elif isinstance(value, (staticmethod, classmethod)) or inspect.isfunction(value):
            yield f".{name}{signature(getattr(kind, name))}"


def lines():
    """Yield a line for each public thing, the methods of a class below it."""
    told = set()
    where = homes()
    for module in public_modules():
        for name in sorted(module.__all__):
            thing, full = getattr(module, name), where[module.__name__, name]
            own = f"{module.__name__}.{name}"
            if full != own:
                yield f"{own} is {full}"
            elif inspect.isclass(thing):
                error = issubclass(thing, Exception)
                yield f"class {own}{'' if error or issubclass(thing, enum.Enum) else signature(thing)}"
                if full not in told:
                    told.add(full)
                    yield from (f"    {line}" for line in methods(thing))
            elif callable(thing):
                yield f"{own}{signature(thing)}"
            else:
                yield f"{own}: {type(thing).__name__}"
    for module, (_, names) in adapters().items():
        yield from (f"{module}.{name}" for name in sorted(names))


def text():
    """Return the file."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    print(FILE)
