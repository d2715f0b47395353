"""The HTML view of a ranker in a notebook: its name, its parameters, and the parts of a blend."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

BOX = (
    "display:inline-block;vertical-align:top;border:1px solid #8888;border-radius:4px;"
    "margin:3px;padding:4px 8px"
)


def diagram(ranker: Any) -> str:
    """Return HTML: a box for a ranker, with boxes of a fitted blend's parts and their weights inside.

    Examples
    --------
    >>> from recsys import EASE
    >>> "regularization=100.0" in diagram(EASE(regularization=100.0)), "not fitted" in diagram(EASE())
    (True, True)
    """
    names = getattr(ranker, "part_names_", None)
    size = getattr(ranker, "n_users_", None)
    about = "not fitted" if size is None else f"{size:,} users × {ranker.n_items_:,} items"
    lines = [f"<b>{escape(ranker.name)}</b> <small>{about}</small>"]
    if names is None:
        settings = ", ".join(f"{name}={value!r}" for name, value in ranker.get_params().items())
        lines.append(f"<code>{escape(settings)}</code>")
    else:
        weights = np.asarray(ranker.part_weights_, dtype=np.float64)
        lines.append(
            "".join(
                f"<div style='{BOX}'><code>{escape(str(name))}</code><br>× {weight:.2f}</div>"
                for name, weight in zip(names, weights, strict=True)
            )
        )
    return f"<div style='{BOX}'>{'<br>'.join(lines)}</div>"
