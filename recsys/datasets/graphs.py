"""Graphs with features: NIPS co-authorship, the Cora citations, MovieLens 100K's 49 + 29 features."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.encoding import encode_table
from recsys.datasets.fetch import load_dataset
from recsys.errors import InputError
from recsys.registry import Registry
from recsys.utils.validation import check_choice

AGES = [0, 18, 25, 35, 45, 50, 56, 200]
FOLDERS = {"movielens": "ml-100k"}  # of graphs whose files have another name's
WEIGHTINGS = ("none", "unit", "tf-idf")  # of objects' features


class Objects(NamedTuple):
    """The objects of one end of the links, with their names and features.

    >>> Objects.of("paper", ["a", "b"], ["word=net"]).labels.tolist()
    ['a', 'b']
    """

    noun: str  # one of them: "author"; the plural takes an s
    ids: NDArray[np.object_]  # (objects,) text, none of it twice
    labels: NDArray[np.object_]  # (objects,) readable names
    features: tuple[str, ...]  # names of the matrix' columns

    @staticmethod
    def of(
        noun: str, ids: Sequence[str], features: Sequence[str], labels: Sequence[str] | None = None
    ) -> Objects:
        """Return objects whose labels are their ids by default; duplicate labels get the id appended."""
        names = np.array(ids, dtype=object)
        shown = names
        if labels is not None:
            often = Counter(labels)
            shown = np.array(
                [
                    label if often[label] == 1 and label else f"{label} [{one}]".strip()
                    for label, one in zip(labels, ids, strict=True)
                ],
                dtype=object,
            )
        return Objects(noun, names, shown, tuple(features))


class Graph(NamedTuple):
    """Objects' features and links; B is None where both ends are objects of one kind (links i < j)."""

    A: sp.csr_matrix  # (objects, features) float64
    B: sp.csr_matrix | None
    links: NDArray[np.int64]  # (links, 2)
    left: Objects
    right: Objects  # the same where both ends are of one kind
    weighting: str = "unit"  # "none", "unit" or "tf-idf": what suits the features (see `weighted`)
    notes: tuple[str, ...] = ()  # what reading dropped, and caveats for its metric values
    by_id: bool = False  # whether the features of an end are nothing but the objects' ids

    @property
    def sizes(self) -> tuple[int, int | None]:
        """Objects of both kinds; None for the second where there is one kind."""
        return self.A.shape[0], None if self.B is None else self.B.shape[0]

    def weighted(self, how: str | None = None) -> Graph:
        """Return the graph with its features "none", of "unit" length, or "tf-idf" of unit length.

        What suits the graph when not given.
        """
        how = self.weighting if how is None else how
        check_choice("weighting", how, WEIGHTINGS)
        return self._replace(
            A=_weighted(self.A, how), B=None if self.B is None else _weighted(self.B, how)
        )


def _weighted(X: sp.csr_matrix, how: str) -> sp.csr_matrix:
    if how == "none":
        return X
    from sklearn.feature_extraction.text import TfidfTransformer  # late: it takes half a second
    from sklearn.preprocessing import normalize

    return sp.csr_matrix(TfidfTransformer().fit_transform(X) if how == "tf-idf" else normalize(X))


GRAPHS: Registry[Callable[[Path], Graph]] = Registry("graph", package="recsys.datasets")


def list_graphs() -> list[str]:
    """Return the names that `load_graph` takes."""
    return GRAPHS.names()


def found_graph(name: str, folder: str | Path | None = None) -> Path | None:
    """Return the folder of a graph's files, None where there is none: nothing is read."""
    root = folder or os.environ.get("RECSYS_DATA")
    place = None if not root else Path(root) / FOLDERS.get(name, name)
    return place if place is not None and place.is_dir() else None


def load_graph(name: str, folder: str | Path | None = None) -> Graph:
    """Read a graph from a local folder.

    Parameters
    ----------
    name : str
        One of `list_graphs()`.
        NIPS: authors of volumes 0–12 by the counts of their papers' words, linked if they wrote a paper
        together. Cora: papers by their words, linked by a citation. MovieLens 100K: users by age (7
        bins), gender, occupation and the zip code's first character, movies by the decade nearest to the
        year in their title (ten values, one of them for no year) and genres, linked by a rating of 5:
        the 49 and 29 features of Blondel et al. (2016), Table 2.
    folder : path, optional
        The data folder, which holds `nips/`, `cora/` or MovieLens 100K; $RECSYS_DATA when not given.

    Raises
    ------
    InputError
        For another name, or files that are not there.
    """
    read = GRAPHS.get(name)
    folder = folder or os.environ.get("RECSYS_DATA")
    if not folder:
        raise InputError(f"graph {name!r} needs a folder of data: give it, or set RECSYS_DATA")
    try:
        return read(Path(folder))
    except FileNotFoundError as error:
        raise InputError(f"graph {name!r} needs {error.filename}") from error


