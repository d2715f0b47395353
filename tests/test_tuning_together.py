"""Searches that are resumed, and searches by several processes."""

import subprocess
import sys
from dataclasses import replace

import pytest

from recsys import InputError
from recsys.engines import engine
from recsys.tuning import tune
from recsys.utils import shared_study
from recsys.utils.attempts import Dropped
from recsys.utils.shared_study import missing, one_trial, open_study

optuna = pytest.importorskip("optuna")
COMPLETE, RUNNING = (optuna.trial.TrialState[name] for name in ("COMPLETE", "RUNNING"))

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


@pytest.mark.thorough
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
    assert 8 <= len(found) <= 9 and len({str(trial.params) for trial in found}) == len(found)
    assert said[0][1] == said[1][1]


@pytest.mark.thorough
def test_what_was_left_running_is_made_again_after_all_were_killed(planted, tmp_path):
    killed = started(0, tmp_path / "study")
    assert killed.stdout.readline() == "stopped\n"
    killed.kill()
    killed.communicate()
    assert len(tune(planted, "ease", 2, storage=tmp_path / "study").trials) == 2
    assert [trial.state for trial in trials_of(tmp_path / "study")] == [RUNNING, COMPLETE, COMPLETE]


def test_refused_trials_count_in_the_call_that_made_them(tmp_path):
    study = open_study("s", str(tmp_path / "study"), 0)

    def refuse(trial):
        raise InputError("too few items")

    assert one_trial(study, 2, 0, refuse) == Dropped("too few items", True)
    assert one_trial(study, 2, 0, lambda trial: float("nan")) == Dropped(
        "it has no value for any user", True
    )
    assert missing(study, 2, 0) == 0 and one_trial(study, 2, 0, lambda trial: 1.0) is None
    assert missing(study, 2, 2) == 2 and one_trial(study, 2, 2, lambda trial: 1.0) is None
    assert missing(study, 2, 2) == 1


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


@pytest.mark.thorough
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
    with pytest.raises(InputError, match="down: .* there does not maximise one value"):
        tune(planted, "ease", 1, storage=tmp_path / "down")
