"""Columns of a table: which is which by its name, and cells as ids, numbers or points in time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.registry import did_you_mean
from recsys.utils.dates import FIRST, LAST

NONE = "none"  # of ratings or times: that there are none, whatever columns are called
MOST = 60  # names in a message
WIDE = 20  # columns, beyond which each may be an item

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
ROLE_WORDS = frozenset(sum((*EXACT.values(), *WORDS.values(), WEIGHT, TITLE), []))
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
COMMA = re.compile(r"[+-]?(\d+(,\d+)?|\d{1,3}(\.\d{3})+,\d+)")  # a decimal comma: 4,5 or 1.234,5
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
LEADING_ZERO = re.compile(r"\s*0\d")
LARGEST = float(np.finfo(np.float32).max)
UNITS = {1.0: "seconds", 1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}  # of epochs
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
    """Return a name such as "Kunden-Nr." in lower case without accents, blanks and marks."""
    return "".join(words_of(str(name)))


def words_of(name: str) -> list[str]:
    """Return the words of a name, in lower case without accents."""
    apart = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])", " ", name)
    base = "".join(c for c in unicodedata.normalize("NFKD", apart) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", base.replace("ß", "ss").lower())


def title_column(names: Sequence[object]) -> object | None:
    """Return the column of titles in a table of items: "title", or the first with a similar name."""
    if "title" in names:
        return "title"
    return next((name for name in names if plain_name(name) in TITLE), None)


def find_columns(
    names: Sequence[str], header: bool = True, first: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return the columns with names of a role, by role, likeliest first.

    Without a header, users and items are the first two columns with neither dates nor fractions in the
    `first` row.
    """
    if not header:
        ids = [name for name, cell in zip(names, first, strict=True) if not NO_ID.match(cell.strip())]
        ids = ids if len(names) <= WIDE else []
        return {"user": ids[:1], "item": ids[1:2], "rating": [], "time": []}
    found: dict[str, list[str]] = {}
    for role, exact in EXACT.items():
        ranks: dict[str, int] = {}
        for name in names:
            plain, words = plain_name(name), [word for word in words_of(name) if word not in SMALL]
            alone = len(words) == 1 and words[0] in (*WORDS[role], *exact)
            if plain in exact:
                ranks[name] = exact.index(plain)
            elif alone or ENDS.sub("", plain) in WORDS[role]:
                ranks[name] = len(exact)
        found[role] = sorted(ranks, key=lambda name: ranks[name])
    return found


def some(names: Sequence[object]) -> str:
    """Return names for a message."""
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(str(name)[:40] for name in names[:MOST]) + more


def _unnamed(named: bool) -> str:
    return "" if named else "; the first row is read as cells: name columns with names=, or header=True"


def absent(where: str, name: object, names: Sequence[str], named: bool = True) -> InputError:
    """Return the error for a column that a table does not have; it suggests the nearest name."""
    name = str(name)[:60]
    hint = did_you_mean(name, names)
    near = f" ({hint[:100]})" if hint.startswith("did") else ""
    return InputError(f"{where}: no column {name!r}{near}; found: {some(names)}{_unnamed(named)}")


def no_role(where: str, role: str, names: Sequence[str], named: bool) -> InputError:
    """Return the error for a table without users or items; it lists the columns, likely ones first."""
    words = {*EXACT[role], *WORDS[role]}
    likely = sorted(names, key=lambda name: words.isdisjoint(words_of(name)))
    wide = "; if each column is an item, melt the table first" if len(names) > WIDE else ""
    found = f"found: {some(likely)}{wide}{_unnamed(named)}"
    return InputError(f"{where}: no {role} column; name it with {role}= (--{role}-col); {found}")


# ---- cells


class Ids(NamedTuple):
    """A column of ids."""

    codes: NDArray[np.int32]  # a row each, −1 without an id
    ids: NDArray[np.object_]  # in the order of their first rows
    notes: list[str]


@dataclass
class Cells:
    """A column of numbers or points in time, a row each."""

    values: NDArray[np.float64]  # NaN for missing and unreadable cells
    missing: NDArray[np.bool_]
    note: str = ""
    decimal: str | None = None
    day_first: bool | None = None

    @property
    def unreadable(self) -> NDArray[np.bool_]:
        """Cells that are filled with something else."""
        return np.isnan(self.values) & ~self.missing


