"""The formulas over users with the largest weights in a user's scores, read from the ranker's weights.

CF-KOMD scores items as vectors over users. With a kernel that counts formulas its scores are linear in
them. "Liked by A and by B" is a feature of every item and has a weight for each user; so is "liked by A
or by B" with a kernel that counts those. This module reads the weights. It describes the model, while
`recsys.explain.association` describes the data and `recsys.explain.rules.user_rules` a user's profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError, counted
from recsys.explain.recency import known_times
from recsys.explain.rules.subset_search import top_sets, top_unions, whole_weights
from recsys.explain.text import FEW, listing, one_in
from recsys.kernels import (
    Kernel,
    LinearKernel,
    MonotoneConjunctiveKernel,
    MonotoneConjunctiveSumKernel,
    MonotoneDisjunctiveKernel,
)
from recsys.kernels.base import own as own_values
from recsys.kernels.boolean import shares_hit
from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix

BUDGET = 500_000_000  # entries of rows that a search looks at: seconds
MOST_LOG = 700.0  # of an item's norm: float64 ends at exp(709)


@dataclass(frozen=True)
class WeightedFormula:
    """Users who like an item all together, or some of them, as a feature of items with its weight.

    Attributes
    ----------
    users : tuple of int
        Rows of the user × item matrix, ascending.
    weight : float
        (7.1), each item over its norm: Σ yᵢαᵢ/‖φ(xᵢ)‖ over the items of all of `users`, or with a
        kernel of disjunctions at least one of them.
    support : int
        For how many of the user's liked items it holds: they all, or one of them, like it.
    others : int
        For how many of the other items.
    adds : float or None
        To the score of the item asked about; None where none was.

    Examples
    --------
    >>> one = WeightedFormula((3, 17), weight=0.25, support=9, others=3, adds=0.125)
    >>> one.users, one.support + one.others
    ((3, 17), 12)
    """

    users: tuple[int, ...]
    weight: float
    support: int
    others: int
    adds: float | None = None


@dataclass(frozen=True)
class TopFormulas:
    """Formulas with the largest weights in a user's scores, and the guarantees of the search.

    Attributes
    ----------
    ranker, kernel : str
        Its name, and that of its kernel.
    connective : "and" or "or"
        Whether a formula holds for items that all of its users like, or one of them.
    least, most : int
        Users in a formula.
    found : tuple of WeightedFormula
        Those of positive weight, the largest weights first. Of equal ones those come first whose users
        do, by their own positive weight (of "or": their own weight), and then by number.
    bound : float
        No formula that is not listed weighs more.
    gap : float ≥ 0
        Bound less the weight of the last one listed, or less 0 where fewer were found than asked for.
    exact : bool
        Whether the search came to its end: the gap is then 0.
    users : int
        Number of users over whom formulas were searched: with "and", those who like the item, where one
        was given.
    liked, items : int
        Of the user, and all.
    exclude : int or None
        Who was left out.
    own : bool
        Whether the user left out has no items but the liked items, and the connective is "and":
        what holds with them in it then holds for none of the other items.
    item : int or None
        The item asked about.
    holds : int
        How many formulas hold for it, over all users.
    score, base : float or None
        The item's score by the weights of all formulas, float64, and what of it no formula adds: an item
        of fewer users than a formula needs has a feature of its own. None where none was asked about.
    min_support : int
        Of the liked items a formula had to hold for so many.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> likes = load_dataset("sample").matrix
    >>> model = make_ranker("cf-komd", kernel="mc", degree=2).fit(likes, show_progress=False)
    >>> found = top_formulas(model, likes, 0, likes[0], N=3, exclude=0)
    >>> found.exact, found.gap, [len(one.users) for one in found.found]
    (True, 0.0, [2, 2, 2])
    """

    ranker: str
    kernel: str
    connective: str
    least: int
    most: int
    found: tuple[WeightedFormula, ...]
    bound: float
    gap: float
    exact: bool
    users: int
    liked: int
    items: int
    exclude: int | None = None
    own: bool = False
    item: int | None = None
    holds: int = 0
    score: float | None = None
    base: float | None = None
    min_support: int = 1

    def sentences(self, user: str, title: str = "") -> list[str]:
        """Return in words what was read and searched; with an item, also the decomposition of its score.

        Parameters
        ----------
        user : str
            Who the user is, as in "u0001".
        title : str
            Of the item asked about.
        """
        one, many = self._units()
        whose = f"its {many}" if self.connective == "and" else f"the {many} of whom somebody likes it"
        lines = [
            f"{self.ranker} (kernel {self.kernel}) scores items for {user} by who likes them: each "
            f"{one} has a weight, and an item's score is the sum over {whose}, over its norm."
        ]
        among = counted(self.users, "person", "people")
        if self.item is not None:
            if self.connective == "or":
                among += ", of whom somebody likes it,"
            else:
                among += " who likes it" if self.users == 1 else " who like it"
            lines.append(
                f"{title or 'The item'} has the score {self.score:.4g}: the sum over "
                f"{counted(self.holds, one, many)}"
                + (f", and {self.base:.4g} that none of them adds." if self.base else ".")
            )
        which = f"All {many} among {among}"
        if self.min_support > 1:
            which += (
                f" that hold for at least {self.min_support:,} of the {counted(self.liked, 'item')} "
                f"that {user} likes"
            )
        if not self.exact:
            more = self.bound - self.found[-1].weight if self.found else 0.0
            lines.append(
                f"{which} were to be searched; the search ended early: one that is not listed may weigh "
                f"up to {self.bound:.4g}"
                + (f", {more:.4g} more than the last one that is." if more > 0 else ".")
            )
        elif self.bound > 0:
            lines.append(f"{which} were searched: no other weighs more than the last one.")
        else:
            none = "no other" if self.found else "none"
            lines.append(f"{which} were searched: {none} has a positive weight.")
        if self.exclude is not None:
            lines.append(
                f"What {user} is part of is left out"
                + (
                    f": it adds nothing to the score of what {user} does not like yet."
                    if self.own
                    else "."
                )
            )
        if self.found:
            lines.append(
                "The weights are the model's. The counts are the data's, and the same beside any model."
            )
        return lines

    def _units(self) -> tuple[str, str]:
        """Return the name of a formula's set of users, in the singular and the plural."""
        if self.most == 1:
            return "person", "people"
        if self.least == self.most == 2:
            return "pair of people", "pairs of people"
        size = f"{self.most}" if self.least == self.most else f"1 to {self.most}"
        return f"set of {size} people", f"sets of {size} people"

    def sentence(self, one: WeightedFormula, user: str, names: ArrayLike) -> str:
        """Return a formula with its weight and the items that it holds for, in words.

        Parameters
        ----------
        one : WeightedFormula
        user : str
            Who the user is.
        names : (users,) of str
            Of the rows of the user × item matrix.
        """
        ids = np.asarray(names, dtype=object)
        who = listing([str(ids[k]) for k in one.users])
        like = ("likes", "both like", "all like")[min(len(one.users), 3) - 1]
        if self.connective == "or":
            who, like = f"at least one of {who}", "likes"
        total, rest = one.support + one.others, self.items - self.liked
        text = (
            f"{one.weight:+.4g}: {who} {like} {counted(total, 'item')}, {one.support:,} of the "
            f"{self.liked:,} that {user} likes and {one.others:,} of the {counted(rest, 'other')} "
            f"({one_in(one.others, rest)})."
        )
        if total < FEW:
            text += f" {total} is a small number."
        return text if one.adds is None else f"{text} To the score it adds {one.adds:+.4g}."

    def as_dict(self, user: str, names: ArrayLike, item: str = "", title: str = "") -> dict[str, Any]:
        """Return the formulas and the guarantees of the search as lists and numbers, as JSON takes them.

        Parameters
        ----------
        user : str
            Who the user is.
        names : (users,) of str
            Of the rows of the user × item matrix.
        item, title : str
            The id and the title of the item asked about.

        Examples
        --------
        >>> from recsys import load_dataset, make_ranker
        >>> data = load_dataset("sample")
        >>> model = make_ranker("cf-komd").fit(data.matrix, show_progress=False)
        >>> found = top_formulas(model, data.matrix, 0, data.matrix[0], N=3, exclude=0)
        >>> told = found.as_dict("u0001", data.user_ids)
        >>> len(told["formulas"]), told["gap"], told["exact"]
        (3, 0.0, True)
        """
        ids = np.asarray(names, dtype=object)
        return {
            "user": user, "item": None if self.item is None else item, "ranker": self.ranker,
            "kernel": self.kernel, "connective": self.connective, "least": self.least,
            "most": self.most, "users": self.users, "min_support": self.min_support,
            "liked": self.liked, "items": self.items, "bound": self.bound, "gap": self.gap,
            "exact": self.exact, "holds": None if self.item is None else self.holds,
            "score": self.score, "base": self.base,
            "formulas": [
                {
                    "users": [str(ids[k]) for k in one.users], "weight": one.weight,
                    "support": one.support, "others": one.others, "adds": one.adds,
                    "text": self.sentence(one, user, names),
                }
                for one in self.found
            ],
            "text": self.sentences(user, title),
        }  # fmt: skip


