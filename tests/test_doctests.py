"""The examples in docstrings, run; one test a package."""

import doctest
import importlib
import importlib.util
import pkgutil

import pytest

import recsys

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NEEDS = {  # modules of which the whole is on top of another package
    "recsys.links.neural": "torch",
    "recsys.rankers.networks": "torch",
}
PACKAGES = sorted(module.name for module in pkgutil.iter_modules(recsys.__path__, "recsys."))


def modules(name):
    """The module itself, and all in it where it is a package."""
    top = importlib.import_module(name)
    yield top
    for found in pkgutil.walk_packages(getattr(top, "__path__", []), f"{name}."):
        if found.name not in NEEDS or importlib.util.find_spec(NEEDS[found.name]) is not None:
            yield importlib.import_module(found.name)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_examples(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for examples that write a file
    failed = [
        module.__name__
        for module in modules(package)
        if doctest.testmod(module, optionflags=FLAGS).failed
    ]
    assert not failed


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    some = [test for module in modules("recsys.kernels") for test in finder.find(module)]
    assert sum(bool(test.examples) for test in some) > 5
