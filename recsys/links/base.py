"""Base of the link predictors, over two feature matrices and index pairs; reasons of a link."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError, ModelFileError
from recsys.registry import Registry, check_parameters
from recsys.utils import model_file
from recsys.utils.validation import as_array, as_labels, check_ids, check_integer, real_array

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Task(NamedTuple):
    """Checked input: features of both sides, pairs as two index vectors, labels of −1 and 1."""

    A: sp.csr_matrix
    B: sp.csr_matrix
    left: Index
    right: Index
    y: Array


class Parts(NamedTuple):
    """The decomposition of a score of one pair of objects."""

    base: float
    left: float  # contribution of the features of the left end alone
    right: float
    pairs: Array  # of each pair of non-zero features of the left and the right end


@dataclass(eq=False, repr=False)
class LinkPredictor(BaseEstimator):
    """Base of the link predictors.

    `fit(A, B, pairs, y)` takes features of the objects of each kind, (objects, features) dense or CSR,
    pairs of row indices, (pairs, 2), and two classes. With B = None both ends are rows of A, and the
    predictor is symmetric if it supports that.

    Attributes
    ----------
    classes_ : (2,)
        The classes; the second one is the link.
    n_features_ : (int, int)
        Numbers of features of A and B.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.links import make_link_predictor
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = make_link_predictor("bilinear", n_components=2).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> model.predict(A, None, pairs).shape
    (6,)
    """

    def fit(self, A: Any, B: Any, pairs: ArrayLike, y: ArrayLike) -> Self:
        """Fit on (pairs,) labels of two classes; the larger label is the link."""
        self.check_parameters()
        A, B, left, right = _checked(A, B, pairs)
        labels = as_labels("y", y)
        if labels.shape != left.shape:
            raise InputError(f"y has shape {labels.shape} for {len(left)} pairs")
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise InputError(f"y must have two classes, and has {len(self.classes_)}")
        self.n_features_ = (A.shape[1], B.shape[1])
        self._fit(Task(A, B, left, right, np.where(labels == self.classes_[1], 1.0, -1.0)))
        return self

    def decision_function(self, A: Any, B: Any, pairs: ArrayLike) -> Array:
        """Return scores, (pairs,): above 0 for a link. The objects may differ from those of the fit."""
        check_is_fitted(self, "n_features_")
        A, B, left, right = _checked(A, B, pairs)
        if (A.shape[1], B.shape[1]) != self.n_features_:
            raise InputError(
                f"A and B have {A.shape[1]} and {B.shape[1]} features; fit had {self.n_features_[0]} "
                f"and {self.n_features_[1]}"
            )
        return self._score(A, B, left, right)

    def predict(self, A: Any, B: Any, pairs: ArrayLike) -> NDArray[Any]:
        """Return the class of each pair."""
        scores = self.decision_function(A, B, pairs)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, A: Any, B: Any, pairs: ArrayLike) -> Array:
        """Return the logistic function of the scores as probabilities, (pairs, 2)."""
        p = expit(self.decision_function(A, B, pairs))
        return np.column_stack([1.0 - p, p])

    def score(self, A: Any, B: Any, pairs: ArrayLike, y: ArrayLike) -> float:
        """Return the accuracy."""
        return float(accuracy_score(y, self.predict(A, B, pairs)))

    def parts(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Parts | None:
        """Return the parts of the score of two rows; None where it is no sum over pairs of features."""
        return None

    def save(self, path: str | Path) -> None:
        """Write the fitted predictor, without `history_`, to a file."""
        check_is_fitted(self, "n_features_")
        name = next(name for name in LINKS if LINKS.get(name) is type(self))
        params = {key: np.asarray(value).tolist() for key, value in self.get_params().items()}
        if not isinstance(params.get("random_state", 0), int):
            params["random_state"] = None  # a generator's state is of use to fit only
        state = {
            key: value for key, value in vars(self).items() if key.endswith("_") and key != "history_"
        }
        state["classes_"] = [self.classes_.tolist(), self.classes_.dtype.str]
        scalars, arrays = model_file.packed(state)
        manifest = {"link_predictor": name, "params": params, "state": scalars}
        model_file.write(path, manifest, arrays)

    def check_parameters(self) -> None:
        """Raise an InputError for parameters out of range."""
        raise NotImplementedError

    def _fit(self, task: Task) -> None:
        raise NotImplementedError

    def _score(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> Array:
        raise NotImplementedError


LINKS: Registry[type[LinkPredictor]] = Registry("link predictor", "recsys.links")


def make_link_predictor(name: str, /, **params: Any) -> LinkPredictor:
    """Return an unfitted link predictor by name, one of `LINKS.names()`.

    Examples
    --------
    >>> make_link_predictor("pairnet", degree=3)
    PairNet(degree=3)
    >>> make_link_predictor("pairnet", degre=3)
    Traceback (most recent call last):
        ...
    recsys.errors.InputError: link predictor 'pairnet' has no parameter 'degre': did you mean 'degree'?
    """
    kind = LINKS.get(name)
    check_parameters(f"link predictor {name!r}", params, kind().get_params())
    model = kind(**params)
    model.check_parameters()
    return model


@model_file.refuses
def load_link_predictor(path: str | Path) -> LinkPredictor:
    """Read a link predictor of any kind that `save` wrote."""
    manifest, arrays = model_file.read(path)
    name = manifest.get("link_predictor")
    if not isinstance(name, str):
        hint = ": read it with recsys.load_ranker" if "ranker" in manifest else ""
        raise ModelFileError(f"{path} contains no link predictor{hint}")
    model = make_link_predictor(name, **manifest["params"])
    state = model_file.unpacked(manifest["state"], arrays)
    values, dtype = state.pop("classes_")
    model.classes_ = np.array(values, dtype=dtype)
    left, right = state.pop("n_features_")
    model.n_features_ = (int(left), int(right))
    for key, value in state.items():
        setattr(model, key, value)
    return model


def _checked(A: Any, B: Any, pairs: ArrayLike) -> tuple[sp.csr_matrix, sp.csr_matrix, Index, Index]:
    """Return clean float64 CSR features and the pairs' two index vectors."""
    A = as_features("A", A)
    B = A if B is None else as_features("B", B)
    ends = as_array("pairs", pairs)
    if ends.ndim != 2 or ends.shape[1] != 2 or len(ends) == 0:
        raise InputError(f"pairs must be (pairs, 2) indices, not of shape {ends.shape}")
    left = check_ids("row of A in pairs", ends[:, 0], A.shape[0])
    return A, B, left, check_ids("row of B in pairs", ends[:, 1], B.shape[0])


