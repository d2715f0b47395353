"""What a release consists of beside the code: versions, citation, safety, constraints, containers, Pythons."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import recsys
from tests.pythons import interpreters, supported

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_written_once():
    assert "version" not in PROJECT["project"] and PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "recsys/utils/version.py"
    assert re.search(
        rf"^## {re.escape(recsys.__version__)} \(\d{{4}}-\d\d-\d\d\)$", read("CHANGELOG.md"), re.M
    )


def test_the_citation_is_one():
    """The keys that version 1.2.0 of the format requires, of the kinds it requires."""
    found = yaml.safe_load(read("CITATION.cff"))
    assert found["cff-version"] == "1.2.0" and found["type"] in ("software", "dataset")
    assert isinstance(found["message"], str) and isinstance(found["title"], str)
    assert (
        str(found["version"]) == recsys.__version__ and found["license"] == PROJECT["project"]["license"]
    )
    for entry in [found, *found["references"]]:
        assert entry["authors"] and all(
            set(a) <= {"name", "family-names", "given-names", "orcid"} for a in entry["authors"]
        )
        assert all("name" in author or "family-names" in author for author in entry["authors"])
    kinds = {"article", "thesis", "conference-paper", "book", "software"}
    assert all(entry["type"] in kinds and entry["title"] for entry in found["references"])


def test_the_safety_page_says_what_is_trusted_and_how_to_report():
    text = read("SECURITY.md")
    assert all(word in text for word in ("Reporting", "Versions", "RECSYS_TOKEN", "in private"))


def test_constraints_hold_every_dependency_at_one_version():
    pinned = {}
    for line in read("constraints.txt").splitlines():
        if not line.startswith("#"):
            name, version = re.fullmatch(r"([\w.-]+)==([\w.!+-]+)( ; .+)?", line.strip()).groups()[:2]
            pinned.setdefault(name.lower().replace("_", "-"), []).append(version)
    extras = PROJECT["project"]["optional-dependencies"]
    asked = PROJECT["project"]["dependencies"] + [
        line for name, lines in extras.items() if name != "deep" for line in lines
    ]
    for line in asked:
        name = re.match(r"[\w.-]+", line)[0].lower()
        if name != "recsys-cpu":
            assert name in pinned, f"{name} is not in constraints.txt: make constraints"
            least = tuple(map(int, re.search(r">=([\d.]+)", line)[1].split(".")))
            assert all(
                tuple(int(n) for n in re.findall(r"\d+", v)[: len(least)]) >= least for v in pinned[name]
            ), name


def test_extras_say_each_requirement_once():
    """`dev` takes the others by their names."""
    extras = PROJECT["project"]["optional-dependencies"]
    (others,) = [line for line in extras["dev"] if line.startswith("recsys-cpu[")]
    assert set(re.findall(r"\w+", others)) - {"recsys", "cpu"} <= set(extras)
    own = [re.match(r"[\w.-]+", line)[0] for line in extras["dev"] if line != others]
    taken = {
        re.match(r"[\w.-]+", line)[0] for name in re.findall(r"\w+", others)[2:] for line in extras[name]
    }
    assert not set(own) & taken


def test_the_image_runs_without_root_is_warm_and_says_how_it_is():
    lines = read("Dockerfile").splitlines()
    final = lines[max(k for k, line in enumerate(lines) if line.startswith("FROM")) :]
    assert "slim" in final[0]
    user = final.index("USER recsys")
    assert user < next(k for k, line in enumerate(final) if "recsys compile" in line)
    assert not [line for line in final[user:] if "pip install" in line]
    assert any(line.startswith("HEALTHCHECK") for line in final) and any(
        '"serve"' in line for line in final
    )


def test_the_compose_file_starts_service_and_app():
    found = yaml.safe_load(read("compose.yaml"))["services"]
    assert set(found) == {"service", "app"}
    assert found["service"]["command"][:2] == ["recsys", "serve"] and found["app"]["command"][:2] == [
        "recsys",
        "app",
    ]
    assert all(part["cap_drop"] == ["ALL"] and part["image"] == "recsys" for part in found.values())
    assert not any(part.get("read_only") for part in found.values()), (
        "Numba would compile at every start"
    )
    assert found["app"]["ports"][0].startswith("127.0.0.1:"), "the app has no accounts"


def test_the_pythons_that_are_declared_are_looked_for():
    assert supported() == ["3.11", "3.12", "3.13"]
    found = interpreters()
    assert list(found) == supported() and any(found.values())


def test_the_docs_need_no_network():
    settings = read("docs/conf.py") + "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "_static").iterdir()
    )
    for asked in ("intersphinx", "http://", "https://", "mathjax_path", "@import"):
        assert asked not in settings, asked


def test_the_workflows_test_three_systems_and_publish_without_a_stored_token():
    test, publish = (
        yaml.safe_load(read(f".github/workflows/{name}.yaml")) for name in ("test", "publish")
    )
    matrix = test["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == supported()
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert test["permissions"] == publish["permissions"] == {"contents": "read"}
    granted = {name: job.get("permissions") for name, job in publish["jobs"].items()}
    assert granted == {"build": None, "publish": {"id-token": "write"}}
    assert not re.search(r"secrets\.|password|api-token", read(".github/workflows/publish.yaml"))
    assert any("twine check" in step.get("run", "") for step in publish["jobs"]["build"]["steps"])


def test_the_hosted_pages_are_built_as_here():
    """Extras that are installed there are extras of the package, and the command is that of `make docs`."""
    found = yaml.safe_load(read(".readthedocs.yaml"))
    commands = " ".join(found["build"]["commands"])
    assert found["version"] == 2 and "python docs/build.py" in commands
    assert found["build"]["tools"]["python"] in supported()
    extras = re.search(r"\.\[([\w,]+)\]", commands)[1].split(",")
    assert "docs" in extras and set(extras) <= set(PROJECT["project"]["optional-dependencies"])


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/tutorials/analyst.md"])
def test_the_app_is_opened_by_a_command(name):
    assert "recsys app" in read(name)
