"""`/api/feeds/…`: your subscriptions visited now, found on pages, imported and exported."""

import asyncio
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collect.context import read_visit_context
from headwater.fetch.client import make_fetcher
from headwater.model import User
from headwater.sources.discovery import FoundFeed, mark_subscribed
from headwater.sources.editing import act_on_source
from headwater.sources.importing.reading import read_export
from headwater.sources.subscribing import export_for, import_for, subscribe_to_address
from headwater.store.collecting.sources import request_refresh
from headwater.store.people.folders import get_folder
from headwater.store.people.subscriptions import get_subscription, subscribed_sources
from headwater.views.feeds import FoundFeedView, ImportReportView, found_feed_json, import_report_json
from headwater.views.reading import SubscriptionView, subscription_json
from headwater.views.shape import Json
from headwater.web.api.auth import InCaller, InUser
from headwater.web.api.problems import problem_responses
from headwater.web.api.subscriptions import OPML, OPML_BODY, look_up_for
from headwater.web.context import InContext

router = APIRouter(prefix="/feeds", tags=["feeds"])

SourceId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The source's number.")]
SubscriptionId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The subscription's number.")]


class Queued(BaseModel):
    """The source is first in line; the collector visits it within a second or as soon as its host allows."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"status": "queued", "feed_id": 1}}
    )

    status: Literal["queued"] = "queued"
    feed_id: int


class AllQueued(BaseModel):
    """So many sources are first in line: all that you subscribe to and that are not paused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"status": "queued", "queued_count": 218}}
    )

    status: Literal["queued"] = "queued"
    queued_count: int


class Discover(BaseModel):
    """A page, a feed itself, or a handle such as r/python."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"url": "https://example.org/", "subscribe": False}}
    )

    url: Annotated[str, Field(max_length=2_000)]
    subscribe: bool = Field(default=False, description="Subscribe to the best feed at once.")
    folder_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None


class Discovered(BaseModel):
    """The feeds of a page, best first, and the subscription that was made of one."""

    feeds: list[FoundFeedView]
    subscription: SubscriptionView | None = None


@router.post(
    "/refresh-all",
    status_code=202,
    responses=problem_responses(),
    summary="Refresh all subscriptions",
)
async def refresh_all(context: InContext, caller: InCaller) -> AllQueued:
    """Visit every source that you subscribe to now, whatever the plans say. Needs the scope refresh."""
    caller.require("refresh")
    user = caller.user

    def write(connection: Connection) -> int:
        return request_refresh(connection, subscribed_sources(connection, user.id), context.clock())

    return AllQueued(queued_count=await context.store.write(write))


@router.post(
    "/discover",
    response_model=Discovered,
    responses=problem_responses(400, 404, 409),
    summary="Find a page's feeds",
)
async def discover_(request: Request, context: InContext, user: InUser, page: Discover) -> Json:
    """What an address or a handle leads to, best first. 422: the page cannot be fetched."""
    if page.subscribe:
        return {"feeds": [], "subscription": await _subscribe(context, user, page)}
    found = await look_up_for(request, context, page.url)
    marked = await context.store.read(_mark_mine, user, found)
    return {"feeds": [found_feed_json(feed) for feed in marked], "subscription": None}


async def _subscribe(context: InContext, user: User, page: Discover) -> Json:
    if page.folder_id is not None:
        await context.store.read(get_folder, user.id, page.folder_id)
    async with make_fetcher(context.settings) as fetcher:
        visit = await read_visit_context(context.store, context.settings, fetcher, clock=context.clock)
        done = await subscribe_to_address(user, page.url, visit, folder_id=page.folder_id)
    return subscription_json(done.subscription)


def _mark_mine(connection: Connection, user: User, found: list[FoundFeed]) -> list[FoundFeed]:
    """Which of the feeds a person subscribes to; what others subscribe to is not shown."""
    mine = set(subscribed_sources(connection, user.id))
    return [
        each if each.source_id in mine else replace(each, source_id=None)
        for each in mark_subscribed(connection, found)
    ]


@router.post(
    "/import",
    response_model=ImportReportView,
    responses=problem_responses(400, 411, 413),
    openapi_extra=OPML_BODY,
    summary="Import your subscriptions",
)
async def import_(request: Request, context: InContext, user: InUser) -> Json:
    """Subscribe to every feed of an OPML file, in its folders. One bad entry stops no other.

    Exports of FreshRSS (zip or JSON, as of Google Reader), Miniflux (JSON) and tt-rss (XML) are taken too: what was
    read, starred or tagged there is so here.
    """
    data = await request.body()

    def work() -> Json:
        return import_report_json(import_for(context.store, user, read_export(None, data), context.clock()))

    return await asyncio.to_thread(work)


@router.get(
    "/export",
    response_class=Response,
    responses={
        **problem_responses(),
        200: {"description": "An OPML file.", "content": {OPML: {"schema": {"type": "string"}}}},
    },
    summary="Export your subscriptions",
)
async def export(context: InContext, user: InUser) -> Response:
    """Your subscriptions with their folders and titles, as other readers take them."""
    return StreamingResponse(
        export_for(context.store, user, context.clock()),
        media_type=OPML,
        headers={"Content-Disposition": 'attachment; filename="headwater.opml"'},
    )


@router.post(
    "/{subscription_id}/refresh",
    status_code=202,
    responses=problem_responses(400, 404, 409),
    summary="Refresh a subscription",
)
async def refresh(context: InContext, caller: InCaller, subscription_id: SubscriptionId) -> Queued:
    """Visit the source of one of your subscriptions now, whatever its plan says. Needs the scope refresh."""
    caller.require("refresh")
    user = caller.user

    def write(connection: Connection) -> None:
        subscription = get_subscription(connection, user.id, subscription_id)
        act_on_source(connection, "refresh", subscription.source_id, context.clock())

    await context.store.write(write)
    return Queued(feed_id=subscription_id)
