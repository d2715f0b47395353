"""Candidate items of each user, matched by ids with interactions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.data.columns import Columns
from recsys.data.given_test import matched
from recsys.data.interactions import Interactions
from recsys.errors import InputError, counted

NAME = "candidates"


def candidate_sets(data: Interactions, given: Any) -> tuple[sp.csr_matrix, list[str]]:
    """Return the candidates of each user, (users, items) float32 CSR, and notes on unknown ids.

    They are a mapping of user to items, or `Interactions`, a table or a path: a row for each user and
    candidate, the columns called as those of the interactions, or by a usual name.

    >>> from recsys.data import Interactions
    >>> data = Interactions.from_ids(["ada", "bob"], ["tea", "milk"])
    >>> sets, notes = candidate_sets(data, {"ada": ["milk", "rum"], "bob": []})
    >>> sets.toarray().tolist(), notes
    ([[0.0, 1.0], [0.0, 0.0]], ['candidates: 1 pair of items not among the interactions left out.'])
    """
    pairs = _read(data, given)
    (users, _), (items, _) = matched(NAME, data, pairs)
    u, i = users[pairs.users], items[pairs.items]
    notes = []
    if (u < 0).any():
        who = counted(int((users < 0).sum()), "user")
        rows = counted(int((u < 0).sum()), "pair")
        notes.append(f"{NAME}: {who} not among the interactions left out, with {rows}.")
    unknown = int(((u >= 0) & (i < 0)).sum())
    if unknown:
        notes.append(f"{NAME}: {counted(unknown, 'pair')} of items not among the interactions left out.")
    keep = (u >= 0) & (i >= 0)
    ones = np.ones(int(keep.sum()), dtype=np.float32)
    found = sp.csr_matrix((ones, (u[keep], i[keep])), (data.n_users, data.n_items))
    found.sort_indices()
    return found, notes


def _read(data: Interactions, given: Any) -> Interactions:
    """Read pairs of users and candidates, ratings and times aside."""
    from recsys.data.profiles import is_profiles
    from recsys.data.reading import NONE, read

    if isinstance(given, Interactions):
        return given
    if isinstance(given, Mapping):
        users: list[Any] = []
        items: list[Any] = []
        for user, own in given.items():
            if isinstance(own, (str, bytes)) or not hasattr(own, "__iter__"):
                raise InputError(f"{NAME}: user {str(user)[:60]!r} needs a list of items, not {own!r}")
            before = len(items)
            items.extend(own)
            users.extend([user] * (len(items) - before))
        if not items:
            raise InputError(f"{NAME}: no user has one")
        return Interactions.from_ids(users, items, name=NAME)
    path = isinstance(given, (str, os.PathLike))
    plain = path and (os.path.isdir(given) or is_profiles(given))
    bare: dict[str, Any] = {} if plain else {"rating": NONE, "time": NONE}
    return read(given, like=data.columns or Columns(), name=None if path else NAME, **bare)
