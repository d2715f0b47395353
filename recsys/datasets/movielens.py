"""MovieLens: ratings of films with times and genres; with users' attributes in 100K and 1M."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from recsys.data import reading
from recsys.data.interactions import Interactions
from recsys.data.tables import read_table
from recsys.datasets.base import dataset

ML100K_GENRES = (
    "unknown Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy Film-Noir "
    "Horror Musical Mystery Romance Sci-Fi Thriller War Western"
).split()


@dataset(
    "movielens",
    "MovieLens 100K",
    files=("u.data", "u.item", "u.user"),
    or_files=(("u.data",),),
    folders=("ml-100k",),
    archive="ml-100k.zip",
    urls=(
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "http://files.grouplens.org/datasets/movielens/ml-100k.zip",
    ),
    sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    licence="research use, no redistribution",
)
def read_ml100k(folder: Path) -> Interactions:
    """Read ratings, and films and users where their files are there."""
    data = reading.read(
        folder / "u.data",
        names=("user_id", "item_id", "rating", "timestamp"),
        delimiter="\t",
        plain=True,
    )
    names = ("id", "title", "date", "video", "url", *ML100K_GENRES)
    if (folder / "u.item").is_file():
        table = read_table(folder / "u.item", names=names, delimiter="|", encoding="latin-1")
        flags = np.array([table.texts(genre) == "1" for genre in ML100K_GENRES])
        genres = ["|".join(np.array(ML100K_GENRES)[flag]) for flag in flags.T]
        frame = pd.DataFrame({"title": table.texts("title"), "genres": genres}, index=table.texts("id"))
        data = data.with_features(items=_with_year(frame))
    if (folder / "u.user").is_file():
        fields = ("id", "age", "gender", "occupation", "zip")
        table = read_table(folder / "u.user", names=fields, delimiter="|")
        frame = pd.DataFrame({n: table.texts(n) for n in fields[1:]}, index=table.texts("id"))
        data = data.with_features(users=frame)
    return data


@dataset(
    "movielens-1m",
    "MovieLens 1M",
    files=("ratings.dat", "movies.dat", "users.dat"),
    or_files=(("ratings.csv.gz",), ("ratings.dat",)),
    folders=("ml-1m",),
    archive="ml-1m.zip",
    urls=(
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        "http://files.grouplens.org/datasets/movielens/ml-1m.zip",
    ),
    sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    licence="research use, no redistribution",
)
def read_ml1m(folder: Path) -> Interactions:
    """Read ratings, and films and users where their files are there."""
    if (folder / "ratings.csv.gz").is_file():
        table = read_table(folder / "ratings.csv.gz")
        order = table.texts("order_in_user")
        # A blank order belongs to a rare movie whose time is lost: taken as the user's oldest.
        time = np.array([float(cell) if cell else -np.inf for cell in order])
        data = Interactions.from_ids(
            table.texts("user_id"),
            table.texts("movie_id"),
            table.texts("rating").astype(np.float64),
            time,
        )
    else:
        data = reading.read(
            folder / "ratings.dat",
            names=("user_id", "item_id", "rating", "timestamp"),
            delimiter="::",
            plain=True,
        )
    if (folder / "movies.dat").is_file():
        table = read_table(
            folder / "movies.dat", names=("id", "title", "genres"), delimiter="::", encoding="latin-1"
        )
        frame = pd.DataFrame({n: table.texts(n) for n in ("title", "genres")}, index=table.texts("id"))
        data = data.with_features(items=_with_year(frame))
    if (folder / "users.dat").is_file():
        names = ("id", "gender", "age", "occupation", "zip")
        table = read_table(folder / "users.dat", names=names, delimiter="::", encoding="latin-1")
        frame = pd.DataFrame({n: table.texts(n) for n in names[1:]}, index=table.texts("id"))
        data = data.with_features(users=frame)
    return data


@dataset(
    "movielens-latest-small",
    "MovieLens latest, small (2018)",
    files=("ratings.csv", "movies.csv"),
    or_files=(("ratings.csv",),),
    folders=("ml-latest-small",),
    archive="ml-latest-small.zip",
    licence="research use, no redistribution",
)
@dataset(
    "movielens-20m",
    "MovieLens 20M",
    files=("ratings.csv", "movies.csv"),
    or_files=(("ratings.csv",),),
    folders=("ml-20m",),
    archive="ml-20m.zip",
    licence="research use, no redistribution",
)
def read_ml20m(folder: Path) -> Interactions:
    """Read ratings, and films where their file is there; the latest ones are of the same form."""
    data = reading.read(folder / "ratings.csv", plain=True)
    if (folder / "movies.csv").is_file():
        films = reading.read_features(folder / "movies.csv", "movieId", "item")
        films["genres"] = films["genres"].replace("(no genres listed)", "")
        data = data.with_features(items=_with_year(films))
    return data


def _with_year(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(year=frame["title"].str.extract(r"\((\d{4})\)\s*$", expand=False))
