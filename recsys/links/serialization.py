"""Link predictors read from files, of any kind."""

from __future__ import annotations

from recsys.links._files import read_link_predictor
from recsys.links.base import LinkPredictor
from recsys.utils import model_file

__all__ = ["load_link_predictor"]


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
    model: LinkPredictor = read_link_predictor(path, LinkPredictor)
    return model
