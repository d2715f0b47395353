"""The marks of what needs PyTorch: `make test-torch` runs it, in an environment of its own."""

import importlib.util

import pytest

TORCH = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]
