"""Axes have the ticks that fit their span, in the zone and the language of the visitor."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from headwater.language import Language
from headwater.web.dates import axis_ticks, tell_date, tell_moment, tell_soon, tell_weekday

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


def test_a_time_to_come_is_told_as_people_say_it() -> None:
    now = datetime(2026, 11, 19, 15, 30, tzinfo=UTC).timestamp()

    def told(days: float, language: Language = "en") -> str:
        return tell_soon(now + days * 86_400, now, UTC, language)

    assert [told(0.25), told(1), told(4), told(30)] == [
        "today at 21:30",
        "tomorrow at 15:30",
        "on Mon at 15:30",
        "on 19 Dec at 15:30",
    ]
    assert [told(0.25, "zh"), told(4, "zh"), told(30, "zh")] == [
        "今天 21:30",
        "周一 15:30",
        "12 月 19 日 15:30",
    ]
