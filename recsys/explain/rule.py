"""A rule: a monotone disjunctive normal form over binary features, and its weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.kernels.base import binary_rows
from recsys.utils.validation import real_array


@dataclass(frozen=True)
class Rule:
    """A disjunction of conjunctions of features, such as (a ∧ b) ∨ c.

    A rule without clauses is never true; an empty clause is always true.

    Examples
    --------
    >>> rule = Rule(((0, 1), (2,)), ("a", "b", "c"))
    >>> print(rule)
    (a ∧ b) ∨ c
    >>> rule.covers([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    array([ True, False,  True])
    """

    clauses: tuple[tuple[int, ...], ...]  #: sorted features of each conjunction
    names: tuple[str, ...] = field(default=(), compare=False)  #: of the features; x0, x1, … by default

    @property
    def literals(self) -> int:
        """Number of literals in all clauses."""
        return sum(map(len, self.clauses))

    def covers(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the rule is true for each row; values above 0 are true."""
        rows = binary_rows(X, "X")
        out = np.zeros(rows.shape[0], dtype=bool)
        for clause in self.clauses:
            if clause and max(clause) >= rows.shape[1]:
                raise InputError(f"the rule needs feature {max(clause)}; X has {rows.shape[1]} columns")
            out |= np.asarray(rows[:, list(clause)].sum(axis=1)).ravel() == len(clause)
        return out

    def __str__(self) -> str:
        if not self.clauses:
            return "never"
        parts = []
        for clause in self.clauses:
            text = " ∧ ".join(self.names[k] if self.names else f"x{k}" for k in clause)
            brackets = len(clause) > 1 and len(self.clauses) > 1
            parts.append(f"({text})" if brackets else text or "always")
        return " ∨ ".join(parts)


def tidy(clauses: Iterable[Iterable[int]], names: Sequence[str] = ()) -> Rule:
    """Return the rule of these clauses without those that contain another one."""
    sets = sorted({frozenset(map(int, clause)) for clause in clauses}, key=lambda c: (len(c), sorted(c)))
    kept: list[frozenset[int]] = []
    for clause in sets:
        if not any(other <= clause for other in kept):
            kept.append(clause)
    return Rule(tuple(tuple(sorted(clause)) for clause in kept), tuple(names))


def signed_weights(machine: Any, rows: int) -> NDArray[np.float64]:
    """Return yᵢαᵢ of a fitted machine for each of its training rows; each class sums to ±1.

    Parameters
    ----------
    machine : KOMD, an MKL machine, or scikit-learn's SVC
    rows : int
    """
    from sklearn.utils.validation import check_is_fitted  # late: it takes most of a second

    check_is_fitted(machine)
    if hasattr(machine, "dual_"):
        signed = np.array(machine.dual_, dtype=np.float64)
    elif hasattr(machine, "dual_coef_") and hasattr(machine, "support_"):
        signed = np.zeros(max(rows, int(machine.support_.max(initial=-1)) + 1))
        signed[machine.support_] = np.asarray(machine.dual_coef_)[0]
    else:
        raise InputError(
            f"{type(machine).__name__} has no weights on its training rows; use KOMD or SVC"
        )
    if signed.shape != (rows,):
        raise InputError(f"the machine was not fitted on {rows} rows")
    return balanced(signed)


def balanced(signed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return signed weights scaled so that the positive and the negative ones sum to ±1."""
    up, down = np.maximum(signed, 0.0), np.maximum(-signed, 0.0)
    return up / max(up.sum(), 1e-300) - down / max(down.sum(), 1e-300)


def rule_weight(rule: Rule, X: ArrayLike, signed: ArrayLike) -> float:
    """Return Σ yᵢαᵢ over the rows that the rule covers: eq. 7.1 of Polato's thesis up to 1/q.

    With `signed_weights` it is at most 1, for a rule that covers every positive support vector and no
    negative one.

    >>> rule_weight(Rule(((0,),)), [[1, 0], [1, 1], [0, 1]], [0.75, 0.25, -1.0])
    1.0
    """
    covered, weights = rule.covers(X), real_array("signed", signed, 1)
    if weights.shape != covered.shape:
        raise InputError(f"X has {len(covered)} rows and signed has shape {weights.shape}")
    return float(weights[covered].sum())


def agreement(rule: Rule, X: ArrayLike, positive: ArrayLike) -> float:
    """Return the share of rows where the rule agrees with `positive`.

    With labels this is the accuracy of the rule, with decisions of a machine its fidelity (Polato's
    thesis, 7.3.1).

    >>> agreement(Rule(((0,),)), [[1, 0], [1, 1], [0, 1], [0, 0]], [True, True, True, False])
    0.75
    """
    covered, expected = rule.covers(X), real_array("positive", positive, 1) != 0
    if expected.shape != covered.shape or not len(covered):
        raise InputError(f"X has {len(covered)} rows and positive has shape {expected.shape}")
    return float(np.mean(covered == expected))
