"""Searches by several processes: each trial is made once, and as many as were asked for."""

import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import psutil
import pytest

from recsys import InputError
from recsys.engines import engine
from recsys.tuning import tune
from recsys.utils import shared_study
from recsys.utils.shared_study import BY, one_trial, open_study, taken

optuna = pytest.importorskip("optuna")
COMPLETE, FAIL, RUNNING = (optuna.trial.TrialState[name] for name in ("COMPLETE", "FAIL", "RUNNING"))

# A search in a process of its own: it stops for good in trial number STOP, if there is one of that number.
SCRIPT = """
import sys, time
from recsys import tuning
from recsys.datasets import planted_catalogue

stop, study = int(sys.argv[1]), sys.argv[2]
value = tuning._value

def slow(trial, search, figure):
    if trial.number >= stop:
        print("stopped", flush=True)
        time.sleep(1000)
    return value(trial, search, figure)

tuning._value = slow
found = tuning.tune(planted_catalogue(60, 40, mean_length=12, seed=3).interactions, "ease", 8, storage=study)
print(len(found.trials), found.spec)
"""


def started(stop, study):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(stop), str(study)], stdout=subprocess.PIPE, text=True
    )


def trials_of(storage):
    storage = shared_study._storage(str(storage))
    (summary,) = optuna.get_all_study_summaries(storage)
    return optuna.load_study(study_name=summary.study_name, storage=storage).trials


@pytest.fixture(scope="module")
def alone(planted):
    return tune(planted, "ease", 8)


@pytest.mark.parametrize(
    "url", ["{}/study", pytest.param("sqlite:///{}/study.db", marks=pytest.mark.slow)]
)
def test_workers_make_the_start_up_trials_of_one_process(planted, alone, tmp_path, url):
    heard = []
    with engine("local=2") as both:
        kept = tune(
            planted, "ease", 5, storage=url.format(tmp_path), engine=both, threads=1, scratch=tmp_path,
            progress=lambda *told: heard.append(told),
        )  # fmt: skip
        assert kept.trials == alone.trials[:5]
        more = tune(planted, "ease", 8, storage=url.format(tmp_path), engine=both, threads=1)
        assert more == alone
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard)
    assert heard[-1] == ("done", 5, 5) and len(heard) >= 2
    assert {path.name.split(".")[0] for path in tmp_path.iterdir()} == {"study"}
    assert [trial.state for trial in trials_of(url.format(tmp_path))] == [COMPLETE] * 8


def test_a_search_that_is_gone_on_with_is_the_one_that_was_not_interrupted(planted, tmp_path):
    whole = tune(planted, "ease", 13, seed=5)
    assert len({str(params) for params, _ in whole.trials}) == 13
    for trials in (3, 12, 13):
        parts = tune(planted, "ease", trials, seed=5, storage=tmp_path / "study")
    assert parts == whole and tune(planted, "ease", 2, seed=6).trials != whole.trials[:2]


