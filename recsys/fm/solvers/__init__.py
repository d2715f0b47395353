"""The solvers, with their requirements on penalty, loss and terms.

To add a solver, add a file with a class under `@SOLVERS.add(name)`.
"""

from recsys.fm.solvers.base import SOLVERS, Options, Solver, refusal

__all__ = ["SOLVERS", "Options", "Solver", "refusal"]
