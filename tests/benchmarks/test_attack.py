import json
import os
import signal
import sys
import time

import pytest

from benchmarks.attack import __main__ as attack
from benchmarks.attack import campaigns, common
from benchmarks.attack.common import Ended, Result, cases, forked, started


def test_every_campaign_has_a_run():
    names = campaigns()
    assert "model-files" in names and not {"common", "--main--"} & set(names)
    for name in names:
        assert callable(common.module(name).run), name


def test_a_case_is_that_of_its_seed_and_number():
    first = [(k, random.random()) for k, random in cases(60, 5, most=4)]
    assert first == [(k, random.random()) for k, random in cases(60, 5, most=4)]
    assert len({value for _, value in first}) == 4
    assert first != [(k, random.random()) for k, random in cases(60, 6, most=4)]
    assert [k for k, _ in cases(0, 5)] == [0]


def test_a_result_tells_failures_and_the_worst():
    result = Result()
    result.add("case 0", "fine", seconds=0.1, memory=1_000_000)
    result.add("case 1", "wrong", "differs", seconds=0.5)
    result.add("case 2", "fine", seconds=0.2)
    assert not result.ok and (result.tried, result.failed) == (3, 1)
    assert result.ended() == "**1 failed**; 2 fine, 1 wrong"
    assert result.worst() == "0.5 s (case 1); 1 MB" and result.faults == ["case 1: differs"]
    assert Result.from_json(json.loads(json.dumps(result.as_json()))) == result
    assert not Result().ok and Result(skipped="no root").ok


def fake(monkeypatch, **endings):
    results = {}
    for name, fault in endings.items():
        results[name] = Result(seconds=1.0)
        results[name].add("case 0", "fine", fault)
    budgets = []
    monkeypatch.setattr(attack, "campaigns", lambda: list(endings))
    monkeypatch.setattr(
        attack, "run_apart", lambda name, seconds, seed: budgets.append(seconds) or results[name]
    )
    return budgets


def test_the_table_has_a_row_a_campaign_and_a_failure_is_exit_1(monkeypatch, tmp_path, capsys):
    budgets = fake(monkeypatch, good="", bad="a | differs")
    monkeypatch.setattr(attack, "RESULTS", tmp_path)
    assert attack.main(["--minutes", "1", "--save"]) == 1
    assert budgets == [30.0, 59.0]  # what one campaign leaves is the next one's
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "| campaign | tried | result | worst |"
    assert out[2:] == [
        "| good | 1 | 1 fine |  |",
        "| bad | 1 | **1 failed**; 1 fine |  |",
        "bad (seed 0): case 0: a | differs",
    ]
    assert (tmp_path / "attack.csv").read_text().splitlines()[1].startswith("good,1,1 fine,")
    assert json.loads((tmp_path / "attack.json").read_text())["bad"]["faults"] == ["case 0: a | differs"]
    assert attack.main(["good"]) == 0 and budgets[2:] == [600.0]
    with pytest.raises(SystemExit) as left:
        attack.main(["unknown"])
    assert left.value.code == 2


def test_a_campaign_that_is_killed_or_raises_is_a_failure(monkeypatch):
    result = common.run_here("no-such-campaign", 1, 0)
    assert not result.ok and "ModuleNotFoundError" in result.faults[0]
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"]
    real = common.started
    monkeypatch.setattr(common, "started", lambda command, *more, **rest: real(killed, *more, **rest))
    result = common.run_apart("model-files", 1, 0)
    assert not result.ok and "exit -11" in result.faults[0]


def test_a_forked_case_tells_its_code_and_what_it_wrote(tmp_path):
    def speak():
        print("out")
        print("err", file=sys.stderr)
        return 3

    ended = forked(speak, 20, tmp_path)
    assert (ended.code, ended.out, ended.err, ended.late) == (3, "out\n", "err\n", False)
    assert ended.fault() == "exit 3: err" and not ended.fault((3,))
    assert forked(lambda: os.kill(os.getpid(), signal.SIGKILL), 20, tmp_path).code == -signal.SIGKILL
    assert "Traceback" in forked(lambda: 1 // 0, 20, tmp_path).err
    late = forked(lambda: time.sleep(60), 0.2, tmp_path)
    assert late.late and late.fault().startswith("did not end") and late.seconds < 20
    assert forked(lambda: len(bytearray(10**9)) and 0, 20, tmp_path, 800_000_000).code == 70


def test_a_program_gets_its_signals(tmp_path):
    program = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print('x', flush=True); signal.pause()"
    ended = started([sys.executable, "-c", program], 30, tmp_path, ((2.0, signal.SIGTERM),))
    assert ended.code in (7, -15) and ended.memory > 1_000_000


def test_a_traceback_is_a_fault_whatever_the_code():
    assert "boom" in Ended(0, 0.1, 1, "", "Traceback (most recent call last):\n  x\nE: boom").fault()