@GRAPHS.add("nips")
def _nips(folder: Path) -> Graph:
    lines = (folder / "nips" / "nips.authors").read_text(encoding="latin-1").splitlines()
    authors = [[int(cell) for cell in line.split()] for line in lines]
    people = (folder / "nips" / "nips.authors.key").read_text(encoding="latin-1").splitlines()
    count = len(people)
    rows, columns, values = [], [], []
    with gzip.open(folder / "nips" / "nips.corpus.gz", "rt", encoding="ascii") as file:
        for paper, line in enumerate(file):
            for cell in line.split()[1:]:
                word, times = cell.split(":")
                rows.append(paper)
                columns.append(int(word))
                values.append(float(times))
    vocabulary = (folder / "nips" / "nips.vocab").read_text(encoding="latin-1").splitlines()
    words = [line.split(" = ")[0] for line in vocabulary]
    papers = sp.csr_matrix((values, (rows, columns)), shape=(len(authors), len(words)))
    wrote = [(a, paper) for paper, names in enumerate(authors) for a in set(names)]
    by = np.array(wrote)
    incidence = sp.csr_matrix((np.ones(len(by)), (by[:, 0], by[:, 1])), shape=(count, len(authors)))
    together = sp.triu(incidence @ incidence.T, 1).tocoo()
    links = np.column_stack([together.row, together.col]).astype(np.int64)
    named = Objects.of("author", [line.strip() for line in people], words)
    return Graph(
        sp.csr_matrix(incidence @ papers),
        None,
        links,
        named,
        named,
        "tf-idf",
        (
            "An author's words are those of the papers that make the links: two who wrote a paper "
            "together share its words, and the metric values flatter every predictor",
        ),
    )


@GRAPHS.add("cora")
def _cora(folder: Path) -> Graph:
    lines = (folder / "cora" / "cora.features.txt").read_text(encoding="ascii").splitlines()
    words = [[int(cell) for cell in line.split()] for line in lines]
    indptr = np.cumsum([0, *map(len, words)])
    indices = np.concatenate([np.array(row, dtype=np.int64) for row in words])
    A = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(words), 1433))
    pairs = np.loadtxt(folder / "cora" / "cora.edges.txt", dtype=np.int64)
    named = Objects.of(
        "paper", [f"paper {k}" for k in range(len(words))], [f"word {k}" for k in range(A.shape[1])]
    )
    links = np.unique(np.sort(pairs, axis=1), axis=0)
    notes = ("The files have numbers for the papers and their words, no names",)
    return Graph(A, None, links, named, named, "tf-idf", notes)


def _near_decade(year: float) -> str:
    """Return the years that round to the same decade, as a feature is called: 1985 to 1994 are 1990."""
    if np.isnan(year):
        return "unknown"
    start = int(year + 5) // 10 * 10 - 5
    return f"{start}–{start + 9}"


@GRAPHS.add("movielens")
def _movielens(folder: Path) -> Graph:
    data = load_dataset("movielens", folder)
    people, movies = data.user_features, data.item_features
    if people is None or movies is None:
        raise InputError("graph 'movielens' needs the official u.user and u.item")
    ages = pd.cut(people["age"].astype(float), AGES, labels=False, right=False)
    zips = people["zip"].astype(str).str[0]
    known = {"age": ages, "gender": people["gender"], "occupation": people["occupation"], "zip": zips}
    found = encode_table(pd.DataFrame(known), numbers="values", separator=None)
    years = pd.to_numeric(movies["year"], errors="coerce")
    about = pd.DataFrame({"year": years.map(_near_decade), "genres": movies["genres"].to_numpy()})
    other = encode_table(about)
    good = np.asarray(data.rating) >= 5
    return Graph(
        found.X,
        other.X,
        np.column_stack([data.users, data.items])[good].astype(np.int64),
        Objects.of("user", [str(one) for one in data.user_ids], found.names),
        Objects.of(
            "movie", [str(one) for one in data.item_ids], other.names, [str(t) for t in data.titles]
        ),
    )
