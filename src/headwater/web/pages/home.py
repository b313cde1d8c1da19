"""The overview: is it fresh, is it cheap, what needs a person. Its numbers are renewed without a reload."""

from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from sqlalchemy import Connection

from headwater.config import Settings
from headwater.errors import FailureKind
from headwater.sources.catalogue import read_catalogue
from headwater.states import tell_advice
from headwater.store.collecting.outages import Outage, read_outages
from headwater.store.collecting.queue import count_due
from headwater.store.pipelines.starting import Run, RunQuery, list_runs
from headwater.store.reading.items import count_items
from headwater.store.reading.listing import newest_items
from headwater.store.reports.attention import TroubledSource, troubled_sources
from headwater.store.reports.delays import quantile, sample_delays
from headwater.store.reports.hours import VisitSums, visits_since
from headwater.store.reports.overview import (
    NextVisit,
    SourceCounts,
    count_in_flight,
    count_sources,
    read_lag,
    read_next_visits,
)
from headwater.store.reports.trends import HourSums, read_hours
from headwater.web.chart import meter, shares, spark_line
from headwater.web.context import Context
from headwater.web.dates import axis_ticks, tell_moment
from headwater.web.pages.display import read_display
from headwater.web.pages.frame import InPage, Page
from headwater.web.plot import Scene, Series, durations_chart, lines_chart, stacked_bars
from headwater.wording import duration

LISTED_ITEMS = 8
LISTED_TROUBLES = 6
LISTED_RUNS = 200
LISTED_VISITS = 5
DRAWN_VISITS = 500
DELAYS_HEIGHT = 236  # as high as the list beside it
HOUR, DAY = 3_600.0, 86_400.0
LATE_SECONDS = 60.0  # longer than that no source should wait in line
# Hours that can be shown, and how many of them one bar stands for.
SPANS = {"24h": (24, 1), "7d": (168, 2), "30d": (720, 12)}
Span = Annotated[Literal["24h", "7d", "30d"], Query()]


@dataclass(frozen=True, slots=True)
class Now:
    """What changes while the page is open."""

    counts: SourceCounts
    hours: list[HourSums]
    delays: list[float]  # of the last day, shortest first
    today: VisitSums
    last_day: VisitSums
    troubled: list[TroubledSource]
    outages: list[Outage]
    lag_seconds: float
    due: int
    in_flight: int
    next_visits: list[NextVisit]
    item_count: int


