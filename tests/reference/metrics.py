"""Metrics by their definitions. Ties: the mean over all orders of the tied items."""

from itertools import groupby, permutations, product

import numpy as np

from tests.reference.registry import METRICS


def orders(scores, candidates):
    """Every ranking of the candidates that the scores allow."""
    ranked = sorted(candidates, key=lambda j: -scores[j])
    groups = [list(group) for _, group in groupby(ranked, key=lambda j: scores[j])]
    for choice in product(*(list(permutations(group)) for group in groups)):
        yield [j for group in choice for j in group]


def auc(scores, candidates, positives, k):
    pairs = [(p, n) for p in positives for n in candidates if n not in positives]
    if not pairs:
        return np.nan
    return np.mean([(scores[p] > scores[n]) + 0.5 * (scores[p] == scores[n]) for p, n in pairs])


def hits(order, positives, k):
    return [j in positives for j in order[:k]]


def one_order(name, order, positives, k):
    rel = hits(order, positives, k)
    found = sum(rel)
    if name == "precision":
        return found / k
    if name == "recall":
        return found / len(positives)
    if name == "hit":
        return float(found > 0)
    if name == "mrr":
        return next((1 / (r + 1) for r, hit in enumerate(rel) if hit), 0.0)
    if name == "ndcg":
        ideal = sum(1 / np.log2(r + 2) for r in range(min(k, len(positives))))
        return sum(1 / np.log2(r + 2) for r, hit in enumerate(rel) if hit) / ideal
    total = sum(sum(rel[: r + 1]) / (r + 1) for r, hit in enumerate(rel) if hit)
    return total / (len(positives) if name == "map-full" else min(k, len(positives)))


def value(name, scores, train, test, k):
    """One user's value; train and test are sets of items."""
    candidates = [j for j in range(len(scores)) if j not in train]
    positives = {j for j in test if j not in train}
    if not positives:
        return np.nan
    if name == "auc":
        return auc(scores, candidates, positives, k)
    return np.mean([one_order(name, order, positives, k) for order in orders(scores, candidates)])


def coverage(lists, n_items):
    return len({j for ids in lists for j in ids}) / n_items


def novelty(ids, popularity, n_users):
    return np.mean([-np.log2(max(popularity[j], 0.5) / n_users) for j in ids]) if len(ids) else np.nan


# Twins by name: from scores, train and test rows (0/1) and k to one value a user, or one for all.


def of_rankings(name):
    def twin(scores, train, test, k):
        rows = zip(scores, train, test, strict=True)
        return [value(name, s, set(np.flatnonzero(a)), set(np.flatnonzero(b)), k) for s, a, b in rows]

    return twin


for _name in ("auc", "ndcg", "map", "map-full", "precision", "recall", "hit", "mrr"):
    METRICS.add(_name)(of_rankings(_name))


def lists(scores, train, k):
    """The first k items outside each train row, ties by index."""
    orders = [sorted(range(len(s)), key=lambda j, s=s: (-s[j], j)) for s in scores]
    return [[j for j in order if not seen[j]][:k] for order, seen in zip(orders, train, strict=True)]


@METRICS.add("coverage")
def coverage_of(scores, train, test, k):
    return coverage(lists(scores, train, k), train.shape[1])


@METRICS.add("gini")
def gini_of(scores, train, test, k):
    return gini(lists(scores, train, k), train.shape[1])


def gini(lists, n_items):
    """Half the mean difference of two items' counts, over their mean."""
    counts = [sum(j in ids for ids in lists) for j in range(n_items)]
    if not sum(counts):
        return np.nan
    return np.mean([abs(a - b) for a in counts for b in counts]) / 2 / np.mean(counts)


def cosine(train, i, j):
    both = np.sum(train[:, i] * train[:, j])
    return both / np.sqrt(train[:, i].sum() * train[:, j].sum()) if both else 0.0


def arp(ids, train, user, test):
    return np.mean([train[:, j].sum() for j in ids]) if len(ids) else np.nan


def rarity(ids, train, user, test):
    return novelty(ids, train.sum(axis=0), len(train))


def diversity(ids, train, user, test):
    pairs = [(i, j) for i in ids for j in ids if i < j]
    return np.mean([1 - cosine(train, i, j) for i, j in pairs]) if pairs else np.nan


def serendipity(ids, train, user, test):
    if not test[user].any():
        return np.nan
    own = np.flatnonzero(train[user])
    like = {j: np.mean([cosine(train, i, j) for i in own]) if len(own) else 0.0 for j in ids}
    return np.mean([test[user, j] * (1 - like[j]) for j in ids]) if len(ids) else 0.0


def of_lists(measure):
    def twin(scores, train, test, k):
        return [measure(ids, train, u, test) for u, ids in enumerate(lists(scores, train, k))]

    return twin


for _name, _measure in (
    ("novelty", rarity),
    ("arp", arp),
    ("diversity", diversity),
    ("serendipity", serendipity),
):
    METRICS.add(_name)(of_lists(_measure))
