"""The named datasets: where their files lie, how they are read, where they are fetched from.

A dataset is looked for in the folder given, in $RECSYS_DATA and in the user's cache, in its
own subfolder or directly; only then is it downloaded, to a temporary name, checked against
its SHA-256 and renamed.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import platformdirs

from recsys.data import readers
from recsys.data.interactions import Interactions
from recsys.data.streams import read_text
from recsys.errors import DatasetError, InputError
from recsys.registry import Registry, did_you_mean

DATASETS: Registry[Dataset] = Registry("dataset")
ML100K_GENRES = ("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime",
                 "Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery",
                 "Romance", "Sci-Fi", "Thriller", "War", "Western")


@dataclass(frozen=True)
class Dataset:
    """An entry of the registry.

    Attributes
    ----------
    name, title : str
    folders : tuple of str
        Subfolders of a data folder in which its files may lie.
    files : tuple of tuple of str
        Alternatives: all files of one alternative must be there.
    read : callable
        From the folder to Interactions.
    archive : str
        File name of the official archive, which is recognised too.
    urls : tuple of str
        Sources of the archive, tried in turn.
    sha256 : str
        Of the archive; without one nothing is downloaded.
    licence : str
    """

    name: str
    title: str
    folders: tuple[str, ...]
    files: tuple[tuple[str, ...], ...]
    read: Callable[[Path], Interactions]
    archive: str = ""
    urls: tuple[str, ...] = ()
    sha256: str = ""
    licence: str = ""

    def where(self, data_dir: str | Path | None = None) -> str:
        """Return the folder that the dataset would be read from, or how to get it."""
        found = _locate(self, data_dir)
        if found is not None:
            return str(found)
        return "on first use, downloaded" if self.urls and self.sha256 else f"needs {self.place}"

    @property
    def place(self) -> str:
        """Which files belong where."""
        return f"{' and '.join(self.files[0])} in {self.folders[0]}/ under --data-dir"


def list_datasets() -> list[str]:
    """Return the names that `load_dataset` takes."""
    return DATASETS.names()


def load_dataset(name: str, data_dir: str | Path | None = None) -> Interactions:
    """Return a dataset, from disk or downloaded.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    data_dir : path, optional
        Folder to look in first.

    Raises
    ------
    DatasetError
        If it is unknown, absent and cannot be fetched, or damaged. The message says where
        to put which file.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) or name not in list_datasets():
        raise DatasetError(f"unknown dataset {name!r}: {did_you_mean(str(name), list_datasets())}")
    dataset = DATASETS.get(name)
    if data_dir is not None and not Path(data_dir).is_dir():
        raise DatasetError(f"the data folder {data_dir} does not exist")
    folder = _find(dataset, data_dir)
    try:
        return replace(dataset.read(folder), name=name)
    except DatasetError:
        raise
    except InputError as error:
        raise DatasetError(str(error)) from None


def _roots(data_dir: str | Path | None) -> list[Path]:
    roots = [Path(data_dir)] if data_dir is not None else []
    if os.environ.get("RECSYS_DATA"):
        roots.append(Path(os.environ["RECSYS_DATA"]))
    return [*roots, cache_folder()]


def cache_folder() -> Path:
    """Return the folder that downloads are kept in."""
    return Path(platformdirs.user_cache_dir("recsys")) / "data"


def _locate(dataset: Dataset, data_dir: str | Path | None) -> Path | None:
    """Return the folder with the dataset's files, or its archive, if there is one on disk."""
    if dataset.name == "sample":
        return sample_folder()
    for root in _roots(data_dir):
        for folder in (*(root / name for name in dataset.folders), root):
            if any(all((folder / file).is_file() for file in files) for files in dataset.files):
                return folder
            if dataset.archive and (folder / dataset.archive).is_file():
                return folder / dataset.archive
    return None


def _find(dataset: Dataset, data_dir: str | Path | None) -> Path:
    found = _locate(dataset, data_dir)
    if found is not None:
        return _unpack(dataset, found) if found.is_file() else found
    if not dataset.urls or not dataset.sha256:
        raise DatasetError(f"{dataset.name} has no public download: put {dataset.place}")
    return _download(dataset, f"put {dataset.place}")


def _download(dataset: Dataset, place: str) -> Path:
    import pooch

    folder = cache_folder() / dataset.folders[0]
    failures = []
    for url in dataset.urls:
        try:
            archive = pooch.retrieve(
                url, known_hash=f"sha256:{dataset.sha256}", fname=dataset.archive, path=folder,
                downloader=pooch.HTTPDownloader(progressbar=False, timeout=30),
            )
            return _unpack(dataset, Path(archive))
        except ValueError:
            failures.append("a source gave a file with a wrong checksum, which was removed")
        except OSError as error:
            failures.append(type(error).__name__)
    raise DatasetError(
        f"{dataset.name} is not on disk and could not be downloaded ({'; '.join(dict.fromkeys(failures))}): {place}"
    )


