"""The overview: what came in, what is due, what is wrong; renewed without a reload."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from headwater.model import Plan
from headwater.schedule.explain import explain_plan
from headwater.store.items import count_items
from headwater.store.listing import first_sources, newest_items
from headwater.store.overview import read_overview
from headwater.web.chart import bars
from headwater.web.context import Context
from headwater.web.pages.frame import InPage, Page

LISTED_SOURCES = 200
LISTED_ITEMS = 40
COUNT_SECONDS = 5.0  # for which a number that is dear to count is good enough


class Remembered:
    """A number that is asked for at most every so many seconds, by however many viewers."""

    def __init__(self, ask: Callable[[], Awaitable[int]], seconds: float, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._lock = asyncio.Lock()
        self._last: tuple[float, int] | None = None

    async def __call__(self) -> int:
        async with self._lock:  # those who come while it is asked wait for the answer
            if self._last is None or not 0 <= self._clock() - self._last[0] < self._seconds:
                self._last = self._clock(), await self._ask()
            return self._last[1]


def home_routes(context: Context) -> APIRouter:
    router = APIRouter()
    store, clock = context.store, context.clock
    item_count = Remembered(lambda: store.read(count_items), COUNT_SECONDS, clock)

    async def overview(page: Page) -> dict[str, Any]:
        numbers = await store.read(read_overview, clock())
        return {
            "numbers": numbers,
            "activity": bars(numbers.activity, title=page.t("Items published each minute, last hour")),
            "item_count": await item_count(),
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
