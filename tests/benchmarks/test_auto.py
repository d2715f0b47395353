"""What the comparison of `auto` keeps, leaves out and says."""

import sys
from types import ModuleType

import numpy as np
import pytest

from benchmarks import auto as script
from benchmarks.lab import common
from recsys import list_rankers
from recsys.rankers.registry import RANKERS

SETTING = "sample/half-profile"


@pytest.fixture(autouse=True)
def own_main(monkeypatch):
    """A process of its own runs what is `__main__` here, and a test of the app before may have left it."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def test_every_ranker_is_a_peer_but_auto_and_blends():
    named = {peer.partition(":")[0] for peer in script.peers()}
    assert named == set(list_rankers()) - set(script.NO_PEERS) and len(set(script.peers())) > 20
    assert {f"cf-komd:kernel={kernel}" for kernel in script.KERNELS} < set(script.peers())


def test_a_space_is_another_when_what_is_searched_is(monkeypatch):
    before = script.space_of("ease", False)
    assert before == script.space_of("ease", False) != script.space_of("ease", True)  # recency
    assert script.space_of("cf-komd:kernel=mc", False) == script.space_of("cf-komd:kernel=md", False)
    assert script.space_of("msdw", False) != script.space_of("msdw:sharpening=0", False)
    assert script.space_of("popularity", False) == ""
    space = RANKERS.get("ease").search_space
    monkeypatch.setattr(RANKERS.get("ease"), "search_space", space | {"dropout": ("real", 0.0, 0.8)})
    assert script.space_of("ease", False) != before


def test_kept_trials_are_of_todays_spaces_or_will_be_repeated():
    """The rows that are there name a peer of today, and as many trials as every other of the setting."""
    for row in script.rows_of("auto_tuned"):
        assert row["peer"] in script.peers() and row["setting"] in script.SETTINGS
        assert int(row["trials"]) == script.TRIALS.get(row["setting"], 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "limits", "told"),
    [
        ("ease:regularization=-1", script.Limits(), "no trial of ease could be evaluated .*regularization mu"),
        ("ease", script.Limits(seconds=0.0), "a trial takes longer than 0 processor seconds"),
        ("ease", script.Limits(memory=1e6), "takes more than 0.001 GB"),
    ],
)  # fmt: skip
def test_who_is_left_out_is_told_why(peer, limits, told):
    import re

    found = script.run(SETTING, peer, "", 1, 1, limits)
    assert re.match(told, found.left_out) and not found.values


@pytest.mark.slow
def test_a_peer_is_tuned_and_measured_as_evaluate_does():
    from recsys import evaluate, load_dataset

    found = script.run(SETTING, "ease", "", 2, 1, script.Limits())
    assert found.spec.startswith("ease:regularization=") and found.validation > 0 and not found.left_out
    protocol = script.AS_COMMITTED["half-profile"]  # draws of the committed values
    report = evaluate(
        load_dataset("sample"), found.spec, protocol=protocol, metrics=script.METRICS, only_folds=1
    )
    for metric in script.METRICS:
        np.testing.assert_allclose(found.values[metric], report.results[0].per_user[metric], atol=1e-6)


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """A comparison of three peers whose figures are made up; returns what was run."""
    ran = []

    def run(setting, peer, spec, trials, folds, limits):
        ran.append((peer, bool(spec)))
        if peer == "slim" and limits.seconds < 100:
            return script.Outcome(left_out=limits.slow)
        gain = {"auto": 0.2, "ease": 0.1, "bpr": 0.25}.get(peer, 0.0)
        values = {
            metric: np.random.default_rng(k).random(50) + gain for k, metric in enumerate(script.METRICS)
        }
        if peer == "slim":  # some users gain, some lose
            values = {metric: value + 0.2 + np.tile([-1, 1], 25) for metric, value in values.items()}
        means = {metric: float(value.mean()) for metric, value in values.items()}
        return script.Outcome(spec or f"{peer}:regularization=1", 1.0, 2.0, values, means, 3.0)

    for module in (common, script):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(script, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(script, "SETTINGS", {SETTING: 1, "other/half-profile": 1})
    monkeypatch.setattr(script, "peers", lambda: ["bpr", "ease", "popularity", "slim"])
    monkeypatch.setattr(RANKERS.get("slim"), "search_space", {"regularization": ("real", 0.0, 1.0)})
    monkeypatch.setattr(script, "_place", lambda setting, spec, folds: script.CACHE / f"{spec}.npz")
    return ran


def test_it_goes_on_where_it_was_stopped(bench):
    few = script.Limits(seconds=10)
    script.measure(SETTING, few)
    everyone = [("auto", True), ("bpr", False), ("ease", False), ("popularity", True), ("slim", False)]
    assert bench == everyone
    rows = script.rows_of("auto")
    script.measure(SETTING, few)
    assert bench == everyone and script.rows_of("auto") == rows  # nothing is run twice
    script.measure(SETTING, few, ["ease"])
    assert bench[len(everyone) :] == [("ease", False)]
    script.measure(SETTING, script.Limits(seconds=1000))  # who was too slow gets another chance
    assert bench[len(everyone) + 1 :] == [("slim", False)]
    tuned = script.rows_of("auto_tuned")
    assert [row["peer"] for row in tuned] == ["bpr", "ease", "slim"] and tuned[0]["trials"] == "8"
    common.write_csv("auto_tuned", script.TUNED, [[*row.values()] for row in tuned[:1]])
    (script.CACHE / "bpr:regularization=1.npz").unlink()
    script.measure(SETTING, few)  # tuned already, and measured again
    assert bench[len(everyone) + 2 :] == [("bpr", True), ("ease", False), ("slim", False)]


def test_standings_name_who_is_ahead_and_who_is_level(bench, capsys):
    script.measure(SETTING, script.Limits(seconds=10))
    for one in script.standings(script.rows_of("auto")):
        assert one["auto"] == "behind" and one["peers"] == "3" and one["level"] == ""
        assert one["ahead"] == "bpr:regularization=1 (-0.0500 [-0.0500, -0.0500])"
        assert one["left out"] == "slim: a trial takes longer than 10 processor seconds"
    script.measure(SETTING, script.Limits(seconds=1000))
    rows = [row for row in script.rows_of("auto") if row["peer"] != "bpr"]
    tied, first = script.standings(rows), script.standings([r for r in rows if r["peer"] != "slim"])
    assert [one["metric"] for one in tied] == ["auc", "ndcg@10"]
    assert {one["auto"] for one in tied} == {"tied"} and {one["auto"] for one in first} == {"first"}
    assert all(one["level"] == "slim:regularization=1" and not one["ahead"] for one in tied)
    capsys.readouterr()
    script.print_standings(script.rows_of("auto"))
    out = capsys.readouterr().out
    assert "behind of 4 peers  FAILS: ahead is bpr:regularization=1" in out
