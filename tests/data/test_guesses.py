"""Columns of tables in other languages and of other customs, told by name and by content."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.data.guesses import ROLES, guess_columns, words_of

RNG = np.random.default_rng(0)
USERS = [f"u{k}" for k in RNG.integers(0, 20, 200)]
NUMBERS = [str(k) for k in RNG.integers(1, 900, 200)]
GRADES = [str(k) for k in RNG.integers(1, 6, 200)]
SECONDS = [str(k) for k in RNG.integers(850_000_000, 900_000_000, 200)]
DATES = [f"2021-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(200)]
WORDS = ["good", "bad", "", "fine"] * 50

TABLES = {
    "German": (["Kunde", "Artikel", "Sterne", "Datum"], [USERS, NUMBERS, GRADES, DATES], "0123"),
    "German, numbers": (["Kunden-Nr.", "Artikelnummer", "Bewertung"], [NUMBERS, NUMBERS, GRADES], "012-"),
    "Italian": (["voto", "utente", "film", "data"], [GRADES, USERS, NUMBERS, DATES], "1203"),
    "French": (["id_utilisateur", "livre", "note", "horodatage"], [USERS, NUMBERS, GRADES, SECONDS], "0123"),
    "Spanish": (["usuario", "película", "calificación", "fecha"], [USERS, NUMBERS, GRADES, DATES], "0123"),
    "a note is text": (["user", "item", "note"], [USERS, NUMBERS, WORDS], "01--"),
    "MovieLens": (["userId", "movieId", "rating", "timestamp"], [USERS, NUMBERS, GRADES, SECONDS], "0123"),
    "reviews": (["reviewerID", "asin", "overall", "unixReviewTime"], [USERS, NUMBERS, GRADES, SECONDS], "0123"),
    "no names at all": (["a", "b", "c", "d"], [USERS, NUMBERS, GRADES, SECONDS], "0123"),
    "times before ratings": (["a", "b", "c", "d"], [USERS, NUMBERS, DATES, GRADES], "0132"),
    "an item first": (["item", "x", "y"], [NUMBERS, USERS, GRADES], "102-"),
    "two columns": (["x", "y"], [GRADES, SECONDS], "01--"),
    "two named otherwise": (["rating", "time"], [GRADES, SECONDS], None),
    "a title beside ids": (
        ["user_id", "title", "item_id", "score"], [USERS, WORDS, NUMBERS, GRADES], None,
    ),
}  # fmt: skip


def told(names, columns):
    found = guess_columns(names, [np.array(c, dtype=object) for c in columns])
    return found, "".join(
        "-" if name is None else str(names.index(name))
        for name in (found.user, found.item, found.rating, found.time)
    )


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_told_by_name_and_content(table):
    names, columns, wanted = TABLES[table]
    found, got = told(names, columns)
    if wanted is not None:
        assert got == wanted
    assert len({found.user, found.item, found.rating, found.time} - {None}) == sum(
        role is not None for role in (found.user, found.item, found.rating, found.time)
    )


def test_why_a_column_was_taken():
    found, _ = told(["Kunde", "x", "y", "z"], [USERS, NUMBERS, GRADES, DATES])
    assert found.why == {"user": "name", "item": "position", "rating": "content", "time": "content"}


def test_two_columns_of_other_names_are_users_and_items():
    found, _ = told(["rating", "time"], [GRADES, SECONDS])
    assert {found.user, found.item} == {"rating", "time"} and found.rating is found.time is None


@pytest.mark.parametrize("role", ROLES)
def test_names_are_written_as_they_are_compared(role):
    for name in ROLES[role]:
        assert words_of(name) == [name], name


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(max_size=6), min_size=2, max_size=5, unique=True),
    st.lists(st.lists(st.sampled_from(["", "a", "1", "2.5", "nan", "2020-01-01", "999999999"]), min_size=3, max_size=3), min_size=5, max_size=5),
)  # fmt: skip
def test_whatever_the_table_users_and_items_are_two_of_its_columns(names, columns):
    found, _ = told(names, columns[: len(names)])
    assert {found.user, found.item} <= set(names) and found.user != found.item
    chosen = [c for c in (found.user, found.item, found.rating, found.time) if c is not None]
    assert len(set(chosen)) == len(chosen)
