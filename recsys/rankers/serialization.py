"""Rankers read from files, of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.rankers import _files
from recsys.rankers._files import write_ranker
from recsys.rankers.base import Ranker
from recsys.utils import model_file

__all__ = ["load_ranker", "read_ranker", "write_ranker"]


def read_ranker(
    path: model_file.Target,
    kind: type[Ranker] = Ranker,
    mapped: bool = False,
    checked: str | None = None,
) -> tuple[Ranker, dict[str, np.ndarray[Any, Any]]]:
    """Return a saved ranker and the arrays that were kept with it; the rest as in `model_file.read`.

    Raises
    ------
    ModelFileError
        Also if it is of another kind.
    """
    return _files.read_ranker(path, kind, mapped, checked)


def load_ranker(path: model_file.Target, *, mmap: bool = False) -> Ranker:
    """Read a ranker of any kind that `save` wrote.

    Parameters
    ----------
    path : path, or a file open for reading bytes
    mmap : bool
        Leave the arrays in the file, where all processes that read it share one copy in memory; what one
        of them changes is its own. The file may be replaced or removed, but never be cut or written to.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of another kind or too new.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from recsys import EASE, load_dataset, load_ranker
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ease.recsys"
    >>> EASE().fit(load_dataset("sample").matrix).save(path)
    >>> load_ranker(path, mmap=True).name
    'ease'
    """
    ranker: Ranker = read_ranker(path, Ranker, mapped=mmap)[0]
    return ranker
