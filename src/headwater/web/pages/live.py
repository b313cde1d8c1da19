"""What keeps pages current without asking again and again, and the progress of a large collection."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, StreamingResponse
from sqlalchemy import Connection

from headwater.errors import Text
from headwater.store.collecting.queue import count_due
from headwater.store.reading.listing import newest_items
from headwater.store.reports.attention import troubled_sources
from headwater.store.reports.overview import SourceCounts, count_in_flight, count_sources
from headwater.web.api.problems import Refusal
from headwater.web.changes import Changes
from headwater.web.chart import progress_line
from headwater.web.pages.frame import InPage, Page

router = APIRouter()

ARRIVING = 8
TROUBLES = 6


@router.get("/events")
async def events(page: InPage) -> StreamingResponse:
    """Server-sent events: when visits, items or runs have changed."""
    changes: Changes = page.request.app.state.changes
    if changes.is_full:
        raise Refusal(503, Text("too many pages are open; they renew themselves less often"))
    return StreamingResponse(
        changes.stream(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.get("/progress")
async def progress_page(page: InPage) -> HTMLResponse:
    """How far a first collection, or a refresh of everything, has come."""
    return await page.show("progress.html", **await read_progress(page))


@router.get("/progress/live")
async def progress_part(page: InPage) -> HTMLResponse:
    return await page.show("progress_live.html", **await read_progress(page))


async def read_progress(page: Page) -> dict[str, Any]:
    store, now = page.context.store, page.context.clock()
    counts, waiting, flying, troubled = await store.read(_read, now)
    waiting = max(waiting, counts.states["pending"])
    bad = sum(counts.failing.values()) + counts.states["gone"]
    good = max(0, counts.total - waiting - bad - counts.states["paused"])
    return {
        "total": counts.total,
        "waiting": waiting,
        "flying": flying,
        "good": good,
        "bad": bad,
        "bar": progress_line([("c1", good), ("c5", bad)], counts.total),
        "arrived": (await store.read(newest_items, limit=ARRIVING))[:ARRIVING],
        "troubled": troubled,
    }


def _read(connection: Connection, now: float) -> tuple[SourceCounts, int, int, list[Any]]:
    return (
        count_sources(connection),
        count_due(connection, now),
        count_in_flight(connection, now),
        troubled_sources(connection, limit=TROUBLES),
    )
