"""kill -9 at random moments of a save over a good model: the old file or the new one, whole.

A save that is killed may leave its own temporary file, and no more.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.tables import likes
from recsys.errors import RecsysError
from recsys.rankers import Ranker, load_ranker, make_ranker

ITEMS = 1200  # a file of 5.8 MB, so that a save takes a while


def saved_again(ranker: Ranker, path: Path, others: list[Ranker]) -> None:
    """Save one ranker after another to a path for ever; in a child, which is killed."""
    try:
        while True:
            for each in (ranker, *others):
                each.save(path)
    finally:
        os._exit(70)


def run(seconds: float, seed: int) -> Result:
    result = Result()
    rows = likes(200, ITEMS)
    kinds = [make_ranker("ease", regularization=r).fit(rows, show_progress=False) for r in (1.0, 9.0)]
    some = rows[:5]
    whole = [kind.scores(np.arange(5), some) for kind in kinds]
    left = 0
    with workspace() as folder:
        path = folder / "model"
        kinds[0].save(path)
        for number, random in cases(seconds, seed):
            wait = random.uniform(0.0, 0.12)
            child = os.fork()
            if child == 0:
                saved_again(kinds[1], path, kinds[:1])
            time.sleep(wait)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            case, fault, ending = f"case {number}, killed after {1e3 * wait:.0f} ms", "", "whole"
            if not os.WIFSIGNALED(status):
                fault, ending = f"the saving process ended by itself: {status}", "stopped"
            beside = [entry.name for entry in folder.iterdir() if entry != path]
            if len(beside) > left + 1:
                fault, ending = f"{len(beside) - left} temporary files of one save", "left over"
            left = len(beside)
            began = time.perf_counter()
            try:
                found = load_ranker(path).scores(np.arange(5), some)
                if not any(np.array_equal(found, one) for one in whole):
                    fault, ending = "neither the old model nor the new one", "wrong"
            except RecsysError as error:
                fault, ending = str(error), "lost"
            result.add(case, ending, fault, time.perf_counter() - began)
        result.notes.append(f"{left} temporary files after {result.tried} kills")
    return result