def top_formulas(
    ranker: Ranker, user_items: Any, userid: int, row: Any, *, item: int | None = None, N: int = 10,
    min_support: int = 1, exclude: int | None = None, times: Any = None, budget: int = BUDGET,
) -> TopFormulas:  # fmt: skip
    """Return the sets of users, joined by "and" or "or", with the largest weights in a user's scores.

    Parameters
    ----------
    ranker : Ranker
        Fitted: `cf-komd` with kernel "mc", "mc-sum", "md" or "linear", `ecf-omd` or `cf-omd`.
    user_items : (users, items) sparse matrix
        What it was fitted on.
    userid : int
        Whose interactions `row` are, for the times that the ranker keeps.
    row : (1, items) sparse matrix
        The liked items.
    item : int, optional
        Only formulas that hold for this item. What they add is their weight over the item's norm.
    N : int ≥ 1
        Formulas to list.
    min_support : int ≥ 1
        Of the liked items a formula must hold for so many.
    exclude : int, optional
        A row of `user_items` that is no part of a formula: the user's own. A conjunction with the user
        in it holds for nothing that the user does not like.
    times : (1, items) sparse matrix, optional
        As in `reasons`.
    budget : int ≥ 0
        Entries of rows that the search may look at; the same on every machine.

    Returns
    -------
    TopFormulas
        With `exact` false the search stopped, and `bound` says how much a formula that is not listed may
        weigh; it mostly does under "md" of a degree above 3. Weights are right to 1e-12 of the sum of
        those of all items, as they are in `signed_weights`, over the norms.

    Raises
    ------
    InputError
        If a parameter is out of range, the kernel's features are no conjunctions or disjunctions of
        users, nothing is liked, or the ranker was fitted on other interactions.
    NotFittedError

    Notes
    -----
    Sources: Polato's thesis, (7.1), on the ranker of 10.2, whose normalised kernel makes the weight of
    formula f Σᵢ yᵢαᵢ δ_f(xᵢ)/‖φ(xᵢ)‖; y is 1 on interactions, and −1 with α = 1/m₋ on the items of
    (10.3). The search is ours.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> data = load_dataset("sample")
    >>> likes = data.matrix
    >>> model = make_ranker("cf-komd", kernel="mc", degree=2).fit(likes, show_progress=False)
    >>> found = top_formulas(model, likes, 0, likes[0], N=1, min_support=10, exclude=0)
    >>> print(found.sentence(found.found[0], "u0001", data.user_ids))
    +0.01396: u0179 and u0372 both like 19 items, 18 of the 32 that u0001 likes and 1 of the 268 others
    (about 1 in 268). 19 is a small number.
    """
    check_integer("N", N, 1)
    check_integer("min_support", min_support, 1)
    check_integer("budget", budget, 0)
    kernel, least, most = _kernel_of(ranker)
    either = isinstance(kernel, MonotoneDisjunctiveKernel) and most > 1
    likes = clean_matrix(user_items, n_items=getattr(ranker, "n_items_", None))
    liked = clean_matrix(row, n_items=likes.shape[1], n_rows=1, name="row")
    times = known_times(ranker, userid, times)
    signed = ranker.signed_weights(liked, times)[0]  # type: ignore[attr-defined]
    if liked.nnz == 0:
        raise InputError(f"nothing is liked: {ranker.name} then ranks by popularity, without weights")
    users, m = likes.shape
    sizes = np.bincount(likes.indices, minlength=m).astype(np.int64)
    if users != ranker.n_users_ or not np.array_equal(sizes, ranker.popularity_):
        raise InputError(f"this {ranker.name} was fitted on other interactions: pass those of its fit")
    if exclude is not None:
        check_integer("exclude", exclude, 0, users - 1)
    if item is not None:
        check_ids("item", item, m)
    by_item = sp.csr_matrix(likes.T)
    factors = _factors(kernel, users, sizes)
    takes, touching = np.ones(users, dtype=bool), np.ones(users, dtype=bool)
    if item is not None:
        touching[:] = False
        touching[by_item.indices[by_item.indptr[item] : by_item.indptr[item + 1]]] = True
        takes = takes if either else touching.copy()
    if exclude is not None:
        takes[exclude] = False
    searched = np.flatnonzero(takes)
    mine = np.zeros(m, dtype=bool)
    mine[liked.indices] = True
    whole, power = whole_weights(signed * factors, most if either else 1)
    rows = sp.csr_matrix(by_item[:, searched])
    rows.sort_indices()
    if either:
        result = top_unions(rows, whole, mine, touching[searched], most, N, min_support, budget)
    else:
        result = top_sets(rows, whole, mine, least, most, N, min_support, budget)
    found = []
    for some, value, support in zip(
        result.sets, result.weights.tolist(), result.support.tolist(), strict=True
    ):
        chosen = tuple(searched[list(some)].tolist())
        hits = np.bincount(likes[list(chosen)].indices, minlength=m)
        every = int((hits >= (1 if either else len(chosen))).sum())
        weight = float(np.ldexp(float(value), -power))
        adds = None if item is None else weight * float(factors[item])
        found.append(WeightedFormula(chosen, weight, support, every - support, adds))
    last = found[-1].weight if len(found) == N else 0.0
    bound = max(float(np.ldexp(float(result.bound), -power)), last)
    own = exclude is not None and not either and bool(mine[likes[exclude].indices].all())
    score, base, holds = None, None, 0
    if item is not None:
        score, base = _of_item(ranker, kernel, by_item, signed, factors, item, userid, liked, times)
        size = int(sizes[item])
        holds = sum(comb(size, k) for k in range(least, min(most, size) + 1))
        if either:
            holds = comb(users, most) - comb(users - size, most)
    return TopFormulas(
        ranker.name, _named(kernel), "or" if either else "and", least, most, tuple(found), bound,
        bound - last, not result.stopped, len(searched), liked.nnz, m, exclude, own, item, holds, score,
        base, min_support,
    )  # fmt: skip


