"""Sources with a life: they publish by the clock and the calendar, fall silent, move, fail and go. Pure.

What they publish is the same for the same seed and the same moment. Hours are local to the person who runs the demo.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from random import Random
from typing import Literal
from zlib import crc32

from headwater.demo.articles import write_article
from headwater.demo.pictures import picture_address
from headwater.demo.sources import ENDINGS, DemoItem, DemoSource, Trouble

DAY = 86_400.0
WEEKS = 3
SHOWN_BEFORE = 7 * DAY  # what a source shows when it is first visited is up to that old
MOST_WEEKS = 8
LASTS = 3 * DAY  # so long after its start a demo has something new to show
LIVE_SECONDS = 15.0
LIVE_BEFORE = 3  # items that are there when the demo starts
ILLUSTRATED = 3  # two in so many articles have a picture
WEEKEND = 5

Habit = Literal[
    "fixed_hour", "office", "bursts", "weekdays", "around_the_clock", "evening", "weekly", "dormant", "live"
]


@dataclass(frozen=True, slots=True)
class LivingSource(DemoSource):
    habit: Habit = "office"
    folder: str = ""
    hour: int = 9  # when a day begins for it, or what it keeps to
    per_day: float = 3.0
    trouble: Trouble | None = None
    theme: str = "town"
    address: str = ""  # where it is, if not at the usual path

    @property
    def path(self) -> str:
        if self.address:
            return self.address
        return f"/{self.slug}/{ENDINGS[self.format]}"

    def items(self, start_at: float, now: float) -> list[DemoItem]:
        """Everything published until `now`, oldest first."""
        if self.habit == "live":
            return _live_items(self, start_at, now)
        published = _all_items(self, start_at)
        return published[: bisect_right(published, now, key=lambda item: item.published_at)]

    def trouble_at(self, start_at: float, now: float) -> Trouble | None:
        trouble = self.trouble
        return trouble if trouble is not None and now >= start_at - trouble.days * DAY else None


@cache
def _all_items(source: LivingSource, start_at: float) -> list[DemoItem]:
    begin, end = start_at - MOST_WEEKS * 7 * DAY - SHOWN_BEFORE, start_at + LASTS
    rng = Random(f"{source.slug} articles")
    times = sorted(at for at in _times(source, begin, end, start_at) if begin <= at < end)
    return [_item(source, number, at, rng) for number, at in enumerate(times, start=1)]


def _live_items(source: LivingSource, start_at: float, now: float) -> list[DemoItem]:
    """One every few seconds since the demo started, and a few before; only the newest are ever shown."""
    first = start_at - LIVE_BEFORE * LIVE_SECONDS
    newest = int((now - first) // LIVE_SECONDS)
    return [
        _item(source, number, first + number * LIVE_SECONDS, Random(f"{source.slug} {number}"))
        for number in range(max(0, newest - 25), newest + 1)
    ]


def _item(source: LivingSource, number: int, at: float, rng: Random) -> DemoItem:
    title, body = write_article(source.theme, source.language, rng)
    drawn = crc32(f"{source.slug} {number}".encode())
    if drawn % ILLUSTRATED:
        body = f'<p><img src="{picture_address(drawn)}" width="640" height="360" alt=""></p>{body}'
    return DemoItem(number, title, body, at)


def _times(source: LivingSource, begin: float, end: float, start_at: float) -> Iterator[float]:
    rng = Random(f"{source.slug} times")
    zone = datetime.fromtimestamp(start_at, UTC).astimezone().tzinfo
    day = datetime.fromtimestamp(begin, zone).date()
    last = datetime.fromtimestamp(end, zone).date()
    while day <= last:
        yield from _HABITS[source.habit](source, _Day(day, zone, start_at), rng)
        day += timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Day:
    date: date
    zone: tzinfo | None
    start_at: float

    def at(self, hour: float) -> float:
        midnight = datetime(self.date.year, self.date.month, self.date.day, tzinfo=self.zone)
        return midnight.timestamp() + hour * 3600

    @property
    def is_weekend(self) -> bool:
        return self.date.weekday() >= WEEKEND


def _count(per_day: float, rng: Random) -> int:
    """A number of items around the usual."""
    return sum(rng.random() < per_day / 12 for _ in range(12))


def _fixed_hour(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    yield day.at(source.hour) + rng.uniform(0, 240)


def _office(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    if not day.is_weekend:
        for _ in range(_count(source.per_day, rng)):
            yield day.at(rng.triangular(source.hour, source.hour + 9, source.hour + 1.5))


def _bursts(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    if rng.random() < source.per_day / 5:
        begin = day.at(rng.uniform(source.hour, source.hour + 5))
        for number in range(rng.randint(3, 7)):
            yield begin + number * rng.uniform(60, 300)


def _weekdays(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    if not day.is_weekend:
        for hour in (source.hour, source.hour + 10):
            yield day.at(hour) + rng.uniform(0, 1200)


def _around_the_clock(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    at = day.at(0)
    while at < day.at(24):
        at += rng.expovariate(source.per_day / DAY)
        yield at


def _evening(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    for _ in range(_count(source.per_day, rng)):
        yield day.at(rng.triangular(18, 24, 21.5))


def _weekly(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    if day.date.weekday() == 4:
        yield day.at(source.hour) + rng.uniform(0, 1800)


def _dormant(source: LivingSource, day: _Day, rng: Random) -> Iterator[float]:
    """It wrote every day, until it stopped some weeks ago."""
    if day.at(0) < day.start_at - (WEEKS * 7 + 2) * DAY:
        yield day.at(rng.uniform(8, 20))


_HABITS: dict[str, Callable[[LivingSource, _Day, Random], Iterator[float]]] = {
    "fixed_hour": _fixed_hour,
    "office": _office,
    "bursts": _bursts,
    "weekdays": _weekdays,
    "around_the_clock": _around_the_clock,
    "evening": _evening,
    "weekly": _weekly,
    "dormant": _dormant,
}


def _source(slug: str, name: str, format_: str, habit: Habit, folder: str, **more: object) -> LivingSource:
    return LivingSource(slug, name, format_, "random", 0.0, habit=habit, folder=folder, **more)  # type: ignore[arg-type]


TOWN: tuple[LivingSource, ...] = (
    _source("tide", "Tide Tables", "rss", "fixed_hour", "Harbour", hour=6, theme="water"),
    _source("harbour", "Harbour Office", "atom", "office", "Harbour", hour=8, per_day=4.0, theme="water"),
    _source("field", "Field & Tide", "atom", "weekdays", "Science", hour=8, theme="science"),
    _source("orbit", "Orbit Notes", "json", "evening", "Science", per_day=2.0, theme="science"),
    _source("release", "Release Bells", "atom", "bursts", "Engineering", hour=14, per_day=1.6, theme="code"),
    _source("wire", "News Wire", "json", "around_the_clock", "City", per_day=12.0, theme="town"),
    _source("ledger", "The Small Ledger", "rss", "office", "City", hour=9, per_day=3.0, theme="town"),
    _source("lantern", "Lantern Weekly", "rss", "weekly", "Longreads", hour=17, theme="science"),
    _source("quiet", "Quiet Journal", "atom", "dormant", "Longreads", theme="town"),
    _source("chenbao", "江城晨报", "rss", "fixed_hour", "中文阅读", hour=7, language="zh"),
    _source(
        "keji", "半山科技", "atom", "office", "中文阅读", hour=10, per_day=4.0, language="zh", theme="code"
    ),
    _source(
        "laobao", "南风书评", "rss", "evening", "中文阅读", per_day=1.0, language="zh", charset="gb18030"
    ),
    _source(
        *("museum", "Museum Bulletin", "rdf", "office", "City"),
        hour=10,
        per_day=2.0,
        trouble=Trouble(301, 6.0, "/museum-new/index.rdf"),
    ),
    _source(
        *("buoy", "Weather Buoy", "rss", "around_the_clock", "Harbour"),
        per_day=4.0,
        theme="water",
        trouble=Trouble(503, 1.5),
    ),
    _source(
        *("letters", "Members’ Letters", "atom", "weekdays", "Longreads"),
        hour=9,
        trouble=Trouble(401, 3.0),
    ),
    _source(
        "oldpost", "The Old Post", "rss", "office", "City", hour=9, per_day=2.0, trouble=Trouble(410, 2.0)
    ),
)
# The museum at its new address: the same items.
MOVED = replace(
    next(source for source in TOWN if source.trouble is not None and source.trouble.location),
    trouble=None,
    address="/museum-new/index.rdf",
)
LIVE = _source("live", "Live Wire", "rss", "live", "City", theme="water")