def read_now(connection: Connection, now: float) -> Now:
    return Now(
        counts=count_sources(connection),
        hours=read_hours(connection, now, 48),
        delays=sorted(chain.from_iterable(sample_delays(connection, now - DAY, now, 12))),
        today=visits_since(connection, now // DAY * DAY),
        last_day=visits_since(connection, now - DAY),
        troubled=troubled_sources(connection, limit=LISTED_TROUBLES),
        outages=read_outages(connection, now),
        lag_seconds=read_lag(connection, now),
        due=count_due(connection, now),
        in_flight=count_in_flight(connection, now),
        next_visits=read_next_visits(connection, now, limit=DRAWN_VISITS),
        item_count=count_items(connection),
    )


def home_routes(context: Context) -> APIRouter:
    router = APIRouter()
    store, clock = context.store, context.clock

    async def current(page: Page) -> dict[str, Any]:
        now = clock()
        seen = await store.read(read_now, now)
        runs = await store.read(list_runs, RunQuery(), limit=LISTED_RUNS)
        return {
            "seen": seen,
            "late": seen.lag_seconds > LATE_SECONDS,
            "advice": lambda source: tell_advice(source, page.language),
            "troubles": _count_troubles(seen.counts),
            "fresh": _tell_freshness(seen.delays, context.settings, page),
            "cost": _tell_cost(seen, context.settings, now),
            "unchanged": _tell_unchanged(seen),
            "found": _tell_found(seen, page),
            "fleet": _tell_fleet(seen.counts, page),
            "next_hour": _draw_next_hour(seen.next_visits, now, page),
            "next_visits": seen.next_visits[:LISTED_VISITS],
            "pipelines": _sum_runs([run for run in runs if run.created_at > now - DAY]),
            "items": (await store.read(newest_items, limit=LISTED_ITEMS))[:LISTED_ITEMS],
        }

    @router.get("/")
    async def home(page: InPage, span: Span = "7d") -> HTMLResponse:
        values = await current(page)
        if not values["seen"].counts.total:
            return await page.show("welcome.html", packs=read_catalogue(), **values)
        drawn = await _draw(page, span)
        return await page.show("home.html", span=span, spans=tuple(SPANS), **drawn, **values)

    @router.get("/live")
    async def live(page: InPage) -> HTMLResponse:
        """The changing part of the overview, which the page fetches again and again."""
        return await page.show("live.html", **await current(page))

    return router


def _count_troubles(counts: SourceCounts) -> int:
    """Sources that fail, are gone, or ask for something; those whose credentials are refused fail and ask."""
    asking = max(0, counts.needs_attention - counts.failing.get(FailureKind.UNAUTHORIZED, 0))
    return sum(counts.failing.values()) + counts.states["gone"] + asking


async def _draw(page: Page, span: str) -> dict[str, Any]:
    """The charts of a span of time."""
    store, now = page.context.store, page.context.clock()
    hours, width = SPANS[span]
    sums = await store.read(read_hours, now, 2 * hours)
    end = now // HOUR * HOUR + HOUR
    begin = end - hours * HOUR
    parts = hours // width
    delays = [sorted(each) for each in await store.read(sample_delays, begin, end, parts)]
    zone = read_display(page.request).zone
    places = [tell_moment(begin + number * width * HOUR, zone, page.language) for number in range(parts)]
    ticks = axis_ticks(begin, end, zone, page.language)
    grouped = [_add(sums[hours + start : hours + start + width]) for start in range(0, hours, width)]
    before = [_add(sums[start : start + width]) for start in range(0, hours, width)]
    return {
        "delays_chart": _draw_delays(delays, places, ticks, page) if any(delays) else None,
        "requests_chart": _draw_requests(grouped, places, ticks, page),
        "items_chart": _draw_items(grouped, before, places, ticks, page),
        "each": duration(width * HOUR, page.language) if width > 1 else page.t("hour"),
        "span_name": {"24h": page.t("24 h"), "7d": page.t("7 days"), "30d": page.t("30 days")},
    }


def _add(hours: list[HourSums]) -> HourSums:
    return HourSums(*(sum(getattr(each, name) for each in hours) for name in HourSums.__dataclass_fields__))


def _draw_delays(
    delays: list[list[float]], places: list[str], ticks: list[tuple[float, str]], page: Page
) -> Markup:
    target = page.context.settings.freshness_minutes
    return durations_chart(
        [
            Series(page.t("19 of 20 within"), [quantile(each, 0.95) for each in delays], "c3"),
            Series(page.t("Median"), [quantile(each, 0.5) for each in delays], "c1", is_filled=True),
        ],
        Scene(
            page.t("Time to find an item"),
            places,
            ticks,
            tell=lambda seconds: duration(seconds, page.language),
            goal=(target * 60, page.t("Target {time}", time=duration(target * 60, page.language)))
            if target
            else None,
            height=DELAYS_HEIGHT,
        ),
    )


def _draw_requests(
    hours: list[HourSums], places: list[str], ticks: list[tuple[float, str]], page: Page
) -> Markup:
    return stacked_bars(
        [
            Series(page.t("New items"), [e.visits - e.unchanged - e.skipped - e.failed for e in hours], "c1"),
            Series(page.t("Nothing new (304)"), [e.not_modified for e in hours], "c0"),
            Series(
                page.t("Same document again"), [max(0, e.unchanged - e.not_modified) for e in hours], "c4"
            ),
            Series(page.t("Failed"), [e.failed for e in hours], "c5"),
        ],
        Scene(page.t("Visits"), places, ticks),
    )


def _draw_items(
    hours: list[HourSums],
    before: list[HourSums],
    places: list[str],
    ticks: list[tuple[float, str]],
    page: Page,
) -> Markup:
    earlier = [each.items_new for each in before]
    series = [Series(page.t("Items found"), [each.items_new for each in hours], "c1", is_filled=True)]
    if any(earlier):
        series.append(Series(page.t("The span before"), earlier, "c4", is_dashed=True))
    return lines_chart(series, Scene(page.t("Items found"), places, ticks))


def _tell_freshness(delays: list[float], settings: Settings, page: Page) -> dict[str, Any]:
    """How long items wait, against the target if one is set."""
    median = quantile(delays, 0.5)
    target = settings.freshness_minutes * 60 if settings.freshness_minutes else None
    share = None if median is None or target is None else median / (target * 1.5)
    return {
        "median": None if median is None else duration(median, page.language),
        "most": duration(quantile(delays, 0.95) or 0, page.language) if delays else None,
        "target": None if target is None else duration(target, page.language),
        "within": target is None or median is None or median <= target,
        "meter": None if share is None else meter(min(share, 1.0), tick=1 / 1.5),
    }


def _tell_cost(seen: Now, settings: Settings, now: float) -> dict[str, Any]:
    """What was spent today, against the budget if one is set."""
    budget = settings.budget_visits_per_day * seen.counts.active if settings.budget_visits_per_day else None
    spent = seen.today.total
    gone = now % DAY / DAY
    return {
        "spent": spent,
        "budget": None if budget is None else round(budget),
        "share": None if not budget else spent / budget,
        "gone": gone,
        "meter": None if not budget else meter(min(spent / budget, 1.0), tick=gone),
        "requests": seen.today.requests,
    }


def _tell_unchanged(seen: Now) -> dict[str, Any]:
    visits = seen.last_day.total
    shares_of_hours = [
        100 * hour.not_modified / hour.visits if hour.visits else 0 for hour in seen.hours[-24:]
    ]
    return {
        "share": seen.last_day.not_modified / visits if visits else None,
        "line": spark_line(shares_of_hours),
    }


def _tell_found(seen: Now, page: Page) -> dict[str, Any]:
    last, before = seen.hours[-24:], seen.hours[:24]
    now, then = (sum(hour.items_new for hour in each) for each in (last, before))
    change = None if not then else round(100 * (now - then) / then)
    told = page.t("in the last 24 h")
    if change:
        told = (
            page.t("{share} % more than the day before", share=change)
            if change > 0
            else page.t("{share} % less than the day before", share=-change)
        )
    return {"day": now, "told": told, "line": spark_line([hour.items_new for hour in last])}


def _tell_fleet(counts: SourceCounts, page: Page) -> dict[str, Any]:
    states = counts.states
    looks = (("on_time", "c1"), ("late", "c2"), ("failing", "c5"), ("gone", "c5"), ("paused", "c4"))
    named = [("late", page.t("late")), ("failing", page.t("failing")), ("gone", page.t("gone"))]
    named += [("paused", page.t("paused")), ("pending", page.t("not visited yet"))]
    told = [f"{states[state]} {name}" for state, name in named if states[state]]  # type: ignore[index]
    return {
        "bar": shares([(look, states[state]) for state, look in looks]),  # type: ignore[index]
        "told": " · ".join(told) or page.t("all on time"),
    }


def _draw_next_hour(visits: list[NextVisit], now: float, page: Page) -> dict[str, Any]:
    """The visits of the next hour by the minute; those that wait for their turn stand in the first."""
    counts = [0] * 60
    for visit in visits:
        minute = max(0, int((visit.due_at - now) // 60))
        if minute < len(counts):
            counts[minute] += 1
    names = [
        page.t("now") if not number else f"+{duration(60 * number, page.language)}" for number in range(60)
    ]
    ticks = [(place / 60, names[place]) for place in (0, 15, 30, 45)]
    scene = Scene(page.t("Visits of the next hour"), names, ticks, height=64)
    return {"count": sum(counts), "chart": stacked_bars([Series(page.t("Visits"), counts)], scene)}


def _sum_runs(runs: list[Run]) -> list[dict[str, Any]]:
    """What each pipeline has done lately."""
    of_templates: dict[int | None, list[Run]] = {}
    for run in runs:
        of_templates.setdefault(run.template_id, []).append(run)
    return [
        {
            "id": template_id,
            "name": of_one[0].template_name,
            "runs": len(of_one),
            "failed": sum(run.status == "failed" for run in of_one),
            "median": quantile(
                sorted(
                    run.completed_at - run.started_at
                    for run in of_one
                    if run.completed_at is not None and run.started_at is not None
                ),
                0.5,
            ),
        }
        for template_id, of_one in of_templates.items()
        if template_id is not None
    ]
