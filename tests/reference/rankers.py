"""Rankers as dense numpy, straight from their formulas: scores of all items for given rows."""

import numpy as np
from scipy.special import expit

from tests.reference import qp, sequence
from tests.reference.fm import anova
from tests.reference.registry import RANKERS


def normalised(K):
    own = np.diag(K)
    root = np.sqrt(np.outer(own, own))
    out = np.divide(K, root, out=np.zeros_like(K, dtype=float), where=root > 0)
    np.fill_diagonal(out, 1.0)
    return out


def popularity(R, rows):
    return np.tile(R.sum(axis=0), (len(rows), 1))


def msdw(R, rows, alpha=0.3, locality=1.0):
    out = np.zeros(rows.shape)
    sets = [set(np.flatnonzero(R[:, j])) for j in range(R.shape[1])]
    for u, row in enumerate(rows):
        for i in range(R.shape[1]):  # the candidate
            for j in np.flatnonzero(row):
                common = len(sets[i] & sets[j])
                if common:
                    size = len(sets[i]) ** alpha * len(sets[j]) ** (1 - alpha)
                    out[u, i] += (common / size) ** locality
    return out


def sharpened(R, rows, amount, alpha=0.3, votes=0.0, locality=1.0):
    """MSDw's weights less `amount` times their product with the normalised co-occurrence, where not 0."""
    lengths, sizes = np.maximum(R.sum(axis=1), 1), np.maximum(R.sum(axis=0), 1)
    C = R.T @ (R / lengths[:, None] ** votes)
    W = np.where(C > 0, (C / np.outer(sizes ** (1 - alpha), sizes**alpha)) ** locality, 0)
    P = (R.T @ (R / lengths[:, None] ** 0.8)) / np.sqrt(np.outer(sizes, sizes))
    P /= np.linalg.eigvalsh(P)[-1]
    return rows @ np.where(C > 0, W - amount * W @ P, 0)


def ridge(counts, regularization, power=0.0, dropout=0.0):
    """λ(n_i / mean n)^power + n_i·dropout/(1 − dropout), item by item; items nobody has are in no mean."""
    had = [n for n in counts if n > 0]
    out = []
    for n in counts:
        share = (n / (sum(had) / len(had))) ** power if n > 0 else 1.0
        out.append(regularization * share + n * dropout / (1 - dropout))
    return np.diag(np.array(out, dtype=float))


def ease(R, rows, regularization=500.0, votes=0.0, power=0.0, dropout=0.0):
    weight = np.maximum(R.sum(axis=1), 1) ** -votes
    G = R.T @ (weight[:, None] * R)
    P = np.linalg.inv(G + ridge(np.diag(G), regularization, power, dropout))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return rows @ B


def attributes(F, idf=1.0):
    """tf-idf rows of unit length, cell by cell."""
    items, kinds = F.shape
    x = np.zeros(F.shape)
    for j in range(items):
        for k in range(kinds):
            if F[j, k]:
                having = sum(F[i, k] != 0 for i in range(items))
                x[j, k] = F[j, k] * np.log(items / having) ** idf
    return np.array([unit(row) for row in x])


def content(R, rows, F, idf=1.0, popularity=0.0, recency=0.0, times=None):
    """Sums of cosines, item by item."""
    x, out = attributes(F, idf), np.zeros(rows.shape)
    for u, row in enumerate(rows):
        liked = np.flatnonzero(row)
        votes = omega(np.zeros(len(row)) if times is None else times[u], liked, recency)
        for j in range(len(row)):
            prior = (1 + np.log(1 + R[:, j].sum())) ** popularity
            out[u, j] = prior * sum(v * x[i] @ x[j] for v, i in zip(votes, liked, strict=True))
    return out


def slim(R, rows, l1=1.0, l2=10.0):
    """Projected gradient on each item's regression."""
    items = R.shape[1]
    W = np.zeros((items, items))
    for j in range(items):
        others = np.arange(items) != j
        X, y = R[:, others], R[:, j]
        H = X.T @ X + l2 * np.eye(items - 1)
        w = np.zeros(items - 1)
        step = 1 / np.linalg.eigvalsh(H)[-1] if items > 1 else 1.0
        for _ in range(20000):
            w = np.maximum(w - step * (H @ w - X.T @ y + l1), 0)
        W[others, j] = w
    return rows @ W


def neighbours(R, rows, top_k=20, weigh=lambda R: R, unit=True):
    """Sums over a row of value times the inner product of weighted items, of the `top_k` of each."""
    W = weigh(R)
    if unit:
        W = W / np.maximum(np.linalg.norm(W, axis=0), 1e-300)
    S = W.T @ W
    for similarities in S:
        similarities[np.argsort(-similarities, kind="stable")[top_k:]] = 0
    return rows @ S


