"""Columns of a table: which is which by its name, and cells as ids, numbers or points in time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.registry import did_you_mean
from recsys.utils.dates import FIRST, LAST, date_text

NONE = "none"  # of ratings or times: that there are none, whatever columns are called
MOST = 60  # names in a message

# Names in public tables, without blanks and marks; the earlier of two in one table wins.
USER = (
    "userid user uid users username reviewerid customerid custid customer visitorid memberid "
    "member accountid steamid msno authorid playerid usersha1 clientid buyerid subscriberid "
    "listenerid readerid personid householdkey householdid custkey who reviewer "
    "reviewprofilename sessionid session orderid invoiceno invoice basketid cartid visitid"
).split()
ITEM = (
    "itemid item iid items movieid productid articleid asin parentasin isbn isbn13 bookid "
    "businessid stockcode trackid songid artistid artistmbid bookmarkid appid gameid recipeid "
    "animeid jokeid locationid venueid placeid poiid gmapid restaurantid beerbeerid beerid "
    "hotelid courseid newsid videoid podcastid showid offerid goodid sku skuid movie film book "
    "product article track song artist game what title contentid"
).split()
RATING = (
    "rating ratings bookrating userrating reviewoverall reviewrating itemrating movierating "
    "overall stars starrating score reviewscore userscore myrating preference ratingvalue"
).split()
TIME = (
    "timestamp timestamps time unixreviewtime eventtime eventdate utcdate tdat datetime date "
    "invoicedate transactiondt createdat created reviewdate reviewtime dateadded dateupdated "
    "ratedat ratingtimestamp listenedat purchasedate orderdate checkintime ts when"
).split()
WEIGHT = (
    "weight weights plays playcount playcounts count counts quantity qty amount hours playtime "
    "listens listencount views clicks purchases minutes seconds watchtime"
).split()
TITLE = (
    "title titles name itemname itemtitle productname producttitle movietitle moviename booktitle "
    "songtitle trackname artistname titel bezeichnung artikelname artikelbezeichnung produktname "
    "titre nom nomproduit designation libelle titolo titulo nombre nome nombreproducto"
).split()
# English, German, French, Spanish and Italian words, alone or beside one of SMALL.
WORDS = {
    "user": (
        "visitor viewer reader listener player rater person customers client buyer shopper subscriber "
        "account student patient kunde kunden kundin nutzer benutzer besucher mitglied leser kaufer "
        "utilisateur client lecteur membre acheteur usuario cliente lector utente clienti lettore"
    ).split(),
    "item": (
        "products movies films books songs tracks artists album games joke articles recipe restaurant "
        "place business app show course artikel artikelnr produkt produkte ware buch spiel lied produit "
        "livre jeu chanson articolo prodotto libro gioco canzone articulo producto pelicula juego "
        "cancion"
    ).split(),
    "rating": (
        "stern sterne bewertung wertung punkte note noten etoiles evaluation avis voto voti valutazione "
        "punteggio stelle puntuacion calificacion valoracion estrellas nota"
    ).split(),
    "time": (
        "datum bestelldatum kaufdatum zeit zeitpunkt zeitstempel horodatage temps heure data ora fecha "
        "hora tiempo dates"
    ).split(),
}
EXACT = {"user": USER, "item": ITEM, "rating": RATING, "time": TIME}
ROLE_WORDS = frozenset(
    [
        *USER,
        *ITEM,
        *RATING,
        *TIME,
        *WEIGHT,
        *TITLE,
        *(word for words in WORDS.values() for word in words),
    ]
)
SMALL = frozenset(
    "id ids n nr no num number nummer code key the of d de del di du identifiant codigo codice "
    "reference referencia riferimento achat compra ordine kauf".split()
)
ENDS = re.compile(r"(nummer|nr|number|id|code|name)$")
USER_NAMES = ("user_id", "user", "userid", "userId", "uid", "UserId")
ITEM_NAMES = ("item_id", "item", "itemid", "itemId", "iid", "movie_id", "movieId", "ItemId")

MISSING = frozenset(("", "na", "n/a", "nan", "nat", "null", "none", "\\n", "undefined", "#n/a"))
SCIENTIFIC = re.compile(r"[+-]?\d+(?:[.,]\d+)?[eE]\+?\d+")
NO_ID = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d|\d+[.,]\d|\d+:\d\d")  # dates and fractions
WHOLE = re.compile(r"[+-]?\d+\.0+")
COMMA = re.compile(r"[+-]?\d+(,\d+)?")
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
LARGEST = float(np.finfo(np.float32).max)
# Epochs by magnitude.
UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))
DAYS_FIRST = ("%d/%m/%Y", "%d/%m/%y", "%d-%m-%Y", "%d-%m-%y")
MONTHS_FIRST = ("%m/%d/%Y", "%m/%d/%y", "%m-%d-%Y", "%m-%d-%y")
OTHER_DATES = (
    "%d.%m.%Y|%d.%m.%y|%d. %m. %Y|%d.%m.%Y.|%Y. %m. %d.|%Y/%m/%d|%Y.%m.%d|%d %b %Y|%d %B %Y|%b %d, %Y|"
    "%B %d, %Y|%m %d, %Y|%d-%b-%Y|%d-%b-%y"
).split("|")
CLOCKS = (
    "| %H:%M| %H:%M:%S| %H:%M:%S.%f| %I:%M %p| %I:%M:%S %p|, %H:%M|, %H:%M:%S| %H.%M| %H.%M.%S"
).split("|")
WITH_ZONE = ("%a %b %d %H:%M:%S %z %Y", "%a, %d %b %Y %H:%M:%S %z")


@dataclass(frozen=True)
class Columns:
    """The decisions of the reader, for later rows."""

    user: str = "user"
    item: str = "item"
    rating: str | None = None
    time: str | None = None
    min_rating: float | None = None  # rows rated below it are no interactions
    kind: str = "pandas"  # of table: "pandas", "polars" or "pyarrow"
    weight: str | None = None  # counts or amounts
    decimal: str | None = None  # "." or ","; None where nothing told
    day_first: bool | None = None  # how dates such as 01/02/2020 were read
    duplicates: str | None = None  # what became of repeated pairs: "sum", "count" or "last"
    cold_items: bool = False  # whether items and users that only their table has were taken in


def plain_name(name: object) -> str:
    """Return a name in lower case without accents, blanks and marks.

    >>> plain_name("Kunden-Nr."), plain_name("movieId"), plain_name("Évaluation")
    ('kundennr', 'movieid', 'evaluation')
    """
    return "".join(words_of(str(name)))


def words_of(name: str) -> list[str]:
    """Return the words of a name, in lower case without accents."""
    apart = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])", " ", name)
    base = "".join(c for c in unicodedata.normalize("NFKD", apart) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", base.replace("ß", "ss").lower())


def title_column(names: Sequence[object]) -> object | None:
    """Return the column of titles in a table of items: "title", or the first with a similar name.

    >>> title_column(["Bezeichnung", "Preis"]), title_column(["name", "title"]), title_column(["Preis"])
    ('Bezeichnung', 'title', None)
    """
    if "title" in names:
        return "title"
    return next((name for name in names if plain_name(name) in TITLE), None)


def find_columns(
    names: Sequence[str], header: bool = True, first: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return the columns with names of a role, by role, likeliest first.

    Without a header, users and items are the first two columns with neither dates nor fractions in the
    `first` row.

    >>> find_columns(["Kunden-Nr.", "Artikel", "Bewertung", "Preis"])
    {'user': ['Kunden-Nr.'], 'item': ['Artikel'], 'rating': ['Bewertung'], 'time': []}
    """
    if not header:
        ids = [name for name, cell in zip(names, first, strict=True) if not NO_ID.match(cell.strip())]
        return {"user": ids[:1], "item": ids[1:2], "rating": [], "time": []}
    out: dict[str, list[str]] = {}
    for role, known in EXACT.items():
        ranks = []
        for place, name in enumerate(names):
            plain = plain_name(name)
            telling = [word for word in words_of(name) if word not in SMALL]
            if plain in known:
                ranks.append((known.index(plain), place))
            elif (
                len(telling) == 1
                and telling[0] in (*WORDS[role], *known)
                or ENDS.sub("", plain) in WORDS[role]
            ):
                ranks.append((len(known), place))
        out[role] = [names[place] for _, place in sorted(ranks)]
    return out


