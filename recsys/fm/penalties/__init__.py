"""The penalties Ω, one file each: value, proximal operators, sub-gradient, running sums.

`base.Penalty` says what a penalty may offer; a solver says what it needs, and serves the penalties that
offer it. One that is defined elsewhere subclasses `recsys.fm.SeparablePenalty` and needs no more than
its value and its proximal operator. The compiled parts of those in this folder are branches of `chain`.
"""

from recsys.fm.penalties.base import PENALTIES, Penalty, as_penalty, penalties

__all__ = ["PENALTIES", "Penalty", "as_penalty", "penalties"]
