"""Rankers, one file a family, all behind the protocol of `recsys.rankers.base.Ranker`."""

from __future__ import annotations

from recsys.rankers.catalogue import Bundle, fit_bundle, load_bundle
from recsys.rankers.serialization import RANKERS, SavedRanker, make_ranker, read_ranker
from recsys.rankers.side_information import prepare
from recsys.utils import model_file


def list_rankers() -> list[str]:
    """Return the names that `make_ranker` takes."""
    return RANKERS.names()


def load_ranker(path: model_file.Target) -> SavedRanker:
    """Read a ranker of any kind that `save` wrote, from a path or a file open for reading bytes.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of another kind or too new.
    """
    return read_ranker(path)[0]


__all__ = [
    "Bundle",
    "SavedRanker",
    "fit_bundle",
    "list_rankers",
    "load_bundle",
    "load_ranker",
    "make_ranker",
    "prepare",
    "read_ranker",
]
