"""Graphs with features: NIPS co-authorship, the Cora citations, MovieLens 100K's 49 + 27 features."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.encoding import encode_table
from recsys.datasets.base import load_dataset
from recsys.errors import InputError
from recsys.registry import Registry

AGES = [0, 18, 25, 35, 45, 50, 56, 200]


class Graph(NamedTuple):
    """Objects' features and links; B is None where both ends are objects of one kind (links i < j)."""

    A: sp.csr_matrix
    B: sp.csr_matrix | None
    links: NDArray[np.int64]


GRAPHS: Registry[Callable[[Path], Graph]] = Registry("graph", package="recsys.datasets")


def list_graphs() -> list[str]:
    """Return the names that `load_graph` takes."""
    return GRAPHS.names()


def load_graph(name: str, folder: str | Path) -> Graph:
    """Read a graph from a local folder.

    Parameters
    ----------
    name : str
        One of `list_graphs()`.
        NIPS: authors of volumes 0–12 by the counts of their papers' words, linked if they wrote a paper
        together. Cora: papers by their words, linked by a citation. MovieLens 100K: users by age (7
        bins), gender, occupation and the zip code's first character, movies by year (at quantiles) and
        genres, linked by a rating of 5.
    folder : path
        The data folder, which holds `nips/`, `cora/` or MovieLens 100K.

    Raises
    ------
    InputError
        For another name, or files that are not there.
    """
    read = GRAPHS.get(name)
    try:
        return read(Path(folder))
    except FileNotFoundError as error:
        raise InputError(f"graph {name!r} needs {error.filename}") from error


@GRAPHS.add("nips")
def _nips(folder: Path) -> Graph:
    lines = (folder / "nips" / "nips.authors").read_text(encoding="latin-1").splitlines()
    authors = [[int(cell) for cell in line.split()] for line in lines]
    count = len((folder / "nips" / "nips.authors.key").read_text(encoding="latin-1").splitlines())
    rows, columns, values = [], [], []
    with gzip.open(folder / "nips" / "nips.corpus.gz", "rt", encoding="ascii") as file:
        for paper, line in enumerate(file):
            for cell in line.split()[1:]:
                word, times = cell.split(":")
                rows.append(paper)
                columns.append(int(word))
                values.append(float(times))
    words = len((folder / "nips" / "nips.vocab").read_text(encoding="latin-1").splitlines())
    papers = sp.csr_matrix((values, (rows, columns)), shape=(len(authors), words))
    wrote = [(a, paper) for paper, names in enumerate(authors) for a in set(names)]
    by = np.array(wrote)
    incidence = sp.csr_matrix((np.ones(len(by)), (by[:, 0], by[:, 1])), shape=(count, len(authors)))
    together = sp.triu(incidence @ incidence.T, 1).tocoo()
    links = np.column_stack([together.row, together.col]).astype(np.int64)
    return Graph(sp.csr_matrix(incidence @ papers), None, links)


@GRAPHS.add("cora")
def _cora(folder: Path) -> Graph:
    lines = (folder / "cora" / "cora.features.txt").read_text(encoding="ascii").splitlines()
    words = [[int(cell) for cell in line.split()] for line in lines]
    indptr = np.cumsum([0, *map(len, words)])
    indices = np.concatenate([np.array(row, dtype=np.int64) for row in words])
    A = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(words), 1433))
    pairs = np.loadtxt(folder / "cora" / "cora.edges.txt", dtype=np.int64)
    return Graph(A, None, np.unique(np.sort(pairs, axis=1), axis=0))


@GRAPHS.add("movielens")
def _movielens(folder: Path) -> Graph:
    data = load_dataset("movielens", folder)
    people, movies = data.user_features, data.item_features
    if people is None or movies is None:
        raise InputError("graph 'movielens' needs the official u.user and u.item")
    ages = pd.cut(people["age"].astype(float), AGES, labels=False, right=False)
    zips = people["zip"].astype(str).str[0]
    known = {"age": ages, "gender": people["gender"], "occupation": people["occupation"], "zip": zips}
    A = encode_table(pd.DataFrame(known), numbers="values", separator=None).X
    years = pd.to_numeric(movies["year"], errors="coerce")
    edges = np.unique(np.nanquantile(years, np.linspace(0.0, 1.0, 12)[1:-1]))
    bins = np.searchsorted(edges, years.fillna(years.median()).to_numpy(float), side="right")
    about = pd.DataFrame({"year": bins, "genres": movies["genres"].to_numpy()})
    B = encode_table(about, numbers="values").X
    good = np.asarray(data.rating) >= 5
    return Graph(A, B, np.column_stack([data.users, data.items])[good].astype(np.int64))
