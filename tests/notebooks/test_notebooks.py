"""Every notebook runs from its script, cell by cell, in a kernel of its own."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    book = jupytext.read(path)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=where).execute()
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert outputs and not [out for out in outputs if out.output_type == "error"]
