"""The examples in the docstrings of what faces people: explain, reranking, service, files."""

import doctest
import importlib
import pkgutil

import pytest

import recsys.explain
import recsys.reranking

PACKAGES = (recsys.explain, recsys.reranking)
MODULES = [
    info.name
    for package in PACKAGES
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
] + ["recsys.rankers.catalogue", "recsys.utils.export", "recsys.utils.files", "recsys.utils.sparse"]
CLASSES = [
    vars(package)[name]
    for package in PACKAGES
    for name in package.__all__
    if isinstance(vars(package)[name], type)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_say_what_they_print(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.filterwarnings("ignore")
def test_the_example_of_the_service_says_what_it_prints():
    pytest.importorskip("fastapi")
    assert doctest.testmod(importlib.import_module("recsys.service.application")).failed == 0


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_class_has_an_example(cls):
    assert ">>> " in cls.__doc__
