"""A fleet from a cold start, and when it doubles."""

from dataclasses import replace

import pytest

from headwater.schedule.price import Goal
from headwater.simulate.fleet import Steered, steer_fleet
from headwater.simulate.trace import Conditions, SourceTrace
from tests.histories import DAY, MONDAY, at_hour, even

HOUR = 3600.0


def make_fleet(size: int, days: int) -> list[SourceTrace]:
    fleet = []
    for number in range(size):
        kind = number % 4
        if kind == 0:
            times = even(0.05 + number / 10, days, seed=number)
        elif kind == 1:
            times = at_hour(number % 24, days, 60)
        else:
            times = even(2.0 ** (number % 5), days, seed=number)
        fleet.append(SourceTrace(str(number), tuple(times), MONDAY + 20 * DAY, MONDAY + days * DAY))
    return fleet


def visits_per_day(steered: Steered, since: int, until: int) -> float:
    results = [track.result(since, until) for track in steered.tracks]
    return sum(each.visits for each in results) / sum(each.days for each in results)


def test_budget_from_a_cold_start_through_a_doubling_is_kept() -> None:
    fleet = make_fleet(12, 90)
    later = [replace(source, name=f"later {source.name}") for source in fleet]
    joins = [0] * len(fleet) + [28] * len(later)
    steered = steer_fleet([*fleet, *later], Goal(6.0), Conditions(), days=49, join_days=joins)
    for begin in range(7, 49, 7):
        assert visits_per_day(steered, begin, begin + 7) == pytest.approx(6.0, rel=0.05), begin
    assert steered.tracks[-1].first_day == 28
    assert steered.tracks[-1].result(0, 28).visits == 0


def test_track_results_of_parts_add_up() -> None:
    steered = steer_fleet(make_fleet(4, 40), Goal(6.0), Conditions(), days=20)
    for track in steered.tracks:
        whole, parts = track.result(), [track.result(0, 7), track.result(7, 15), track.result(15)]
        assert sum(each.visits for each in parts) == whole.visits
        assert sum(each.days for each in parts) == pytest.approx(whole.days)
        assert [delay for each in parts for delay in each.delays] == list(whole.delays)


def test_sources_that_overlap_join_when_they_began() -> None:
    early = SourceTrace("early", tuple(even(5, 30)), MONDAY + DAY, MONDAY + 30 * DAY)
    late = replace(early, name="late", start=MONDAY + 11 * DAY)
    steered = steer_fleet([early, late], Goal(6.0), Conditions())
    assert [track.first_day for track in steered.tracks] == [0, 10]
    years_ago = replace(early, name="old", start=early.start - 700 * DAY, end=early.end - 700 * DAY)
    steered = steer_fleet([early, years_ago], Goal(6.0), Conditions())
    assert [track.first_day for track in steered.tracks] == [0, 0]
    assert len(steered.prices) in (28, 29)


def test_pinned_source_is_visited_at_its_interval_and_costs_the_others_nothing() -> None:
    fleet = make_fleet(4, 40)
    pinned = replace(fleet[0], name="pinned", pinned_seconds=HOUR)
    steered = steer_fleet([pinned, *fleet[1:]], Goal(6.0), Conditions(), days=15)
    assert steered.tracks[0].result(1, 15).visits == 24 * 14
    others = [track.result(1, 15) for track in steered.tracks[1:]]
    assert sum(each.visits for each in others) / (3 * 14) == pytest.approx(6.0, rel=0.06)
