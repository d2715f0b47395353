"""The penalties Ω, one file each: value, proximal operators, sub-gradient, running totals.

`base.Penalty` says what a penalty may offer; a solver says what it needs, and serves the penalties that
offer it. To add one, write its file (it is found by itself) and, for the descents and the stochastic
steps, its branches in `chain`, where the compiled code dispatches.
"""

from recsys.fm.penalties.base import PENALTIES, Penalty, penalties

__all__ = ["PENALTIES", "Penalty", "penalties"]
