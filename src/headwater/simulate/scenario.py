"""Scenarios: made-up fleets in a file, each with what it must come to.

A file holds cases. A case has a budget or a target, groups of sources with their habits, and expectations: a measure
of a group over some days, and its bound. `headwater simulate --scenario` runs them; so do the tests.
"""

import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from math import inf
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from headwater.errors import InputError
from headwater.schedule.price import Goal
from headwater.simulate.fleet import Steered, steer_fleet
from headwater.simulate.results import find_quantile
from headwater.simulate.trace import Conditions, SourceTrace

_HOUR, _DAY = 3600.0, 86400.0
START = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday


@dataclass(frozen=True, slots=True)
class Group:
    """Sources with the same habits. Each has its own generator, so that no two publish at the same moments."""

    name: str = "sources"
    count: int = 1
    per_day: float = 0.0  # items at random times
    at: tuple[
        str, ...
    ] = ()  # local times such as "09:05"; "any" is another one for each source, "hourly" 24 of them
    weekday: int | None = None  # publish `at` on this day only, Monday is 0
    workdays: bool = False  # not at weekends
    every_hours: float = 0.0  # one gap after the other
    jitter_seconds: float = 0.0  # by which `at` and `every_hours` vary
    zone: str = "UTC"
    burst_day: int | None = None
    burst_items: int = 0
    burst_hours: float = 1.0
    silent_from_day: int | None = None
    silent_until_day: int | None = None
    dates: str = "true"  # or "none", "day"
    dates_off_hours: float = 0.0  # by which stated dates are ahead of the true ones
    history_days: int = 30  # of items before the first visit
    joins_day: int = 0
    pinned_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """A measure over some days, and its bound. `times_of` names a case before this one: then the bound is a ratio."""

    measure: str
    of: str | None = None  # a group; None: all that the policy plans
    from_day: int = 0
    to_day: int | None = None
    at_least: float = -inf
    at_most: float = inf
    times_of: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    days: int
    sources: tuple[Group, ...]
    expect: tuple[Expectation, ...]
    budget: float = 6.0
    target_minutes: float | None = None
    target_percent: float | None = None
    start: datetime = START
    conditions: Conditions = field(default_factory=Conditions)

    @property
    def goal(self) -> Goal:
        return Goal(
            self.budget,
            None if self.target_minutes is None else 60.0 * self.target_minutes,
            None if self.target_percent is None else self.target_percent / 100.0,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One expectation of one case, and what was seen."""

    case: str
    expectation: Expectation
    seen: float

    @property
    def is_met(self) -> bool:
        return self.expectation.at_least <= self.seen <= self.expectation.at_most

    @property
    def measure(self) -> str:
        of = f" of {self.expectation.of}" if self.expectation.of else ""
        times = f", times that of {self.expectation.times_of}" if self.expectation.times_of else ""
        return self.expectation.measure.replace("_", " ") + of + times

    @property
    def days(self) -> str:
        last = "" if self.expectation.to_day is None else self.expectation.to_day
        return f"{self.expectation.from_day}–{last}"

    @property
    def bound(self) -> str:
        low, high = self.expectation.at_least, self.expectation.at_most
        if low == -inf:
            return f"≤ {high:g}"
        return f"≥ {low:g}" if high == inf else f"{low:g}–{high:g}"

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "measure": self.measure,
            "days": self.days,
            "bound": self.bound,
            "seen": self.seen,
            "is_met": self.is_met,
        }


def list_scenarios() -> list[str]:
    """The names of the scenarios that come with the product."""
    folder = files("headwater.simulate") / "scenarios"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def load_scenario(name: str) -> list[Case]:
    """A scenario by its name, or from a file."""
    path = (
        files("headwater.simulate") / "scenarios" / f"{name}.toml" if name in list_scenarios() else Path(name)
    )
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        return [_read_case(each) for each in read["case"]]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "{name} is not a scenario ({error}): give a file, or one of {names}",
            name=name,
            error=str(error),
            names=", ".join(list_scenarios()),
        ) from error


def _read_case(raw: Mapping[str, Any]) -> Case:
    values = dict(raw)
    groups = tuple(Group(**{**each, "at": tuple(each.get("at", ()))}) for each in values.pop("sources"))
    expected = tuple(Expectation(**each) for each in values.pop("expect"))
    names = {each.name for each in fields(Conditions)}
    conditions = Conditions(**{name: values.pop(name) for name in names & values.keys()})
    start = values.pop("start", START.date())
    moment = datetime(start.year, start.month, start.day, tzinfo=UTC)
    return Case(sources=groups, expect=expected, conditions=conditions, start=moment, **values)


def run_scenario(cases: Sequence[Case]) -> Iterator[Finding]:
    """Every expectation of every case, as soon as it is known."""
    seen: dict[tuple[str, str], float] = {}
    for case in cases:
        members = [(group, source) for group in case.sources for source in make_sources(group, case)]
        steered = steer_fleet(
            [source for _, source in members],
            case.goal,
            case.conditions,
            days=case.days,
            join_days=[group.joins_day for group, _ in members],
        )
        for expectation in case.expect:
            groups = [group for group, _ in members]
            value = _measure(expectation, steered, groups, case)
            key = f"{expectation.measure} {expectation.of}"
            seen[case.name, key] = value
            if expectation.times_of is not None:
                value /= seen[expectation.times_of, key]
            yield Finding(case.name, expectation, value)


def make_sources(group: Group, case: Case) -> Iterator[SourceTrace]:
    start = case.start.timestamp()
    end = start + case.days * _DAY
    for number in range(group.count):
        rng = Random(f"{group.name} {number}")
        times = sorted(time for time in _publish(group, case, rng) if _is_awake(group, time, start))
        joins = start + group.joins_day * _DAY
        stated = None if group.dates == "true" and not group.dates_off_hours else tuple(_date(group, times))
        pinned = None if group.pinned_minutes is None else 60.0 * group.pinned_minutes
        yield SourceTrace(f"{group.name} {number}", tuple(times), joins, end, stated, pinned)


def _publish(group: Group, case: Case, rng: Random) -> Iterator[float]:
    first = case.start + timedelta(days=group.joins_day - group.history_days)
    begin, end = first.timestamp(), case.start.timestamp() + case.days * _DAY
    if group.per_day > 0.0:
        at = begin
        while (at := at + rng.expovariate(group.per_day / _DAY)) < end:
            yield at
    if group.every_hours > 0.0:
        at = begin + rng.uniform(0.0, group.every_hours * _HOUR)
        while at < end:
            yield at
            at += group.every_hours * _HOUR + rng.uniform(-1.0, 1.0) * group.jitter_seconds
    zone = ZoneInfo(group.zone)
    moments = [minute for text in group.at for minute in _read_moments(text, rng)]
    day = first.date()
    while moments and day <= (case.start + timedelta(days=case.days)).date():
        if day.weekday() == (day.weekday() if group.weekday is None else group.weekday):
            for minute in moments if not (group.workdays and day.weekday() > 4) else ():
                local = datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=zone)
                yield local.timestamp() + rng.uniform(-1.0, 1.0) * group.jitter_seconds
        day += timedelta(days=1)
    if group.burst_day is not None:
        at = case.start.timestamp() + (group.burst_day + rng.random()) * _DAY
        for number in range(group.burst_items):
            yield at + group.burst_hours * _HOUR * (number + rng.random()) / group.burst_items


def _read_moments(text: str, rng: Random) -> Sequence[int]:
    """Minutes of the day."""
    if text == "hourly":
        return range(rng.randrange(60), 24 * 60, 60)
    if text == "any":
        return (rng.randrange(24 * 60),)
    hour, minute = text.split(":")
    return (int(hour) * 60 + int(minute),)


def _is_awake(group: Group, time: float, start: float) -> bool:
    if group.silent_from_day is None:
        return True
    until = inf if group.silent_until_day is None else group.silent_until_day
    return not group.silent_from_day <= (time - start) / _DAY < until


def _date(group: Group, times: Sequence[float]) -> Iterator[float]:
    for time in times:
        if group.dates == "none":
            yield inf
        elif group.dates == "day":
            yield time // _DAY * _DAY
        else:
            yield time + group.dates_off_hours * _HOUR


def _measure(expectation: Expectation, steered: Steered, groups: Sequence[Group], case: Case) -> float:
    tracks = [
        track
        for group, track in zip(groups, steered.tracks, strict=True)
        if (group.pinned_minutes is None if expectation.of is None else group.name == expectation.of)
    ]
    if not tracks:
        raise ValueError(f"there is no group {expectation.of}")
    first, last = expectation.from_day, case.days if expectation.to_day is None else expectation.to_day

    def visits_per_day(since: int, until: int) -> float:
        results = [track.result(since, until) for track in tracks]
        return sum(each.visits for each in results) / max(sum(each.days for each in results), 1e-9)

    def worst_day(span: int) -> float:
        """By how much the visits of the worst span of days differ from the budget, as a share of it."""
        starts = range(first, last - span + 1)
        return max(abs(visits_per_day(day, day + span) / case.budget - 1.0) for day in starts)

    results = [track.result(first, last) for track in tracks]
    delays = sorted(delay / 60.0 for each in results for delay in each.delays)
    measures = {
        "mean_delay_minutes": lambda: sum(delays) / max(len(delays), 1),
        "p90_delay_minutes": lambda: find_quantile(delays, 0.9),
        "percent_within_target": lambda: (
            100.0 * bisect_left(delays, case.target_minutes or 0.0) / max(len(delays), 1)
        ),
        "visits_per_day": lambda: visits_per_day(first, last),
        "missed": lambda: float(sum(each.missed for each in results)),
        "worst_day_off_budget": lambda: worst_day(1),
        "worst_week_off_budget": lambda: worst_day(7),
    }
    return float(measures[expectation.measure]())
