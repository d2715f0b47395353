"""The gallery: the scripts of `notebooks/` as pages, with what they printed and drew when they were last run.

    python -m docs.generate.gallery [NAME …]

runs them and stores their outputs in `docs/gallery/`; it needs `jupytext`, `nbclient`, `ipykernel` and, for
pictures of Altair, `vl-convert-python`. The pages are made from what is stored; a script that
was changed since is shown without outputs.
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
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        os.environ.update(environment)
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


def write(folder: Path) -> None:
    """Write a notebook for each script, and their list."""
    lines = [(STORED / "index.md").read_text(encoding="utf-8"), "", "```{toctree}", ":maxdepth: 1", ""]
    without = set(stale())
    for script in sorted(SCRIPTS.glob("*.py"), key=lambda path: (path.stem != "tour", path.stem)):
        book = jupytext.read(script)
        if script.stem not in without:
            stored = json.loads((STORED / f"{script.stem}.json").read_text(encoding="utf-8"))
            for cell, outputs in zip(book.cells, stored["outputs"], strict=True):
                if cell.cell_type == "code":
                    cell.outputs = [nbformat.from_dict(output) for output in outputs]
        book.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        book.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        jupytext.write(book, folder / f"{script.stem}.ipynb")
        lines.append(script.stem)
    for stored in folder.glob("*.json"):
        stored.unlink()
    (folder / "index.md").write_text("\n".join([*lines, "```", ""]), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or [path.stem for path in sorted(SCRIPTS.glob("*.py"))]:
        run(SCRIPTS / f"{name}.py")
        print(name)
