"""Which of the deliberate faults a run plants: all, or some drawn at random."""

import hashlib
import os
import random

from tests.mutants.mutant import ROOT


def drawn(faults):
    """Return the faults, or `RECSYS_MUTANTS` percent of them, and one at least.

    They are drawn by the sources of the package: a change of the package draws others.
    """
    if not (percent := os.environ.get("RECSYS_MUTANTS")):
        return faults
    sources = hashlib.sha256()
    for path in sorted((ROOT / "recsys").rglob("*.py")):
        sources.update(path.read_bytes())
    return random.Random(sources.digest()).sample(
        faults, max(1, round(float(percent) / 100 * len(faults)))
    )
