"""Public classes of explain and reranking are shown in use; tests/test_doctests.py runs the examples."""

import pytest

import recsys.explain
import recsys.reranking

CLASSES = [
    vars(package)[name]
    for package in (recsys.explain, recsys.reranking)
    for name in package.__all__
    if isinstance(vars(package)[name], type)
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_class_has_an_example(cls):
    assert ">>> " in cls.__doc__
