"""Which columns of an unknown table are users, items, ratings and times, by their names and contents.

Names are compared in lower case without accents, cut into words ("Kunden-Nr." → kunden, nr). What a
column holds can overrule its name: a column of ratings or times must hold numbers or dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.utils.dates import FIRST, iso_seconds, number_of
from recsys.utils.letters import plain_letters

LOOKED_AT = 5_000  # cells of a column, spread evenly
GRADES = 20  # different numbers at most that are taken for a scale of ratings
MOST_GRADE = 100.0  # and the highest of them
NUMERIC = 0.9  # share of the cells that must be numbers, or dates

# English, German, French, Italian, Spanish, Portuguese, Dutch; without accents, longest first where
# one begins with another.
USER = (
    "user users userid uid username member visitor viewer reader listener player reviewer rater "
    "person people customer customers client buyer shopper subscriber account student patient "
    "session who kunde kunden kundin kundennr kundennummer nutzer benutzer nutzerin anwender "
    "besucher mitglied konto leser kaufer person personen wer utilisateur utilisateurs membre "
    "acheteur abonne personne lecteur qui utente utenti cliente clienti acquirente membro persona "
    "lettore chi usuario usuarios clientes comprador miembro quien assinante usuaria gebruiker klant "
    "bezoeker lid"
).split()
ITEM = (
    "item items itemid iid product products movie movies film films book books song songs track "
    "tracks artist artists album game games joke article articles sku asin isbn title titles recipe "
    "restaurant place business app what object video show series course artikel artikelnr "
    "artikelnummer produkt produkte ware buch bucher titel spiel lied gericht kurs was produit "
    "produits livre livres titre jeu chanson objet quoi cours articolo articoli prodotto prodotti "
    "libro libri titolo gioco canzone oggetto corso cosa articulo articulos producto productos "
    "pelicula peliculas titulo juego cancion objeto artigo produto livro filme boek nummer"
).split()
RATING = (
    "rating ratings rate rated score scores star stars grade vote votes points preference overall "
    "sterne stern bewertung bewertungen wertung punkte note noten etoiles etoile evaluation "
    "appreciation voto voti valutazione punteggio stelle stella giudizio puntuacion calificacion "
    "valoracion estrellas nota notas avaliacao pontuacao waardering cijfer sterren"
).split()
TIME = (
    "timestamp timestamps time times date dates datetime created when ts epoch unixtime day year "
    "month datum zeit zeitpunkt zeitstempel uhrzeit tag wann jahr horodatage temps heure jour quand "
    "annee data tempo ora giorno quando anno fecha hora tiempo dia cuando tijd tijdstip dag"
).split()
ROLES = {"user": USER, "item": ITEM, "rating": RATING, "time": TIME}
SMALL = {"id", "ids", "nr", "no", "num", "number", "nummer", "code", "key", "name", "numero"}
EXACT, WORD = 2, 1  # how well a name tells a role


@dataclass(frozen=True)
class Guess:
    """The columns that are meant, as far as names and contents tell.

    Attributes
    ----------
    user, item : str
    rating, time : str or None
    why : dict of str to "name", "content" or "position"
        What each column was told by, for the roles that have one.

    Examples
    --------
    >>> Guess("Kunde", "Artikel", None, None, {}).rating is None
    True
    """

    user: str
    item: str
    rating: str | None
    time: str | None
    why: dict[str, str]


@dataclass(frozen=True)
class _Column:
    """What a column is like: shares of cells, and what is known of the numbers among them."""

    name: str
    numbers: float
    whole: float
    dates: float
    distinct: int
    lowest: float
    highest: float
    cells: int

    @property
    def scale(self) -> bool:
        """Whether it may be a scale: few different small numbers, each several times."""
        return (
            self.numbers >= NUMERIC
            and 2 <= self.distinct <= GRADES
            and self.lowest >= -MOST_GRADE
            and self.highest <= MOST_GRADE
            and self.cells >= 2 * self.distinct
        )

    @property
    def moment(self) -> bool:
        """Whether it may be times: dates, or large whole numbers as seconds since 1970 are."""
        return self.dates >= NUMERIC or (self.whole >= NUMERIC and self.lowest >= FIRST)

    @property
    def figures(self) -> bool:
        return self.numbers >= NUMERIC

    @property
    def fractions(self) -> bool:
        return self.figures and self.whole < NUMERIC


def guess_columns(names: Sequence[str], columns: Sequence[NDArray]) -> Guess:
    """Return which columns are users, items, ratings and times.

    A column is taken for a role by its name where its content does not speak against it: ratings are
    numbers, times are numbers or ISO dates, ids are no fractions. Roles that no name tells: of the
    columns left, ratings are a few different numbers of at most 100 that repeat, times are dates or
    whole numbers from 10⁸; users and items are the first ones left.

    Parameters
    ----------
    names : sequence of str
        At least two.
    columns : sequence of (rows,) arrays
        Cells of text, or floats.

    Returns
    -------
    Guess

    Examples
    --------
    >>> import numpy as np
    >>> cells = [["7", "7", "9", "9"], ["a", "b", "a", "c"], ["5", "4", "5", "4"]]
    >>> found = guess_columns(["Kunde", "Artikel", "x"], [np.array(c, object) for c in cells])
    >>> found.user, found.item, found.rating, found.why["rating"]
    ('Kunde', 'Artikel', 'x', 'content')
    """
    known = [_look(name, cells) for name, cells in zip(names, columns, strict=True)]
    left = list(range(len(known)))
    found: dict[str, int] = {}
    why: dict[str, str] = {}
    asked = [
        (_by_name(column.name, role), -place, role, place)
        for place, column in enumerate(known)
        for role in ROLES
        if _fits(column, role)
    ]
    for strength, _, role, place in sorted(asked, reverse=True):
        if strength and role not in found and place in left:
            found[role], why[role] = place, "name"
            left.remove(place)
    for role in ("time", "rating"):
        spare = len(left) - sum(need not in found for need in ("user", "item"))
        if role not in found and spare > 0:
            like = [p for p in left if (known[p].moment if role == "time" else known[p].scale)]
            if like:
                found[role], why[role] = like[-1], "content"  # ratings and times stand behind ids
                left.remove(like[-1])
    for role in ("user", "item"):
        if role not in found:
            ids = [p for p in left if not known[p].fractions] or left
            place = ids[0] if ids else _spare(found, why)
            found[role], why[role] = place, "position"
            left = [p for p in left if p != place]
    text = {role: known[place].name for role, place in found.items()}
    return Guess(text["user"], text["item"], text.get("rating"), text.get("time"), why)


def _spare(found: dict[str, int], why: dict[str, str]) -> int:
    """Give up a rating or a time for an id: without users and items there are no interactions."""
    role = next(role for role in ("rating", "time") if role in found)
    why.pop(role)
    return found.pop(role)


def _fits(column: _Column, role: str) -> bool:
    if role == "rating":
        return column.figures
    if role == "time":
        return column.figures or column.dates >= NUMERIC
    return not column.fractions


def _by_name(name: str, role: str) -> int:
    words = [word for word in words_of(name) if word not in SMALL]
    whole = "".join(words_of(name))
    if whole in ROLES[role] or (len(words) == 1 and words[0] in ROLES[role]):
        return EXACT
    return WORD if any(word in ROLES[role] for word in words) else 0


def words_of(name: str) -> list[str]:
    """Return the words of a column's name, in lower case without accents.

    Examples
    --------
    >>> words_of("Kunden-Nr."), words_of("movieId"), words_of("Évaluation")
    (['kunden', 'nr'], ['movie', 'id'], ['evaluation'])
    """
    apart = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])", " ", name)
    return re.findall(r"[a-z0-9]+", plain_letters(apart).lower())


def _look(name: str, cells: NDArray) -> _Column:
    at = np.unique(np.linspace(0, len(cells) - 1, min(len(cells), LOOKED_AT)).astype(int))
    some = [str(cell).strip() for cell in np.asarray(cells, dtype=object)[at]]
    some = [cell for cell in some if cell]
    numbers = np.array([number_of(cell) for cell in some], dtype=np.float64)
    real = numbers[np.isfinite(numbers)]
    dates = 0 if len(real) == len(some) else sum(np.isfinite(iso_seconds(cell)) for cell in some)
    size = max(len(some), 1)
    return _Column(
        name, len(real) / size, float((real == np.floor(real)).sum()) / size, dates / size,
        len(np.unique(real)), float(real.min()) if len(real) else np.nan,
        float(real.max()) if len(real) else np.nan, len(some),
    )  # fmt: skip
