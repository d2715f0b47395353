"""The table of docs/features-compared.md: our column names what is there, and peers that are installed have theirs."""

import functools
import importlib
import importlib.util
import inspect
import re
from importlib import metadata
from pathlib import Path

import pytest

import recsys
from recsys import list_rankers
from recsys.cli.commands import COMMANDS
from recsys.data import find_protocol
from recsys.errors import InputError
from recsys.evaluation.metrics import METRICS
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "features-compared.md"
TEXT = PAGE.read_text(encoding="utf-8")
PEERS = {
    "implicit": ("implicit", "implicit"), "LensKit": ("lenskit", "lenskit"), "RecTools": ("rectools", "rectools"),
    "RecBole": ("recbole", "recbole"), "Cornac": ("cornac", "cornac"), "Surprise": ("surprise", "scikit-surprise"),
}  # fmt: skip
# What a peer has and this package has not: each with what to take instead.
NOT_HERE = {
    "transformers", "GPU", "on the Python index", "conda package",
    "documentation on the web", "badges",
}  # fmt: skip


def table():
    """Yield the name of a feature, our cell and a peer's cell by name."""
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "feature":
            assert len(cells) == 2 + len(PEERS), line
            yield cells[0], cells[1], dict(zip(PEERS, cells[2:], strict=True))


ROWS = {feature: (ours, peers) for feature, ours, peers in table()}


def python_name(path):
    """Return what a dotted name stands for; what begins with a class is in the package itself."""
    names = path.split(".")
    found = recsys
    for position, name in enumerate(names[1:] if names[0] == "recsys" else names):
        if not hasattr(found, name):
            assert found is recsys or inspect.ismodule(found), path
            importlib.import_module(".".join(["recsys", *names[1 : 2 + position]]))
        found = getattr(found, name)
    return found


@functools.cache
def routes():
    from recsys.service import create_app

    return create_app(_model()).openapi()


@functools.cache
def _model():
    import tempfile

    path = Path(tempfile.mkdtemp()) / "model.recsys"
    recsys.Recommender("popularity").fit(recsys.load_dataset("sample")).save(path)
    return path


def check(code):
    """Fail unless the name in a cell of ours is there."""
    if http := re.fullmatch(r"(GET|POST|PUT) (/\S+)(?: (\w+))?", code):
        method, path, field = http.groups()
        route = routes()["paths"][path][method.lower()]
        if field:
            schema = str(route["requestBody"]) + str(routes()["components"]["schemas"])
            assert f"'{field}'" in schema, code
    elif command := re.fullmatch(r"recsys (\w+)", code):
        assert command[1] in COMMANDS, code
    elif call := re.fullmatch(r"([\w.]+)\(([^)]*)\)", code):
        function = python_name(call[1])
        known = inspect.signature(function).parameters
        for name in re.findall(r"(\w+)=", call[2]):
            assert name in known or "columns" in known, code
    elif (ROOT / code).exists() or code in list_rankers() or code in METRICS.names():
        pass
    elif re.fullmatch(r"[a-z0-9-]+", code) and "recsys" not in code:
        find_protocol(code)
    else:
        python_name(code)


@pytest.mark.parametrize("feature", ROWS)
def test_our_cell_names_what_is_there(feature):
    ours, peers = ROWS[feature]
    assert ours.startswith(("yes, ", "no: ")), ours
    assert ours.startswith("no: ") == (feature in NOT_HERE)
    if ours.startswith("yes, "):
        links = re.findall(r"\[\]\(([^)]+)\)", ours)
        codes = re.findall(r"`([^`]+)`", ours)
        assert links or codes, feature
        assert all((PAGE.parent / link).exists() for link in links)
        for code in codes:
            check(code)
    assert all(re.fullmatch(r"–|\?|`[^`]+`", cell) for cell in peers.values()), peers


def test_a_name_that_is_not_there_is_noticed():
    for wrong in ("recsys.nothing", "Recommender.nothing", "Recommender.recommend(nothing=)", "recsys nothing",
                  "POST /recommend nothing", "nothing-at-all"):  # fmt: skip
        with pytest.raises((AssertionError, AttributeError, ImportError, InputError)):
            check(wrong)


@pytest.mark.parametrize("peer", PEERS)
def test_names_of_an_installed_peer_are_in_its_package(peer):
    module, distribution = PEERS[peer]
    found = importlib.util.find_spec(module)
    if found is None:
        pytest.skip(f"{peer} is not installed: its column was looked up in its wheel")
    assert f"{peer} {metadata.version(distribution)}" in TEXT
    (folder,) = found.submodule_search_locations
    sources = b"".join(
        path.read_bytes() for path in Path(folder).rglob("*") if path.suffix in (".py", ".so", ".pyx")
    ) + (metadata.distribution(distribution).read_text("METADATA") or "").encode()  # fmt: skip
    for feature, (_, peers) in ROWS.items():
        for code in re.findall(r"`([^`]+)`", peers[peer]):
            of_class = re.fullmatch(r"[A-Z]\w+\.(\w+)", code)
            name = of_class[1] if of_class else code
            assert name.encode() in sources, (feature, code)
