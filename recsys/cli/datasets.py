"""`recsys datasets`."""

from __future__ import annotations

from recsys.cli import terminal
from recsys.cli.options import DataDir
from recsys.datasets import list_datasets
from recsys.datasets.base import DATASETS


def datasets(data_dir: DataDir = None) -> None:
    """List the named datasets."""
    rows = []
    for name in list_datasets():
        entry = DATASETS.get(name)
        rows.append((name, entry.title, entry.licence or "", entry.where(data_dir)))
    terminal.table("", ("name", "what", "licence", "found"), rows)
