"""Last.fm of HetRec 2011: listeners and artists."""

from __future__ import annotations

from pathlib import Path

from recsys.data import reading
from recsys.data.interactions import Interactions
from recsys.datasets.base import dataset


@dataset(
    "lastfm",
    "Last.fm, HetRec 2011",
    files=("user_artists.dat",),
    folders=("lastfm", "hetrec2011-lastfm-2k"),
    archive="hetrec2011-lastfm-2k.zip",
)
def read_lastfm(folder: Path) -> Interactions:
    """Read who listened to whom, with counts as ratings where there are some."""
    return reading.read(folder / "user_artists.dat", user="userID", item="artistID", plain=True)
