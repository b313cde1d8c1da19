"""`/api/sources/discover`, `import`, `export`: finding feeds, and lists of them in and out."""

import asyncio
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.recognition import rules_from
from headwater.fetch.client import make_fetcher
from headwater.language import preferred_language
from headwater.sources.discovery import FoundFeed, look_up, mark_subscribed
from headwater.sources.lists import export_opml, import_opml
from headwater.store.people.keys import ApiKey
from headwater.views.feeds import FoundFeedView, ImportReportView, found_feed_json, import_report_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs, require
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/sources", tags=["sources"])

OPML = "text/x-opml"
OPML_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An OPML file.",
        "content": {
            media_type: {"schema": {"type": "string"}} for media_type in (OPML, "application/xml", "text/xml")
        },
    }
}


class Page(BaseModel):
    """A page, a feed itself, or a handle such as r/python."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"url": "https://example.org/"}}
    )

    url: Annotated[str, Field(max_length=2_000)]


class Discovery(BaseModel):
    """The feeds of a page, best first."""

    feeds: list[FoundFeedView]


@router.post(
    "/discover",
    response_model=Discovery,
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Find a page's feeds",
)
async def discover_(request: Request, context: InContext, page: Page) -> Json:
    """What an address or a handle leads to, best first; stores nothing. Add one with its type, url and config.

    A page without feeds can be watched: `how` is watch. 422: the page cannot be fetched.
    """
    found = await look_up_for(request, context, page.url)
    marked = await context.store.read(mark_subscribed, found)
    return {"feeds": [found_feed_json(feed) for feed in marked]}


async def look_up_for(request: Request, context: InContext, text: str) -> list[FoundFeed]:
    """What a text leads to, in the language of the request."""
    settings = context.settings
    language = preferred_language(request.headers.get("accept-language", ""))
    rules = rules_from(settings.address_rules)
    async with make_fetcher(settings) as fetcher:
        return await look_up(text, fetcher, settings.visit_timeout_seconds, rules=rules, language=language)


@router.post(
    "/import",
    response_model=ImportReportView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 411, 413),
    openapi_extra=OPML_BODY,
    summary="Import an OPML file",
)
async def import_(request: Request, context: InContext) -> Json:
    """Add every feed of a list. One bad entry stops no other, and every new feed is collected at once."""
    data = await request.body()
    return import_report_json(await asyncio.to_thread(import_opml, context.store, data, context.clock()))


@router.get(
    "/export",
    response_class=Response,
    responses={
        **problem_responses(),
        200: {"description": "An OPML file.", "content": {OPML: {"schema": {"type": "string"}}}},
    },
    summary="Export an OPML file",
)
async def export(
    context: InContext,
    key: Annotated[ApiKey, needs("read")],
    with_secrets: Annotated[
        bool, Query(description="Write addresses whole, with the tokens in them. Needs the scope admin.")
    ] = False,
) -> Response:
    """All sources with their folders and titles, as other readers take them. What parameters like `api_key` or
    `token` hold is starred out of their addresses unless asked for; secrets of configs are never in it.
    """
    if with_secrets:
        require(key, "admin")
    return StreamingResponse(
        export_opml(context.store, context.clock(), with_secrets=with_secrets),
        media_type=OPML,
        headers={"Content-Disposition": 'attachment; filename="headwater.opml"'},
    )
