"""Formulas drawn by Matplotlib at build: no script from a network, no LaTeX."""

from __future__ import annotations

import base64
import io
from functools import cache
from typing import Any

from docutils import nodes
from matplotlib import font_manager, mathtext


@cache
def drawn(formula: str, size: float) -> tuple[str, float]:
    """Return an SVG as text in base 64, and how far below the line it reaches, in points."""
    font = font_manager.FontProperties(size=size, math_fontfamily="stix")
    file = io.BytesIO()
    depth = mathtext.math_to_image(f"${formula}$", file, prop=font, format="svg")
    return base64.b64encode(file.getvalue()).decode("ascii"), float(depth)


def image(translator: Any, formula: str, size: float) -> str:
    """Return the element of a formula; its text is what a screen reader reads."""
    formula = " ".join(formula.split())
    data, depth = drawn(formula, size)
    told = translator.encode(formula).replace('"', "&quot;")
    return (
        f'<img class="mathtext" style="vertical-align:-{depth:.1f}pt" alt="{told}"'
        f' src="data:image/svg+xml;base64,{data}">'
    )


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    self.body.append(image(self, node.astext(), 10.5))
    raise nodes.SkipNode


def displayed(self: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, one for each that `\\\\` ends."""
    for line in node.astext().split("\\\\"):
        if line.strip():
            self.body.append(f'<div class="mathtext">{image(self, line, 13)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathtext", (inline, None), (displayed, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
