"""Every form of date that is read, and the ones that must be refused rather than guessed."""

import time
from datetime import UTC, datetime

import pytest

from headwater.formats.dates import parse_date


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        # RFC 822 and what is made of it
        ("Tue, 03 Mar 2020 10:11:12 GMT", at(2020, 3, 3, 10, 11, 12)),
        ("Tue,03 Mar 2020 10:11:12 +0200", at(2020, 3, 3, 8, 11, 12)),
        ("3 March 2020 10:11 -05:30", at(2020, 3, 3, 15, 41)),
        ("03-Mar-2020 10:11:12 EST", at(2020, 3, 3, 15, 11, 12)),
        ("Tue, 03 Mar 20 10:11:12 PDT", at(2020, 3, 3, 17, 11, 12)),
        ("Tue, 03 Mar 2020 10:11:12 PT", at(2020, 3, 3, 18, 11, 12)),
        ("Tue, 03 Mar 2020 10:11:12 A", at(2020, 3, 3, 10, 11, 12)),
        ("Tue, 03 Mar 2020 10:11:12 GMT+02:00", at(2020, 3, 3, 8, 11, 12)),
        ("Tue, 03 Mar 2020 10:11:12 America/New_York", at(2020, 3, 3, 15, 11, 12)),
        ("Tue (or so), 3(rd) Mar(ch) 2020 10:11 +0000 (GMT (really))", at(2020, 3, 3, 10, 11)),
        (
            "Wed, 03 Mar 2020 10:11:12 GMT",
            at(2020, 3, 3, 10, 11, 12),
        ),  # the weekday is wrong, the date is not
        ("Tue, 03 Mar 2020 24:00:00 GMT", at(2020, 3, 4)),
        ("Sat, 31 Dec 2016 23:59:60 GMT", at(2017, 1, 1)),
        ("Tue, 03 Mar 2020", at(2020, 3, 3)),
        ("Tue Mar  3 10:11:12 2020", at(2020, 3, 3, 10, 11, 12)),
        ("Tue Mar 03 10:11:12 +0100 2020", at(2020, 3, 3, 9, 11, 12)),
        ("Tue, 3rd Mar 2020 10:11:12 GMT", at(2020, 3, 3, 10, 11, 12)),
        ("March 3, 2020 - 3:07pm", at(2020, 3, 3, 15, 7)),
        ("Mar. 3, 2020, 12:07 a.m.", at(2020, 3, 3, 0, 7)),
        ("03 Mar 2020 10:11:12 PM", at(2020, 3, 3, 22, 11, 12)),
        ("Mar. 2020", at(2020, 3, 1)),
        # ISO 8601
        ("2020-03-03T10:11:12Z", at(2020, 3, 3, 10, 11, 12)),
        ("2020-03-03T10:11:12.987+02:00", at(2020, 3, 3, 8, 11, 12)),
        ("2020-03-03 10:11:12 -00:20", at(2020, 3, 3, 10, 31, 12)),
        ("2020-03-03T10:11:12-05:00Z", at(2020, 3, 3, 15, 11, 12)),
        ("20200303T101112Z", at(2020, 3, 3, 10, 11, 12)),
        ("20200303101112", at(2020, 3, 3, 10, 11, 12)),
        ("2020-03-03", at(2020, 3, 3)),
        ("2020-3-3 9:11:12 PM", at(2020, 3, 3, 21, 11, 12)),
        ("2020-03", at(2020, 3, 1)),
        ("2020", at(2020, 1, 1)),
        ("20-03-04", at(2020, 3, 4)),
        ("030304", at(2003, 3, 4)),
        ("-0304", at(2003, 4, 1)),
        ("2020-063", at(2020, 3, 3)),
        ("2020-W10-2", at(2020, 3, 3)),
        ("2020-03-03 10:11:12 -0700 MST", at(2020, 3, 3, 17, 11, 12)),
        # numbers and other languages
        ("1583230272", at(2020, 3, 3, 10, 11, 12)),
        ("1583230272000", at(2020, 3, 3, 10, 11, 12)),
        ("30/03/2020 10:11", at(2020, 3, 30, 10, 11)),
        ("03/30/20 10:11:12", at(2020, 3, 30, 10, 11, 12)),
        ("3/4/2020 10:11:12 PM", at(2020, 3, 4, 22, 11, 12)),
        ("Wed, 03/04/2020 10:11", at(2020, 3, 4, 10, 11)),  # only one of the readings is a Wednesday
        ("Fri, 03/04/2020 10:11", at(2020, 4, 3, 10, 11)),
        ("Sat, 11 04 2020 08:51:49 +0100", at(2020, 4, 11, 7, 51, 49)),
        ("3.4.2020 10:11", at(2020, 4, 3, 10, 11)),
        ("Fri, 2020/04/03 10:11:12 EDT", at(2020, 4, 3, 14, 11, 12)),
        ("Di, 03 Mär 2020 10:11:12 +0100", at(2020, 3, 3, 9, 11, 12)),
        ("mar., 03 déc. 2019 10:11:12 +0000", at(2019, 12, 3, 10, 11, 12)),
        ("3 de junio de 2020", at(2020, 6, 3)),
        ("Τρι, 03 Ιούλ 2018 12:00:00 EST", at(2018, 7, 3, 17)),
        ("2018-július-3T9:15-05:00", at(2018, 7, 3, 14, 15)),
        ("2020년 03월 03일  10:11:12", at(2020, 3, 3, 1, 11, 12)),
        ("2020-03-03 오후 10:11:12", at(2020, 3, 3, 13, 11, 12)),
        ("2020年3月3日 10:11", at(2020, 3, 3, 10, 11)),
    ],
)
def test_reads(text: str, moment: datetime) -> None:
    assert parse_date(text) == moment
    assert parse_date(f"\n {text}\t") == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "yesterday",
        "12",
        "Tue, 31 Jun 2020 10:11:12 GMT",
        "Tue, 03 Foo 2020 10:11:12 GMT",
        "Tue, Mar x 2020 10:11:12 GMT",
        "Tue, 03 Mar zz 10:11:12 GMT",
        "Tue, 03 Mar 2020 1:2:3:4 GMT",
        "Tue, 03 Mar 2020 10:11:12 +zz:00",
        "Tue, 03 Mar 2020 10:11:12 +0000 next week",
        "2020-03-03T25:11:12Z",
        "2020-03-03T10:61:12Z",
        "2020-03-03T10:11:61Z",
        "2020-03-03T10:11:12+99:00",
        "2020-13-03",
        "2020-02-30",
        "2019-366",
        "200304",  # a month of 2003, or a day of 2020
        "03/04/2020",  # March in one country, April in another
        "0001-01-01T00:00:00Z",  # a program's "no date"
        "9999-12-31T23:59:59Z",
        "0000-00-00 00:00:00",
        "10 PM",
        "Mar 10:11",
        "x" * 1000,
    ],
)
def test_refuses(text: str) -> None:
    assert parse_date(text) is None


def test_none_is_no_date() -> None:
    assert parse_date(None) is None


@pytest.mark.parametrize(
    "text", ["Tue, 10 Jun 2025 12:35:9 GMT", "2025-06-10T12:35:9Z", "2025-06-10 12:35:9"]
)
def test_second_of_one_digit_is_read(text: str) -> None:
    assert parse_date(text) == datetime(2025, 6, 10, 12, 35, 9, tzinfo=UTC)


@pytest.mark.parametrize("text", ["22013", "20130", "12:35:9"])
def test_number_that_is_no_date_is_refused(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize("start", ["1111 년 1 월 1", "2011 年 1 月 1 日", "Mon", "2011-11-11 11:11", "2011"])
def test_date_followed_by_many_spaces_is_read_or_refused_at_once(start: str) -> None:
    began = time.thread_time()
    for _ in range(100):
        parse_date(start + " " * 100 + "\x01")
    assert time.thread_time() - began < 1.0
