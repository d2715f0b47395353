"""A rule for a table of two classes: machine, settings and search in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.explain.rule import Rule, agreement, signed_weights
from recsys.explain.rule_search import SearchResult, search_rule
from recsys.kernels.base import binary_rows
from recsys.utils.validation import as_labels, check_integer, check_real

if TYPE_CHECKING:
    from recsys.kernel_machines import KOMD

# Regularization and minimum gain of a clause. A hard margin reads an exact rule off clean data;
# with noise a softer one generalizes better.
SETTINGS = ((0.0, 0.0), (0.1, 0.005), (0.5, 0.02), (1.0, 0.04))


class LearnedRule(NamedTuple):
    """A learned rule, its fitted machine with its λ, the smallest gain of a clause, and the search."""

    rule: Rule
    machine: KOMD
    regularization: float
    min_gain: float
    search: SearchResult


def learn_rule(
    X: ArrayLike,
    y: ArrayLike,
    *,
    max_clauses: int = 10,
    max_literals: int = 5,
    names: Sequence[str] = (),
    seed: int = 0,
) -> LearnedRule:
    """Fit KOMD on κ* and return a monotone DNF for class 1 of y (Polato's thesis, chapter 7).

    A held-out quarter of the rows selects the regularization and the smallest gain.

    Parameters
    ----------
    X : (rows, features) binary
    y : (rows,)
        Two classes; the rule describes the class with the larger label.
    max_clauses, max_literals : int ≥ 1
    names : sequence of str
        Of the features.
    seed : int

    Examples
    --------
    >>> X = np.random.default_rng(0).integers(0, 2, (60, 4))
    >>> print(learn_rule(X, X[:, 0] & X[:, 2], names=("a", "b", "c", "d")).rule)
    a ∧ c
    """
    check_integer("max_clauses", max_clauses, 1, 100)
    check_integer("max_literals", max_literals, 1, 20)
    rows, labels = _table(X, y)
    counts = np.unique(labels, return_counts=True)[1]
    if len(counts) != 2 or counts.min() < 2:
        raise InputError("a rule needs two classes with at least two rows each")

    from recsys.kernel_machines import KOMD  # late: scikit-learn takes most of a second to import

    def fit(part: NDArray[Any], regularization: float, min_gain: float) -> LearnedRule:
        literals = min(max_literals, max(1, int((rows > 0).sum(axis=1).max())))
        kernel = {"d": min(max_clauses, 10), "c": literals}
        machine = KOMD(regularization, kernel="mdnf-sum", kernel_params=kernel, tol=1e-6)
        machine.fit(rows[part], labels[part])
        result = search_rule(
            rows[part],
            signed_weights(machine, len(part)),
            max_clauses=max_clauses,
            max_literals=max_literals,
            min_gain=min_gain,
            names=names,
        )
        return LearnedRule(result.rule, machine, regularization, min_gain, result)

    every = np.arange(len(labels))
    if counts.min() < 8:
        return fit(every, *SETTINGS[1])
    from sklearn.model_selection import train_test_split

    part, held = train_test_split(every, test_size=0.25, random_state=seed, stratify=labels)
    positive = labels[held] == labels.max()
    scores = [agreement(fit(part, *setting).rule, rows[held], positive) for setting in SETTINGS]
    return fit(every, *SETTINGS[int(np.argmax(scores))])


def _table(X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.int32], NDArray[Any]]:
    rows, labels = binary_rows(X, "X").toarray(), as_labels("y", y)
    if labels.shape != (len(rows),):
        raise InputError(f"X has {len(rows)} rows and y is of shape {labels.shape}")
    return rows, labels


class MeasuredRule(NamedTuple):
    """A rule with its accuracy on held-out rows."""

    rule: Rule
    accuracy: float  #: share of held-out rows where the rule equals the label
    fidelity: float  #: share of held-out rows where the rule equals the decision of the machine
    majority: float  #: share of the majority class among held-out rows
    rows: int  #: training rows
    held_out: int
    search: SearchResult


def measure_rule(
    X: ArrayLike, y: ArrayLike, *, test_size: float = 0.3, seed: int = 0, **options: Any
) -> MeasuredRule:
    """Learn a rule on a part of the rows and measure it on the rest.

    `test_size` is a share in 0…0.9; other parameters as of `learn_rule`.
    """
    check_real("test_size", test_size, 0.0, 0.9, open_low=True)
    from sklearn.model_selection import train_test_split  # late: it takes most of a second

    table, labels = _table(X, y)
    try:
        X_learn, X_test, y_learn, y_test = train_test_split(
            table, labels, test_size=test_size, random_state=seed, stratify=labels
        )
    except ValueError:
        raise InputError(f"{len(labels)} rows are too few to hold out {test_size:g} of them") from None
    learned = learn_rule(X_learn, y_learn, seed=seed, **options)
    positive = y_test == labels.max()
    return MeasuredRule(
        learned.rule,
        agreement(learned.rule, X_test, positive),
        agreement(learned.rule, X_test, learned.machine.decision_function(X_test) > 0),
        float(max(positive.mean(), 1.0 - positive.mean())),
        len(y_learn),
        len(y_test),
        learned.search,
    )
