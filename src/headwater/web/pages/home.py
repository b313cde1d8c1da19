"""The overview: what came in, what is due, what is wrong; renewed without a reload."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection

from headwater.model import Plan
from headwater.schedule.explain import explain_plan
from headwater.store.items import count_items
from headwater.store.listing import first_sources, newest_items
from headwater.store.outages import Outage, read_outages
from headwater.store.overview import NextVisit, read_lag, read_next_visits, read_overview
from headwater.store.trends import (
    DELAY_CLASSES,
    FailingSource,
    HourSums,
    count_delays,
    failing_sources,
    read_hours,
)
from headwater.web.chart import bars, dots, labelled_bars
from headwater.web.context import Context
from headwater.web.pages.frame import InPage, Page
from headwater.wording import duration

LISTED_SOURCES = 50
LISTED_ITEMS = 30
LISTED_FAILING = 8
DRAWN_HOURS = 48
DRAWN_VISITS = 40
LISTED_VISITS = 5
LATE_SECONDS = 60.0  # so long nobody should wait in line
# How far the time line of upcoming visits may reach.
HORIZONS = (12.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 604_800.0)


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn and listed beside the numbers."""

    hours: list[HourSums]
    delays: list[int]
    failing: list[FailingSource]
    outages: list[Outage]
    lag_seconds: float
    next_visits: list[NextVisit]


def read_picture(connection: Connection, now: float) -> Picture:
    return Picture(
        hours=read_hours(connection, now, DRAWN_HOURS),
        delays=count_delays(connection),
        failing=failing_sources(connection, limit=LISTED_FAILING),
        outages=read_outages(connection, now),
        lag_seconds=read_lag(connection, now),
        next_visits=read_next_visits(connection, now, limit=DRAWN_VISITS),
    )


def home_routes(context: Context) -> APIRouter:
    router = APIRouter()
    store, clock = context.store, context.clock

    async def overview(page: Page) -> dict[str, Any]:
        now = clock()
        numbers = await store.read(read_overview, now)
        picture = await store.read(read_picture, now)
        last_day = picture.hours[-24:]
        return {
            "numbers": numbers,
            "picture": picture,
            "late": picture.lag_seconds > LATE_SECONDS,
            "activity": bars(numbers.activity, title=page.t("Items published each minute, last hour")),
            "visits_chart": bars(
                [hour.visits for hour in picture.hours], title=page.t("Visits each hour, last two days")
            ),
            "items_chart": bars(
                [hour.items_new for hour in picture.hours], title=page.t("New items each hour, last two days")
            ),
            "delays_chart": _delays(picture.delays, page) if any(picture.delays) else None,
            "upcoming": _upcoming(picture.next_visits, now, page) if picture.next_visits else None,
            "next_visits": picture.next_visits[:LISTED_VISITS],
            "visits_day": sum(hour.visits for hour in last_day),
            "not_modified_day": sum(hour.not_modified for hour in last_day),
            "unchanged_day": sum(hour.unchanged - hour.not_modified for hour in last_day),
            "skipped_day": sum(hour.skipped for hour in last_day),
            "item_count": await store.read(count_items),
            "why": lambda source: explain_plan(Plan(source.next_fetch_at, source.plan_reason), page.language),
            "sources": await store.read(first_sources, limit=LISTED_SOURCES),
            "items": (await store.read(newest_items, limit=LISTED_ITEMS))[:LISTED_ITEMS],
        }

    @router.get("/")
    async def home(page: InPage) -> HTMLResponse:
        return await page.show("home.html", **await overview(page))

    @router.get("/live")
    async def live(page: InPage) -> HTMLResponse:
        """The changing part of the home page, which the page fetches again and again."""
        return await page.show("live.html", **await overview(page))

    return router


def _delays(counts: list[int], page: Page) -> Any:
    ends = [duration(seconds, page.language) for seconds in DELAY_CLASSES]
    names = [*(f"< {end}" for end in ends), f"≥ {ends[-1]}"]
    return labelled_bars(
        list(zip(names, counts, strict=True)), title=page.t("How long after publication items were found")
    )


def _upcoming(visits: list[NextVisit], now: float, page: Page) -> Any:
    """The next visits, as far ahead as the last of them; those that wait for their turn stand at the beginning."""
    furthest = visits[-1].due_at - now
    reach = next((each for each in HORIZONS if each >= furthest), HORIZONS[-1])
    return dots(
        [(visit.due_at, visit.source_name) for visit in visits],
        begin=now,
        end=now + reach,
        ticks=[page.t("now"), *(f"+{duration(reach * part / 4, page.language)}" for part in (1, 2, 3, 4))],
        title=page.t("The next visits on a time line"),
    )
