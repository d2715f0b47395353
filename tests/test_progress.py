"""Who hears what long work reports."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from recsys import Recommender, make_ranker
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
from recsys.utils import progress
from recsys.utils.progress import listening, report, within


class Stop(BaseException):
    """What a listener raises to end the work."""


def test_steps_within_steps_add_up():
    heard = []
    with listening(lambda *told: heard.append(told)):
        for k in range(2):
            with within(f"part {k}", k, 2):
                report("half", 1, 2)
        with within("deaf", 2, 3, part=0.0):
            report("moves nothing", 1, 2)
    assert heard == [
        ("part 0", 0, 2),
        ("part 0, half", 0.5, 2),
        ("part 1", 1, 2),
        ("part 1, half", 1.5, 2),
        ("deaf", 2, 3),
        ("deaf, moves nothing", 2.0, 3),
    ]


def test_nobody_hears_after_the_end_or_in_another_thread():
    heard = []
    with pytest.raises(Stop), listening(lambda *told: heard.append(told)):
        thread = threading.Thread(target=report, args=("elsewhere", 0, 1))
        thread.start()
        thread.join()
        raise Stop
    report("later", 0, 1)
    assert heard == []


@pytest.mark.parametrize("spec", ["auto", "als", "fm"])
def test_fits_report_rising_shares_and_end_when_the_listener_says_so(spec):
    R = load_dataset("sample").matrix[:60]
    told = []

    def listener(step, done, total):
        told.append((done / total, step))
        if len(told) == 3:
            raise Stop

    params = {} if spec == "auto" else {"iterations": 5}
    with pytest.raises(Stop), listening(listener):
        make_ranker(spec, **params).fit(R, show_progress=False)
    shares = [share for share, _ in told]
    assert len(told) == 3 and shares == sorted(shares) and all(0 <= share <= 1 for share in shares)


def test_evaluations_count_a_models_own_steps_as_part_of_it():
    told = []
    data = load_dataset("sample")
    evaluate(
        data,
        [("als", make_ranker("als", iterations=2))],
        folds=2,
        metrics=("auc",),
        progress=lambda text, done, total: told.append((done, total, text)),
    )
    shares = [done for done, _, text in told if "compiling" not in text]
    assert shares == sorted(shares) and shares[-1] == 2 and {total for _, total, _ in told} == {2}
    assert any(0 < share < 1 for share in shares), "iterations are heard"


@pytest.fixture
def drawn(monkeypatch):
    """What a bar shows, in a terminal whose bars begin at once."""
    shown = []

    @contextmanager
    def recorded():
        yield lambda step, done, total: shown.append((step, done / total if total else 0.0))

    monkeypatch.setattr(progress, "_drawn", recorded)
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have read it
    return shown


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["als", "bpr", "lmf", "fm", "auto"])
def test_a_fit_draws_a_bar_in_a_terminal(name, liked, drawn, monkeypatch):
    make_ranker(name).fit(liked, show_progress=False)
    assert not drawn
    with listening(lambda *told: None):  # who listens draws what he likes
        make_ranker(name).fit(liked)
    assert not drawn
    make_ranker(name).fit(liked)
    shares = [share for _, share in drawn]
    assert shares == sorted(shares) and len(set(shares)) > 1
    drawn.clear()
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    make_ranker(name).fit(liked)
    assert not drawn


def test_a_bar_begins_when_it_has_been_quiet_for_long_enough(drawn, monkeypatch):
    with progress.bar(True) as told:
        told("a", 1, 2)
    assert drawn == [("a", 0.5)]
    monkeypatch.setattr(progress, "QUIET", 1e9)
    with progress.bar(True) as told:
        told("b", 0, 1)
    assert drawn == [("a", 0.5)]


def test_an_evaluation_draws_a_bar_where_it_is_asked_for(drawn):
    data = load_dataset("sample")
    asked = {"models": ["popularity", "ease"], "folds": 2, "metrics": "auc"}
    evaluate(data, **asked)
    evaluate(data, **asked, progress=False)
    assert not drawn
    found = evaluate(data, **asked, progress=True)
    assert drawn[-1] == ("done", 1.0) and len(found.results) == 2


@pytest.mark.parametrize("target", ["lists.csv", None])
def test_lists_of_all_users_draw_a_bar_where_it_is_asked_for(drawn, monkeypatch, tmp_path, target):
    monkeypatch.setattr("recsys.recommender.lists.BLOCK", 100)
    model = Recommender("popularity").fit(load_dataset("sample"))
    asked = {"path": None if target is None else f"{tmp_path}/{target}"}
    model.recommend_all(**asked)
    assert not drawn
    again = {"path": None if target is None else f"{tmp_path}/again-{target}"}
    model.recommend_all(**asked | again, show_progress=True)
    shares = [share for _, share in drawn]
    assert shares == sorted(shares) and {0.0, 0.25, 0.5, 0.75} <= set(shares)
    assert {step for step, _ in drawn} == {"lists"}


PRINTS = """
import recsys
from recsys.utils import progress
progress.QUIET = 0.0
data = recsys.load_dataset("sample")
recsys.make_ranker("als", iterations=3).fit(data.matrix, callback=lambda k, *more: print("iteration", k))
"""


@pytest.mark.thorough
def test_what_a_callback_prints_goes_where_it_is_sent_while_a_bar_is_in_the_terminal():
    pty = pytest.importorskip("pty")
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-c", PRINTS]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=its_end, text=True)
    assert done.stdout == "iteration 0\niteration 1\niteration 2\n"
    assert "left" in os.read(terminal, 100_000).decode()  # the bar
