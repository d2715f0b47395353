"""JSON as a table: a line an object, or one array of objects.

Lines of Python dictionaries, as several public tables have them, are read as literals.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.rows import Rows
from recsys.data.sources import Source, lines_of
from recsys.errors import InputError
from recsys.utils.files import shown

SAMPLE = 1_000  # objects
PYTHON = re.compile(r"\{\s*u?'")  # what a line with a Python dictionary begins with
MOST_ARRAY = 500_000_000  # bytes of one array, which is in memory whole


class JsonRows(Rows):
    """Objects; a field that is an object or a list is none of the columns.

    pyarrow reads the lines where each field has one type, the standard library where it does not.
    """

    def __init__(self, source: Source, what: str) -> None:
        self.source = source
        head, _ = source.head()
        self.array = head.lstrip().startswith("[")
        self.python = PYTHON.match(head.lstrip()) is not None
        first = list(islice(self._objects(), SAMPLE))
        names = list(dict.fromkeys(name for one in first for name in one))
        if not names:
            raise InputError(f"{shown(source.path)}: no {what}; the file is empty")
        super().__init__(shown(source.path), names)
        self.notes, self._first = list(source.notes), first

    def sample(self, k: int) -> NDArray[np.object_]:
        """Return the first cells of a column."""
        out = np.empty(len(self._first), dtype=object)
        out[:] = [_cell(one.get(self.names[k])) for one in self._first]
        return out

    def read(self, used: Sequence[int], kinds: Sequence[str], max_rows: int | None = None) -> list[Any]:
        """Return columns; as of `Rows`."""
        names = [self.names[k] for k in used]
        columns = self._fast(names)
        if columns is None:
            import pandas as pd

            cells: list[list[Any]] = [[] for _ in names]
            for one in self._objects():
                for column, name in zip(cells, names, strict=True):
                    column.append(_cell(one.get(name)))
            columns = [pd.Series(_whole(column), dtype=object) for column in cells]
        if max_rows is not None and len(columns[0]) > max_rows:
            raise InputError(f"{self.name} has more than {max_rows:,} rows; at most so many are read")
        return columns

    def _fast(self, names: list[str]) -> list[Any] | None:
        import pyarrow as pa
        from pyarrow import json as arrow

        from recsys.data.sources import Lent

        if self.array or self.python:
            return None
        types = []
        for name in names:
            values = [one.get(name) for one in self._first]
            kinds = {type(value) for value in values if value is not None}
            if kinds == {str}:
                types.append(pa.string())
            elif kinds == {int}:
                types.append(pa.int64())
            elif kinds <= {int, float} and kinds:
                types.append(pa.float64())
            else:
                return None
        schema = pa.schema(list(zip(names, types, strict=True)))
        try:
            with Lent() as lent:
                table = arrow.read_json(
                    lent.file(self.source.blocks()),
                    parse_options=arrow.ParseOptions(
                        explicit_schema=schema, unexpected_field_behavior="ignore"
                    ),
                )
        except pa.ArrowInvalid:
            return None
        return [table.column(name) for name in names]

    def _objects(self) -> Iterator[dict[str, Any]]:
        path = shown(self.source.path)
        if self.array:
            text = b"".join(_bounded(path, self.source.blocks()))
            try:
                found = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path} is no readable JSON: {str(error)[:120]}") from None
            for k, one in enumerate(found):
                if not isinstance(one, dict):
                    raise InputError(f"{path}, entry {k + 1}: an object such as {{…}} is needed")
                yield one
            return
        for number, line in enumerate(lines_of(self.source), 1):
            if line.strip():
                try:
                    one = ast.literal_eval(line.strip()) if self.python else json.loads(line)
                except (ValueError, RecursionError, SyntaxError, MemoryError) as error:
                    raise InputError(
                        f"{path}, line {number}: no JSON, which its first line is: {str(error)[:80]}"
                    ) from None
                if not isinstance(one, dict):
                    raise InputError(f"{path}, line {number}: an object such as {{…}} is needed")
                yield one


def _bounded(path: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for block in blocks:
        size += len(block)
        if size > MOST_ARRAY:
            raise InputError(
                f"{path} is one JSON array of more than {MOST_ARRAY:,} bytes; write an object a line"
            )
        yield block


def _cell(value: Any) -> Any:
    """Return a value as a cell has it; several values are none."""
    return None if isinstance(value, (dict, list)) else value


def _whole(cells: list[Any]) -> list[Any]:
    """Return ids of which some are text as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if str in kinds and len(kinds) > 1:
        return [None if cell is None else str(cell) for cell in cells]
    return cells


def is_json(head: str) -> bool:
    r"""Return whether a text begins as JSON does.

    >>> is_json('{"user": 1}'), is_json("[\n{"), is_json("user,item"), is_json("[x],y")
    (True, True, False, False)
    >>> is_json("{'user': 1}")
    True
    """
    start = head.lstrip()
    if start.startswith("["):
        return start[1:].lstrip().startswith(("{", "]"))
    return PYTHON.match(start) is not None or (
        start.startswith("{") and start[1:].lstrip().startswith(('"', "}"))
    )