def some(names: Sequence[object]) -> str:
    """Return names for a message."""
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(str(name)[:40] for name in names[:MOST]) + more


def absent(where: str, name: object, names: Sequence[str], header: bool = True) -> InputError:
    """Return the error for a column that a table does not have; it suggests the nearest name."""
    name = str(name)[:60]
    hint = did_you_mean(name, names)
    near = f" ({hint[:100]})" if hint.startswith("did") else ""
    own = "" if header else "; the first row is read as cells: name columns with names=, or header=True"
    return InputError(f"{where}: no column {name!r}{near}; found: {some(names)}{own}")


def no_role(where: str, role: str, names: Sequence[str], header: bool) -> InputError:
    """Return the error for a table without users or items; it lists the columns, likely ones first."""
    words = {*EXACT[role], *WORDS[role]}
    likely = [name for name in names if not words.isdisjoint(words_of(name))]
    found = some([*likely, *(name for name in names if name not in likely)])
    wide = "; if each column is an item, melt the table first" if len(names) > 20 else ""
    own = "" if header else "; the first row is read as cells: name columns with names=, or header=True"
    return InputError(f"{where}: no {role} column; name it with {role}=; found: {found}{wide}{own}")


def usual(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first known name that there is, None without any."""
    return next((name for name in known if name in names), None)


def is_number(text: str) -> bool:
    """Return whether text is a number, with a point or a comma."""
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True


# ---- cells


@dataclass
class Cells:
    """A column of ids or numbers, a row each."""

    codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # −1: no id
    ids: NDArray[np.object_] = field(default_factory=lambda: np.zeros(0, object))  # by first appearance
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    missing: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    unreadable: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    example: str = ""  # a cell that cannot be read
    notes: list[str] = field(default_factory=list)
    decimal: str | None = None
    day_first: bool | None = None
    read_as: str = ""  # the first point in time


def _kind(column: Any) -> Any:
    import pyarrow as pa

    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def is_text(kind: Any) -> bool:
    """Return whether a type of arrow is one of text."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _coded(column: Any) -> tuple[NDArray[np.int32], list[Any]]:
    """Return a code for each cell, −1 where it is null, and the different cells."""
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([[None if c is None else str(c) for c in column.to_pylist()]])
    elif not pa.types.is_primitive(_kind(column)) and not pa.types.is_decimal(_kind(column)):
        if not pa.types.is_dictionary(kind):
            column = column.cast(pa.large_string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.num_chunks == 0:
        return np.zeros(0, np.int32), []
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0)
    codes = whole.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, whole.dictionary.to_pylist()


def ids_of(where: str, name: str, column: Any, as_text: bool = False) -> Cells:
    """Return a column as ids: text, or integers of a table in memory; those of a file are text."""
    import pyarrow as pa

    kind, such = _kind(column), "ids must be text or integers"
    try:
        codes, values = _coded(column)
    except (pa.ArrowException, UnicodeDecodeError):
        raise InputError(f"{where}: {name[:60]} must be text or integers, one per row") from None
    known = [value for value in values if value is not None and value == value]
    if pa.types.is_boolean(kind):
        raise InputError(f"{where}: {name[:60]} contains truth values; {such}")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if any(abs(value) == np.inf or value != int(value) for value in known):
            raise InputError(f"{where}: {name[:60]} contains fractions; {such}")
        most = 2.0 ** (24 if pa.types.is_float32(kind) else 53)
        if pa.types.is_floating(kind) and any(abs(value) >= most for value in known):
            raise InputError(
                f"{where}: {name[:60]} contains rounded ids such as "
                f"{max(known, key=abs):.0f}: floats are not exact from {most:.0f} on; use "
                "text or integers"
            )
        values = [None if value is None or value != value else int(value) for value in values]
    if pa.types.is_temporal(kind) and not as_text:
        raise InputError(f"{where}: {name[:60]} must be text or integers, not {kind}")
    if (known and isinstance(known[0], str)) or not known:
        values, notes = _clean(name, codes, values)
        return _in_order(codes, values, notes)
    if as_text:
        values = [None if value is None else str(value) for value in values]
    return _in_order(codes, values, [])


def _clean(name: str, codes: NDArray[np.int32], values: list[str | None]) -> tuple[list[Any], list[str]]:
    texts, notes = ["" if value is None else value.strip() for value in values], []
    if sum(map(len, texts)) < sum(len(value) for value in values if value is not None):
        notes.append(f"{name}: blanks around ids are taken away")
    filled = [text for text in texts if text]
    if filled and all(WHOLE.fullmatch(text) for text in filled):
        texts = [text.split(".")[0].removeprefix("+") for text in texts]
        notes.append(f"{name}: ids such as 1.0 are read as 1")
    doubtful = [k for k, text in enumerate(texts) if text and text.lower() in MISSING]
    rounded = [k for k, text in enumerate(texts) if SCIENTIFIC.fullmatch(text)]
    rows = int(np.isin(codes, doubtful).sum()) if doubtful else 0
    if rows > 1:
        notes.append(f"{name}: {texts[doubtful[0]]!r} is read as an id, in rows: {rows:,}")
    if rounded:
        rows = int(np.isin(codes, rounded).sum())
        notes.append(
            f"{name}: ids such as {texts[rounded[0]]} have lost digits, in rows: {rows:,}; export them "
            "as text"
        )
    return [text or None for text in texts], notes


def _in_order(codes: NDArray[np.int32], values: list[Any], notes: list[str]) -> Cells:
    """Return ids in the order of their first appearance, equal ones once."""
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    none = len(distinct)
    place = dict(zip(distinct, range(none), strict=True))
    table = np.array([none if v is None else place[v] for v in values] + [none], dtype=np.int32)
    places, first = pd.factorize(table[codes])  # a code of −1 takes the last
    order = places.astype(np.int32)
    if (gap := np.flatnonzero(first == none)).size:
        order[order == gap[0]] = -1
        order[order > gap[0]] -= 1
        first = np.delete(first, gap[0])
    ids = np.empty(none, dtype=object)
    ids[:] = distinct
    return Cells(codes=order, ids=ids[first], notes=notes)


def parsed(texts: Sequence[str], decimal: str | None = None) -> tuple[NDArray[np.float64], str | None]:
    """Return texts as numbers, NaN for others, and the decimal mark where it is a comma."""
    cells = pd.Series(np.array(texts, dtype=object), dtype=object)
    if decimal is None and any("," in text for text in texts):
        filled = [text for text in texts if any(map(str.isdigit, text))]
        commas = [text for text in filled if "," in text]
        if all(COMMA.fullmatch(text) for text in filled) and not all(map(GROUPED.fullmatch, commas)):
            decimal = ","
    if decimal == ",":
        cells = cells.str.replace(".", "\0", regex=False).str.replace(",", ".", regex=False)
    values = np.array(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
    return values, decimal


def _numbers(where: str, name: str, column: Any, decimal: str | None = None) -> NDArray[Any] | None:
    """Return a column as floats, missing ones NaN; None for text of which some cells are no numbers."""
    import pyarrow as pa

    kind = _kind(column)
    if is_text(kind):
        for target in (pa.int64(), pa.float64()) if decimal != "," else (pa.int64(),):
            try:
                column = column.cast(target)
                break
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
        else:
            return None
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        raise InputError(f"{where}: {name[:60]} must be numbers, not {kind}")
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _read_cells(column: Any, read: Any) -> tuple[Cells, Any]:
    """Return the cells of a column of text as `read` has the different ones, and what else it tells."""
    codes, texts = _coded(column)
    texts = ["" if text is None else text.strip() for text in texts]
    values, more = read(texts)
    void = np.array([text.lower() in MISSING for text in texts] + [True])
    bad = np.append(~np.isfinite(values), False) & ~void
    example = texts[int(np.argmax(bad))] if bad.any() else ""
    values = np.append(values, np.nan)[codes]
    return Cells(values=values, missing=void[codes], unreadable=bad[codes], example=example), more


def numbers_of(where: str, name: str, column: Any, decimal: str | None = None) -> Cells:
    """Return a column as numbers."""
    values = _numbers(where, name, column, decimal)
    if values is None:
        cells, decimal = _read_cells(column, lambda texts: parsed(texts, decimal))
        cells.decimal = decimal
    else:
        cells = Cells(values=values, missing=np.isnan(values), unreadable=np.isinf(values))
    cells.values[cells.unreadable] = np.nan
    if (np.abs(cells.values) > LARGEST).any():
        raise InputError(f"{where}: {name[:60]} contains numbers beyond {LARGEST:.2g}")
    return cells


def times_of(where: str, name: str, column: Any, day_first: bool | None = None) -> Cells:
    """Return a column as points in time: seconds since 1970 of dates and epochs, or plain numbers."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_date(kind):
            column = column.cast(pa.timestamp("s" if pa.types.is_date32(kind) else "ms"))
        scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
        whole = column.cast(pa.timestamp(column.type.unit)).cast(pa.int64())
        missing = np.asarray(whole.is_null().to_numpy(), dtype=bool)
        values = np.where(missing, np.nan, whole.fill_null(0).to_numpy() / scale)
        return _dated(Cells(values=values, missing=missing, unreadable=np.zeros(len(values), bool)))
    numbers = _numbers(where, name, column)
    if numbers is not None:
        cells = Cells(values=numbers, missing=np.isnan(numbers), unreadable=np.isinf(numbers))
        return _epochs(where, name, cells)
    cells, _ = _read_cells(column, lambda texts: parsed(texts, "."))
    if 2 * int(cells.unreadable.sum()) <= int((~cells.missing).sum()):
        return _epochs(where, name, cells)
    cells, first = _read_cells(column, lambda texts: _dates(where, name, texts, day_first))
    cells.day_first = first
    return _dated(cells)


def _dated(cells: Cells) -> Cells:
    known = np.flatnonzero(np.isfinite(cells.values))
    cells.read_as = _date_text(float(cells.values[known[0]])) if len(known) else ""
    return cells


def _date_text(seconds: float) -> str:
    try:
        return date_text(seconds)
    except (OverflowError, ValueError):
        return f"{seconds:g}"


def _epochs(where: str, name: str, cells: Cells) -> Cells:
    """Take numbers as dates such as 20240131, as epochs in any unit, or as they are."""
    cells.values[cells.unreadable] = np.nan
    finite = np.isfinite(cells.values)
    known = cells.values if finite.all() else cells.values[finite]
    if not len(known):
        return cells
    calendar = _calendar(known)
    if calendar is not None:
        cells.values[finite] = calendar
        return _dated(cells)
    if known.min() >= FIRST and known.max() <= LAST:
        return _dated(cells)
    scale = np.ones(len(known))
    for start, divisor, _ in reversed(UNITS):
        scale[np.abs(known) >= start] = divisor
    seconds = known / scale
    epoch = (seconds >= FIRST) & (seconds <= LAST)
    if (scale > 1).any() and 2 * epoch.sum() >= len(known):
        units = [unit for _, divisor, unit in UNITS if (epoch & (scale == divisor)).any()]
        plain = ["seconds"] if (epoch & (scale == 1)).any() else []
        cells.notes.append(
            f"times of {name} are {' and '.join([*plain, *units])} since 1970, read as seconds"
        )
        if not epoch.all():
            cells.example = f"{known[~epoch][0]:.0f}"
            cells.unreadable[np.flatnonzero(finite)[~epoch]] = True
        cells.values[finite] = np.where(epoch, seconds, np.nan)
        return _dated(cells)
    late = np.abs(seconds) > LAST
    if 2 * int(late.sum()) >= len(known):
        raise InputError(
            f"{where}: {name[:60]} contains numbers such as {known[late][0]:.0f}, which "
            "are not times from 1970 to 2100 in any unit: convert them, or pass "
            f"time={NONE!r}"
        )
    return cells


def _calendar(known: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return numbers such as 20240131 or 20240131180500 as seconds, None for others."""
    for digits, form in ((8, "%Y%m%d"), (12, "%Y%m%d%H%M"), (14, "%Y%m%d%H%M%S")):
        low, high = 1900 * 10.0 ** (digits - 4), 2101 * 10.0 ** (digits - 4)
        if known.min() >= low and known.max() < high:
            codes, values = pd.factorize(known)
            found = _seconds([f"{value:.0f}" for value in values], form)
            return found[codes] if np.isfinite(found).all() else None
    return None


def _seconds(texts: Any, form: str) -> NDArray[np.float64]:
    moments = pd.to_datetime(pd.Series(texts, dtype=object), format=form, utc=True, errors="coerce")
    found = moments.to_numpy("datetime64[us]")
    return np.where(np.isnat(found), np.nan, found.astype(np.int64) / 1e6)


def _dates(
    where: str, name: str, texts: Sequence[str], day_first: bool | None
) -> tuple[NDArray[np.float64], bool | None]:
    """Return texts as seconds, by the form that most of them have, and whether days come first."""
    cells = [re.sub(r"\s*(UTC|GMT)$", "", text, flags=re.IGNORECASE) for text in texts]
    filled = [cell for cell in cells if re.search(r"\d", cell[:60])]
    few = filled[:: max(1, len(filled) // 200)][:400]

    def count(form: str) -> int:
        return int(np.isfinite(_seconds(few, form)).sum())

    best, iso = (0, "", ""), count("ISO8601")
    if not few or iso == len(few):
        return _seconds(cells, "ISO8601"), None
    for clock in CLOCKS:
        for one, two in zip(DAYS_FIRST, MONTHS_FIRST, strict=True):
            counts = count(one + clock), count(two + clock)
            if day_first is not None:
                new = (counts[not day_first], (one, two)[not day_first] + clock, "")
            elif counts[0] == counts[1]:
                new = (counts[0], one + clock, two + clock)
            else:
                new = (max(counts), (one if counts[0] > counts[1] else two) + clock, "")
            best = max(best, new, key=lambda way: way[0])
        for one in OTHER_DATES:
            best = max(best, (count(one + clock), one + clock, ""), key=lambda way: way[0])
    for one in WITH_ZONE:
        best = max(best, (count(one), one, ""), key=lambda way: way[0])
    if best[0] <= iso:
        return _seconds(cells, "ISO8601"), None
    _, form, other = best
    if other:
        such = next(cell for cell in filled if np.isfinite(_seconds([cell], form))[0])
        ways = [_date_text(float(_seconds([such], one)[0])) for one in (form, other)]
        raise InputError(
            f"{where}: {name[:60]} has ambiguous dates such as {such[:40]!r}, {ways[0]} "
            f"or {ways[1]}: pass day_first=True or day_first=False"
        )
    first = form.startswith(DAYS_FIRST)
    return _seconds(cells, form), first if first or form.startswith(MONTHS_FIRST) else None