def as_features(name: str, X: Any) -> sp.csr_matrix:
    """Return finite features as a canonical float64 CSR matrix of its own."""
    if not sp.issparse(X):
        X = real_array(name, X, 2)
    elif X.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a matrix of real numbers, not of {X.dtype}")
    rows = sp.csr_matrix(X, dtype=np.float64, copy=True)
    if min(rows.shape) == 0:
        raise InputError(f"{name} is empty: {rows.shape[0]} objects of {rows.shape[1]} features")
    if not np.isfinite(rows.data).all():
        raise InputError(f"{name} contains NaN or infinity; finite numbers are needed")
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_symmetric(wanted: bool | None, one_kind: bool) -> bool:
    """Return whether to symmetrize: by default where both ends are of one kind, and never elsewhere."""
    if wanted and not one_kind:
        raise InputError("symmetric=True needs objects of one kind: pass B=None")
    return one_kind if wanted is None else wanted


class LinkReasons(NamedTuple):
    """The explanation of a predicted link.

    Attributes
    ----------
    kind : "exact" or "changes"
        Whether the score is base + left + right + pairs + others, or `changes` tell what changes it.
    score : float
        Above 0 for a link.
    base, left, right : float
        Constant, and contributions of the features of each end alone.
    pairs : tuple of (int, int, float)
        Features of the left and right end, and the contribution of the pair; largest magnitude first.
    others : float
        Sum of the contributions of unlisted pairs.
    unlisted : int
        Number of unlisted pairs.
    changes : tuple of (int, int, float)
        End (0 left, 1 right), feature, and decrease of the score without it.
    """

    kind: str
    score: float
    base: float = 0.0
    left: float = 0.0
    right: float = 0.0
    pairs: tuple[tuple[int, int, float], ...] = ()
    others: float = 0.0
    unlisted: int = 0
    changes: tuple[tuple[int, int, float], ...] = ()


def link_reasons(
    model: LinkPredictor, A: Any, B: Any, left: int, right: int, N: int = 10
) -> LinkReasons:
    """Return the contributions of the features of two objects to their score.

    The score of a bilinear model, a PairNet, a factorization machine or a PairSVM is a sum over pairs of
    features; a product of more features is divided equally among its pairs across the ends. For
    networks, each feature is removed in turn.

    Parameters
    ----------
    model : fitted LinkPredictor
    A, B
        Features as in `LinkPredictor.decision_function`.
    left, right : int
        Rows of A and of B.
    N : int ≥ 1
        Largest number of pairs or features to list.
    """
    check_integer("N", N, 1)
    score = float(model.decision_function(A, B, [[left, right]])[0])
    a = as_features("A", A)[[left]]
    b = as_features("B", A if B is None else B)[[right]]
    parts = model.parts(a, b)
    if parts is None:
        return LinkReasons("changes", score, changes=tuple(_changes(model, a, b)[:N]))
    flat = parts.pairs.ravel()
    best = np.argsort(-np.abs(flat), kind="stable")[:N]
    best = best[flat[best] != 0.0]
    rows, columns = np.unravel_index(best, parts.pairs.shape)
    features = a.indices[rows].tolist(), b.indices[columns].tolist()
    return LinkReasons(
        "exact",
        score,
        parts.base,
        parts.left,
        parts.right,
        tuple(zip(*features, flat[best].tolist(), strict=True)),
        float(flat.sum() - flat[best].sum()),
        int(np.count_nonzero(flat)) - len(best),
    )


def _changes(model: LinkPredictor, a: sp.csr_matrix, b: sp.csr_matrix) -> list[tuple[int, int, float]]:
    """Return by how much the score falls without each feature, the largest change first."""
    out = []
    for side, row in enumerate((a, b)):
        n = row.nnz
        copies = row[np.zeros(n + 1, dtype=int)]
        copies.data[np.arange(n) * (n + 1) + n] = 0.0  # the k-th feature of copy k + 1
        pairs = np.zeros((n + 1, 2), dtype=int)
        pairs[:, side] = np.arange(n + 1)
        scores = model.decision_function(*((a, copies) if side else (copies, b)), pairs)
        falls = (scores[0] - scores[1:]).tolist()
        out += [(side, f, fall) for f, fall in zip(row.indices.tolist(), falls, strict=True)]
    return sorted(out, key=lambda change: -abs(change[2]))
