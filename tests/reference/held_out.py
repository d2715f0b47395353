"""AUC and nDCG@10 of one held-out user of whom every item, or a sample that stands for all, is known."""

import numpy as np


def figures(positives, others, worth):
    """Return AUC and nDCG@10 of a user's scores; each of the others stands for `worth` items."""
    pairs = [
        (w, (p > o) + 0.5 * (p == o)) for p in positives for o, w in zip(others, worth, strict=True)
    ]
    weight = sum(w for w, _ in pairs)
    auc = sum(w * right for w, right in pairs) / weight if weight else np.nan
    gain = 0.0
    for place, p in enumerate(sorted(positives, reverse=True)):
        ahead = sum(w * ((o > p) + 0.5 * (o == p)) for o, w in zip(others, worth, strict=True))
        if place + 1 + ahead <= 10:
            gain += 1 / np.log2(place + 2 + ahead)
    return auc, gain / sum(1 / np.log2(k + 2) for k in range(min(10, len(positives))))
