"""`/api/sources/discover`, `import`, `export`: finding feeds, and lists of them in and out."""

import asyncio
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collect.adding import read_url
from headwater.collect.discovery import discover
from headwater.collect.lists import export_opml, import_opml
from headwater.collect.surroundings import make_fetcher
from headwater.collect.visit import too_slow
from headwater.store.sources import list_sources
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/sources", tags=["sources"])

OPML = "text/x-opml"
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An OPML file.",
        "content": {
            media_type: {"schema": {"type": "string"}} for media_type in (OPML, "application/xml", "text/xml")
        },
    }
}


class Page(BaseModel):
    """A page, or a feed itself."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"url": "https://example.org/"}}
    )

    url: Annotated[str, Field(max_length=2_000)]


class FoundFeed(BaseModel):
    url: str
    title: str | None
    how: str | None = Field(
        description="How it was found: rule, link, …; null: the address itself is a feed."
    )
    checked: bool = Field(description="It was fetched and is a feed.")


class Discovery(BaseModel):
    """The feeds of a page, best first."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "feeds": [
                    {
                        "url": "https://example.org/feed.xml",
                        "title": "Example",
                        "how": "link",
                        "checked": False,
                    }
                ]
            }
        }
    )

    feeds: list[FoundFeed]


class ImportedEntry(BaseModel):
    """What became of one entry of a list."""

    title: str
    url: str
    folder: str | None
    outcome: Literal["added", "known", "rejected"]
    source_id: int | None = Field(description="The source it became; null: none.")
    reason: str | None = Field(description="Why it became none; null: it did.")


class ImportReport(BaseModel):
    """What became of a list. Sources that were added are visited at once, as the hosts allow."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "added": 1,
                "known": 0,
                "rejected": 0,
                "entries": [
                    {
                        "title": "Example",
                        "url": "https://example.org/feed.xml",
                        "folder": "News",
                        "outcome": "added",
                        "source_id": 1,
                        "reason": None,
                    }
                ],
            }
        }
    )

    added: int
    known: int = Field(description="Those that were there already.")
    rejected: int
    entries: list[ImportedEntry]


@router.post(
    "/discover",
    dependencies=[needs("admin")],
    responses=problem_responses(400),
    summary="Find a page's feeds",
)
async def discover_(context: InContext, page: Page) -> Discovery:
    """The feeds of a page, best first; stores nothing. 422: the page cannot be had, or has none."""
    seconds = context.settings.visit_timeout_seconds
    url = read_url(page.url)
    async with make_fetcher(context.settings) as fetcher:
        try:
            async with asyncio.timeout(seconds):
                found = await discover(url, fetcher)
        except TimeoutError:
            raise too_slow(seconds) from None
    return Discovery(
        feeds=[
            FoundFeed(url=feed.url, title=feed.title, how=feed.how, checked=feed.checked) for feed in found
        ]
    )


@router.post(
    "/import",
    dependencies=[needs("admin")],
    responses=problem_responses(400, 411, 413),
    openapi_extra=_BODY,
    summary="Import an OPML file",
)
async def import_(request: Request, context: InContext) -> ImportReport:
    """Add every feed of a list. One bad entry stops no other, and every new feed is collected at once."""
    data = await request.body()
    entries = await asyncio.to_thread(import_opml, context.store, data, context.clock())
    shown = [
        ImportedEntry(
            title=entry.title,
            url=entry.url,
            folder=entry.folder,
            outcome=entry.outcome,
            source_id=entry.source_id,
            reason=entry.reason,
        )
        for entry in entries
    ]
    count = {
        outcome: sum(entry.outcome == outcome for entry in entries)
        for outcome in ("added", "known", "rejected")
    }
    return ImportReport(**count, entries=shown)


@router.get(
    "/export",
    dependencies=[needs("read")],
    response_class=Response,
    responses={
        **problem_responses(),
        200: {"description": "An OPML file.", "content": {OPML: {"schema": {"type": "string"}}}},
    },
    summary="Export an OPML file",
)
async def export(context: InContext) -> Response:
    """All sources with their folders and titles, as other readers take them. No secrets are in it."""
    found = await context.store.read(list_sources)
    document = await asyncio.to_thread(export_opml, found, context.clock())
    return Response(
        document,
        media_type=OPML,
        headers={"Content-Disposition": 'attachment; filename="headwater.opml"'},
    )
