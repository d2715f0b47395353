"""What comes before and after, cut by cut: histories as lists, and every cut as a regression row."""

import numpy as np
import scipy.sparse as sp

from recsys.rankers.sequences import Decay, parse_decays, sums_of_exponentials


def newer(times):
    """How many of the times are above each."""
    return np.array([sum(other > one for other in times) for one in times])


def histories(R, T, seed):
    """Each user's items from oldest to newest with places; equal times share the last place.

    Their order is that of the same lot as the ranker draws.
    """
    R = sp.csr_matrix(R)
    lot, out = np.random.default_rng(seed).random(R.nnz), []
    for u in range(R.shape[0]):
        part = slice(R.indptr[u], R.indptr[u + 1])
        items = R.indices[part]
        times = np.zeros(len(items)) if T is None else np.array([T[u, i] for i in items])
        order = sorted(range(len(items)), key=lambda k: (times[k], lot[part][k]))
        places = [max(p for p, k in enumerate(order) if times[k] == times[one]) for one in order]
        out.append((items[order], np.array(places)))
    return out


def as_sums(laws, longest):
    """The laws as the ranker computes with them."""
    rates, coefficients = sums_of_exponentials(laws, longest)
    return [lambda g, c=c: float(c @ np.exp(-g / rates)) for c in coefficients]


def cuts(found, items, laws, target, votes):
    """Rows of X, rows of Y and weights."""
    X, Y, weights = [], [], []
    for sequence, place in found:
        n = len(sequence)
        for t in range(1, n):
            x, y = np.zeros((len(laws), items)), np.zeros(items)
            for s in range(t):
                for k, law in enumerate(laws):
                    x[k, sequence[s]] = law(place[t - 1] - place[s])
            for s in range(t, n):
                y[sequence[s]] = target(place[s] - place[t])
            X.append(x.ravel())
            Y.append(y)
            weights.append(n**-votes)
    shape = (len(X), len(laws) * items)
    return np.reshape(X, shape), np.reshape(Y, (len(X), items)), np.array(weights)


def ridge(ranker, R, T):
    """B, a block of rows a law."""
    items = R.shape[1]
    longest = int((np.asarray(R) > 0).sum(axis=1).max())
    laws = parse_decays("decay", ranker.decay) if T is not None else [Decay("none")]
    laws = as_sums(laws, longest)
    (target,) = as_sums(parse_decays("target_decay", ranker.target_decay), longest)
    found = histories(R, T, ranker.random_state)
    X, Y, w = cuts(found, items, laws, target, ranker.votes)
    A = (X * w[:, None]).T @ X
    for k in range(len(laws)):
        part = np.arange(k * items, (k + 1) * items)
        mean = A[part, part].mean()
        A[part, part] += ranker.regularization * (mean if mean > 0 else 1.0)
    return np.linalg.solve(A, (X * w[:, None]).T @ Y)


def cosine(ranker, R, T):
    """Directed co-occurrence over powers of the popularities."""
    items = R.shape[1]
    laws = parse_decays("decay", ranker.decay)[-1:] if T is not None else [Decay("none")]
    (law,) = as_sums(laws, int((np.asarray(R) > 0).sum(axis=1).max()))
    W, size = np.zeros((items, items)), np.maximum(np.asarray(R).sum(axis=0), 1)
    for sequence, place in histories(R, T, ranker.random_state):
        for a in range(len(sequence)):
            for b in range(a + 1, len(sequence)):
                vote = law(place[b] - place[a])
                vote *= len(sequence) ** -ranker.votes
                W[sequence[a], sequence[b]] += vote
                W[sequence[b], sequence[a]] += vote * ranker.backward
    return (W / size[:, None] ** ranker.beta / size**ranker.alpha) ** ranker.locality


def scores(ranker, R, T):
    """Scores of all rows by what was fitted on them."""
    R = np.asarray(R.toarray() if sp.issparse(R) else R)
    B = cosine(ranker, R, T) if ranker.form == "cosine" else ridge(ranker, R, T)
    items = R.shape[1]
    text = ranker.decay if ranker.inference_decay is None else ranker.inference_decay
    laws = parse_decays("inference_decay", text)[: len(B) // items]
    out = np.zeros(R.shape)
    for u, row in enumerate(R):
        mine = np.flatnonzero(row)
        if T is None:
            out[u] = B[mine].sum(axis=0)
            continue
        times = np.array([T[u, i] for i in mine])
        for k, law in enumerate(laws):
            for i, gap in zip(mine, newer(times), strict=True):
                out[u] += law(gap) * B[k * items + i]
    return out
