"""What must not be in the tree: dangerous calls, private imports, public classes nobody can read."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import recsys

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "recsys").rglob("*.py")) + sorted((ROOT / "app").rglob("*.py"))

FORBIDDEN = {
    r"\bpickle\b|\bjoblib\b|\bmarshal\b|\bshelve\b|yaml\.load|allow_pickle\s*=\s*True|torch\.(load|save)\(": "code in data files",
    r"(?<![\w.])(eval|exec)\(": "evaluated text",
    r"unsafe_allow_html": "markup from data",
    r"np\.random\.(seed|rand|randn|randint|random|shuffle|choice|permutation)\b": "the global random state",
    r"default_rng\(\)": "an unseeded generator",
    r"numba\.n?jit|from numba import": "numba outside _jit.py",
    r"extractall": "archives unpacked whole",
    r"verify\s*=\s*False": "TLS checks switched off",
    r"fastmath\s*=\s*True": "arithmetic that ignores NaN",
}
MOST_LINES = 900

# The one private module that everybody imports: the compiler.
SHARED = {"recsys._jit"}


def offences(found):
    return "\n" + "\n".join(found)


def test_sources_are_free_of_what_is_forbidden():
    found = []
    for path in SOURCES:
        # The class of an error that a process pool raises reads nothing.
        text = path.read_text(encoding="utf-8").replace("from pickle import PicklingError\n", "")
        for pattern, why in FORBIDDEN.items():
            hit = re.search(pattern, text)
            if hit and not (path.name == "_jit.py" and "numba" in pattern):
                found.append(f"{path.relative_to(ROOT)}: {why}: {hit.group(0)!r}")
    assert not found, offences(found)


def test_modules_are_of_a_length_that_can_be_read():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    found = [f"{path.relative_to(ROOT)}: {n} lines" for path, n in lengths.items() if n > MOST_LINES]
    assert not found, offences(found)


def imports(path):
    """Names of the modules, and of what is taken from them, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_private_elsewhere(name, importer):
    """Whether a name is, or lies in, a private module of a package that the importer is not in."""
    parts = name.split(".")
    private = next((k for k, part in enumerate(parts) if re.match(r"_[a-z]", part)), None)
    return private is not None and importer[:private] != parts[:private]


@pytest.mark.thorough
def test_no_module_imports_a_private_module_of_another_package():
    found = []
    for path in SOURCES:
        importer = list(path.relative_to(ROOT).with_suffix("").parts)
        for name in imports(path):
            shared = any(name == s or name.startswith(f"{s}.") for s in SHARED)
            if name.startswith("recsys.") and not shared and is_private_elsewhere(name, importer):
                found.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not found, offences(sorted(set(found)))


def exported(package):
    for name in getattr(package, "__all__", ()):
        kind = getattr(package, name)
        if inspect.isclass(kind) and not issubclass(kind, Exception):
            yield f"{package.__name__}.{name}", kind


def public_classes():
    """The classes that the packages export, by full name."""
    for module in pkgutil.walk_packages(recsys.__path__, "recsys."):
        if module.ispkg and not module.name.startswith(("recsys.cli", "recsys.service")):
            package = importlib.import_module(module.name)
            yield from exported(package)
    yield from exported(recsys)


def lacks(kind):
    """What a class' docstring does not say: of each parameter of `__init__`, and an example."""
    text = kind.__dict__.get("__doc__") or ""
    section = re.search(r"^\s*(Parameters|Attributes)\n\s*-+\n", text, re.M)
    listed = text[section.end() :] if section else ""
    named = {n.strip(" *") for line in re.findall(r"^\s*([\w*, ]+?)(?: :|$)", listed, re.M) for n in line.split(",")}  # fmt: skip
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) and name not in named:
            yield f"parameter {name}"
    if ">>> " not in text:
        yield "an example"


def test_public_classes_say_what_they_take_and_show_how():
    missing = {name: list(lacks(kind)) for name, kind in public_classes()}
    found = [f"{name} lacks {', '.join(what)}" for name, what in sorted(missing.items()) if what]
    assert not found, offences(found)
