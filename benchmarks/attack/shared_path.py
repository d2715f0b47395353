"""Threads and processes that save to one path while others load it: every save ends, every load is whole."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.attack.common import Result, cases, forked, workspace
from benchmarks.attack.tables import likes
from recsys.errors import RecsysError
from recsys.rankers import Ranker, load_ranker, make_ranker

THREADS = 8
PROCESSES = 4
SAVES = 5  # of each thread, in each process
# What a stranger may have put there, which is none of ours to take away; a model may be called so, too.
NAMES = ("model", "*", "[a]", ".model.1.x", "ü" * 60, "m" * 240)
STRANGE = (".zz.anything.recsys-tmp", ".model.notes", "model.recsys-tmp")


def told(action: Callable[[], object]) -> str:
    """Return what an action raises, or nothing."""
    try:
        action()
    except RecsysError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def saving(ranker: Ranker, path: Path) -> int:
    """Save in many threads at once; print a line for each fault."""

    def save() -> list[str]:
        return [fault for _ in range(SAVES) if (fault := told(lambda: ranker.save(path)))]

    with ThreadPoolExecutor(THREADS) as pool:
        faults = [
            fault for part in [pool.submit(save) for _ in range(THREADS)] for fault in part.result()
        ]
    print("\n".join(faults))
    return 0


def run(seconds: float, seed: int) -> Result:
    result = Result()
    rows = likes(200, 300)
    kinds = [
        make_ranker("ease", regularization=1.0 + k).fit(rows, show_progress=False)
        for k in range(PROCESSES)
    ]
    some = rows[:5]
    whole = [kind.scores(np.arange(5), some) for kind in kinds]

    def load(path: Path) -> None:
        found = load_ranker(path).scores(np.arange(5), some)
        if not any(np.array_equal(found, one) for one in whole):
            raise ValueError("none of the models that were saved")

    for number, random in cases(seconds, seed):
        name = random.choice(NAMES)
        with workspace() as folder:
            path = folder / "shared" / name
            path.parent.mkdir()
            for strange in STRANGE:
                (path.parent / strange).write_text("not ours")
            kinds[0].save(path)
            children = [apart(kind, path, folder / str(k)) for k, kind in enumerate(kinds)]
            loads = 0
            while children:
                fault = told(lambda path=path: load(path))
                loads += not fault
                if fault:
                    result.add(f"case {number}, {name[:20]}, a load", "load failed", fault)
                children = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
                time.sleep(0.002)
            result.tried += loads
            result.counts["loads whole"] += loads
            faults = [
                fault
                for k in range(PROCESSES)
                for fault in (folder / str(k)).read_text(encoding="utf-8").split("\n")
                if fault
            ]
            for fault in faults:
                result.add(f"case {number}, {name[:20]}, a save", "save failed", fault)
            done = max(0, PROCESSES * THREADS * SAVES - len(faults))
            result.tried += done
            result.counts["saves"] += done
            expected = sorted({name, *STRANGE})
            found = sorted(entry.name for entry in path.parent.iterdir())
            fault = "" if found == expected else f"the folder holds {found} and not {expected}"
            result.add(
                f"case {number}, {name[:20]}, the folder",
                "nothing else touched" if not fault else "wrong",
                fault,
            )
    return result


def apart(ranker: Ranker, path: Path, out: Path) -> int:
    """Start `saving` in a fork; return its process id. What it prints goes to a file."""
    out.with_suffix(".d").mkdir()

    def inside() -> int:
        ended = forked(lambda: saving(ranker, path), 120, out.with_suffix(".d"))
        out.write_text(ended.out.strip() or ended.fault((0,)), encoding="utf-8")
        return 0

    child = os.fork()
    if child == 0:
        try:
            inside()
        finally:
            os._exit(0)
    return child
