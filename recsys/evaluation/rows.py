"""Metric values as rows, and rows as a table of the kind that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recsys.utils import frames


class Rows:
    """What has rows of the same keys, and returns them as a table."""

    rows: list[dict[str, Any]]

    def frame(self, kind: str = "pandas") -> Any:
        """Return the rows as a frame, "pandas", "polars" or "pyarrow".

        Raises
        ------
        InputError
            For another kind, or one that is not installed.
        """
        return table_of(self.rows, kind)


def table_of(rows: Sequence[Mapping[str, Any]], kind: str = "pandas") -> Any:
    """Return rows of the same keys as a table of pandas, polars or pyarrow.

    Examples
    --------
    >>> table_of([{"model": "ease", "mean": 0.5}])
      model  mean
    0  ease   0.5
    """
    columns = list(rows[0]) if rows else []
    return frames.make({name: [row[name] for row in rows] for name in columns}, kind)
