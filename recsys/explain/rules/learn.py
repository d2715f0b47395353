"""A rule for a two-class table: machine, settings and search in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.explain.rules.rule import Rule, agreement, signed_weights
from recsys.explain.rules.search import search_rule
from recsys.explain.rules.search_result import SearchResult
from recsys.kernels.base import binary_rows
from recsys.utils.features import as_labels
from recsys.utils.validation import check_integer, check_real

if TYPE_CHECKING:
    from recsys.kernel_machines import KOMD

# The hard margin reads an exact rule off clean data; with noise a softer one and clauses that
# must earn more generalise better. Validation decides between them.
SETTINGS = ((0.0, 0.0), (0.1, 0.005), (0.5, 0.02), (1.0, 0.04))
BUDGET = 50_000_000  # of the search for a better rule and a bound: some tenths of a second


class LearnedRule(NamedTuple):
    """A rule, and how it was learned.

    Attributes
    ----------
    rule : Rule
    machine : KOMD
        The machine that it was read from, fitted.
    regularization : float
        Of the machine: its λ.
    min_gain : float
        What a clause had to bring.
    search : SearchResult
        The rule's weight on the machine's rows, and what no other rule exceeds there.
    guarantee : str
        The same in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (60, 4))
    >>> learned = learn_rule(X, X[:, 0] & X[:, 2])
    >>> type(learned.machine).__name__, learned.min_gain, learned.search.exact
    ('KOMD', 0.0, True)
    """

    rule: Rule
    machine: KOMD
    regularization: float
    min_gain: float
    search: SearchResult
    guarantee: str


def learn_rule(
    X: ArrayLike,
    y: ArrayLike,
    *,
    max_clauses: int = 10,
    max_literals: int = 5,
    names: Sequence[str] = (),
    seed: int = 0,
    seconds: float | None = None,
) -> LearnedRule:
    """Fit KOMD on κ* and read the class 1 of y as a monotone DNF.

    How soft the margin is and what a clause must add is decided on a quarter of the rows that
    the candidates have not seen; ties go to the harder margin. These candidates are the first rules of
    `search_rule`; with what was decided on, all rows are searched further, for a better rule and a
    bound.

    Parameters
    ----------
    X : (rows, features) binary
    y : (rows,)
        Two classes, of which the larger one is described.
    max_clauses, max_literals : int ≥ 1
    names : sequence of str
    seed : int
    seconds : float ≥ 0, optional
        How long the last search takes at most, by the clock; otherwise it does a fixed amount of work,
        some tenths of a second, and finds the same on every machine.

    Raises
    ------
    InputError
        If a parameter is out of range, X and y differ in length, or there are not two classes of two
        rows at least.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (60, 4))
    >>> print(learn_rule(X, X[:, 0] & X[:, 2], names=("a", "b", "c", "d")).rule)
    a ∧ c
    """
    check_integer("max_clauses", max_clauses, 1, 100)
    check_integer("max_literals", max_literals, 1, 20)
    if seconds is not None:
        check_real("seconds", seconds, 0.0)
    rows, labels = _table(X, y)
    counts = np.unique(labels, return_counts=True)[1]
    if len(counts) != 2 or counts.min() < 2:
        raise InputError("a rule needs two classes with at least two rows each")

    from recsys.kernel_machines import KOMD  # late: scikit-learn takes most of a second to import

    def fit(part: NDArray[Any], setting: tuple[float, float], last: bool = False) -> LearnedRule:
        lam, gain = setting
        literals = min(max_literals, max(1, int((rows > 0).sum(axis=1).max())))
        kernel = {"d": min(max_clauses, 10), "c": literals}
        machine = KOMD(lam, kernel="mdnf-sum", kernel_params=kernel, tol=1e-6).fit(
            rows[part], labels[part]
        )
        found = search_rule(
            rows[part], signed_weights(machine, len(part)), max_clauses=max_clauses,
            max_literals=max_literals, min_gain=gain, budget=BUDGET if last else 0,
            seconds=seconds if last else None, names=names,
        )  # fmt: skip
        guarantee = found.guarantee(max_clauses, max_literals, gain)
        return LearnedRule(found.rule, machine, lam, gain, found, guarantee)

    everything = np.arange(len(labels))
    if counts.min() < 8:
        return fit(everything, SETTINGS[1], last=True)
    from sklearn.model_selection import train_test_split

    part, held = train_test_split(everything, test_size=0.25, random_state=seed, stratify=labels)
    top = labels.max()
    scores = [agreement(fit(part, s).rule, rows[held], labels[held] == top) for s in SETTINGS]
    return fit(everything, SETTINGS[int(np.argmax(scores))], last=True)


def _table(X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return binary rows and their labels."""
    rows, labels = binary_rows(X, "X").toarray(), as_labels("y", y)
    if labels.ndim != 1 or len(labels) != len(rows):
        raise InputError(
            f"X has {len(rows)} rows and y is of shape {labels.shape}; one label a row is needed"
        )
    return rows, labels


