"""Compiled functions made again around functions from outside the package.

The package's own variants are branches of one chain of integer codes, which numba keeps on disk. A
function from outside cannot be such a branch. What calls it is compiled again for it, once in a process,
and is not kept on disk: numba's index does not recognise a function in the next process.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

from recsys._jit import jit

__all__ = ["Replacements", "compiled", "specialised"]

Replacements = tuple[tuple[Any, Any], ...]  # (function of the package, what is called instead of it)
KEPT_OPTIONS = ("fastmath", "inline")


def _is_function(value: Any) -> bool:
    return isinstance(value, FunctionType) or hasattr(value, "py_func")


@cache
def compiled(function: Any) -> Any:
    """Return a function as compiled code; one that is compiled already stays as it is."""
    return function if hasattr(function, "py_func") else jit(function, cache=False)


@cache
def specialised(function: Any, replaced: Replacements) -> Any:
    """Return a compiled function that calls other functions in place of some, however deep.

    Parameters
    ----------
    function : compiled function
    replaced : tuple of pairs of compiled functions
        What is looked for, and what is called instead, with the same arguments.

    Returns
    -------
    compiled function
        The given one if it calls none of them.

    Examples
    --------
    >>> from recsys._jit import jit
    >>> from recsys.multilinear.losses import loss_value, mean_loss
    >>> @jit(cache=False)
    ... def quantile(code, p, y):
    ...     return 0.9 * (y - p) if y > p else 0.1 * (p - y)
    >>> import numpy as np
    >>> of_quantiles = specialised(mean_loss, ((loss_value, quantile),))
    >>> float(of_quantiles(0, np.zeros(2), np.array([1.0, -1.0]), np.ones(1)))
    0.5
    """
    for known, instead in replaced:
        if function is known:
            return instead
    plain = getattr(function, "py_func", function)
    changed = {}
    for name in plain.__code__.co_names:
        called = plain.__globals__.get(name)
        if _is_function(called) and called is not function:
            other = specialised(called, replaced)
            if other is not called:
                changed[name] = other
    if not changed:
        return function
    copy = FunctionType(
        plain.__code__,
        plain.__globals__ | changed,
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    options = getattr(function, "targetoptions", {})
    return jit(copy, cache=False, **{key: options[key] for key in KEPT_OPTIONS if options.get(key)})
