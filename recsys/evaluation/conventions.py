"""Notes on how metric values in time, or of a published split, are made, for comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recsys.data import Fold, Interactions, Protocol
from recsys.data.given_test import OF_TEST
from recsys.errors import counted


def conventions(
    protocol: Protocol, data: Interactions, folds: Sequence[Fold], ranked: bool = False
) -> list[str]:
    """Return sentences: what is ranked, what training holds, how ties in time are broken.

    `folds` are all that were evaluated; `ranked` says that what is ranked is said elsewhere. There are
    none for a protocol that has nothing to do with time, and draws what it tests.

    Examples
    --------
    >>> from recsys.data import PROTOCOLS, split
    >>> from recsys.datasets import load_dataset
    >>> data = load_dataset("sample")
    >>> lines = conventions(PROTOCOLS.get("next-5"), data, list(split(data, "next-5")))
    >>> lines[1]
    'Training holds all but the last 5 items of each user who has more, and what other users did later.'
    """
    future = protocol.predicts_future(data)
    if not (future or protocol.uses_time or protocol.comes_with_data):
        return []
    users = sum(len(fold.users) for fold in folds)
    past = sum(fold.train[fold.users].nnz for fold in folds)
    tests = unseen = 0
    for fold in folds:
        found = fold.test[fold.users].indices
        tests += len(found)
        unseen += int((np.bincount(fold.train.indices, minlength=data.n_items)[found] == 0).sum())
    each = ", counted once a fold" if len(folds) > 1 and not protocol.grouped else ""
    lines = [
        f"Ranked: all {counted(data.n_items, 'item')} less the user's own in training, "
        f"{past / max(users, 1):.1f} on average of {counted(users, 'user')}{each}; no sampled negatives."
    ]
    if ranked:
        lines.clear()
    if future:
        tied = counted(sum(fold.tied for fold in folds), "user")
        lines += [protocol.training, protocol.ties.format(users=tied)]
    elif protocol.comes_with_data:
        lines.append(protocol.training)
    else:
        lines.append("There are no times: what is tested is drawn at random.")
    if protocol.comes_with_data and data.repeat_time is not None:
        lines.append("Test interactions that also occur in training stay in training.")
    if protocol.comes_with_data:
        dropped = [note for note in data.notes if note.startswith(OF_TEST) and "left out" in note]
        lines += [f"{note[0].upper()}{note[1:]}." for note in dropped]
    if unseen:
        told = f"{unseen:,} of {counted(tests, 'test item')}"
        lines.append(f"Items without training interactions are ranked, too, and are {told}.")
    return [line for line in lines if line]
