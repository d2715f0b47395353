"""Titles as they are said and typed: "The Godfather (1972)", not "Godfather, The (1972)"."""

from __future__ import annotations

import re

from recsys.utils.transliterate import transliterated

ARTICLES = "The|A|An|Le|La|Les|L'|Un|Une|Il|Lo|Gli|I|Der|Die|Das|Den|Det|El|Los|Las|O|Os|De|Het"
TURNED = re.compile(rf"(?P<name>[^()]+), (?P<article>{ARTICLES})(?P<rest>(?: \(.*)?)", re.DOTALL)


def typed(title: str) -> str:
    """Return a title as a choice: where it has accents, also without them, for it is searched as it is.

    Examples
    --------
    >>> typed("Les Misérables (1998)"), typed("Alien (1979)")
    ('Les Misérables (1998) · Les Miserables (1998)', 'Alien (1979)')
    """
    bare = transliterated(title)
    return title if bare == title else f"{title} · {bare}"


def natural(title: str) -> str:
    """Return a title with the article in front that a catalogue has put behind.

    Examples
    --------
    >>> natural("Godfather, The (1972)"), natural("Avventura, L' (1960)"), natural("Heat, Dust")
    ('The Godfather (1972)', "L'Avventura (1960)", 'Heat, Dust')
    """
    found = TURNED.fullmatch(title)
    if found is None:
        return title
    gap = "" if found["article"].endswith("'") else " "
    return f"{found['article']}{gap}{found['name']}{found['rest']}"
