"""Lists by command: the same as from Python."""

import json

import pytest

import recsys
from recsys import cli


@pytest.fixture(scope="module")
def model():
    return recsys.Recommender("als:factors=8,iterations=2").fit(recsys.load_dataset("sample"))


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    file = tmp_path_factory.mktemp("lists") / "m.recsys"
    model.save(file)
    return str(file)


def lists(path, tmp_path, *options):
    out = tmp_path / "top.jsonl"
    assert cli.call(["recommend", "--ranker", path, "--user", "u0001", "--out", str(out), *options]) == 0
    return [json.loads(line)["item_id"] for line in out.read_text().splitlines()]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (
            ["--filter", "year=1960..1985", "--filter", "genres=Drama,War"],
            {"filters": {"year": (1960, 1985), "genres": ["Drama", "War"]}},
        ),
        (["--filter", "year=1980.."], {"filters": {"year": (1980, None)}}),
    ],
    ids=str,
)
def test_options_are_those_of_python(model, path, tmp_path, options, given):
    assert (
        lists(path, tmp_path, *options) == model.recommend("u0001", why=False, **given)["item"].tolist()
    )


def test_ids_of_any_number_come_from_a_file(model, path, tmp_path):
    file = tmp_path / "stock.txt"
    some = [str(one) for one in model.item_ids[:200]]
    file.write_text("\n".join(some) + "\n")
    for option, name in (("--items", "items"), ("--filter-items", "exclude")):
        wanted = model.recommend("u0001", why=False, **{name: some})["item"].tolist()
        assert lists(path, tmp_path, option, f"@{file}") == wanted


def test_scores_and_similar_users(model, path, capfd):
    assert cli.call(["predict", "--ranker", path, "--user", "u0001", "--items", "m0005,m0003"]) == 0
    said = capfd.readouterr().out
    for score in model.predict("u0001", ["m0005", "m0003"])["score"]:
        assert f"{score:.6g}" in said
    assert cli.call(["similar", "--ranker", path, "--user", "u0001", "-n", "3"]) == 0
    said = capfd.readouterr().out
    assert all(user in said for user in model.similar_users("u0001", 3)["user"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        ["recommend", "--user", "u0001", "--filter", "year"],
        ["recommend", "--user", "u0001", "--items", "@nofile"],
        ["similar"],
        ["similar", "--user", "u0001", "--items", "m0001"],
        ["similar", "--user", "nobody"],
        ["predict", "--items", "m0001"],
        ["predict", "--user", "u0001", "--items", "nope"],
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_in_a_line(path, capfd, command):
    assert cli.call([*command, "--ranker", path]) == 2
    said = capfd.readouterr()
    assert said.out == "" and len(said.err.strip().splitlines()) == 1
