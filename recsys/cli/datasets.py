"""`recsys datasets`."""

from __future__ import annotations

from recsys.cli import terminal
from recsys.cli.options import DataDir
from recsys.datasets import list_datasets, list_graphs
from recsys.datasets.base import DATASETS
from recsys.datasets.graphs import FOLDERS, found_graph


def datasets(data_dir: DataDir = None) -> None:
    """List the named datasets, and the graphs that `recsys links` takes."""
    rows = []
    for name in list_datasets():
        entry = DATASETS.get(name)
        rows.append((name, entry.title, entry.licence or "", entry.where(data_dir)))
    terminal.table("", ("name", "what", "licence", "found"), rows)
    graphs = []
    for name in list_graphs():
        place = found_graph(name, data_dir)
        needed = f"needs {FOLDERS.get(name, name)}/ under --data-dir"
        graphs.append((name, needed if place is None else str(place)))
    terminal.table("Graphs, for recsys links --graph", ("name", "found"), graphs)
