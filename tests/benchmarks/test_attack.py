"""The frame of the fuzz tests, and that they notice what they are there for; `make attack` runs them."""

import json
import os
import re
import signal
import sys
import time
from random import Random

import numpy as np
import pytest

from benchmarks.attack import __main__ as attack
from benchmarks.attack import (
    bad_calls,
    campaigns,
    command_line,
    common,
    files_written,
    forgeries,
    inputs_kept,
    model_files,
    odd_files,
    public_calls,
    requests,
    signals,
)
from benchmarks.attack.common import Ended, Result, cases, forked, started
from benchmarks.attack.tables import likes
from recsys import InputError, ModelFileError, OutOfRangeError, Popularity, make_ranker
from recsys.data import Interactions
from recsys.rankers import fit_package, load_package


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
    assert budgets == [30.0, 59.0]  # what one fuzz test leaves is the next one's
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "| fuzz test | tried | result | worst |"
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


def test_a_campaign_that_takes_too_long_leaves_the_others_half_of_their_share():
    assert [attack.share(60.0, 2, 15.0), attack.share(-40.0, 1, 15.0)] == [30.0, 15.0]


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


# ---- each fuzz test notices what it is there for


def test_the_clock_of_signals_can_wait_for_the_first_output(tmp_path):
    program = "import time; time.sleep(0.7); print('x', flush=True); time.sleep(60)"
    ended = started([sys.executable, "-c", program], 30, tmp_path, ((0.05, signal.SIGTERM),), ready=True)
    assert (ended.code, ended.out) == (-15, "x\n") and ended.seconds < 20


def small_file(tmp_path):
    likes = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    path = tmp_path / "model"
    data = Interactions.from_ids(*np.argwhere(likes).astype(str).astype(object).T, name="made")
    fit_package(make_ranker("popularity"), data, show_progress=False).save(path)
    return path


def test_changed_files_differ_and_depend_on_their_generator(tmp_path):
    content = small_file(tmp_path).read_bytes()
    made = [model_files.changed(content, Random(f"0:{k}")) for k in range(200)]
    assert made == [model_files.changed(content, Random(f"0:{k}")) for k in range(200)]
    kinds = {what.split()[0] for what, _ in made}
    assert kinds == {"flip", "truncate", "insert", "delete", "splice", "append"}
    assert sum(changed != content for _, changed in made) > 190


def test_forged_files_have_the_right_checksum(tmp_path, monkeypatch):
    path = small_file(tmp_path)
    content = path.read_bytes()
    manifest, table, payload = forgeries.split(content)
    forgeries.put(manifest, ("params",), {"no": 1})
    path.write_bytes(forgeries.joined(manifest, table, payload))
    with pytest.raises(ModelFileError, match="has no parameter 'no'"):  # it is read to the end
        load_package(path)
    assert forgeries.tried(path) == ("ModelFileError", "")
    for k in range(100):
        forgeries.forged(content, Random(f"0:{k}"))

    def crash(*given, **more):
        raise TypeError("boom")

    path.write_bytes(content)
    assert forgeries.tried(path) == ("loads, answers", "")
    monkeypatch.setattr(Popularity, "recommend", crash)
    assert forgeries.tried(path) == ("other error", "TypeError in use: boom")
    monkeypatch.setattr(forgeries, "load_package", crash)
    assert forgeries.tried(path) == ("other error", "TypeError while it was read: boom")


def test_signals_that_end_wrongly_are_faults():
    def of(code, seconds, err="", late=False, number=signal.SIGTERM, out="\n"):
        return bool(signals.fault_of(Ended(code, seconds, 0, out, err, late), number, 1.0)[1])

    assert not of(143, 2.0) and not of(130, 2.0, number=signal.SIGINT) and not of(0, 0.5)
    assert of(130, 2.0) and of(143, 4.0) and of(-15, 2.0) and of(1, 2.0) and of(0, 3.0)
    assert not of(-15, 1.1, out="\nwritten to model") and of(-9, 1.1, out="\nwritten to model")
    assert of(143, 2.0, late=True) and of(143, 2.0, err="Traceback (most recent call last):\n X")


@pytest.mark.thorough
def test_wrong_answers_of_calls_are_faults():
    fine = np.array([[1, 2, -1]]), np.array([[0.5, 0.25, -3e38]])
    assert not bad_calls.judged(fine, "lists", 3, 9)
    assert bad_calls.judged((fine[0] + 1, fine[1]), "lists", 3, 9) == "ids out of range"
    assert bad_calls.judged((np.array([1, 1]), np.ones(2)), "lists", 3, 9) == "an item twice"
    assert "finite" in bad_calls.judged((np.array([1]), np.array([np.nan])), "lists", 3, 9)
    assert "finite" in bad_calls.judged(np.array([np.inf]), "scores", 3, 9)
    told = {bad_calls.broken(likes(), Random(f"0:{k}"))[0] for k in range(2000)}
    assert {"csc with huge indptr", "csr with nan indices", "csr with 2-D indices"} <= told