def user_neighbours(R, rows, top_k, vectors=None, row_vectors=None):
    """Sums over the `top_k` nearest users of cosine times value, user by user."""
    X = np.array([unit(row) for row in (R if vectors is None else vectors)])
    out = np.zeros(rows.shape)
    for u, row in enumerate(rows if row_vectors is None else row_vectors):
        cosines = [unit(row) @ x for x in X]
        near = sorted(range(len(X)), key=lambda v: (-np.float32(cosines[v]), v))[:top_k]
        for v in near:
            out[u] += cosines[v] * (R if vectors is None else X)[v]
    return out


def decayed(R, times, within, group, size):
    """Weights times the decay of the basket that they are in, counted from the newest; unit length."""
    out = np.zeros(R.shape)
    for u, row in enumerate(R):
        had = np.flatnonzero(row)
        for i in had:
            newer = len({times[u, j] for j in had if times[u, j] > times[u, i]})
            out[u, i] = row[i] * within ** (newer % size) * group ** (newer // size)
        out[u] = unit(out[u])
    return out


def idf(R):
    return np.log(R.shape[1] / (1 + (R > 0).sum(axis=1, keepdims=True)))


def tfidf(R):
    return np.sqrt(R) * idf(R)


def bm25(R, K1, B):
    sums = R.sum(axis=0)
    lengths = 1 - B + B * sums / sums.mean()
    return np.divide(R * (K1 + 1), K1 * lengths + R, out=np.zeros(R.shape), where=R > 0) * idf(R)


def omega(times, liked, recency):
    """(1 + how many of the likes are newer)^−recency, like by like."""
    return np.array([(1 + sum(times[j] > times[i] for j in liked)) ** -recency for i in liked])


def cf_komd(K, rows, regularization, q="exact", times=None, recency=0.0):
    """Scores from a normalised item kernel K by (10.2)-(10.5) of the thesis, a ridge a like."""
    out = np.zeros(rows.shape)
    for u, row in enumerate(rows):
        liked, others = np.flatnonzero(row), np.flatnonzero(row == 0)
        if len(liked) == 0:
            continue
        averaged = others if q == "exact" else np.arange(len(row))
        mean = K[:, averaged].mean(axis=1) if len(averaged) else np.zeros(len(row))
        a = qp.solve(
            K[np.ix_(liked, liked)],
            mean[liked],
            np.ones(len(liked)),
            regularization / omega(np.zeros(len(row)) if times is None else times[u], liked, recency),
        )
        out[u] = K[:, liked] @ a - mean
    return out


def ecf_omd(R, rows, regularization=0.1, times=None, recency=0.0):
    return cf_komd(normalised(R.T @ R), rows, regularization, times=times, recency=recency)


def cf_omd(R, rows, regularization=0.1, negative_regularization=1000.0, times=None, recency=0.0):
    K = normalised(R.T @ R)
    out = np.zeros(rows.shape)
    for u, row in enumerate(rows):
        if not row.any():
            continue
        sign = np.where(row > 0, 1.0, -1.0)
        ridge = np.full(len(row), negative_regularization)
        liked = np.flatnonzero(row)
        ridge[liked] = regularization
        if times is not None:
            ridge[liked] /= omega(times[u], liked, recency)
        a = qp.solve(K, np.zeros(len(row)), sign, ridge)
        out[u] = K @ (sign * a)
    return out


# Twins by name: from a fitted ranker and its 0/1 matrix to the scores of all its rows. What a ranker draws
# or learns by descent is read back from it; how scores follow from that is written out.


def kernel_of_items(R, kernel):
    K = kernel(R.T, normalize=True)
    empty = ~R.any(axis=0)
    K[empty] = K[:, empty] = 0
    np.fill_diagonal(K, 1)
    return K


def unit(row):
    return row / max(np.linalg.norm(row), 1e-300)


@RANKERS.add("popularity")
def _popularity(ranker, R):
    return popularity(R, R)


@RANKERS.add("msdw")
def _msdw(ranker, R):
    if ranker.sharpening or ranker.votes:
        return sharpened(R, R, ranker.sharpening, ranker.alpha, ranker.votes, ranker.locality)
    return msdw(R, R, ranker.alpha, ranker.locality)


@RANKERS.add("ease")
def _ease(ranker, R):
    return ease(R, R, ranker.regularization, ranker.votes, ranker.ridge_power, ranker.dropout)


def graph_filter(R, rows, filter="gf-cf", factors=256, ideal_weight=0.3, votes=1.0, item_power=0.5):
    """Filters written as matrices of all items, step by step, from a full decomposition."""
    U, D = np.maximum(R.sum(axis=1), 1), np.maximum(R.sum(axis=0), 1)
    A = np.diag(U ** (-votes / 2)) @ R @ np.diag(D**-item_power)
    P = A.T @ A
    P /= np.linalg.eigvalsh(P)[-1]
    _, values, V = np.linalg.svd(A)
    V = V[: min(factors, int((values > 1e-6 * values[0]).sum()))]
    F = np.diag(D**-item_power) @ V.T @ V @ np.diag(D**item_power)

    if filter == "ideal":
        return rows @ F
    return rows @ P + ideal_weight * (rows @ F)


@RANKERS.add("graph-filter")
def _graph_filter(ranker, R):
    left_out = ("recency", "random_state")
    options = {key: value for key, value in ranker.get_params().items() if key not in left_out}
    return graph_filter(R, R, **options)


@RANKERS.add("slim")
def _slim(ranker, R):
    return slim(R, R, ranker.l1, ranker.l2)


@RANKERS.add("content")
def _content(ranker, R):
    return np.zeros(R.shape)  # without item features; with them in tests/rankers/test_content.py


@RANKERS.add("cosine")
def _cosine(ranker, R):
    return neighbours(R, R, ranker.top_k)


@RANKERS.add("tfidf")
def _tfidf(ranker, R):
    return neighbours(R, R, ranker.top_k, tfidf)


@RANKERS.add("bm25")
def _bm25(ranker, R):
    return neighbours(R, R, ranker.top_k, lambda R: bm25(R, ranker.K1, ranker.B), unit=False)


@RANKERS.add("user-knn")
def _user_knn(ranker, R):
    return user_neighbours(R, R, ranker.top_k)


@RANKERS.add("cf-komd")
def _cf_komd(ranker, R):
    scores = cf_komd(kernel_of_items(R, ranker._kernel()), R, ranker.regularization, ranker.q)
    known = R.sum(axis=0) > 0
    if ranker.unrated == "mean" or (
        ranker.unrated is None and ranker.kernel == "md" and ranker.degree and ranker.degree >= 10
    ):
        scores[:, ~known] = scores[:, known].mean(axis=1, keepdims=True)
    return scores


@RANKERS.add("ecf-omd")
def _ecf_omd(ranker, R):
    return ecf_omd(R, R, ranker.regularization)


@RANKERS.add("cf-omd")
def _cf_omd(ranker, R):
    return cf_omd(R, R, ranker.regularization, ranker.negative_regularization)


@RANKERS.add("fm", "sparse-fm", "hofm", "bilinear", "pairnet")
def _pair_terms(ranker, R):
    """Sums of products of ANOVA kernels of the history and of the item, one by one."""
    out = []
    for row in R:
        a, at, total = unit(row), 0, np.zeros(R.shape[1])
        for m, whole, left in zip(ranker.degrees_, ranker.whole_, ranker.lefts_, strict=True):
            for p in left.T:
                for t in range(0 if whole else 1, m + 1 if whole else m):
                    # an order of all items is far off: its subsets by the polynomial that has them
                    total = total + elementary(p * a, t) * ranker.item_factors_[:, at]
                    at += 1
        out.append(total)
    return np.array(out)


def elementary(z, order):
    """The sum of all products of `order` entries: a coefficient of Π (1 + z_j x)."""
    return anova(np.ones(len(z)), z, order) if len(z) < 12 else np.poly(-z)[order]


@RANKERS.add("all-subsets")
def _all_subsets(ranker, R):
    rows = [np.prod(1 + ranker.left_ * unit(row)[:, None], axis=0) for row in R]
    return np.array(rows) @ ranker.item_factors_.T


@RANKERS.add("pair-svm")
def _pair_svm(ranker, R):
    return np.array([unit(row) @ ranker.weights_ for row in R], dtype=float)


@RANKERS.add("pair-dnn", "honfm")
def network_scores(ranker, R):
    """Layer after layer, for one row and one item at a time."""
    out = np.zeros(R.shape)
    for u, row in enumerate(R):
        a = unit(row)
        for i in range(R.shape[1]):
            units, at = np.zeros(ranker.factors), 0
            for m, whole, left in zip(ranker.degrees_, ranker.whole_, ranker.lefts_, strict=True):
                for s, p in enumerate(left.T):
                    for t in range(0 if whole else 1, m + 1 if whole else m):
                        units[s] += elementary(p * a, t) * ranker.item_factors_[i, at]
                        at += 1
            for k, (weights, biases) in enumerate(zip(ranker.weights_, ranker.biases_, strict=True)):
                units = weights @ (np.maximum(units, 0) if k else units) + biases
            out[u, i] = units[0]
    return out


@RANKERS.add("random-features")
def _random_features(ranker, R):
    W = ranker.projections_
    z = []
    for row in R:
        a, first, second = unit(row), 0, np.zeros(W.shape[1])
        for j in np.flatnonzero(a):  # every pair of features once
            second += W[j] * a[j] * first
            first = first + W[j] * a[j]
        z.append(np.hstack([second, a @ W]))
    z = np.array(z) / np.sqrt(W.shape[1])
    return np.hstack([z, np.ones((len(R), 1))]) @ ranker.item_factors_.T


def ials(C, Y, regularization, ridge_power, iterations):
    """Alternate from given item factors; C holds the confidence of each pair, above 1 of likes (alpha > 1)."""
    P = (C > 1).astype(float)
    powers = [C.sum(axis=1) ** ridge_power, C.sum(axis=0) ** ridge_power]
    scale = regularization * sum(C.shape) / (powers[0].sum() + powers[1].sum())

    def solved(C, P, Y, ridges):
        rows = []
        for c, p, ridge in zip(C, P, ridges, strict=True):
            left = Y.T @ np.diag(c) @ Y + ridge * np.eye(Y.shape[1])
            rows.append(np.linalg.solve(left, Y.T @ (c * p)))
        return np.array(rows)

    for _ in range(iterations):
        X = solved(C, P, Y, scale * powers[0])
        Y = solved(C.T, P.T, X, scale * powers[1])
    return X, Y


@RANKERS.add("als", "bpr", "lmf")
def _implicit(ranker, R):
    import scipy.sparse as sp
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking
    from implicit.lmf import LogisticMatrixFactorization
    from threadpoolctl import threadpool_limits

    kind = {
        "als": AlternatingLeastSquares,
        "bpr": BayesianPersonalizedRanking,
        "lmf": LogisticMatrixFactorization,
    }[ranker.name]
    with threadpool_limits(limits=1, user_api="blas"):
        params = {key: value for key, value in ranker.get_params().items() if key != "ridge_power"}
        theirs = kind(**(params | {"num_threads": 1}))
        theirs.fit(sp.csr_matrix(R, dtype=np.float32), show_progress=False)
    return theirs.user_factors @ theirs.item_factors.T


def loss_of_factors(ranker, row):
    """Return what lmf's factors of a row of likes make small, given its items, with its gradient."""
    Y, liked = ranker.item_factors_.astype(float), np.flatnonzero(row)
    width = Y.shape[1]
    share = ranker.popularity_ / ranker.popularity_.sum()
    negatives = min(len(liked) * ranker.neg_prop, width)
    ridge = max(ranker.regularization, 1e-4)

    def loss(free):
        s = Y @ np.insert(free, width - 2, 1.0)  # the items' biases count once
        value = np.logaddexp(0, -s[liked]).sum() + negatives * share @ np.logaddexp(0, s)
        slope = Y.T @ (negatives * share * expit(s)) - Y[liked].T @ expit(-s[liked])
        return value + ridge / 2 * free @ free, np.delete(slope, width - 2) + ridge * free

    return loss


def folded_in(ranker, row):
    """Return the most likely user factors of a row of likes, given lmf's items, by scipy."""
    from scipy.optimize import minimize

    width = ranker.item_factors_.shape[1]
    free = np.zeros(width - 1)
    if row.any():
        loss = loss_of_factors(ranker, row)
        free = minimize(loss, free, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return np.insert(free, width - 2, 1.0)


def _as_part(part, R):
    """Return the scores of a blend's part: of rows alone, whoever's they are."""
    if part.name == "lmf":
        return np.array([folded_in(part, row) for row in R]) @ part.item_factors_.T.astype(float)
    return RANKERS.get(part.name)(part, R)


@RANKERS.add("blend", "auto")
def _blend(ranker, R):
    total = np.zeros(R.shape)
    for part, weight in zip(ranker.parts_, ranker.part_weights_, strict=True):
        scores = _as_part(part, R)
        mean, deviation = scores.mean(axis=1, keepdims=True), scores.std(axis=1, keepdims=True)
        total += weight * (scores - mean) / np.where(deviation > 1e-12, deviation, 1.0)
    return total


@RANKERS.add("slist")
def _slist(ranker, R):
    return sequence.scores(ranker, R, None)
