"""Axes have the ticks that fit their span, in the zone and the language of the visitor."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from headwater.web.dates import axis_ticks, tell_date, tell_moment, tell_weekday

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


def test_axis_ticks_are_hours_weekdays_or_dates() -> None:
    assert [name for _, name in axis_ticks(NOON - DAY, NOON, UTC, "en")] == [
        *("12:00", "16:00", "20:00", "00:00", "04:00", "08:00")
    ]
    week = axis_ticks(NOON - 7 * DAY, NOON, UTC, "en")
    assert [name for _, name in week][:2] == ["Thu 12", "Fri 13"]
    assert all(0 <= place < 1 for place, _ in week)
    assert axis_ticks(NOON - 30 * DAY, NOON, UTC, "zh")[0][1] == "10 月 24 日"


def test_axis_ticks_are_at_midnight_of_the_zone() -> None:
    (first, _), *_ = axis_ticks(NOON - 7 * DAY, NOON, ZoneInfo("Asia/Shanghai"), "en")
    assert first == 4 / 168, "four hours after noon in London"


def test_dates_are_told_as_people_say_them() -> None:
    assert tell_date(date(2026, 3, 4), "en") == "4 Mar"
    assert tell_weekday(date(2026, 11, 18), "zh") == "周三 18 日"
    assert tell_moment(NOON, ZoneInfo("Europe/Berlin"), "en") == "Wed 18, 13:00"
