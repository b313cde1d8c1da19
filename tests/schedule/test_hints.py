"""The publisher's floor."""

import pytest

from headwater.model import Hints
from headwater.schedule.hints import Floor, find_floor, skip_closed_hours
from tests.histories import MONDAY

HOUR = 3600.0


@pytest.mark.parametrize(
    ("hints", "wait", "name"),
    [
        (Hints(max_age_seconds=1800), 1800, "max-age"),
        (Hints(ttl_seconds=7200, max_age_seconds=60), 7200, "ttl"),
        (Hints(update_period_seconds=9000, ttl_seconds=60), 9000, "updatePeriod"),
        (Hints(max_age_seconds=10**9), 24 * HOUR, "max-age"),
        (Hints(ttl_seconds=10**9), 24 * HOUR, "ttl"),
        (Hints(retry_after_seconds=3 * 24 * HOUR), 3 * 24 * HOUR, "Retry-After"),
        (Hints(retry_after_seconds=10**9), 7 * 24 * HOUR, "Retry-After"),
    ],
)
def test_the_longest_wish_counts_up_to_its_cap(hints: Hints, wait: float, name: str) -> None:
    assert find_floor(hints, MONDAY) == Floor(MONDAY + wait, name)


def test_no_wish_no_floor() -> None:
    assert find_floor(Hints(), MONDAY) is None
    assert find_floor(Hints(max_age_seconds=0, ttl_seconds=-5), MONDAY) is None


def test_skipped_hours_and_days_move_the_visit_to_the_next_open_hour() -> None:
    night = Hints(skip_hours=(22, 23, 0, 1, 2))
    assert skip_closed_hours(night, MONDAY + 22.5 * HOUR, MONDAY + 20 * HOUR) == Floor(
        MONDAY + 27 * HOUR, "skipHours"
    )
    assert skip_closed_hours(night, MONDAY + 21 * HOUR, MONDAY) is None
    sunday = Hints(skip_days=(6,))
    assert skip_closed_hours(sunday, MONDAY - 3 * HOUR, MONDAY - 5 * HOUR) == Floor(MONDAY, "skipDays")


def test_a_publisher_that_skips_everything_cannot_mean_it() -> None:
    assert skip_closed_hours(Hints(skip_hours=tuple(range(24))), MONDAY, MONDAY) is None
    assert skip_closed_hours(Hints(skip_days=(0, 1, 2, 3, 4, 5, 6)), MONDAY, MONDAY) is None