def _kernel_of(ranker: Ranker) -> tuple[Kernel, int, int]:
    """Return a ranker's kernel, and the least and greatest number of users in its formulas."""
    kernel = getattr(ranker, "kernel_", None)
    if isinstance(kernel, LinearKernel):
        least, most = 1, 1
    elif isinstance(kernel, MonotoneConjunctiveKernel | MonotoneDisjunctiveKernel):
        least, most = kernel.degree, kernel.degree
    elif isinstance(kernel, MonotoneConjunctiveSumKernel):
        least, most = 1, kernel.degree
    else:
        what = ranker.name + (f" with kernel {ranker.kernel}" if hasattr(ranker, "kernel") else "")
        raise InputError(
            f"the scores of {what} are no sum over sets of users of an item: fit cf-komd with "
            "kernel mc, mc-sum, md or linear"
        )
    for name in ("votes",):
        if getattr(ranker, name, None):
            raise InputError(
                f"with {name}={getattr(ranker, name)} items are not sets of users: fit {ranker.name} "
                f"without {name}"
            )
    return kernel, least, most


def _named(kernel: Kernel) -> str:
    """Return the name of a kernel, with its degree."""
    names = {LinearKernel: "linear", MonotoneConjunctiveKernel: "mc", MonotoneDisjunctiveKernel: "md"}
    name = names.get(type(kernel), "mc-sum")
    return f"{name} of degree {kernel.degree}" if hasattr(kernel, "degree") else name


