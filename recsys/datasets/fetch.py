"""The named datasets: where their files lie, how they are read, where they are fetched from.

A dataset is looked for in the folder given, in $RECSYS_DATA and in the user's cache, in its
own subfolder or directly; only then is it downloaded, to a temporary name, checked against
its SHA-256 and renamed.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs

from recsys.data.interactions import Interactions
from recsys.errors import DatasetError, InputError
from recsys.registry import Registry
from recsys.utils.files import check_growth, replacing

Reader = Callable[[Path], Interactions]
PATIENCE = 3.0, 30.0  # seconds until a source answers, and between its bytes
DATASETS: Registry[Dataset] = Registry("dataset", package="recsys.datasets")


@dataclass(frozen=True)
class Dataset:
    """An entry of the registry."""

    name: str
    title: str
    folders: tuple[str, ...]  # subfolders of a data folder in which its files may lie
    files: tuple[tuple[str, ...], ...]  # alternatives: all files of one must be there
    read: Reader
    archive: str = ""  # file name of the official one, which is recognized too
    url: str = ""  # of the archive
    sha256: str = ""  # of the archive
    licence: str = ""
    embedded: Callable[[], Path] | None = None  # the folder of one that comes with the package

    def where(self, data_dir: str | Path | None = None) -> str:
        """Return the folder that the dataset would be read from, or how to get it."""
        found = _locate(self, data_dir)
        if found is not None:
            return str(found)
        return "on first use, downloaded" if self.url else f"needs {self.place}"

    @property
    def place(self) -> str:
        """The files and the folder of each."""
        return f"{' and '.join(self.files[0])} in {self.folders[0]}/ under --data-dir"


def dataset(
    name: str,
    title: str,
    *,
    files: tuple[str, ...],
    or_files: tuple[tuple[str, ...], ...] = (),
    folders: tuple[str, ...] | None = None,
    **about: Any,
) -> Callable[[Reader], Reader]:
    """Register the decorated reader as a dataset.

    The folder must contain `files`, or one of the alternatives `or_files`, in order of preference. By
    default, folders have the name of the dataset. `about` has the other attributes of `Dataset`.
    """

    def register(read: Reader) -> Reader:
        DATASETS.add(name)(Dataset(name, title, folders or (name,), (files, *or_files), read, **about))
        return read

    return register


def list_datasets() -> list[str]:
    """Return the names of all datasets."""
    return DATASETS.names()


def load_dataset(name: str, data_dir: str | Path | None = None) -> Interactions:
    """Return a dataset, from disk or downloaded.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    data_dir : path, optional
        Folder to look in first.
    """
    try:
        dataset = DATASETS.get(name)
        if data_dir is not None and not Path(data_dir).is_dir():
            raise DatasetError(f"the data folder {data_dir} does not exist")
        return replace(dataset.read(_find(dataset, data_dir)), name=name)
    except InputError as error:
        raise error if isinstance(error, DatasetError) else DatasetError(str(error)) from None


def cache_folder() -> Path:
    """Return the folder that downloads are kept in."""
    return Path(platformdirs.user_cache_dir("recsys")) / "data"


def _locate(dataset: Dataset, data_dir: str | Path | None) -> Path | None:
    """Return the folder with the dataset's files, or its archive, if there is one on disk."""
    if dataset.embedded is not None:
        return dataset.embedded()
    roots = (data_dir, os.environ.get("RECSYS_DATA"), cache_folder())
    for root in (Path(one) for one in roots if one):
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
    if not dataset.url:
        raise DatasetError(f"{dataset.name} has no public download: put {dataset.place}")
    return _unpack(dataset, _download(dataset))


def _download(dataset: Dataset) -> Path:
    import pooch

    try:
        archive = pooch.retrieve(
            dataset.url,
            known_hash=f"sha256:{dataset.sha256}",
            fname=dataset.archive,
            path=cache_folder() / dataset.folders[0],
            downloader=pooch.HTTPDownloader(progressbar=False, timeout=PATIENCE),
        )
    except (ValueError, OSError) as error:
        wrong = "its checksum is wrong and it was removed"
        why = wrong if isinstance(error, ValueError) else type(error).__name__
        raise DatasetError(
            f"{dataset.name} is not on disk and could not be downloaded ({why}): put {dataset.place}, "
            "or use the dataset sample, which is part of the package"
        ) from None
    return Path(archive)


def _unpack(dataset: Dataset, archive: Path) -> Path:
    """Take the files that the dataset needs out of a zip, by exact name, one by one."""
    writable = os.access(archive.parent, os.W_OK)
    target = archive.parent if writable else cache_folder() / dataset.folders[0]
    target.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as packed:
            members = {Path(name).name: name for name in packed.namelist() if not name.endswith("/")}
            wanted = next((f for f in dataset.files if all(Path(x).name in members for x in f)), None)
            if wanted is None:
                raise DatasetError(f"{archive} does not contain {' and '.join(dataset.files[0])}")
            for file in wanted:
                info = packed.getinfo(members[Path(file).name])
                check_growth(archive, info.compress_size, info.file_size)
                with packed.open(info) as stream, replacing(target / file) as out:
                    shutil.copyfileobj(stream, out)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise DatasetError(f"{archive} is a damaged zip archive: {error}") from None
    return target
