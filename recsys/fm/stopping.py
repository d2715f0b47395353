"""When a fit ends: the rule, which looks at objectives only."""

from __future__ import annotations

__all__ = ["StoppingRule"]

TINY = 1e-12  # share of the objective of a model of nothing below which an objective is 0
WORSE = 0.01  # share above the objective of a model of zeros at which an end is no success
FAR = 10.0  # times the objective at the start, and of a model of zeros, at which a fit has diverged
RESTLESS = 5  # epochs without progress after which a solver that may rise has converged


class StoppingRule:
    """Stop when an epoch lowers the objective by less than the share `tol` of it.

    `start` and `trivial` are the objective at the start, and that of a model of zeros. `monotone`: the
    solver's objective never rises, and one epoch without progress is enough, else five in a row.

    >>> rule = StoppingRule(start=2.0, trivial=2.0, tol=0.1, monotone=True)
    >>> rule.converged(1.0), rule.converged(0.99)
    (False, True)
    >>> rule.name_of_end(0.99), rule.name_of_end(3.0)
    ('tolerance', 'stalled')
    >>> rule.diverged(3.0), rule.diverged(300.0)
    (False, True)
    """

    def __init__(self, start: float, trivial: float, tol: float, monotone: bool) -> None:
        self.least, self.trivial, self.tol = start, trivial, tol
        self.start = start
        # no absolute number: a target in millionths is fitted as one in millions
        self.floor = TINY * (trivial if trivial > 0.0 else abs(start))
        self.patience = 1 if monotone else RESTLESS
        self.still = 0

    def converged(self, objective: float) -> bool:
        """Return whether this epoch is the last that was worth making."""
        if self.least - objective > self.tol * max(abs(self.least), self.floor):
            self.still = 0
        else:
            self.still += 1
        self.least = min(self.least, objective)
        return self.still >= self.patience

    def start_anew(self) -> None:
        """Forget the epochs without progress: the solver takes other steps now."""
        self.still = 0

    def name_of_end(self, objective: float) -> str:
        """Return "tolerance", or "stalled" for an end well above a model of zeros."""
        nonsense = objective > (1.0 + WORSE) * self.trivial + self.floor
        return "stalled" if nonsense else "tolerance"

    def diverged(self, objective: float) -> bool:
        """Return whether a fit that ends here has run away, and is not merely stuck."""
        return objective > FAR * max(self.start, self.trivial) + self.floor
