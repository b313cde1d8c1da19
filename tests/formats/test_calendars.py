"""Calendars after RFC 5545: events to come, recurrences over changes of clocks, rules without an end."""

import time
from datetime import UTC, datetime

import pytest

from headwater.errors import ParseError
from headwater.formats.calendars import Calendar, read_calendar

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


def read(
    *events: str, before: datetime = datetime(2027, 11, 19, tzinfo=UTC), most: int = 5, about: str = ""
) -> Calendar:
    body = "".join(f"BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n" for event in events)
    text = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{about}{body}END:VCALENDAR\r\n"
    return read_calendar(text.encode(), after=NOW, before=before, most_recurrences=most)


def times(*lines: str, most: int = 5) -> list[str]:
    found = read("\r\n".join(("UID:1", "SUMMARY:x", *lines)), most=most).events
    return [each.starts.astimezone(UTC).strftime("%Y-%m-%d %H:%M") for each in found]


def test_event_is_read_with_all_that_it_says() -> None:
    found = read(
        "UID:1@x\r\nDTSTART;TZID=Europe/Berlin:20261201T180000\r\nDURATION:PT1H30M\r\nSUMMARY:Council\\, open\r\n"
        "  session\r\nLOCATION:Hall 1\\; north\r\nDESCRIPTION:Agenda\\nOne\r\nURL:https://e.org/1\r\n"
        'ORGANIZER;CN="Ann: clerk":mailto:ann@e.org\r\nCATEGORIES:Town,Open\\, all\r\nSTATUS:TENTATIVE\r\n'
        "CREATED:20261101T080000Z\r\nLAST-MODIFIED:20261102T080000Z\r\nBEGIN:VALARM\r\nDESCRIPTION:Ring\r\nEND:VALARM",
        about="X-WR-CALNAME:Town\r\n",
    )
    assert found.title == "Town"
    (event,) = found.events
    assert (event.uid, event.title, event.place) == ("1@x", "Council, open session", "Hall 1; north")
    assert event.starts.isoformat() == "2026-12-01T18:00:00+01:00"
    assert event.ends is not None
    assert event.ends.isoformat() == "2026-12-01T19:30:00+01:00"
    assert (event.description, event.url, event.organizer) == ("Agenda\nOne", "https://e.org/1", "Ann: clerk")
    assert (event.status, event.categories) == ("TENTATIVE", ("Town", "Open, all"))
    assert (event.created, event.modified) == (
        datetime(2026, 11, 1, 8, tzinfo=UTC),
        datetime(2026, 11, 2, 8, tzinfo=UTC),
    )


def test_only_events_of_the_span_are_read_the_next_first() -> None:
    found = read(
        "UID:past\r\nDTSTART:20261118T100000Z\r\nDTEND:20261118T110000Z",
        "UID:late\r\nDTSTART:20280101T100000Z",
        "UID:second\r\nDTSTART;VALUE=DATE:20261201",
        "UID:now\r\nDTSTART:20261119T110000Z\r\nDTEND:20261119T130000Z",
        "UID:broken\r\nDTSTART:someday",
        "UID:without",
    )
    assert [each.uid for each in found.events] == ["now", "second"]
    assert found.left_out == 4
    assert found.events[1].is_whole_day


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Nine in Berlin stays nine when the clocks change.
        (
            ("DTSTART;TZID=Europe/Berlin:20260323T090000", "RRULE:FREQ=MONTHLY;BYDAY=-1MO;COUNT=12"),
            ["2026-11-30 08:00", "2026-12-28 08:00", "2027-01-25 08:00", "2027-02-22 08:00"],
        ),
        (
            ("DTSTART:20261119T140000Z", "RRULE:FREQ=DAILY;INTERVAL=2"),
            [
                "2026-11-19 14:00",
                "2026-11-21 14:00",
                "2026-11-23 14:00",
                "2026-11-25 14:00",
                "2026-11-27 14:00",
            ],
        ),
        (
            ("DTSTART:20261120T140000Z", "RRULE:FREQ=DAILY;UNTIL=20261122T140000Z"),
            ["2026-11-20 14:00", "2026-11-21 14:00", "2026-11-22 14:00"],
        ),
        (
            ("DTSTART:20261120T140000Z", "RRULE:FREQ=DAILY;UNTIL=20261121"),
            ["2026-11-20 14:00", "2026-11-21 14:00"],
        ),
        (
            ("DTSTART:20261123T140000Z", "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;WKST=SU;COUNT=3"),
            ["2026-11-23 14:00", "2026-11-25 14:00", "2026-12-07 14:00"],
        ),
        (("DTSTART:20261131T140000Z", "RRULE:FREQ=MONTHLY"), []),
        (
            ("DTSTART:20261231T140000Z", "RRULE:FREQ=MONTHLY;COUNT=3"),
            ["2026-12-31 14:00", "2027-01-31 14:00", "2027-03-31 14:00"],
        ),
        (
            ("DTSTART:20261130T140000Z", "RRULE:FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3"),
            ["2026-11-30 14:00", "2026-12-31 14:00", "2027-01-31 14:00"],
        ),
        (
            ("DTSTART:20261130T140000Z", "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3"),
            ["2026-11-30 14:00", "2026-12-31 14:00", "2027-01-29 14:00"],
        ),
        (("DTSTART:20241125T140000Z", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"), ["2026-11-26 14:00"]),
        (("DTSTART:20200229T140000Z", "RRULE:FREQ=YEARLY"), []),
        (("DTSTART:20191224T140000Z", "RRULE:FREQ=YEARLY"), ["2026-12-24 14:00"]),
        (
            (
                "DTSTART:20261120T140000Z",
                "RRULE:FREQ=DAILY;COUNT=4",
                "EXDATE:20261121T140000Z,20261122T140000Z",
            ),
            ["2026-11-20 14:00", "2026-11-23 14:00"],
        ),
        (
            ("DTSTART:20261120T140000Z", "RDATE:20261125T140000Z,20261121T140000Z"),
            ["2026-11-20 14:00", "2026-11-21 14:00", "2026-11-25 14:00"],
        ),
        # A rule that is not read counts as its first event.
        (("DTSTART:20261120T140000Z", "RRULE:FREQ=SECONDLY"), ["2026-11-20 14:00"]),
        (("DTSTART:20261120T140000Z", "RRULE:FREQ=DAILY;INTERVAL=x"), ["2026-11-20 14:00"]),
        # Years back: what lies before is not counted through.
        (
            ("DTSTART:19900101T140000Z", "RRULE:FREQ=DAILY"),
            [
                "2026-11-19 14:00",
                "2026-11-20 14:00",
                "2026-11-21 14:00",
                "2026-11-22 14:00",
                "2026-11-23 14:00",
            ],
        ),
    ],
)
def test_recurrences_are_expanded(lines: tuple[str, ...], expected: list[str]) -> None:
    assert times(*lines) == expected


