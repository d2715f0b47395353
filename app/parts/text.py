"""Texts of anybody's file: titles as they are read aloud, and escaped for Markdown."""

from __future__ import annotations

import re
import unicodedata

SPECIAL = re.compile(r"([\\`*_\[\]<>$~:#])")
ARTICLES = "The|A|An|Le|La|Les|L'|Un|Une|Il|Lo|Gli|I|Der|Die|Das|Den|Det|El|Los|Las|O|Os|De|Het"
TURNED = re.compile(rf"(?P<name>[^()]+), (?P<article>{ARTICLES})(?P<rest>(?: \(.*)?)", re.DOTALL)


def escaped(text: object) -> str:
    r"""Return a text that Markdown shows as it is: without pictures, links, formulas and colors.

    >>> print(escaped("![x](http://a/b)"))
    !\[x\](http\://a/b)
    """
    return SPECIAL.sub(r"\\\1", str(text))


def natural(title: str) -> str:
    """Return a title with its article in front.

    >>> natural("Godfather, The (1972)"), natural("Avventura, L' (1960)"), natural("Heat, Dust")
    ('The Godfather (1972)', "L'Avventura (1960)", 'Heat, Dust')
    """
    match = TURNED.fullmatch(title)
    if match is None:
        return title
    gap = "" if match["article"].endswith("'") else " "
    return f"{match['article']}{gap}{match['name']}{match['rest']}"


def searchable(title: str) -> str:
    """Return a title as an option: with accents also without them, since options are searched as text.

    >>> searchable("Les Misérables (1998)"), searchable("Alien (1979)")
    ('Les Misérables (1998) · Les Miserables (1998)', 'Alien (1979)')
    """
    bare = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    accented = any(unicodedata.combining(c) for c in unicodedata.normalize("NFD", title))
    return f"{title} · {bare}" if accented else title


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: '1 user', '1,204 users'."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
