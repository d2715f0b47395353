"""Counts of people and of items by going through sets, one at a time."""


def likes(matrix):
    """Return each user's liked items as a set, from the dense entries."""
    return [{i for i, value in enumerate(row) if value > 0} for row in matrix.toarray()]


def witnesses(sets, items, item, asked):
    """Return how many others like all of `items`, how many of these the item, and both for everybody else."""
    support = hits = others = others_hits = 0
    for user, mine in enumerate(sets):
        if user == asked:
            continue
        if set(items) <= mine:
            support += 1
            hits += item in mine
        else:
            others += 1
            others_hits += item in mine
    return support, hits, others, others_hits


def place(scores, item, taken):
    """Return an item's place among those not taken, equal scores by index, and their number."""
    free = [k for k in range(len(scores)) if k == item or k not in taken]
    order = sorted(free, key=lambda k: (-float(scores[k]), k))
    return order.index(item) + 1, len(free)


def covers(clauses, row):
    """Return whether one of the clauses holds."""
    return any(all(row[f] > 0 for f in clause) for clause in clauses)
