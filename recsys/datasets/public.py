"""The public data sets: MovieLens, BookCrossing, CiaoDVD, FilmTrust, Jester, Last.fm, and the sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recsys.data.interactions import Interactions
from recsys.data.reading import read_features
from recsys.data.tables import read_table, read_text
from recsys.datasets.fetch import dataset
from recsys.errors import DatasetError

ML100K_GENRES = (
    "unknown Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy Film-Noir "
    "Horror Musical Mystery Romance Sci-Fi Thriller War Western"
).split()
RATINGS = ("user_id", "item_id", "rating", "timestamp")
GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
RESEARCH = "research use, no redistribution"


def sample_folder() -> Path:
    """Return where the embedded dataset lies: in the package, or in a source checkout."""
    inside = Path(__file__).parent / "sample"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "data" / "sample"


@dataset(
    "sample",
    "generated, embedded: planted preferences over a long-tailed catalogue",
    files=("interactions.csv", "items.csv", "users.csv"),
    embedded=sample_folder,
    licence="MIT",
)
def read_sample(folder: Path) -> Interactions:
    """Read interactions and both tables of features."""
    data = _read(folder / "interactions.csv")
    items = read_features(folder / "items.csv", "item_id", "item")
    users = read_features(folder / "users.csv", "user_id", "user")
    return data.with_features(items=items, users=users)


@dataset(
    "movielens",
    "MovieLens 100K",
    files=("u.data", "u.item", "u.user"),
    or_files=(("u.data",),),
    folders=("ml-100k",),
    archive="ml-100k.zip",
    url=f"{GROUPLENS}ml-100k.zip",
    sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    licence=RESEARCH,
)
def read_ml100k(folder: Path) -> Interactions:
    """Read ratings, and films and users where their files are there."""
    data = _read(folder / "u.data", names=RATINGS, delimiter="\t")
    if (folder / "u.item").is_file():
        names = ("id", "title", "date", "video", "url", *ML100K_GENRES)
        films = _texts(folder / "u.item", names, "|")
        flags = films[ML100K_GENRES].to_numpy() == "1"
        genres = ["|".join(np.array(ML100K_GENRES)[flag]) for flag in flags]
        data = data.with_features(items=_with_year(films[["title"]].assign(genres=genres)))
    if (folder / "u.user").is_file():
        fields = ("id", "age", "gender", "occupation", "zip")
        data = data.with_features(users=_texts(folder / "u.user", fields, "|"))
    return data


@dataset(
    "movielens-1m",
    "MovieLens 1M",
    files=("ratings.dat", "movies.dat", "users.dat"),
    or_files=(("ratings.csv.gz",), ("ratings.dat",)),
    folders=("ml-1m",),
    archive="ml-1m.zip",
    url=f"{GROUPLENS}ml-1m.zip",
    sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    licence=RESEARCH,
)
def read_ml1m(folder: Path) -> Interactions:
    """Read ratings, and films and users where their files are there."""
    if (folder / "ratings.csv.gz").is_file():
        table = read_table(folder / "ratings.csv.gz")
        user, item, rating, order = table.texts(("user_id", "movie_id", "rating", "order_in_user"))
        # A blank order belongs to a rare movie whose time is lost: taken as the user's oldest.
        time = np.array([float(cell) if cell else -np.inf for cell in order])
        data = Interactions.from_ids(user, item, rating.astype(np.float64), time)
    else:
        data = _read(folder / "ratings.dat", names=RATINGS, delimiter="::")
    if (folder / "movies.dat").is_file():
        films = _texts(folder / "movies.dat", ("id", "title", "genres"), "::")
        data = data.with_features(items=_with_year(films))
    if (folder / "users.dat").is_file():
        fields = ("id", "gender", "age", "occupation", "zip")
        data = data.with_features(users=_texts(folder / "users.dat", fields, "::"))
    return data


@dataset(
    "movielens-latest-small",
    "MovieLens latest, small (2018)",
    files=("ratings.csv", "movies.csv"),
    or_files=(("ratings.csv",),),
    folders=("ml-latest-small",),
    archive="ml-latest-small.zip",
    licence=RESEARCH,
)
@dataset(
    "movielens-20m",
    "MovieLens 20M",
    files=("ratings.csv", "movies.csv"),
    or_files=(("ratings.csv",),),
    folders=("ml-20m",),
    archive="ml-20m.zip",
    licence=RESEARCH,
)
def read_ml20m(folder: Path) -> Interactions:
    """Read ratings, and films where their file is there; the latest ones are of the same form."""
    data = _read(folder / "ratings.csv")
    if (folder / "movies.csv").is_file():
        films = read_features(folder / "movies.csv", "movieId", "item")
        films["genres"] = films["genres"].replace("(no genres listed)", "")
        data = data.with_features(items=_with_year(films))
    return data


@dataset(
    "bookcrossing", "BookCrossing, the reduction of Polato's thesis", files=("interactions.csv.gz",)
)
def read_bookcrossing(folder: Path) -> Interactions:
    """Read pairs of user and item."""
    return _read(folder / "interactions.csv.gz")


@dataset("ciaodvd", "CiaoDVD", files=("movie-ratings.txt.gz",), or_files=(("movie-ratings.txt",),))
def read_ciaodvd(folder: Path) -> Interactions:
    """Read ratings with the day of each as seconds since 1970."""
    path = next(
        p for p in map(folder.joinpath, ("movie-ratings.txt.gz", "movie-ratings.txt")) if p.is_file()
    )
    table = read_table(path, names=("user", "item", "genre", "review", "rating", "date"), delimiter=",")
    user, item, rating, date = table.texts(("user", "item", "rating", "date"))
    try:
        time = np.array([cell.strip() for cell in date], dtype="datetime64[s]").astype(np.float64)
    except ValueError as error:
        raise DatasetError(f"{path}: {error}") from None
    return Interactions.from_ids(user, item, rating.astype(np.float64), time)


@dataset("filmtrust", "FilmTrust", files=("ratings.txt",))
def read_filmtrust(folder: Path) -> Interactions:
    """Read user, item and rating."""
    return _read(folder / "ratings.txt", names=RATINGS[:3], delimiter=" ")


@dataset("jester", "Jester 1, positive ratings", files=("jester-data-1.csv.gz",))
def read_jester(folder: Path) -> Interactions:
    """Take positive ratings as interactions, then the users with 1 to 89 of them (thesis, 3.2.2).

    The thesis states users with more than 90 *ratings*; its Table 3.3 (24,430 users, density 42.24%)
    requires counts after binarization. User ids are line numbers, joke ids column numbers; the order of
    a user's rows is not an order in time.
    """
    text = read_text(folder / "jester-data-1.csv.gz")
    rows = np.array([line.split(",") for line in text.split("\n") if line], dtype=np.float64)
    likes = (rows[:, 1:] > 0) & (rows[:, 1:] < 99)  # 99 stands for no rating
    count = likes.sum(axis=1)
    kept = np.flatnonzero((count > 0) & (count < 90))
    user, item = np.nonzero(likes[kept])
    return Interactions.from_ids(
        (kept[user] + 1).astype(str).astype(object),
        (item + 1).astype(str).astype(object),
        rows[kept[user], item + 1],
        notes=(
            f"{int((count >= 90).sum()):,} users who like 90 jokes or more and "
            f"{int((count == 0).sum()):,} who like none left out, as the thesis does",
        ),
    )


@dataset(
    "lastfm",
    "Last.fm, HetRec 2011",
    files=("user_artists.dat",),
    folders=("lastfm", "hetrec2011-lastfm-2k"),
    archive="hetrec2011-lastfm-2k.zip",
)
def read_lastfm(folder: Path) -> Interactions:
    """Read users and artists, with counts as ratings if available."""
    return _read(folder / "user_artists.dat", user="userID", item="artistID")


def _read(path: Path, **decisions: Any) -> Interactions:
    """Read interactions; the columns are no news."""
    data = Interactions.from_frame(path, **decisions)
    return replace(data, notes=data.notes[1:])


def _texts(path: Path, names: tuple[str, ...], delimiter: str) -> pd.DataFrame:
    """Return a table of text, indexed by its first column."""
    table = read_table(path, names=names, delimiter=delimiter, encoding="latin-1")
    ids, *columns = table.texts(names)
    return pd.DataFrame(dict(zip(names[1:], columns, strict=True)), index=ids)


def _with_year(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(year=frame["title"].str.extract(r"\((\d{4})\)\s*$", expand=False))