class MeasuredRule(NamedTuple):
    """A rule with its measures on rows that it was not learned from.

    Attributes
    ----------
    rule : Rule
    accuracy, fidelity : float
        Share of the held-out rows where the rule is right, and where it agrees with its machine.
    majority : float
        Share of the larger class among them.
    rows, held_out : int
    held : (held_out,) int64
        Which rows these are, in the order of the table.
    search : SearchResult
        The rule's weight on the rows learned from, and what no other rule exceeds there.
    guarantee : str
        The same in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (60, 4))
    >>> measured = measure_rule(X, X[:, 0] & X[:, 2])
    >>> measured.rows, measured.held_out, measured.accuracy
    (42, 18, 1.0)
    """

    rule: Rule
    accuracy: float
    fidelity: float
    majority: float
    rows: int
    held_out: int
    held: NDArray[np.int64]
    search: SearchResult
    guarantee: str


def measure_rule(
    X: ArrayLike, y: ArrayLike, *, test_size: float = 0.3, seed: int = 0, **options: Any
) -> MeasuredRule:
    """Learn a rule on a part of a table and measure it on the rest.

    Parameters
    ----------
    X : (rows, features) binary
    y : (rows,)
        Two classes, of which the larger one is described.
    test_size : float in 0…0.9
    seed : int
        Of the stratified split, and of the validation inside the learned part.
    **options
        As in `learn_rule`.

    Raises
    ------
    InputError
        If a parameter is out of range, X and y differ in length, or there are too few rows to hold some
        out.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (60, 4))
    >>> found = measure_rule(X, X[:, 0] & X[:, 2], max_clauses=2, names=("a", "b", "c", "d"))
    >>> print(found.rule, found.accuracy, found.guarantee)
    a ∧ c 1.0 No rule of at most 2 clauses of at most 5 literals weighs more.
    """
    check_real("test_size", test_size, 0.0, 0.9, open_low=True)
    from sklearn.model_selection import train_test_split  # late: it takes most of a second

    table, labels = _table(X, y)
    try:
        parts = train_test_split(
            table, labels, np.arange(len(labels)), test_size=test_size, random_state=seed,
            stratify=labels,
        )  # fmt: skip
    except ValueError:
        raise InputError(
            f"{len(labels)} rows are too few to hold out a share of {test_size:g}"
        ) from None
    learn, held, known, truth, _, rows = parts
    learned = learn_rule(learn, known, seed=seed, **options)
    right = truth == labels.max()
    return MeasuredRule(
        learned.rule,
        agreement(learned.rule, held, right),
        agreement(learned.rule, held, learned.machine.decision_function(held) > 0),
        float(max(right.mean(), 1.0 - right.mean())),
        len(known),
        len(truth),
        np.sort(rows),
        learned.search,
        learned.guarantee,
    )
