"""Excel's tables (.xlsx) as cells of text: the first sheet with anything in it."""

from __future__ import annotations

import importlib.util
import zipfile
import zlib
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.files import check_file

ENDINGS = (".xlsx",)
MOST_BYTES = 1_000_000_000  # unpacked: an .xlsx is a zip archive
MOST_PARTS = 10_000  # files in the archive
STRETCH = 1 << 20


def read_sheet(path: Path, what: str) -> tuple[list[str], list[NDArray[np.object_]], NDArray[np.int64]]:
    """Return the names of the columns, the columns, and the number of each row in the sheet.

    Numbers that are whole are written without a point, dates as ISO has them. Rows without any cell
    are skipped; so are columns without a name and a cell.

    Parameters
    ----------
    path : Path
    what : str
        What messages miss in a sheet without rows.

    Raises
    ------
    InputError
        If python-calamine is not installed, the file is no workbook, its parts are larger than they
        say or than is read, or there is no row below the header.
    """
    if importlib.util.find_spec("python_calamine") is None:
        raise InputError(
            f"{path}: Excel files are read through python-calamine: pip install 'recsys[excel]', or "
            "save the sheet as CSV"
        )
    import pandas as pd

    _check_archive(path)
    try:
        sheets = pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_filter=False, engine="calamine"
        )
    except Exception as error:  # the reader's own kinds, which differ from release to release
        raise InputError(
            f"{path} is no readable Excel file: {str(error).splitlines()[0][:120]}"
        ) from None
    frame = next((sheet for sheet in sheets.values() if len(sheet)), None)
    if frame is None:
        raise InputError(f"{path}: no {what}; the file is empty")
    cells = [np.array([_text(cell) for cell in frame[column]], dtype=object) for column in frame.columns]
    cells = [column for column in cells if (column != "").any()]
    if not cells:
        raise InputError(f"{path}: no {what}; the file is empty")
    filled = np.flatnonzero(np.any([column != "" for column in cells], axis=0))
    names = [column[filled[0]].strip() for column in cells]
    if len(filled) == 1:
        raise InputError(f"{path}: no {what}; there is a header only")
    if "" in names:
        raise InputError(
            f"{path}, line {filled[0] + 1}: column {names.index('') + 1} has no name; the first row "
            "with a cell must name every column"
        )
    return names, [column[filled[1:]] for column in cells], np.asarray(filled[1:]) + 1


def _check_archive(path: Path) -> None:
    """Unpack every part once, in stretches, so that none is larger than it says."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            total = sum(part.file_size for part in parts)
            if len(parts) > MOST_PARTS or total > MOST_BYTES:
                raise InputError(
                    f"{path} unpacks to {total / 1e6:,.0f} MB in {len(parts):,} parts; at most "
                    f"{MOST_BYTES / 1e6:,.0f} MB in {MOST_PARTS:,} parts are read. Save it as CSV"
                )
            for part in parts:
                with archive.open(part) as stream:
                    while stream.read(STRETCH):
                        pass
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError) as error:
        raise InputError(f"{path} is no readable Excel file: {str(error)[:120]}") from None


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None or cell is np.nan:
        return ""
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, datetime):
        return cell.isoformat().removesuffix("T00:00:00")
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)
