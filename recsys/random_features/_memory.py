"""Refusing before allocating what does not fit."""

from __future__ import annotations

from recsys.errors import InputError
from recsys.kernels.item_gram.dense import free_memory


def check_fits(entries: float, what: str, remedy: str) -> None:
    """Refuse a float64 array of so many entries where they are not free.

    Raises
    ------
    InputError
        With the bytes needed, the bytes free, and what to do.
    """
    need, free = 8.0 * entries, free_memory()
    if need > free:
        raise InputError(
            f"{what} need {need / 1e9:.1f} GB and {max(free, 0) / 1e9:.1f} GB are free: {remedy}"
        )
