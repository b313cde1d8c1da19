"""A source's week and its visits are drawn in the visitor's time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from headwater.web.rhythm import Dot, day_lanes, week_map

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()  # a Monday


def test_week_map_counts_by_the_hours_of_the_zone() -> None:
    def draw(zone: str) -> str:
        return week_map(
            [NOON, NOON, NOON + 86_400], zone=ZoneInfo(zone), days=DAYS, now=NOON, title="<t>", items="items"
        )

    assert "<title>Mon 12:00 · 2</title>" in draw("UTC")
    assert "<title>Mon 14:00 · 2</title>" in draw("Europe/Berlin")
    assert "<title>Tue 20:00 · 1</title>" in draw("Asia/Shanghai")
    assert 'class="h4 now"' in draw("UTC"), "the fullest hour, which is now"
    assert 'aria-label="&lt;t&gt;"' in draw("UTC")


def test_day_lanes_show_what_each_visit_found() -> None:
    dots = [
        Dot(NOON - 3_600, "11:00 · 3 new", 3),
        Dot(NOON - 7_200, "10:00", 0),
        Dot(NOON - 86_400, "<failed>", None),
        Dot(NOON + 3_600, "planned", is_planned=True),
    ]
    svg = day_lanes(
        dots,
        zone=UTC,
        now=NOON,
        days=2,
        tell_day=str,
        tell_count=lambda count: f"{count} new",
        title="Visits",
    )
    assert ["2026-06-01" in svg, "2026-05-31" in svg, "2026-05-30" in svg] == [True, True, False]
    assert 'cx="45.83%"' in svg and ">3</text>" in svg
    assert svg.count('class="none"') == svg.count('class="failed"') == svg.count('class="plan"') == 1
    assert "&lt;failed&gt;" in svg
    assert "3 new</span>" in svg and "0 new</span>" in svg
