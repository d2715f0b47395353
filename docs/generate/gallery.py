"""The gallery: the scripts of `notebooks/` as notebooks and as pages, with the outputs of their last run.

    python -m docs.generate.gallery [NAME …]

runs them, stores their outputs in `docs/gallery/` and writes `notebooks/*.ipynb`. It needs `jupytext`, `nbclient`,
`ipykernel` and, for pictures of Altair, `vl-convert-python`. Pages and notebooks are made from what is stored; a
script that was changed since is shown without outputs. With the name `-` nothing runs, and the notebooks are written.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "notebooks"
STORED = ROOT / "docs" / "gallery"
KEPT = ("image/svg+xml", "image/png", "text/html", "text/plain")  # the first there is
SETTINGS = "import altair\naltair.renderers.enable('svg')\n"


def digest(script: Path) -> str:
    """Return what tells one version of a script from another."""
    return hashlib.sha256(script.read_bytes()).hexdigest()


def slim(output: Any) -> dict[str, Any] | None:
    """Return an output with one representation, or None for what is no result."""
    if output["output_type"] == "stream":
        return dict(output) if output["name"] == "stdout" else None
    data = output.get("data", {})
    best = next((kind for kind in KEPT if kind in data), None)
    if best is None:
        return None
    return {"output_type": "display_data", "metadata": {}, "data": {best: data[best]}}


def run(script: Path) -> None:
    """Execute a script and store its outputs."""
    import nbclient

    book = jupytext.read(script)
    book.cells.insert(0, nbformat.v4.new_code_cell(SETTINGS))
    with tempfile.TemporaryDirectory() as folder:
        path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
        where = {"metadata": {"path": folder}}
        nbclient.NotebookClient(book, timeout=900, kernel_name="python3", resources=where).execute()
    outputs = [
        [made for out in cell.get("outputs", []) if (made := slim(out))] for cell in book.cells[1:]
    ]
    text = json.dumps({"script": digest(script), "outputs": outputs}, ensure_ascii=False, indent=1)
    (STORED / f"{script.stem}.json").write_text(text + "\n", encoding="utf-8")


def stale() -> list[str]:
    """Return the scripts whose stored outputs are of another version, or absent."""
    out = []
    for script in sorted(SCRIPTS.glob("*.py")):
        stored = STORED / f"{script.stem}.json"
        if not stored.exists() or json.loads(stored.read_text(encoding="utf-8"))["script"] != digest(
            script
        ):
            out.append(script.stem)
    return out


def notebook(script: Path) -> Any:
    """Return a script as a notebook, with the stored outputs if they are those of this version."""
    book = jupytext.read(script)
    if script.stem not in stale():
        stored = json.loads((STORED / f"{script.stem}.json").read_text(encoding="utf-8"))
        for cell, outputs in zip(book.cells, stored["outputs"], strict=True):
            if cell.cell_type == "code":
                cell.outputs = [nbformat.from_dict(output) for output in outputs]
    for k, cell in enumerate(book.cells):
        cell["id"] = f"cell-{k}"  # otherwise drawn anew at each run
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.metadata = nbformat.from_dict(
        {"language_info": {"name": "python", "pygments_lexer": "ipython3"}, "kernelspec": kernel}
    )
    return book


def write_notebooks(folder: Path) -> None:
    """Write a notebook for each script."""
    for script in sorted(SCRIPTS.glob("*.py")):
        nbformat.write(notebook(script), folder / f"{script.stem}.ipynb")


def write(folder: Path) -> None:
    """Write a notebook for each script, and their list."""
    lines = [(STORED / "index.md").read_text(encoding="utf-8"), "", "```{toctree}", ":maxdepth: 1", ""]
    write_notebooks(folder)
    first = ["own_csv", "tour"]
    names = sorted(path.stem for path in SCRIPTS.glob("*.py"))
    lines += first + [name for name in names if name not in first]
    for stored in folder.glob("*.json"):
        stored.unlink()
    (folder / "index.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")


if __name__ == "__main__":
    names = sys.argv[1:] or [path.stem for path in sorted(SCRIPTS.glob("*.py"))]
    for name in [name for name in names if name != "-"]:
        run(SCRIPTS / f"{name}.py")
        print(name)
    write_notebooks(SCRIPTS)
