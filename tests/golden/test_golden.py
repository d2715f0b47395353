"""What was released stays: the public names with their signatures, and the files of every release."""

import difflib
import json

import numpy as np
import pytest

import recsys
from recsys import load_ranker
from recsys.links import load_link_predictor
from recsys.utils import model_file
from tests.golden import api, formats
from tests.neural import TORCH

VERSIONS = sorted(path.stem for path in formats.FOLDER.glob("*.json"))
FILES = [
    pytest.param(version, name, marks=TORCH if name in formats.LINK_NETWORKS else [])
    for version in VERSIONS
    for name in json.loads((formats.FOLDER / f"{version}.json").read_text())
]


def test_the_public_names_are_those_of_the_list():
    kept, now = api.FILE.read_text(encoding="utf-8").splitlines(), api.text().splitlines()
    changes = [
        line
        for line in difflib.unified_diff(kept, now, lineterm="", n=0)
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    told = "\n".join(changes[:40])
    assert not changes, (
        f"{len(changes)} changes of what is public (docs/policy.md):\n{told}\n"
        "If they are meant, say so in CHANGELOG.md and run: make api"
    )


def test_a_change_of_a_signature_is_seen(monkeypatch):
    kept = api.text()
    monkeypatch.setattr(recsys, "load", lambda path, more=1: None)
    assert api.text() != kept


@pytest.mark.parametrize("version, name", FILES)
def test_a_file_of_a_release_loads_and_scores_as_it_did(version, name):
    path = formats.FOLDER / f"{version}-{name}.recsys"
    kept = json.loads((formats.FOLDER / f"{version}.json").read_text())[name]
    if name == "catalogue":
        model = recsys.load(path)
        list_ = model.recommend("user 3", n=3, why=False)
        assert list_["item"].tolist() == kept and list_["title"].str.startswith("Film").all()
        return
    if name.startswith("link-"):
        found = formats.link_scored(load_link_predictor(path))
        np.testing.assert_allclose(found, kept, rtol=1e-3, atol=1e-3)
        return
    np.testing.assert_allclose(formats.scored(load_ranker(path)), kept, rtol=1e-4, atol=1e-5)


def test_every_kind_of_file_is_kept():
    assert recsys.__version__ in VERSIONS, (
        "write the files of this release: python -m tests.golden.formats"
    )
    assert len(FILES) >= len(formats.MODELS) + len(formats.LINK_MODELS) + len(formats.LINK_NETWORKS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", formats.LINK_NETWORKS)
def test_the_files_of_networks_say_what_they_score(version, name):
    """Without PyTorch: the arrays are all that it takes."""
    kept = json.loads((formats.FOLDER / f"{version}.json").read_text())[name]
    manifest, arrays = model_file.read(formats.FOLDER / f"{version}-{name}.recsys")
    assert manifest["link_predictor"] == formats.LINK_NETWORKS[name]
    found = formats.network_scored(manifest, arrays)
    np.testing.assert_allclose(found, kept, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [pytest.param(name, marks=TORCH) for name in formats.LINK_NETWORKS])
def test_a_network_is_written_as_it_was_read(name, tmp_path):
    kept = formats.FOLDER / f"{recsys.__version__}-{name}.recsys"
    load_link_predictor(kept).save(tmp_path / "m")
    (one, arrays), (two, again) = model_file.read(kept), model_file.read(tmp_path / "m")
    assert one["state"] == two["state"] and one["params"].items() <= two["params"].items()
    assert arrays.keys() == again.keys() and all((arrays[key] == again[key]).all() for key in arrays)
