"""Points in time: what is one, and what is said of what is none."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys import InputError
from recsys.utils.dates import date_text, dated, iso_seconds, moment

AWARE = st.datetimes(
    datetime(1970, 1, 2),
    datetime(2200, 1, 1),
    timezones=st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours))),
)


@given(AWARE)
def test_iso_text_is_the_seconds_that_have_passed(when):
    assert iso_seconds(when.isoformat()) == pytest.approx(when.timestamp(), abs=1e-6)
    naive = when.replace(tzinfo=None)
    assert iso_seconds(naive.isoformat()) == iso_seconds(naive.isoformat() + "+00:00")
    assert moment("t", when.isoformat()) == iso_seconds(when.isoformat())


@given(st.integers(0, 4_000_000_000))
def test_days_and_dates_are_the_calendars(seconds):
    there = datetime.fromtimestamp(seconds, UTC)
    text = date_text(float(seconds))
    assert text[:10] == there.date().isoformat()
    assert text[10:] == ("" if there.time() == there.min.time() else f" {there:%H:%M}")


def test_numbers_are_taken_as_they_are():
    for given_, found in (
        (0, 0.0),
        (7, 7.0),
        (np.float32(2.5), 2.5),
        ("12", 12.0),
        ("20240131", 20240131.0),
    ):
        assert moment("t", given_) == found
    for day in (
        datetime(2024, 1, 31),
        datetime(2024, 1, 31, tzinfo=UTC),
        date(2024, 1, 31),
        np.datetime64("2024-01-31"),
    ):
        assert moment("t", day) == moment("t", "2024-01-31") == 1_706_659_200.0


NONE = [
    "",
    "x",
    "31/12/2020",
    "2024-13-01",
    "2024-1-3",
    "nan",
    "inf",
    "1e999",
    "1_000",
    float("nan"),
    float("inf"),
    10**400,
    True,
    None,
    [],
    {},
    b"2024-01-01",
]


@pytest.mark.parametrize("given_", NONE, ids=str)
def test_what_is_no_time_is_refused_in_one_line(given_):
    with pytest.raises(
        InputError, match="time of 'a' .* is not a time: use a number or an ISO date such as 2024-01-31"
    ) as caught:
        moment("time of 'a'", given_)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize("given_", [-1, -1e-9, "-5", "1969-12-31", "1970-01-01T00:00+01:00"], ids=str)
def test_before_1970_is_refused(given_):
    with pytest.raises(InputError, match="t .* is before 1970; times must not be negative"):
        moment("t", given_)


def test_times_are_dates_where_all_known_ones_can_be():
    assert dated([0, 1e8, 4.1e9]) and not dated([99_999_999.0]) and not dated([4_102_444_800.0])
    assert not dated([1e9, 5.0]) and not dated([]) and not dated([0, 0]) and not dated([1.7e12])