def _unpack(dataset: Dataset, archive: Path) -> Path:
    """Take the files that the dataset needs out of a zip, by exact name, one by one."""
    target = archive.parent if os.access(archive.parent, os.W_OK) else cache_folder() / dataset.folders[0]
    target.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as bundle:
            members = {Path(name).name: name for name in bundle.namelist() if not name.endswith("/")}
            wanted = next((f for f in dataset.files if all(Path(x).name in members for x in f)), None)
            if wanted is None:
                raise DatasetError(f"{archive} does not hold {' and '.join(dataset.files[0])}")
            for file in wanted:
                info = bundle.getinfo(members[Path(file).name])
                if info.file_size > 4_000_000_000 or (
                    info.file_size > 100_000_000 and info.file_size > 200 * max(1, info.compress_size)
                ):
                    raise DatasetError(f"{archive}: {file} unpacks to {info.file_size:,} bytes; refused")
                temporary = target / f".{file}.recsys-tmp"
                temporary.write_bytes(bundle.read(info))
                os.replace(temporary, target / file)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise DatasetError(f"{archive} is a damaged zip archive: {error}") from None
    return target


# Readers, one a dataset


def sample_folder() -> Path:
    """Return where the embedded dataset lies: in the package, or in a source checkout."""
    inside = Path(__file__).parent / "sample"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "data" / "sample"


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
        frame = pd.DataFrame({"title": table.column("title"), "genres": genres}, index=table.column("id"))
        data = data.with_features(items=_with_year(frame))
    if (folder / "u.user").is_file():
        names = ("id", "age", "gender", "occupation", "zip")
        table = readers.read_table(folder / "u.user", names=names, separator="|")
        frame = pd.DataFrame({n: table.column(n) for n in names[1:]}, index=table.column("id"))
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
        data = data.with_features(items=_with_year(readers.read_features(folder / "movies.csv", "movieId", "item")))
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
        table.column("user_id"), table.column("item_id"), table.numbers("rating"),
        time.astype(np.int64).astype(np.float64),
    )


def _read_pairs(folder: Path) -> Interactions:
    return readers.read_interactions(folder / "interactions.csv.gz")


def _read_jester(folder: Path) -> Interactions:
    """Take positive ratings of users with at most 90 ratings as liked (thesis, 3.2.2)."""
    text = read_text(folder / "jester-data-1.csv.gz")
    rows = np.array([line.split(",") for line in text.split("\n") if line], dtype=np.float64)
    kept = rows[rows[:, 0] <= 90]
    user, item = np.nonzero((kept[:, 1:] > 0) & (kept[:, 1:] < 99))
    return Interactions.from_ids(
        user.astype(str).astype(object), (item + 1).astype(str).astype(object), kept[:, 1:][user, item],
        notes=(f"{len(rows) - len(kept):,} users with more than 90 ratings left out, as the thesis does",),
    )


def _read_lastfm(folder: Path) -> Interactions:
    return readers.read_interactions(folder / "user_artists.dat", user_col="userID", item_col="artistID")


for _dataset in (
    Dataset("sample", "generated, embedded: planted tastes over a long-tailed catalogue", ("sample",),
            (("interactions.csv", "items.csv", "users.csv"),), _read_sample, licence="MIT"),
    Dataset("movielens", "MovieLens 100K", ("ml-100k",), (("u.data", "u.item", "u.user"), ("u.data",)),
            _read_ml100k, "ml-100k.zip",
            ("https://files.grouplens.org/datasets/movielens/ml-100k.zip",
             "http://files.grouplens.org/datasets/movielens/ml-100k.zip"),
            "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
            "research use, no redistribution"),
    Dataset("movielens-1m", "MovieLens 1M", ("ml-1m",), (("ratings.dat", "movies.dat", "users.dat"),
            ("ratings.csv.gz",), ("ratings.dat",)), _read_ml1m, "ml-1m.zip",
            ("https://files.grouplens.org/datasets/movielens/ml-1m.zip",
             "http://files.grouplens.org/datasets/movielens/ml-1m.zip"),
            "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
            "research use, no redistribution"),
    Dataset("movielens-20m", "MovieLens 20M", ("ml-20m",), (("ratings.csv", "movies.csv"), ("ratings.csv",)),
            _read_ml20m, "ml-20m.zip", licence="research use, no redistribution"),
    Dataset("filmtrust", "FilmTrust", ("filmtrust",), (("ratings.txt",),), _read_filmtrust),
    Dataset("ciaodvd", "CiaoDVD", ("ciaodvd",), (("movie-ratings.txt.gz",), ("movie-ratings.txt",)),
            _read_ciaodvd),
    Dataset("bookcrossing", "BookCrossing, the reduction of Polato's thesis", ("bookcrossing",),
            (("interactions.csv.gz",),), _read_pairs),
    Dataset("gowalla", "Gowalla check-ins, the 10-core", ("gowalla",), (("interactions.csv.gz",),), _read_pairs),
    Dataset("jester", "Jester 1, positive ratings", ("jester",), (("jester-data-1.csv.gz",),), _read_jester),
    Dataset("lastfm", "Last.fm, HetRec 2011", ("lastfm", "hetrec2011-lastfm-2k"), (("user_artists.dat",),),
            _read_lastfm, "hetrec2011-lastfm-2k.zip"),
):
    DATASETS.add(_dataset.name)(_dataset)