def _factors(kernel: Kernel, users: int, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1/‖φ(x)‖ of items of these sizes; 0 for those with no feature."""
    roots, unit = own_values(kernel, sizes, users), kernel.log_unit(users) / 2.0
    logs = roots[np.isfinite(roots)] if kernel.logarithmic else np.array([unit])
    if logs.max(initial=0.0) > MOST_LOG:
        raise InputError(
            f"the weights under kernel {_named(kernel)} leave the range of float64: take a lower degree"
        )
    if kernel.logarithmic:
        return np.where(np.isfinite(roots), np.exp(-np.where(np.isfinite(roots), roots, 0.0)), 0.0)
    return np.where(roots > 0, np.exp(-unit) / np.where(roots > 0, roots, 1.0), 0.0)


def _of_item(
    ranker: Ranker, kernel: Kernel, by_item: sp.csr_matrix, signed: NDArray[np.float64],
    factors: NDArray[np.float64], item: int, userid: int, liked: sp.csr_matrix, times: Any,
) -> tuple[float, float]:  # fmt: skip
    """Return an item's score by the weights of all formulas, and what of it none adds."""
    if factors[item] == 0:
        # Without a feature it is alike to itself alone, or has what the ranker gives cold items.
        base = float(ranker.explain(userid, liked, item, 1, times=times).score)
        return base, base
    offsets = getattr(ranker, "offsets_", None)  # what centring took, which no formula has
    base = 0.0 if offsets is None else -float(signed @ offsets)
    users, sizes = by_item.shape[1], np.diff(by_item.indptr).astype(np.int64)
    common = np.rint(np.asarray((by_item @ by_item[item].T).todense()).ravel()).astype(np.int64)
    if isinstance(kernel, MonotoneDisjunctiveKernel) and kernel.degree > 1:
        # Shares of all disjunctions: 1 less those that hold for neither, and those for one alone.
        share = shares_hit(users, kernel.degree).astype(np.float64)
        scale = np.exp(kernel.log_unit(users) / 2.0)
        values = share[sizes] - (share[sizes + sizes[item] - common] - share[sizes[item]])
        return float(signed @ (values * (factors * scale) * (factors[item] * scale))) + base, base
    # Conjunctions that hold for two items are those of what they have in common: κ is 1/both².
    both = _factors(kernel, users, common)
    some = both > 0
    return float(signed[some] @ ((factors[some] / both[some]) * (factors[item] / both[some]))), 0.0