def test_one_recurrence_that_was_moved_stands_at_its_new_time_under_its_own_name() -> None:
    found = read(
        "UID:1\r\nSUMMARY:Weekly\r\nDTSTART:20261120T100000Z\r\nRRULE:FREQ=WEEKLY;COUNT=3",
        "UID:1\r\nSUMMARY:Weekly, later\r\nRECURRENCE-ID:20261127T100000Z\r\nDTSTART:20261128T120000Z",
    )
    assert [(each.uid, each.title, each.starts.day) for each in found.events] == [
        ("1/20261120T100000Z", "Weekly", 20),
        ("1/20261127T100000Z", "Weekly, later", 28),
        ("1/20261204T100000Z", "Weekly", 4),
    ]


def test_zone_is_found_at_the_end_of_a_longer_name_or_of_the_calendar() -> None:
    lines = "UID:1\r\nDTSTART;TZID=/e.org/2026/Asia/Shanghai:20261201T180000"
    assert read(lines).events[0].starts.isoformat() == "2026-12-01T18:00:00+08:00"
    found = read("UID:1\r\nDTSTART:20261201T180000", about="X-WR-TIMEZONE:Asia/Shanghai\r\n")
    assert found.events[0].starts.isoformat() == "2026-12-01T18:00:00+08:00"
    assert read("UID:1\r\nDTSTART;TZID=Moon:20261201T180000").events[0].starts.tzinfo is UTC


@pytest.mark.parametrize("data", [b"", b"<html>", b"BEGIN:VCARD\r\nEND:VCARD"])
def test_what_is_no_calendar_says_so(data: bytes) -> None:
    with pytest.raises(ParseError, match="not a calendar"):
        read_calendar(data, after=NOW, before=NOW)


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=DAILY;INTERVAL=99999999999999",
        "FREQ=MONTHLY;BYDAY=99MO",
        "FREQ=WEEKLY;BYMONTH=13",
        "FREQ=DAILY;COUNT=999999999;BYDAY=",
    ],
)
def test_rule_that_never_comes_true_takes_little_time(rule: str) -> None:
    began = time.perf_counter()
    read(*(f"UID:{each}\r\nDTSTART:19700101T000000Z\r\nRRULE:{rule}" for each in range(200)))
    assert time.perf_counter() - began < 5


def test_long_lines_take_linear_time() -> None:
    began = time.perf_counter()
    read("UID:1\r\nDTSTART:20261201T180000Z\r\nDESCRIPTION" + ";A=b" * 40_000 + ":x", "X" + '="' * 90_000)
    assert time.perf_counter() - began < 2
