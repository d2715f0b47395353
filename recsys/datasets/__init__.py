"""Named datasets: interactions, categorical tables and graphs."""

from recsys.datasets.categorical import list_tables, load_table
from recsys.datasets.fetch import list_datasets, load_dataset
from recsys.datasets.graphs import graph_of, read_graph

__all__ = [
    "graph_of",
    "list_datasets",
    "list_tables",
    "load_dataset",
    "load_table",
    "read_graph",
]
