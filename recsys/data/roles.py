"""Roles of the columns of an unknown table, users, items, ratings and times, told by their names.

The exact names of public tables come first, then words in several languages, with or without others
around them. What a column holds decides nothing: it can only keep a column from a role (text is no
rating), or be proposed in a note, for the user to name.

Names are compared in lower case without accents, cut into words ("Kunden-Nr." → kunden, nr).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.columns import Spelling
from recsys.utils.transliterate import transliterated

# Of public tables, without blanks, hyphens and underscores; the earlier of two in one table wins.
# MovieLens, Last.fm, Book-Crossing, Amazon, Goodreads, Steam, RetailRocket, Yoochoose, Instacart, H&M,
# Online Retail, Gowalla, Delicious, Netflix, Jester, Yelp, Ta-Feng, Mahout, Anime, Food.com, Kasandr,
# Google Local, BeerAdvocate, Dunnhumby.
USER = (
    "userid user uid users username reviewerid customerid custid customer visitorid memberid member "
    "accountid steamid msno authorid playerid usersha1 clientid buyerid subscriberid listenerid "
    "readerid personid householdkey householdid custkey who reviewer"
).split()
# Sessions and orders are users where no other column is.
SESSIONS = "sessionid session orderid invoiceno invoice basketid cartid visitid".split()
ITEM = (
    "itemid item iid items movieid productid articleid asin parentasin isbn isbn13 bookid businessid "
    "stockcode trackid songid artistid bookmarkid appid gameid recipeid animeid jokeid locationid "
    "venueid placeid poiid gmapid restaurantid beerid hotelid courseid newsid videoid podcastid showid "
    "offerid goodid sku skuid "
    "movie film book product article track song artist game what title contentid"
).split()
RATING = (
    "rating ratings bookrating userrating reviewrating itemrating movierating overall stars starrating "
    "score reviewscore userscore myrating preference ratingvalue"
).split()
TIME = (
    "timestamp timestamps time unixreviewtime eventtime tdat datetime date invoicedate transactiondt "
    "createdat created reviewdate reviewtime dateadded dateupdated ratedat ratingtimestamp "
    "listenedat purchasedate orderdate checkintime ts when"
).split()
WEIGHT = (
    "weight weights plays playcount playcounts count counts quantity qty amount hours playtime "
    "listens listencount views clicks purchases minutes seconds watchtime anzahl menge cantidad quantite"
).split()
# Titles of items, in a table of items.
TITLE = (
    "title titles name itemname itemtitle productname producttitle movietitle moviename booktitle "
    "songtitle trackname artistname titel bezeichnung artikelname artikelbezeichnung produktname "
    "produktbezeichnung titre nom nomproduit designation libelle titolo titulo nombre nome "
    "nombreproducto nomeproduto naam productnaam tytul nazwa nazwaproduktu namn название"
).split()
EXACT = {"user": USER, "item": ITEM, "rating": RATING, "time": TIME}

# English, German, French, Italian, Spanish, Portuguese, Dutch, Polish; without accents.
# Of Swedish, Danish, Czech, Hungarian, Romanian, Turkish, Finnish, Russian and Ukrainian the likeliest.
WORDS = {
    "user": (
        "user users member members visitor viewer reader listener player reviewer rater person people "
        "customer customers client buyer shopper subscriber account student patient kunde kunden kundin "
        "nutzer benutzer nutzerin anwender besucher mitglied konto leser kaufer personen wer "
        "utilisateur "
        "utilisateurs membre acheteur abonne personne lecteur qui utente utenti cliente clienti "
        "acquirente membro persona lettore chi usuario usuarios clientes comprador miembro quien "
        "assinante usuaria utilizador utilizadora gebruiker klant bezoeker lid uzytkownik uzytkownika "
        "klient klienta kupujacy osoba czytelnik profile profilename kund anvandare kunde bruger "
        "zakaznik uzivatel felhasznalo vasarlo utilizator kullanici musteri kayttaja asiakas "
        "пользователь пользователя клиент клиента покупатель читатель користувач кліент"
    ).split(),
    "item": (
        "item items product products movie movies film films book books song songs track tracks artist "
        "artists album game games joke article articles sku asin isbn recipe restaurant place business "
        "app show series course artikel artikelnr artikelnummer produkt produkte ware buch bucher spiel "
        "lied gericht kurs produit produits livre livres jeu chanson objet cours articolo articoli "
        "prodotto prodotti libro libri gioco canzone oggetto corso articulo articulos producto "
        "productos "
        "pelicula peliculas juego cancion objeto artigo produto livro filme boek ksiazka towar "
        "ksiazki filmu towaru produktu pozycja title titles titel titre titolo titulo tytul quoi cosa "
        "beer offer video podcast vara produkt bok vare zbozi kniha polozka termek konyv tetel produs "
        "carte urun kitap tuote kirja товар товара книга книги фильм фильма продукт артикул предмет"
    ).split(),
    "rating": (
        "rating ratings rated stars sterne stern bewertung bewertungen wertung punkte note noten "
        "etoiles "
        "etoile evaluation appreciation voto voti valutazione punteggio stelle giudizio puntuacion "
        "calificacion valoracion estrellas nota notas avaliacao pontuacao waardering cijfer sterren "
        "ocena oceny gwiazdki grade score overall punktzahl classificacao beoordeling betyg omdome "
        "bedommelse karakter hodnoceni znamka ertekeles puan arvosana arvio оценка реитинг оцінка балл"
    ).split(),
    "time": (
        "timestamp time date dates datetime created datum zeit zeitpunkt zeitstempel uhrzeit tag wann "
        "horodatage temps heure jour quand data ora giorno quando fecha hora tiempo dia cuando tijd "
        "tijdstip dag czas dzien tid tidpunkt dato cas idopont tarih zaman paivamaara aika "
        "дата время час"
    ).split(),
}
SMALL = set(
    "id ids nr no num number nummer code key numero numer of the my given value de du di do der des del "
    "la le il el d l da do dos das a al van het cod codice codigo codigo identifiant identificador "
    "identyfikator nazwa nom nome nombre name naam идентификатор имя код номер".split()
)
# Of columns that say what a user or an item is like, and not which one it is, or when it came about.
ATTRIBUTES = set(
    "category categories type genre genres style brand price cost count size color colour text comment "
    "description url image age gender sex country city state region segment group class subclass rank "
    "kategorie typ marke preis beschreibung alter geschlecht land ort gruppe categorie marque prix "
    "genere marca prezzo prezo precio categoria edad pais ciudad idade cena kategoria wiek rating "
    "lat latitude lon lng longitude duration length ratio".split()
)
BEFORE = set(
    "release released publish published publication birth birthday born geburt geburtsdatum joined "
    "registered registration signup registrierung erscheinung erscheinungsdatum naissance sortie "
    "nacimiento nascita uscita lancamento nascimento geboorte premiere updated update".split()
)  # words of a date that is not the interaction's
ENDS = ("date", "datum", "time", "timestamp", "zeit", "fecha", "data")  # of words for times, joined
KEYS = ("id", "nr", "no", "number", "nummer", "key", "code", "numer", "номер", "код")  # of ids
NAMES = frozenset("name nom nome nombre nazwa naam имя".split())  # other than ids, where both are there
AT = ("am", "at", "on", "um")  # "bewertet am"
STEM = 5  # letters from which a word that begins a longer one tells: Kundennummer
GRADES = 20  # different numbers at most that are proposed as a scale of ratings
MOST_GRADE = 100.0  # and the highest of them
NUMERIC = 0.9  # share of the cells that must be numbers or dates to be proposed as such
LOOKED_AT = 200  # cells
LONGEST = 60  # characters of them
# Numbers within may be points in time: from 1990 to 2100, in one of the units since 1970.
EPOCHS = tuple((6.3e8 * unit, 4.1e9 * unit) for unit in (1.0, 1e3, 1e6, 1e9))
KNOWN = frozenset(
    "user_id item_id user item rating timestamp userid itemid movieid user-id isbn book-rating asin "
    "reviewerid product_id customer_id session_id visitorid artistid bookmarkid stockcode customerid "
    "business_id book_id".split()
)  # names that only a header has: no title, and no word of a title


def title_column(names: Sequence[object]) -> object | None:
    """Return the column of titles in a table of items: "title", or the first that is called alike.

    >>> title_column(["Bezeichnung", "Preis"]), title_column(["name", "title"]), title_column(["Preis"])
    ('Bezeichnung', 'title', None)
    """
    if "title" in names:
        return "title"
    return next((name for name in names if "".join(words_of(str(name))) in TITLE), None)


@dataclass(frozen=True)
class Roles:
    """The columns that are meant: their positions, None where no name tells."""

    user: int | None
    item: int | None
    rating: int | None
    time: int | None
    how: dict[str, str]  # what each was told by: "name" or "position"


@dataclass(frozen=True)
class Looks:
    """Statistics of the first cells of a column."""

    numbers: float  # share of the filled cells, as the next two
    whole: float
    dates: float
    distinct: int
    lowest: float  # of the numbers
    highest: float
    cells: int  # filled ones
    steps: bool = False  # from row to row, as the numbers of rows do

    @property
    def scale(self) -> bool:
        """Whether it may be a scale of ratings: few different small numbers, each several times."""
        return (
            self.numbers >= NUMERIC and 2 <= self.distinct <= GRADES and self.lowest >= -MOST_GRADE
            and self.highest <= MOST_GRADE and self.cells >= 2 * self.distinct
        )  # fmt: skip

    @property
    def moment(self) -> bool:
        """Whether it may be times: dates, or integers such as epochs are."""
        epochs = any(low <= self.lowest and self.highest <= high for low, high in EPOCHS)
        return self.dates >= NUMERIC or (self.numbers >= NUMERIC and epochs)


def find_roles(
    names: Sequence[str], looks: Sequence[Looks], named: dict[str, int | None], header: bool
) -> Roles:
    """Return which columns are users, items, ratings and times.

    `named` has the columns that are chosen, None where a role is to have none. Without a header of the
    table's own, users and items are the first two columns that are neither times, fractions nor the
    numbers of rows, in this order.

    >>> ids, stars = Looks(0, 0, 0, 9, 0, 0, 20), Looks(1, 1, 0, 5, 1, 5, 20)
    >>> found = find_roles(["Kunde", "Artikel", "Bewertung"], [ids, ids, stars], {}, True)
    >>> found.user, found.item, found.rating, found.time
    (0, 1, 2, None)
    """
    found = dict(named)
    how = dict.fromkeys(named, "name")
    asked = []
    empty = not any(look.cells for look in looks)
    for place, name in enumerate(names):
        for role in EXACT:
            strength = strength_of(name, role) if header else ()
            if strength and (empty or _may_be(role, looks[place], strength[0])):
                asked.append((strength, -place, role))
    for _, place, role in sorted(asked, reverse=True):
        if role not in found and -place not in found.values():
            found[role], how[role] = -place, "name"
    if not header:
        for role in ("user", "item"):
            free = [
                place for place, look in enumerate(looks)
                if place not in found.values() and (look.cells or empty) and not look.moment
                and not (look.numbers >= NUMERIC and look.whole < NUMERIC) and not look.steps
            ]  # fmt: skip
            if role not in found and free:
                found[role], how[role] = free[0], "position"
    return Roles(found.get("user"), found.get("item"), found.get("rating"), found.get("time"), how)


def _may_be(role: str, looks: Looks, strength: int) -> bool:
    """Return whether what a column holds lets it be what its name says."""
    if role in ("user", "item") and strength == 3:
        return True
    if not looks.cells:
        return False
    if role == "rating":
        return looks.numbers >= 0.5
    if role == "time":
        several = looks.dates >= 0.5 or looks.numbers >= 0.5
        return (
            several if strength == 3 else looks.dates >= 0.5 or (looks.moment and looks.numbers >= 0.5)
        )
    return looks.numbers < NUMERIC or looks.whole >= NUMERIC  # ids are no fractions


def strength_of(name: str, role: str) -> tuple[int, int]:
    """Return how well a name tells a role, () if not.

    It is 3 for an exact name, 2 for a translated one, 1 for one among other words, 0 for sessions as
    users; then which of several comes first.

    >>> strength_of("userId", "user")[0], strength_of("Kunden-Nr.", "user")[0], strength_of("x", "user")
    (3, 2, ())
    >>> strength_of("Datum des Kaufs", "time")[0], strength_of("release_date", "time")
    (1, ())
    """
    plain = "".join(words_of(name))
    known = EXACT[role]
    if plain in known:
        return 3, -known.index(plain)
    if role == "user" and plain in SESSIONS:
        return 0, -SESSIONS.index(plain)
    words = words_of(name)
    telling = [word for word in words if word not in SMALL]
    named = not NAMES.isdisjoint(words)
    if len(telling) == 1 and not named and (telling[0] in WORDS[role] or telling[0] in known):
        return 2, 2 if words[-1].endswith(KEYS) else 0
    none: tuple[int, int] = ()  # type: ignore[assignment]
    if not telling:
        return none
    if role == "time":
        if BEFORE.intersection(telling):
            return none
        if any(word in WORDS[role] or word.endswith(ENDS) for word in telling):
            return 1, 1
        return (1, 0) if len(words) > 1 and words[-1] in AT else none
    if role == "rating":
        others = {word for other in ("user", "item") for word in WORDS[other]} | {"review", "reviews"}
        rest = [word for word in telling if word not in WORDS[role]]
        return (1, 0) if len(rest) < len(telling) and all(word in others for word in rest) else none
    if (ATTRIBUTES | set(WORDS["time"]) | set(WORDS["rating"])).intersection(telling):
        return none
    key = 2 if words[-1].endswith(KEYS) else 0
    if len(telling) == 1 and telling[0] in known:
        return 1, 1 + key
    if any(word in WORDS[role] for word in telling):
        return 1, 1 + key
    stems = [w for w in WORDS[role] if len(w) >= STEM]
    if any(word.startswith(stem) for word in telling for stem in stems):
        return 1, key
    return none


def words_of(name: str) -> list[str]:
    """Return the words of a column's name, in lower case without accents.

    >>> words_of("Kunden-Nr."), words_of("movieId"), words_of("Évaluation")
    (['kunden', 'nr'], ['movie', 'id'], ['evaluation'])
    """
    apart = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])", " ", name)
    return re.findall(r"[^\W_]+", transliterated(apart).lower())


def proposals(
    names: Sequence[str],
    looks: Sequence[Looks],
    roles: Roles,
    spelling: Spelling,
    weight: str | None,
) -> list[str]:
    """Return sentences that propose a role for columns without a telling name."""
    taken = {roles.user, roles.item, roles.rating, roles.time}
    taken |= {k for k in range(len(names)) if names[k] == weight}
    free = [k for k in range(len(names)) if k not in taken and looks[k].cells]
    out = []
    for role, place in (("rating", roles.rating), ("time", roles.time)):
        for k in range(len(names)) if place is None else ():
            if strength_of(names[k], role)[:1] == (3,) and k not in taken:
                holds = "no numbers" if role == "rating" else "neither numbers nor dates"
                told = "is empty" if not looks[k].cells else f"holds {holds}"
                out.append(f"{names[k][:40]} is called as {role}s are, but {told}: it is not read")
    counts = [k for k in free if "".join(words_of(names[k])) in WEIGHT and looks[k].numbers >= NUMERIC]
    if counts and weight is None:
        name = names[counts[0]][:40]
        out.append(
            f"{name} may be counts, and is not read: {spelling.of('weight', name)} takes them as such"
        )
    scales = [
        k
        for k in free
        if looks[k].scale and k not in counts and not "".join(words_of(names[k])[-1:]).endswith("id")
    ]
    if roles.rating is None and scales:
        told = ", ".join(
            f"{names[k][:40]} ({looks[k].lowest:g} to {looks[k].highest:g})" for k in scales[:3]
        )
        out.append(
            f"no column is called a rating; {told} may be one, and is not read: "
            f"{spelling.of('rating', names[scales[0]][:40])} takes it as such"
        )
    moments = [k for k in free if looks[k].moment]
    if roles.time is None and moments:
        name = names[moments[0]][:40]
        out.append(
            f"no column is called a time; {name} may be one: {spelling.of('time', name)} takes it as "
            "such"
        )
    return out


def looks_of(column: NDArray[np.object_]) -> Looks:
    """Return statistics of the cells of a column; text, or numbers and datetimes as they are."""
    import pandas as pd

    from recsys.data.cells import is_calendar, numbers_of, times_of
    from recsys.errors import InputError

    step = max(1, len(column) // LOOKED_AT)
    some = [one[:LONGEST] if isinstance(one, str) else one for one in column[::step]]
    series = pd.Series(some, dtype=object)
    try:
        numbers = numbers_of("", "", series)
        values = numbers.values
        filled = ~numbers.missing
    except InputError:
        values, filled = np.full(len(series), np.nan), series.notna().to_numpy()
    size = int(filled.sum())
    real = values[np.isfinite(values)]
    dates = float(is_calendar(real))
    if size and len(real) < size:
        try:
            found = times_of("", "", series)
            dates = float(np.isfinite(found.values).sum()) / size
        except InputError:
            dates = 1.0  # in two ways
    apart = np.diff(real)
    return Looks(
        len(real) / max(size, 1), float((real == np.floor(real)).sum()) / max(size, 1), dates,
        len(np.unique(real)), float(real.min()) if len(real) else np.nan,
        float(real.max()) if len(real) else np.nan, size,
        len(real) == size > 4 and bool(apart[0] > 0 and (apart == apart[0]).all()),
    )  # fmt: skip
