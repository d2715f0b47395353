"""Base of the link predictors: two feature matrices, index pairs, labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator

from recsys.errors import InputError, NotFittedError
from recsys.links import _files
from recsys.links._files import Learned
from recsys.registry import Registry
from recsys.utils import model_file
from recsys.utils.features import as_array, as_labels, check_sample_weight, native

__all__ = [
    "LINKS",
    "Learned",
    "LinkPredictor",
    "Parts",
    "Task",
    "check_symmetric",
    "check_task",
    "load_link_predictor",
    "make_link_predictor",
]

Array = NDArray[np.float64]


class Task(NamedTuple):
    """Checked input: features of both sides, pairs as two index vectors, labels of −1 and 1.

    `weights` are those of the pairs, above 0; None where none were given.
    """

    A: sp.csr_matrix
    B: sp.csr_matrix
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    y: Array
    weights: Array | None = None


class Parts(NamedTuple):
    """The decomposition of a score of one pair of objects.

    Attributes
    ----------
    base, left, right : float
        A constant, and what the features of each end add by themselves.
    rows, columns : (m,), (n,) int64
        Features of the left and of the right object.
    pairs : (m, n) float64
        What each pair of these adds.
    """

    base: float
    left: float
    right: float
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    pairs: Array


@dataclass(eq=False, repr=False)
class LinkPredictor(BaseEstimator):
    """Base of the link predictors.

    `fit(A, B, pairs, y)` takes the features of the objects of each kind, (objects, features) dense or
    CSR, index pairs (pairs, 2) into their rows, and two classes. B = None means that both ends are rows
    of A: the predictor is then symmetric, if it can be.

    Attributes
    ----------
    classes_ : (2,)
        The second is the link.
    n_features_ : (int, int)
        Features of A and of B.
    takes_weights : bool
        Of the class: whether `fit` heeds `Task.weights`. `sample_weight` is refused where it does not.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.links import make_link_predictor
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = make_link_predictor("bilinear", n_components=2).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> model.predict(A, None, pairs).shape
    (6,)
    """

    takes_weights: ClassVar[bool] = False

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there was a fit."""
        return hasattr(self, "n_features_")

    def fit(
        self, A: Any, B: Any, pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Fit.

        Parameters
        ----------
        A : (objects, features) array or CSR
        B : (objects, features) array or CSR, or None for pairs within A
        pairs : (pairs, 2) int
        y : (pairs,)
            Two classes; the second one in order is the link.
        sample_weight : (pairs,) float, optional
            Of the pairs in the loss, of at least 0 and not all 0: 2 is as the pair twice, 0 leaves it
            out. Where the loss is a mean only their ratios matter; `PairSVM` multiplies C by them.

        Raises
        ------
        InputError
            For parameters out of range, pairs that point nowhere, values that are not finite, weights
            that are no such, or pairs of one class only.
        """
        self.check_parameters()
        A, B, left, right = check_task(A, B, pairs)
        labels = as_labels("y", y)
        if labels.shape != left.shape:
            raise InputError(f"y has shape {labels.shape} for {len(left)} pairs")
        weights = self._checked_weights(sample_weight, len(left))
        if weights is not None:
            kept = weights > 0.0
            left, right, labels, weights = left[kept], right[kept], labels[kept], weights[kept]
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise InputError(f"y must hold two classes, and has {len(self.classes_)}")
        self.n_features_ = (A.shape[1], B.shape[1])
        self._fit(Task(A, B, left, right, 2.0 * (labels == self.classes_[1]) - 1.0, weights))
        return self

    def _checked_weights(self, given: ArrayLike | None, pairs: int) -> Array | None:
        if given is None:
            return None
        if not self.takes_weights:
            able = ", ".join(repr(name) for name in LINKS.names() if LINKS.get(name).takes_weights)
            raise InputError(
                f"{type(self).__name__} takes no sample_weight: leave it out, or use one of {able}"
            )
        return check_sample_weight(given, pairs, "pairs")

    def decision_function(self, A: Any, B: Any, pairs: ArrayLike) -> Array:
        """Return scores, (pairs,): above 0 for a link. Objects may be others than those of fit.

        Raises
        ------
        NotFittedError
            Before fit.
        InputError
            For another number of features, or for pairs that point nowhere.
        """
        return self._score(*self._checked(A, B, pairs))

    def _checked(
        self, A: Any, B: Any, pairs: ArrayLike
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64], NDArray[np.int64]]:
        self._check_fitted()
        A, B, left, right = check_task(A, B, pairs)
        if (A.shape[1], B.shape[1]) != self.n_features_:
            raise InputError(
                f"A and B have {A.shape[1]} and {B.shape[1]} features; fit had {self.n_features_[0]} "
                f"and {self.n_features_[1]}"
            )
        return A, B, left, right

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as a file holds them."""
        return dict(self.get_params())

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"{type(self).__name__} is not fitted yet: call fit first")

    def predict(self, A: Any, B: Any, pairs: ArrayLike) -> NDArray[Any]:
        """Return the class of each pair."""
        above = self.decision_function(A, B, pairs) > 0
        return self.classes_[above.astype(int)]

    def predict_proba(self, A: Any, B: Any, pairs: ArrayLike) -> Array:
        """Return the logistic function of the scores as probabilities, (pairs, 2)."""
        p = expit(self.decision_function(A, B, pairs))
        return np.column_stack([1.0 - p, p])

    def parts(self, A: Any, B: Any, left: int, right: int) -> Parts | None:
        """Return the decomposition of the score of a pair, None for models that are no such sum.

        Parameters
        ----------
        A, B
            As in `decision_function`.
        left, right : int
            Rows of A and of B.

        Raises
        ------
        NotFittedError, InputError
            As `decision_function`.
        """
        A, B = self._checked(A, B, [[left, right]])[:2]
        return self._parts(A[[left]], B[[right]])

    def score(
        self, A: Any, B: Any, pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy, of pairs with weights the weighted one."""
        predicted, labels = self.predict(A, B, pairs), as_labels("y", y)
        if labels.shape != predicted.shape:
            raise InputError(f"y has shape {labels.shape} for {len(predicted)} pairs")
        right = predicted == labels
        if sample_weight is None:
            return float(np.mean(right))
        return float(np.average(right, weights=check_sample_weight(sample_weight, len(right), "pairs")))

    def save(self, path: model_file.Target) -> None:
        """Write the fitted predictor to exactly `path`, atomically: all of it but `history_`.

        Parameters
        ----------
        path : path, or file open for writing bytes
            A file there is replaced in one step. To an open file the bytes are written where it stands,
            and it is left open.

        Raises
        ------
        NotFittedError, InputError
            If the predictor is not fitted, or the file cannot be written.
        """
        self._check_fitted()
        _files.write_link_predictor(path, self)

    @classmethod
    def load(cls, path: model_file.Target) -> Self:
        """Read a predictor that `save` wrote; its scores are the same to the bit.

        Parameters
        ----------
        path : path, or file open for reading bytes

        Raises
        ------
        ModelFileError
            If the file is truncated, altered, of another kind or too new, or what it needs is absent.
        """
        model: Self = _files.read_link_predictor(path, cls)
        return model

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, as `fit` does first.

        Raises
        ------
        InputError
        """
        raise NotImplementedError

    def _fit(self, task: Task) -> None:
        raise NotImplementedError

    def _score(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Array:
        raise NotImplementedError

    def _parts(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Parts | None:
        """Return the parts of the score of two rows; None where it is no such sum."""
        return None

    def _learned(self) -> Learned:
        """Return the learned state for a file, besides `classes_` and `n_features_`."""
        raise InputError(f"{type(self).__name__} cannot be saved: it does not say what it has learned")

    def _restore(self, learned: Learned) -> None:
        """Take over what `_learned` gave: each thing is taken out of it, and whatever stays is refused.

        It may be a stranger's: sizes are those of the parameters and of `n_features_`, or it is a
        ValueError or a KeyError.
        """
        raise NotImplementedError


LINKS: Registry[type[LinkPredictor]] = _files.LINKS


def make_link_predictor(name: str, /, **params: Any) -> LinkPredictor:
    """Return the link predictor of a name, not fitted.

    Parameters
    ----------
    name : str
        One of `LINKS.names()`.
    **params
        Its parameters.

    Raises
    ------
    InputError
        For an unknown name or parameter, with the nearest known one, or a value out of range.

    Examples
    --------
    >>> make_link_predictor("pairnet", degree=3)
    PairNet(degree=3)
    >>> make_link_predictor("pairnet", degre=3)
    Traceback (most recent call last):
        ...
    recsys.errors.InputError: link predictor 'pairnet' has no parameter 'degre': did you mean 'degree'?
    """
    model: LinkPredictor = _files.made(name, params)
    return model


def load_link_predictor(path: model_file.Target) -> LinkPredictor:
    """Read a link predictor of any kind that `save` wrote; its scores are the same to the bit.

    Parameters
    ----------
    path : path, or a file open for reading bytes

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of another kind or too new, or what it needs is absent.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from recsys.links import make_link_predictor
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "links.recsys"
    >>> model = make_link_predictor("pair-svm").fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> model.save(path)
    >>> again = load_link_predictor(path)
    >>> (again.predict(A, None, pairs) == model.predict(A, None, pairs)).all()
    np.True_
    """
    model: LinkPredictor = _files.read_link_predictor(path, LinkPredictor)
    return model


def check_task(
    A: Any, B: Any, pairs: ArrayLike
) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64], NDArray[np.int64]]:
    """Return clean float64 CSR features and the pairs' two index vectors."""
    A = _features("A", A)
    B = A if B is None else _features("B", B)
    given = as_array("pairs", pairs)
    if given.ndim != 2 or given.shape[1] != 2 or len(given) == 0:
        raise InputError(f"pairs must be (pairs, 2) indices, not of shape {given.shape}")
    if not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"pairs must be integers, not {given.dtype}")
    for column, (name, X) in enumerate((("A", A), ("B", B))):
        ends = given[:, column]
        if ends.min() < 0 or ends.max() >= X.shape[0]:
            bad = int(ends.min() if ends.min() < 0 else ends.max())
            raise InputError(f"a pair points to row {bad} of {name}, which has {X.shape[0]} rows")
    return A, B, given[:, 0].astype(np.int64), given[:, 1].astype(np.int64)


def _features(name: str, X: Any) -> sp.csr_matrix:
    try:
        given: Any = native(X) if sp.issparse(X) else as_array(name, X)
        if given.dtype.kind not in "biuf":
            raise TypeError(given.dtype)
        rows = sp.csr_matrix(given, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a matrix of numbers, not {type(X).__name__}") from error
    if min(rows.shape) == 0:
        raise InputError(f"{name} is empty: {rows.shape[0]} objects of {rows.shape[1]} features")
    if not np.isfinite(rows.data).all():
        raise InputError(f"{name} holds NaN or infinity")
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_symmetric(wanted: bool | None, one_kind: bool) -> bool:
    """Return whether to symmetrise: by default where both ends are of one kind, and never elsewhere."""
    if wanted and not one_kind:
        raise InputError("symmetric=True needs both ends among the rows of A: give B=None")
    return one_kind if wanted is None else wanted
