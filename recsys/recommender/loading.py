"""Recommenders from files."""

from __future__ import annotations

import importlib.util

from recsys.rankers import load_package
from recsys.recommender.recommender import Recommender
from recsys.utils.frames import KINDS
from recsys.utils.model_file import Target
from recsys.utils.validation import check_choice


def load(path: Target, frames: str | None = None) -> Recommender:
    """Read a file of `Recommender.save` or `recsys fit --out`.

    Parameters
    ----------
    path : path, or a file open for reading bytes
    frames : "pandas", "polars" or "pyarrow", optional
        The kind of tables that come back: that of the table fitted on when not given, or pandas where
        that kind is not installed.

    Raises
    ------
    ModelFileError
        If the file is damaged or forged, or holds a ranker without its catalogue.

    Examples
    --------
    >>> import recsys, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.recsys"
    >>> recsys.Recommender("ease").fit(recsys.load_dataset("sample")).save(path)
    >>> recsys.load(path)
    <Recommender: ease on 400 users, 300 items, 10,746 interactions>
    """
    if frames is not None:
        check_choice("frames", frames, KINDS)
    made = Recommender.of(load_package(path), frames)
    if frames is None and importlib.util.find_spec(made.kind) is None:
        made._kind = "pandas"
    return made
