"""The named datasets: files, sources, licences, and how each is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from recsys.data import readers
from recsys.data.interactions import Interactions
from recsys.datasets.base import DATASETS, Dataset
from recsys.errors import DatasetError
from recsys.utils.files import read_text

ML100K_GENRES = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)


def _read_sample(folder: Path) -> Interactions:
    data = readers.read_interactions(folder / "interactions.csv")
    items = readers.read_features(folder / "items.csv", "item_id", "item")
    users = readers.read_features(folder / "users.csv", "user_id", "user")
    return data.with_features(items=items, users=users)


def _read_ml100k(folder: Path) -> Interactions:
    data = readers.read_interactions(
        folder / "u.data", names=("user_id", "item_id", "rating", "timestamp"), separator="\t"
    )
    names = ("id", "title", "date", "video", "url", *ML100K_GENRES)
    if (folder / "u.item").is_file():
        table = readers.read_table(folder / "u.item", names=names, separator="|", encoding="latin-1")
        flags = np.array([table.column(genre) == "1" for genre in ML100K_GENRES])
        genres = ["|".join(np.array(ML100K_GENRES)[flag]) for flag in flags.T]
        frame = pd.DataFrame(
            {"title": table.column("title"), "genres": genres}, index=table.column("id")
        )
        data = data.with_features(items=_with_year(frame))
    if (folder / "u.user").is_file():
        fields = ("id", "age", "gender", "occupation", "zip")
        table = readers.read_table(folder / "u.user", names=fields, separator="|")
        frame = pd.DataFrame({n: table.column(n) for n in fields[1:]}, index=table.column("id"))
        data = data.with_features(users=frame)
    return data


def _read_ml1m(folder: Path) -> Interactions:
    if (folder / "ratings.csv.gz").is_file():
        table = readers.read_table(folder / "ratings.csv.gz")
        order = table.column("order_in_user")
        # A blank order belongs to a rare movie whose time is lost: taken as the user's oldest.
        time = np.array([float(cell) if cell else -np.inf for cell in order])
        data = Interactions.from_ids(
            table.column("user_id"), table.column("movie_id"), table.numbers("rating"), time
        )
    else:
        data = readers.read_interactions(
            folder / "ratings.dat", names=("user_id", "item_id", "rating", "timestamp"), separator="::"
        )
    if (folder / "movies.dat").is_file():
        table = readers.read_table(
            folder / "movies.dat", names=("id", "title", "genres"), separator="::", encoding="latin-1"
        )
        frame = pd.DataFrame({n: table.column(n) for n in ("title", "genres")}, index=table.column("id"))
        data = data.with_features(items=_with_year(frame))
    if (folder / "users.dat").is_file():
        names = ("id", "gender", "age", "occupation", "zip")
        table = readers.read_table(folder / "users.dat", names=names, separator="::", encoding="latin-1")
        frame = pd.DataFrame({n: table.column(n) for n in names[1:]}, index=table.column("id"))
        data = data.with_features(users=frame)
    return data


def _with_year(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(year=frame["title"].str.extract(r"\((\d{4})\)\s*$", expand=False))


def _read_ml20m(folder: Path) -> Interactions:
    data = readers.read_interactions(folder / "ratings.csv")
    if (folder / "movies.csv").is_file():
        data = data.with_features(
            items=_with_year(readers.read_features(folder / "movies.csv", "movieId", "item"))
        )
    return data


def _read_filmtrust(folder: Path) -> Interactions:
    return readers.read_interactions(
        folder / "ratings.txt", names=("user_id", "item_id", "rating"), separator=" "
    )


def _read_ciaodvd(folder: Path) -> Interactions:
    path = folder / "movie-ratings.txt.gz"
    path = path if path.is_file() else folder / "movie-ratings.txt"
    names = ("user_id", "item_id", "genre", "review", "rating", "date")
    table = readers.read_table(path, names=names, separator=",")
    try:
        time = np.array([cell.strip() for cell in table.column("date")], dtype="datetime64[s]")
    except ValueError as error:
        raise DatasetError(f"{path}: {error}") from None
    return Interactions.from_ids(
        table.column("user_id"),
        table.column("item_id"),
        table.numbers("rating"),
        time.astype(np.int64).astype(np.float64),
    )


def _read_pairs(folder: Path) -> Interactions:
    return readers.read_interactions(folder / "interactions.csv.gz")


def _read_jester(folder: Path) -> Interactions:
    """Take positive ratings as likes, then the users with 1 to 89 of them (thesis, 3.2.2).

    The thesis speaks of users with more than 90 *ratings*; its Table 3.3 (24,430 users, density
    42.24%) comes out only if they are counted after binarising. Users are named by the line
    of the file, jokes by the column; a user's rows are in the order of the columns, which
    is no order in time.
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


def _read_lastfm(folder: Path) -> Interactions:
    return readers.read_interactions(folder / "user_artists.dat", user_col="userID", item_col="artistID")


for _dataset in (
    Dataset(
        "sample",
        "generated, embedded: planted tastes over a long-tailed catalogue",
        ("sample",),
        (("interactions.csv", "items.csv", "users.csv"),),
        _read_sample,
        licence="MIT",
    ),
    Dataset(
        "movielens",
        "MovieLens 100K",
        ("ml-100k",),
        (("u.data", "u.item", "u.user"), ("u.data",)),
        _read_ml100k,
        "ml-100k.zip",
        (
            "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            "http://files.grouplens.org/datasets/movielens/ml-100k.zip",
        ),
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "research use, no redistribution",
    ),
    Dataset(
        "movielens-1m",
        "MovieLens 1M",
        ("ml-1m",),
        (("ratings.dat", "movies.dat", "users.dat"), ("ratings.csv.gz",), ("ratings.dat",)),
        _read_ml1m,
        "ml-1m.zip",
        (
            "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
            "http://files.grouplens.org/datasets/movielens/ml-1m.zip",
        ),
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        "research use, no redistribution",
    ),
    Dataset(
        "movielens-20m",
        "MovieLens 20M",
        ("ml-20m",),
        (("ratings.csv", "movies.csv"), ("ratings.csv",)),
        _read_ml20m,
        "ml-20m.zip",
        licence="research use, no redistribution",
    ),
    Dataset("filmtrust", "FilmTrust", ("filmtrust",), (("ratings.txt",),), _read_filmtrust),
    Dataset(
        "ciaodvd",
        "CiaoDVD",
        ("ciaodvd",),
        (("movie-ratings.txt.gz",), ("movie-ratings.txt",)),
        _read_ciaodvd,
    ),
    Dataset(
        "bookcrossing",
        "BookCrossing, the reduction of Polato's thesis",
        ("bookcrossing",),
        (("interactions.csv.gz",),),
        _read_pairs,
    ),
    Dataset(
        "gowalla",
        "Gowalla check-ins, the 10-core",
        ("gowalla",),
        (("interactions.csv.gz",),),
        _read_pairs,
    ),
    Dataset(
        "jester", "Jester 1, positive ratings", ("jester",), (("jester-data-1.csv.gz",),), _read_jester
    ),
    Dataset(
        "lastfm",
        "Last.fm, HetRec 2011",
        ("lastfm", "hetrec2011-lastfm-2k"),
        (("user_artists.dat",),),
        _read_lastfm,
        "hetrec2011-lastfm-2k.zip",
    ),
):
    DATASETS.add(_dataset.name)(_dataset)
