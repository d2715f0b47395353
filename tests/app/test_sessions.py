"""Eight sessions at once under numba's workqueue layer, which aborts a process that it is entered twice in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

PROGRAM = """
import threading
import numpy as np
from app.catalogues import catalogue_of
from app.jobs import Jobs
from app.parts.lists import recommend
from app.parts.chosen_user import ChosenUser
from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.explain import item_rule, reasons, taste_rule

data = load_dataset("sample")
catalogue = catalogue_of(("dataset", "sample"), data)
specs = ("cf-komd", "ease", "msdw")
jobs = Jobs()
answers, wrong = {}, []

def session(k):
    for spec in specs:
        job = jobs.get(spec, lambda progress: make_ranker(spec).fit(catalogue.matrix, show_progress=False))
        assert job.wait(120) and job.error is None, job.error
        for user in range(k, 80, 8):
            row = catalogue.matrix[user]
            ids, scores = recommend(job.result, ChosenUser(catalogue.user(user)), 5)
            told = reasons(job.result, user, row, int(ids[0]))
            rule = item_rule(catalogue.matrix, row.indices, int(ids[0]), exclude=user)
            answers[spec, user] = (ids.tolist(), scores.tolist(), told, rule)
    for user in range(k, 40, 8):
        taste_rule(catalogue.matrix[user].indices, catalogue.attributes, catalogue.popularity)

threads = [threading.Thread(target=session, args=(k,)) for k in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(answers) == 3 * 80, len(answers)
for spec in specs:
    model = make_ranker(spec).fit(catalogue.matrix, show_progress=False)
    for user in range(80):
        row = catalogue.matrix[user]
        ids, scores = recommend(model, ChosenUser(catalogue.user(user)), 5)
        assert answers[spec, user][:2] == (ids.tolist(), scores.tolist()), (spec, user)
print("same answers")
"""


@pytest.mark.slow
def test_eight_sessions_get_the_answers_that_one_gets():
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 and "same answers" in done.stdout, done.stderr[-2000:]
