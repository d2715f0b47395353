"""The pages build without a warning and without a network, and every link leads somewhere."""

import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("sphinx")

from docs.generate.reference import homes  # noqa: E402
from tests.docs.pages import ROOT  # noqa: E402

# Any use of the network ends the build.
NO_NETWORK = """
import socket
class Refused(socket.socket):
    def connect(self, address):
        raise OSError(f"the pages are built without a network, and {address} was asked")
socket.socket = Refused
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "path").mkdir()
    (folder / "path" / "sitecustomize.py").write_text(NO_NETWORK)
    env = os.environ | {"PYTHONPATH": f"{folder / 'path'}:{ROOT}"}
    command = [sys.executable, str(ROOT / "docs" / "build.py"), str(folder / "out")]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "out" / "html"


@pytest.mark.slow
def test_the_pages_build_and_every_public_name_is_in_the_inventory(site):
    raw = (site / "objects.inv").read_bytes()
    inventory = zlib.decompress(raw.split(b"\n", 4)[4]).decode("utf-8")
    names = {line.split(" ")[0] for line in inventory.splitlines() if " py:" in line}
    assert not set(homes().values()) - names


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=\"(https?:)?//[^\"]+\"")
    styles = re.compile(r"url\([\"']?(https?:)?//|@import")
    found = [
        str(path) for path in site.rglob("*.html") if loads.search(path.read_text(encoding="utf-8"))
    ]
    own = [
        path
        for path in (site / "_static").glob("*.css")
        if styles.search(path.read_text(encoding="utf-8"))
    ]
    assert not found and not own


@pytest.mark.slow
def test_every_link_within_the_pages_leads_somewhere(site):
    found = []
    anchors = {}
    for page in site.rglob("*.html"):
        anchors[page] = set(re.findall(r"\bid=\"([^\"]+)\"", page.read_text(encoding="utf-8")))
    for page in anchors:
        for target in re.findall(r"<a [^>]*href=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:") or path.endswith((".csv", ".py")):
                continue
            there = (page.parent / path).resolve() if path else page
            if not Path(there).exists() or (
                anchor and there in anchors and anchor not in anchors[there]
            ):
                found.append(f"{page.relative_to(site)}: {target}")
    assert not found, found[:20]
