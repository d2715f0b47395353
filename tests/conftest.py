import os
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, settings

from recsys._jit import AT_ONCE
from recsys.datasets import load_dataset
from tests.synthetic import planted_catalogue

# For runs that only ask whether a test fails (tests/mutants): an example is not made smaller.
settings.register_profile("first-failure", phases=[Phase.explicit, Phase.generate])


def pytest_addoption(parser):
    parser.addoption("--compiled", action="store_true", help="compile what small inputs do without")


def pytest_configure(config):
    if config.getoption("--compiled"):
        AT_ONCE["on"] = True


def pytest_collection_modifyitems(items):
    """Begin with the file that takes longest, beside which another process does the others."""
    items.sort(key=lambda item: item.path.name != "test_packaging.py")


@pytest.fixture(scope="session")
def data_dir():
    folder = os.environ.get("RECSYS_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real data: set RECSYS_DATA")
    return Path(folder)


@pytest.fixture(scope="session")
def movielens(data_dir):
    return load_dataset("movielens", data_dir)


@pytest.fixture(scope="session")
def planted():
    return planted_catalogue(60, 40, mean_length=12, seed=3).interactions


@pytest.fixture
def liked(planted):
    """60 users × 40 items, with an empty user, an empty item and a user who likes everything."""
    dense = planted.matrix.toarray()
    dense = dense[:, : planted.n_items]
    dense[0] = 0
    dense[:, 5] = 0
    dense[7] = 1
    dense[7, 5] = 0
    return sp.csr_matrix(dense, dtype=np.float32)


@pytest.fixture(autouse=True)
def own_main():
    """Put the main module back: tests of pages leave theirs, which processes by spawn would run."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