def kind_of_cells(column: Any) -> Any:
    """Return the type of a column's cells, also where they are stored as a dictionary."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _is_text(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _text(cell: Any) -> Any:
    if isinstance(cell, list):
        return "|".join(map(str, cell))
    return cell.decode(errors="backslashreplace") if isinstance(cell, bytes) else cell


def coded(column: Any) -> tuple[NDArray[np.int32], list[Any]]:
    """Return a code for each cell, −1 where it is null, and the different cells.

    Text that is nothing but integers becomes integers.
    """
    kind = kind_of_cells(column)
    if pa.types.is_nested(kind):
        cells = [None if cell is None else str(_text(cell)) for cell in column.to_pylist()]
        column = pa.chunked_array([pa.array(cells, pa.large_string())])
    elif _is_text(column.type):
        with suppress(
            pa.ArrowInvalid, pa.ArrowNotImplementedError
        ):  # integers take half the time of text
            codes, values = _encoded(column.cast(pa.int64()))
            lengths = np.array([*(len(str(value)) for value in values), 0], dtype=np.uint8)
            # 007, +7 and −0 are longer than the integers that they are read as.
            if lengths[codes].sum(dtype=np.int64) == pc.sum(pc.binary_length(column)).as_py():
                return codes, values
    codes, values = _encoded(column)
    return codes, values if _is_text(kind) else list(map(_text, values))


def _encoded(column: Any) -> tuple[NDArray[np.int32], list[Any]]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = pa.concat_arrays(column.unify_dictionaries().chunks or [pa.array([], column.type)])
    codes = whole.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, whole.dictionary.to_pylist()


def ids_of(where: str, name: str, column: Any, as_text: bool = False) -> Ids:
    """Return a column as ids: text, or integers of a table in memory; those of a file are text."""
    kind, what = kind_of_cells(column), f"{where}: {name[:60]}"
    temporal = pa.types.is_temporal(kind) and not as_text
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind) or temporal:
        raise InputError(f"{what} must be text or integers, not {kind}")
    codes, values = coded(column)
    notes: list[str] = []
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        known = [value for value in values if value is not None and value == value]
        if any(abs(value) == np.inf or value != int(value) for value in known):
            raise InputError(f"{what} contains fractions; ids must be text or integers")
        most = 2.0 ** (24 if pa.types.is_float32(kind) else 53)
        if pa.types.is_floating(kind) and any(abs(value) >= most for value in known):
            raise InputError(
                f"{what} contains rounded ids such as {max(known, key=abs):.0f}: floats are "
                f"not exact from {most:.0f} on; use text or integers"
            )
        values = [int(value) if value is not None and value == value else None for value in values]
    if any(isinstance(value, str) for value in values):
        values, notes = _clean(name, codes, values)
    elif as_text or _is_text(kind):
        values = [None if value is None else str(value) for value in values]
    cells = np.empty(len(values) + 1, dtype=object)  # the last one is none, of code −1
    cells[:-1] = values
    same, ids = pd.factorize(cells)
    kept = pd.unique(same[pd.unique(codes)])  # in the order of their first rows
    kept = kept[kept >= 0]
    place = np.full(len(ids) + 1, -1, dtype=np.int32)
    place[kept] = np.arange(len(kept))
    return Ids(place[same][codes], ids[kept], notes)


def ids_like(known: NDArray[np.object_], ids: Iterable[Any]) -> list[Any]:
    """Return ids as text or integers, whichever the known ones are."""
    texts = list(map(str, ids))
    if not len(known) or isinstance(known[0], str):
        return texts
    whole = [text.removeprefix("-").isdecimal() and str(int(text)) == text for text in texts]
    return [int(text) if one else text for text, one in zip(texts, whole, strict=True)]


def _clean(name: str, codes: NDArray[np.int32], values: list[str | None]) -> tuple[list[Any], list[str]]:
    texts, notes = ["" if value is None else value.strip() for value in values], []
    filled = [text for text in texts if text]
    if filled and all(WHOLE.fullmatch(text) for text in filled):
        texts = [text.split(".")[0].removeprefix("+") for text in texts]
        notes.append(f"{name}: ids such as 1.0 are read as 1")

    def note(what: Callable[[str], Any], message: str) -> None:
        found = [k for k, text in enumerate(texts) if text and what(text)]
        if found:
            rows = int(np.isin(codes, found).sum())
            notes.append(f"{name}: {message.format(texts[found[0]][:40])}, in rows: {rows:,}")

    note(lambda text: text.lower() in MISSING, "{!r} is read as an id")
    note(lambda text: "\n" in text, "{!r} is an id of several lines")
    note(SCIENTIFIC.fullmatch, "export ids as text: those such as {} have lost digits")
    return [text or None for text in texts], notes


def _has_decimal_commas(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if any(map(str.isdigit, text))]
    commas = [text for text in filled if "," in text]
    return bool(commas) and all(map(COMMA.fullmatch, filled)) and not all(map(GROUPED.fullmatch, commas))


def floats(column: Any, decimal: str | None = None) -> NDArray[np.float64] | None:
    """Return a column as floats, missing ones NaN; None if some cells are no numbers."""
    kind = kind_of_cells(column)
    if pa.types.is_temporal(kind):
        return None
    ways = [pa.int64(), pa.float64()] if decimal != "," else [pa.int64()]
    for way in ways if _is_text(kind) else [pa.float64()]:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            numbers = column.cast(way, safe=_is_text(kind)).cast(pa.float64(), safe=False)
            return np.array(numbers.to_numpy(), dtype=np.float64)
    return None


def texts_of(column: Any) -> tuple[NDArray[np.int32], list[str]]:
    """Return a code for each cell, and the different cells as text, the last one empty for code −1."""
    codes, values = coded(column)
    return codes, [*("" if value is None else str(value) for value in values), ""]


def _of_texts(codes: NDArray[np.int32], texts: list[str], values: NDArray[np.float64]) -> Cells:
    """Return the cells of a column of text, where `values` are the numbers of its different texts."""
    missing = np.array([text.lower() in MISSING for text in texts])
    return Cells(np.where(np.isfinite(values), values, np.nan)[codes], missing[codes])


def numbers_of(column: Any, decimal: str | None = None) -> Cells:
    """Return a column as numbers; infinite ones cannot be read."""
    values = floats(column, decimal)
    if values is not None:
        missing = np.isnan(values)
        values[np.isinf(values)] = np.nan
        return Cells(values, missing)
    codes, texts = texts_of(column)
    texts = list(map(str.strip, texts))
    series = pd.Series(texts, dtype=object)
    note = ""
    if decimal is None and _has_decimal_commas(texts):
        decimal, note = ",", "numbers have a decimal comma: 4,5 is read as 4.5"
    if decimal == ",":
        series = series.where(series.str.fullmatch(COMMA), "").str.replace(".", "").str.replace(",", ".")
    values = np.array(pd.to_numeric(series, errors="coerce"), dtype=np.float64)
    cells = _of_texts(codes, texts, values)
    cells.note, cells.decimal = note, decimal if note else None
    return cells


def times_of(where: str, name: str, column: Any, day_first: bool | None = None) -> Cells:
    """Return a column as points in time: seconds since 1970 of dates and epochs, or plain numbers."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        moments = numbers_of(column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()))
        moments.values /= 1e6
        return moments
    cells = numbers_of(column, ".")
    if 2 * int(cells.unreadable.sum()) <= int((~cells.missing).sum()):
        return _epochs(where, name, cells)
    codes, texts = texts_of(column)
    texts = list(map(str.strip, texts))
    values, first = _dates(where, name, texts, day_first)
    cells = _of_texts(codes, texts, values)
    cells.day_first = first
    return cells


