"""The solvers, one file each, which say what they need of a penalty, a loss and the terms.

To add one, write its file with a class under `@SOLVERS.add(name)`: it is found by itself.
"""

from recsys.fm.solvers.base import SOLVERS, Options, Solver, refusal, solver_names

__all__ = ["SOLVERS", "Options", "Solver", "refusal", "solver_names"]