@pytest.mark.slow
def test_two_processes_at_once_share_the_trials(alone, tmp_path):
    both = [started(99, tmp_path / "study") for _ in range(2)]
    said = [process.communicate(timeout=300)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    found = [trial for trial in trials_of(tmp_path / "study") if trial.state == COMPLETE]
    assert len(found) == 8 and len({str(trial.params) for trial in found}) == 8
    assert said[0] == said[1] and said[0][0] == "8"


def test_what_a_killed_process_had_begun_is_made_by_another(alone, tmp_path):
    study = tmp_path / "study"
    killed = started(3, study)
    assert killed.stdout.readline() == "stopped\n"
    other = started(99, study)
    for _ in range(600):
        if [trial.state for trial in trials_of(study)].count(COMPLETE) == 7:
            break
        time.sleep(0.1)
    assert (
        trials_of(study)[3].state == RUNNING and other.poll() is None
    )  # it waits for the one that lives
    killed.kill()
    killed.communicate()
    assert other.communicate(timeout=300)[0].split()[0] == "8"
    trials = trials_of(study)
    assert [trial.state for trial in trials] == [FAIL if k == 3 else COMPLETE for k in range(9)]
    made = [(trial.user_attrs["params"], trial.value) for trial in trials if trial.number not in (3, 8)]
    assert made == [one for number, one in enumerate(alone.trials) if number != 3]


def test_what_was_left_running_is_made_again_after_all_were_killed(planted, tmp_path):
    killed = started(0, tmp_path / "study")
    assert killed.stdout.readline() == "stopped\n"
    killed.kill()
    killed.communicate()
    assert len(tune(planted, "ease", 2, storage=tmp_path / "study").trials) == 2
    assert [trial.state for trial in trials_of(tmp_path / "study")] == [FAIL, COMPLETE, COMPLETE]


def test_one_that_is_begun_too_late_is_none(tmp_path, monkeypatch):
    """Both processes see a free place, and begin the trials 1 and 2 of two."""
    first, second = (open_study("s", str(tmp_path / "study"), 0) for _ in range(2))
    one_trial(first, 2, 0, lambda trial: 1.0)
    count, made = shared_study.taken, []

    def late(study, since, below=None):
        if below is None:  # what was seen before the other one began
            return count(study, since)._replace(running=0)
        return count(study, since, below)

    monkeypatch.setattr(shared_study, "taken", late)

    def value(trial):
        made.append(trial.number)
        one_trial(second, 2, 0, lambda other: made.append(other.number) or 2.0)
        return 1.0

    one_trial(first, 2, 0, value)
    assert made == [1]
    assert [trial.state for trial in first.trials] == [COMPLETE, COMPLETE, FAIL]


def test_refused_trials_count_in_the_call_that_made_them(tmp_path):
    study = open_study("s", str(tmp_path / "study"), 0)

    def refuse(trial):
        raise InputError("too few items")

    assert one_trial(study, 2, 0, refuse) == "too few items"
    assert one_trial(study, 2, 0, lambda trial: float("nan")) == "it has no value for any user"
    assert taken(study, 0) == (0, 2, 0, 0) and one_trial(study, 2, 0, lambda trial: 1.0) is None
    assert taken(study, 2) == (0, 0, 0, 0) and one_trial(study, 2, 2, lambda trial: 1.0) is None
    assert taken(study, 2) == (1, 0, 0, 0)


def test_who_is_gone_is_known_by_host_process_and_start():
    def begun(by, seconds=0.0):
        start = datetime.now() - timedelta(seconds=seconds)
        return SimpleNamespace(user_attrs={BY: by} if by else {}, datetime_start=start)

    host, number, start = shared_study._signature().split(" ")
    assert not shared_study._gone(begun(f"{host} {number} {start}", 1e6))
    assert shared_study._gone(begun(f"{host} {number} {float(start) - 100}"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    own = psutil.Process(ended.pid).create_time()
    while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert shared_study._gone(begun(f"{host} {ended.pid} {own}")), "it has ended and nobody has looked"
    ended.wait()
    assert shared_study._gone(begun(f"{host} {ended.pid} {start}"))
    assert not shared_study._gone(begun(f"elsewhere 1 {start}", 3600))
    assert shared_study._gone(begun(f"elsewhere 1 {start}", 25 * 3600))
    assert not shared_study._gone(begun("", 1)) and shared_study._gone(begun("", 100))


def test_a_storage_that_is_none_is_told_in_a_line(planted, tmp_path):
    (tmp_path / "likes.csv").write_text("user,item\n1,2\n3,4\n")
    for storage, told in (
        (tmp_path / "likes.csv", "likes.csv cannot be opened"),
        ("redis://me:secret@host/0", r"redis://…@host/0: a file, or a data base"),
        ("postgresql://me:secret@localhost:1/x", "study postgresql://…@localhost:1/x cannot be opened"),
    ):
        with pytest.raises(InputError, match=told) as refused:
            tune(planted, "ease", 1, storage=storage)
        assert "secret" not in str(refused.value) and "\n" not in str(refused.value)


def test_a_worker_refuses_as_this_process_does(planted, tmp_path):
    with pytest.raises(InputError, match="no trial of ease could be evaluated .*: regularization must"):
        tune(planted, "ease:regularization=-1", 2, workers=1)
    none = replace(planted, users=planted.users[:1], items=planted.items[:1], time=None)
    with pytest.raises(InputError, match="leaves no user|no trial"):
        tune(none, "ease", 2, workers=1)


def test_a_study_of_somebody_else_is_refused_in_a_line(planted, tmp_path):
    name = f"{planted.name}/half-profile/0/ndcg@10/ease"
    for number, params in enumerate((None, "x", {"regularization": [1]})):
        study = open_study(name, str(tmp_path / f"s{number}"), 0)
        trial = study.ask()
        if params is not None:
            trial.set_user_attr("params", params)
        study.tell(trial, 0.5)
        with pytest.raises(
            InputError, match="^trial 0 of the study does not say what its parameters are"
        ):
            tune(planted, "ease", 1, storage=tmp_path / f"s{number}")
    optuna.create_study(
        study_name=name, storage=shared_study._storage(str(tmp_path / "down")), direction="minimize"
    )
    with pytest.raises(InputError, match="down: .* there does not raise one figure"):
        tune(planted, "ease", 1, storage=tmp_path / "down")
