import pytest

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_bundle


@pytest.fixture(scope="session")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="session")
def path(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("service") / "model.recsys"
    fit_bundle(make_ranker("cf-komd"), data, show_progress=False).save(file)
    return file
