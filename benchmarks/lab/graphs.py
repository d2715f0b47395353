"""The graphs of the papers' link tables: NIPS, and MovieLens 100K with the features of HOFM's Table 2."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from recsys.data.features import encode_table
from recsys.datasets import load_dataset
from recsys.datasets.graphs import Graph, Objects

AGES = [0, 18, 25, 35, 45, 50, 56, 200]


def load_graph(name: str, folder: str | Path) -> Graph:
    """Return a graph of a data folder.

    nips: authors of volumes 0–12 by the counts of their papers' words, linked if they wrote a paper together.
    movielens: users by age, gender, occupation and the zip code's first character, movies by decade and
    genres, linked by a rating of 5.
    """
    return {"nips": _nips, "movielens": _movielens}[name](Path(folder))


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


def _near_decade(year: float) -> str:
    """Return the years that round to the same decade, as a feature is called: 1985 to 1994 are 1990."""
    if np.isnan(year):
        return "unknown"
    start = int(year + 5) // 10 * 10 - 5
    return f"{start}–{start + 9}"


def _movielens(folder: Path) -> Graph:
    data = load_dataset("movielens", folder)
    people, movies = data.user_features, data.item_features
    assert people is not None and movies is not None
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
