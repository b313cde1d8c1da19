from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import InputError
from headwater.publish.calendar import next_time, read_schedule, read_zone


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("daily 07:30", "UTC", "2026-03-01T07:29", "2026-03-01T07:30"),
        ("daily 07:30", "UTC", "2026-03-01T07:30", "2026-03-02T07:30"),
        ("daily at 7:30", "Asia/Shanghai", "2026-03-01T00:00", "2026-03-01T23:30"),
        ("weekly mon 08:00", "UTC", "2026-03-01T00:00", "2026-03-02T08:00"),
        ("weekly on Monday at 08:00", "UTC", "2026-03-02T08:00", "2026-03-09T08:00"),
        ("0 7 * * 1-5", "UTC", "2026-03-06T07:00", "2026-03-09T07:00"),
        ("*/20 * * * *", "UTC", "2026-03-06T07:01", "2026-03-06T07:20"),
        ("0 0 29 2 *", "UTC", "2026-03-06T07:01", "2028-02-29T00:00"),
        ("0 0 1 jan *", "UTC", "2026-03-06T07:01", "2027-01-01T00:00"),
        ("0 0 13 * fri", "UTC", "2026-03-07T00:00", "2026-03-13T00:00"),
        ("0 0 * * 7", "UTC", "2026-03-05T00:00", "2026-03-08T00:00"),
        # The clocks go forward at 02:00 and back at 03:00.
        ("daily 02:30", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),
        ("daily 02:30", "Europe/Berlin", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("daily 02:30", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("daily 02:30", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30"),
    ],
)
def test_next_time_of_schedule_is_the_first_after(
    schedule: str, zone: str, after: str, expected: str
) -> None:
    assert next_time(schedule, zone, at(after)) == at(expected)


def test_next_time_of_a_period_counts_from_its_anchor_and_skips_what_was_missed() -> None:
    anchor = at("2026-03-01T00:10")
    assert next_time("every 6 hours", "UTC", anchor, anchor) == at("2026-03-01T06:10")
    assert next_time("every 6 hours", "UTC", at("2026-03-03T07:00"), anchor) == at("2026-03-03T12:10")
    assert next_time("every 2 days", "UTC", anchor - 50, anchor) == at("2026-03-03T00:10")


@pytest.mark.parametrize(
    "schedule",
    [
        *("", "daily", "daily 25:00", "weekly foo 07:00", "every 1 minutes", "every 9999 days", "* * * *"),
        *(
            "60 * * * *",
            "0 0 31 2 *",
            "a b c d e",
            "*/0 * * * *",
            "5-1 * * * *",
            "0 0 * * mon-",
            "1,,2 * * * *",
        ),
    ],
)
def test_read_schedule_that_makes_no_sense_is_refused(schedule: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_schedule(schedule)


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "../etc/passwd", "/etc/localtime"])
def test_read_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(InputError, match="time zone"):
        read_zone(zone)


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]),
    st.integers(1_600_000_000, 1_900_000_000),
)
def test_daily_comes_once_within_every_day(minute: int, hour: int, zone: str, after: int) -> None:
    schedule = f"daily {hour:02}:{minute:02}"
    first = next_time(schedule, zone, after)
    second = next_time(schedule, zone, first)
    assert after < first <= after + 25 * 3_600
    assert 22 * 3_600 < second - first < 26 * 3_600
