"""Fair lists: enough items of a protected group among the first, by a binomial test (FA*IR)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Fair:
    """How many items of a protected group the first k of a list need, for each k.

    If each item is protected with probability `p`, fewer come with probability `alpha` at most. The test
    is made for each k on its own; LensKit's `FAIRReranker` lowers `alpha` for all of them together.

    Attributes
    ----------
    protected : (items,) bool
    p : float in (0, 1)
        Wanted share of protected items.
    alpha : float in (0, 1)
        Significance of the test.

    References
    ----------
    Zehlike et al., FA*IR: a fair top-k ranking algorithm, CIKM 2017, definition 3 and algorithm 2.

    Examples
    --------
    >>> rule = Fair(np.array([False, False, True, True]), p=0.5)
    >>> rule.minimums(8).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    """

    protected: NDArray[np.bool_]
    p: float = 0.5
    alpha: float = 0.1

    def minimums(self, n: int) -> NDArray[np.int64]:
        """Return the fewest protected items among the first 1 … n, (n,): quantiles at `alpha`."""
        return _quantiles(n, self.p, self.alpha)

    def met(self, items: ArrayLike) -> bool:
        """Return whether a list of items has enough protected ones among its first k, for each k."""
        found = np.asarray(items, dtype=np.int64)
        return bool((np.cumsum(self.protected[found]) >= self.minimums(len(found))).all())


@lru_cache(64)
def _quantiles(n: int, p: float, alpha: float) -> NDArray[np.int64]:
    """Return the quantiles at alpha of the binomial distributions of 1 … n draws, read-only."""
    from scipy.stats import binom  # late: it takes half a second

    found = np.asarray(binom.ppf(alpha, np.arange(1, n + 1), p), dtype=np.int64)
    found.flags.writeable = False
    return found