def test_a_call_that_kills_or_does_not_end_is_told_and_the_others_go_on(monkeypatch):
    def attempt(number):
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        while number == 5:  # processor time counts, not what a busy machine adds to it
            pass
        return "a call", "answers", ""

    result = Result()
    monkeypatch.setattr(common, "cases", lambda *given: range(3))
    common.in_batches(result, 60, 0, attempt, lambda number: "a call", patience=0.5)
    assert result.failed == 1 and result.faults == ["case 3, a call: exit -9: "]
    assert result.counts == {"answers": 4 + common.BATCH, "killed": 1, "not ended in time": 1}


def test_odd_files_that_end_wrongly_are_faults(monkeypatch, tmp_path):
    def of(**given):
        ended = Ended(
            **{"code": 2, "seconds": 1.0, "memory": 1, "out": "", "err": "recsys: no\n"} | given
        )
        monkeypatch.setattr(odd_files, "forked", lambda *more: ended)
        result = Result()
        odd_files.evaluated(result, "case", "path", tmp_path)
        return result.faults

    assert not of() and not of(code=0, err="")
    for wrong in (
        {"code": 1}, {"code": -11}, {"seconds": 21.0}, {"memory": 2 * 10**9}, {"err": "a\nb\n"},
        {"err": "x" * 2000}, {"late": True},
    ):  # fmt: skip
        assert of(**wrong), wrong
    names = {random_file(k)[0] for k in range(80)}
    assert {"r.csv", "r.parquet", "r.csv.gz", "r.xlsx"} <= names


def random_file(number):
    random = Random(f"0:{number}")
    return random.choice(odd_files.KINDS)(random)


def test_no_answer_to_a_complete_request_is_a_fault():
    whole, half = requests.Made(b"", True), requests.Made(b"", False)
    assert requests.judged(whole, []) == "no answer" and not requests.judged(half, [])
    assert not requests.judged(whole, [422]) and requests.judged(half, [500]) == "status 500"
    assert requests.judged(requests.Made(b"", True, (414,)), [431]) == "status 431, not 414"
    assert not requests.judged(requests.Made(b"", True, (400, 501)), [501])
    assert requests.judged(requests.Made(b"", count=8), [200]) == "1 answers to 8 complete requests"


def test_what_is_complete_is_told_by_its_framing():
    for name, made in requests.MADE.items():
        if requests.whole(made.content) and not made.half_close:
            assert made.complete, name
    for seed in range(50):
        assert requests.whole(requests.drawn(Random(seed)).content)
    sound = requests.framed(requests.head())
    assert requests.whole(sound) and not requests.whole(sound[:-1])
    made = [requests.mutated(Random(f"0:{k}")) for k in range(300)]
    assert made == [requests.mutated(Random(f"0:{k}")) for k in range(300)]
    assert {one.complete for one in made} == {True, False}


def test_errors_from_the_inside_are_faults():
    def of(error):
        return bool(public_calls.judged(error)[1])

    assert not of(InputError("n must be 3")) and not of(TypeError("x")) and not of(ValueError("x"))
    assert of(IndexError("x")) and of(KeyError("x")) and of(ZeroDivisionError("x"))
    assert of(np.linalg.LinAlgError("did not converge")) and not of(OutOfRangeError("item 7"))
    assert {"make_kernel", "EasyMKL", "mmr"} <= set(public_calls.callables())
    told, again = (
        [re.sub(r"0x[0-9a-f]+", "", public_calls.call_of(k, 0)[0]) for k in range(50)] for _ in range(2)
    )
    assert told == again and len(set(told)) > 30


def test_layouts_hold_the_same_values_and_a_change_of_one_is_seen():
    table = inputs_kept.tables()[1]
    for name, make in (inputs_kept.DENSE | inputs_kept.SPARSE).items():
        given = make(table)
        dense = given.toarray() if hasattr(given, "toarray") else given
        assert np.array_equal(dense, table), name
        assert inputs_kept.content(given) == inputs_kept.content(given), name
    given = inputs_kept.SPARSE["unsorted"](table)
    before = inputs_kept.content(given)
    given.sort_indices()
    assert inputs_kept.content(given) != before


def test_cells_that_run_are_found(tmp_path):
    path = tmp_path / "lists.csv"
    path.write_text('user,item\n\'=a,-3\n@b,"x\n=1"\n', encoding="utf-8")
    assert files_written.formulas(path) == ["@b"]
    path.write_bytes(b"user,item\nx\r=1,2\n")  # a line end to a spreadsheet
    assert files_written.formulas(path) == ["=1"]


def test_processes_that_did_not_end_are_known(tmp_path, monkeypatch):
    monkeypatch.setenv(common.GROUPS, str(tmp_path / "groups"))
    assert common.living(tmp_path / "groups") == set()
    common.noted(7)
    common.noted(8)
    common.noted(7, False)
    assert common.living(tmp_path / "groups") == {8}


def test_what_is_prepared_is_made_once(monkeypatch):
    monkeypatch.delenv(common.SHARED, raising=False)
    first = common.prepared_once("made", lambda path: path.write_text(str(os.getpid())))
    assert common.prepared_once("made", lambda path: path.write_text("again")) == first
    assert first.read_text() != str(os.getpid())
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        common.prepared_once("failed", lambda path: 1 // 0)


def test_every_command_has_options_to_abuse():
    for name in ("evaluate", "fit", "recommend", "tune"):
        found = dict(command_line.options(name))
        assert len(found) > 3 and any(found.values()), name
    assert dict(command_line.options("evaluate"))["--quiet"] is False
