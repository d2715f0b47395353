"""Letters without their accents, for names that users type."""

from __future__ import annotations

import unicodedata

# Letters with strokes and ligatures, which Unicode does not take apart.
STROKES = str.maketrans({
    "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ß": "ss",
    "đ": "d", "Đ": "D",
})  # fmt: skip


def transliterated(text: str) -> str:
    """Return a text without accents, strokes and ligatures.

    >>> transliterated("Les Misérables"), transliterated("Łódź, Straße, Đà Nẵng")
    ('Les Miserables', 'Lodz, Strasse, Da Nang')
    """
    parts = unicodedata.normalize("NFKD", text.translate(STROKES))
    return "".join(one for one in parts if not unicodedata.combining(one))