def _epochs(where: str, name: str, cells: Cells) -> Cells:
    """Take numbers as dates such as 20240131, as epochs in any unit, or as they are."""
    finite = np.isfinite(cells.values)
    known = cells.values if finite.all() else cells.values[finite]
    if not len(known) or (known.min() >= FIRST and known.max() <= LAST):
        return cells
    calendar = _calendar(known)
    if calendar is not None:
        cells.values[finite] = calendar
        return cells
    size = np.abs(known)
    scale = np.select([size >= 1e17, size >= 1e14, size >= 1e11], [1e9, 1e6, 1e3], 1.0)
    seconds = known / scale
    epoch = (seconds >= FIRST) & (seconds <= LAST)
    if (scale > 1).any() and 2 * epoch.sum() >= len(known):
        units = " and ".join(UNITS[one] for one in np.unique(scale[epoch]))
        cells.note = f"times of {name} are {units} since 1970, read as seconds"
        cells.values[finite] = np.where(epoch, seconds, np.nan)
        return cells
    late = np.abs(seconds) > LAST
    if 2 * int(late.sum()) >= len(known):
        raise InputError(
            f"{where}: {name[:60]} contains numbers such as {known[late][0]:.0f}, which are not times "
            f"from 1970 to 2100 in any unit: convert them, or pass time={NONE!r}"
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


def _seconds(texts: Sequence[str], form: str) -> NDArray[np.float64]:
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

    orders = [*(DAYS_FIRST if day_first is not False else ()), *(() if day_first else MONTHS_FIRST)]
    others = [date + clock for clock in CLOCKS for date in (*orders, *OTHER_DATES)]
    forms = ("ISO8601", *others, *WITH_ZONE)
    form = next((one for one in forms if count(one) == len(few)), "") or max(forms, key=count)
    days, months = form.startswith(DAYS_FIRST), form.startswith(MONTHS_FIRST)
    if not days and not months:
        return _seconds(cells, form), None
    if days and day_first is None:
        other = form.replace("%d", "%x").replace("%m", "%d").replace("%x", "%m")
        if count(other) == count(form):
            such = next(cell for cell in filled if np.isfinite(_seconds([cell], form))[0])
            raise InputError(
                f"{where}: {name[:60]} has ambiguous dates such as {such[:40]!r}: pass day_first=True "
                "or day_first=False"
            )
    return _seconds(cells, form), days
