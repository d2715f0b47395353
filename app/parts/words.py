"""Words of an uploaded file inside sentences that Streamlit reads as Markdown."""

from __future__ import annotations

import re

SPECIAL = re.compile(r"([\\`*\[\]<>$~])")  # without them nothing is a picture, link, formula or colour


def escaped(text: object) -> str:
    r"""Return a text that Markdown shows as it is: no picture, link, formula or colour comes of it.

    Examples
    --------
    >>> print(escaped("![x](http://a/b)"))
    !\[x\](http://a/b)
    """
    return SPECIAL.sub(r"\\\1", str(text))
