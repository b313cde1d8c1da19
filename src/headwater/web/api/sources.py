"""`/api/sources…`: what is collected from, one by one and many at once; its plans and visits."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.collect.adding import add_unvisited, add_what_is_there, read_new_source
from headwater.collect.editing import Edit, SourceAction, act_on_source, act_on_sources, edit_source
from headwater.collect.surroundings import make_fetcher, read_intervals, read_surroundings
from headwater.collectors.base import shown_config
from headwater.collectors.types import config_model_of, find_type
from headwater.language import preferred_language
from headwater.model import Source
from headwater.schedule.explain import explain_next
from headwater.store.bulk import storable
from headwater.store.catalog import SourceFilter, State, last_visits, sources_page
from headwater.store.keys import ApiKey
from headwater.store.sources import get_source_or_removed
from headwater.web.api.auth import needs, require, welcomes
from headwater.web.api.collector import interval_minutes
from headwater.web.api.feeds import Queued, SourceId
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, decode_cursor, split_page
from headwater.web.api.problems import problem_responses, status_of
from headwater.web.api.times import Time
from headwater.web.context import Context, InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/sources", tags=["sources"])

MOST_IN_BULK = 1_000
LONGEST_TEXT = 2_000

ShortText = Annotated[str, Field(max_length=LONGEST_TEXT)]
_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "name": "Example",
    "type": "rss.feed",
    "url": "https://example.org/feed.xml",
    "folder": "News",
    "title": "Example",
    "site_url": "https://example.org/",
}


class PublicSource(BaseModel):
    """What a source is: all that is told without a key."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    id: int
    name: str
    type: str = Field(description="The type's two-part name.")
    url: str
    folder: str | None
    title: str | None = Field(description="What it calls itself.")
    site_url: str | None = Field(description="The page it belongs to.")


class SourceEntry(PublicSource):
    """A source with all that is known of it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                **_EXAMPLE,
                "description": None,
                "language": "en",
                "icon_url": None,
                "config": {"user": "me", "password": "***"},
                "policy": None,
                "pipeline_template_id": None,
                "is_active": True,
                "schedule_enabled": True,
                "is_deleted": False,
                "status": "ok",
                "fetch_interval_minutes": 240,
                "next_fetch_at": "2026-02-25T11:30:00.000Z",
                "last_fetched_at": "2026-02-25T10:30:00.000Z",
                "last_entry_at": "2026-02-25T10:12:00.000Z",
                "created_at": "2026-01-01T00:00:00.000Z",
                "fetch_count": 142,
                "hit_count": 31,
                "fetch_error_count": 2,
                "consecutive_failures": 0,
                "last_error": None,
                "last_error_kind": None,
            }
        }
    )

    description: str | None
    language: str | None
    icon_url: str | None
    config: dict[str, Any] = Field(description="Its config; secrets are starred out.")
    policy: str | None = Field(description="Its own policy; null: the one of all.")
    pipeline_template_id: int | None = Field(description="The template that its new items start; null: none.")
    is_active: bool = Field(description="False: failing for long or gone, so it is only probed now and then.")
    schedule_enabled: bool = Field(description="False: switched off by its owner.")
    is_deleted: bool = Field(description="True: taken out; it can be brought back.")
    status: str = Field(description="ok, needs_attention, paused, error, retired.")
    fetch_interval_minutes: int | float = Field(description="Its own fixed interval, else its type's.")
    next_fetch_at: Time | None = Field(
        description="When its next visit is planned; null: never visited, so first in line."
    )
    last_fetched_at: Time | None = Field(description="When it was last visited; null: never.")
    last_entry_at: Time | None = Field(description="When its newest item was published.")
    created_at: Time
    fetch_count: int = Field(description="All visits so far.")
    hit_count: int = Field(description="Those of them that found something new.")
    fetch_error_count: int = Field(description="Those of them that failed.")
    consecutive_failures: int = Field(description="How many visits failed since the last that did not.")
    last_error: str | None = Field(description="What went wrong at the last visit; null: nothing.")
    last_error_kind: str | None = Field(description="The same as one word.")


class SourcePage(BaseModel):
    sources: list[SourceEntry | PublicSource]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


class NewSource(BaseModel):
    """A source to add. A type that needs no address is named by its config alone."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"url": "https://example.org/", "folder": "News", "check": True}},
    )

    url: ShortText | None = Field(
        default=None, description="Its address, or that of a page that names its feed."
    )
    type: ShortText | None = Field(
        default=None, description="Its type; null: by the address, and else a feed."
    )
    name: ShortText | None = Field(default=None, description="A name; null: its own title.")
    folder: ShortText | None = None
    config: JsonObject = Field(default_factory=dict, description="What its type takes.")
    check: bool = Field(
        default=True,
        description=(
            "Visit it now: if that fails, nothing is stored. Without, it is stored as it is and first in line for "
            "the collector."
        ),
    )


class SourceChanges(BaseModel):
    """What to change; what is left out stays as it is. null clears a folder, a policy or a template."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Another name", "folder": None}}
    )

    name: ShortText | None = None
    url: ShortText | None = None
    folder: ShortText | None = None
    policy: ShortText | None = None
    pipeline_template_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    config: JsonObject | None = Field(
        default=None, description="The whole config; a value shown as *** keeps the secret that is stored."
    )


class Bulk(BaseModel):
    """One action on many sources."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"action": "pause", "source_ids": [1, 2, 3]}}
    )

    action: SourceAction
    source_ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(min_length=1, max_length=MOST_IN_BULK)


class BulkProblem(BaseModel):
    id: int
    status: int = Field(description="The HTTP status that the same action on this source alone answers.")
    detail: str


class BulkReport(BaseModel):
    """What became of it, source by source."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "done": [1, 2],
                "problems": [
                    {
                        "id": 3,
                        "status": 404,
                        "detail": "there is no source 3; `headwater source list` shows them all",
                    }
                ],
            }
        }
    )

    done: list[int]
    problems: list[BulkProblem]


class PlanEntry(BaseModel):
    """When a source is visited next, and why then."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "source_id": 1,
                "next_fetch_at": "2026-02-25T11:30:00.000Z",
                "why": "fixed interval of 4 h",
                "reason": {"policy": "interval", "interval": 14400.0},
            }
        }
    )

    source_id: int
    next_fetch_at: Time | None = Field(description="null: at once, or never; `why` says which.")
    why: str = Field(description="The reason in a sentence, in the language asked for.")
    reason: dict[str, Any] = Field(description="The same as numbers.")


class VisitEntry(BaseModel):
    """One visit, as it ended."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "number": 7,
                "started_at": "2026-02-25T10:30:00.000Z",
                "finished_at": "2026-02-25T10:30:00.412Z",
                "outcome": "new",
                "items_found": 20,
                "items_new": 2,
                "items_updated": 0,
                "overflow": False,
                "http_status": 200,
                "requests": 1,
                "bytes_received": 8123,
                "error_kind": None,
                "error_message": None,
            }
        }
    )

    number: int = Field(description="Counts this source's visits.")
    started_at: Time
    finished_at: Time
    outcome: str = Field(description="new, unchanged, failed, skipped.")
    items_found: int
    items_new: int
    items_updated: int
    overflow: bool = Field(
        description="Nothing of the last visit was left in it: items may have been missed."
    )
    http_status: int | None
    requests: int
    bytes_received: int
    error_kind: str | None
    error_message: str | None


class VisitPage(BaseModel):
    visits: list[VisitEntry]
    next: str | None = Field(description="The cursor of the next page; null: there are no more.")


@router.get(
    "",
    response_model=SourcePage,
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="List sources",
)
async def list_(
    request: Request,
    context: InContext,
    key: Annotated[ApiKey | None, welcomes("read")],
    cursor: Cursor = None,
    limit: Limit = 100,
    search: Annotated[str, Query(max_length=500, description="A part of its name or address.")] = "",
    type: Annotated[str, Query(max_length=100, description="Of this type, by either name.")] = "",
    folder: Annotated[str, Query(max_length=LONGEST_TEXT, description="In this folder.")] = "",
    state: Annotated[
        State | None,
        Query(description="ok, failing, paused by failures, switched off, due now, or removed."),
    ] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Sources by number. Without a key, on this machine, they are told without their plans, configs and visits."""
    place = decode_cursor(cursor, int)
    wanted = SourceFilter(
        storable(search.strip()) or "", find_type(type).name if type else "", storable(folder) or "", state
    )
    found = await context.store.read(
        sources_page, wanted, now=context.clock(), after=place[0] if place else None, limit=limit
    )
    page, following = split_page(found, limit, lambda source: (source.id,))
    if key is None:
        return answer_tagged(request, SourcePage(sources=[public(each) for each in page], next=following))
    intervals = await read_intervals(context.store, context.settings)
    return answer_tagged(
        request, SourcePage(sources=[entry(each, intervals) for each in page], next=following)
    )


@router.post(
    "",
    status_code=201,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 409),
    summary="Add a source",
)
async def add(context: InContext, response: Response, new: NewSource) -> SourceEntry:
    """Add a source; a page is added as the first feed that it names. It is visited at once, or first in line."""
    wanted = read_new_source(new.url, new.type, new.config, new.name or None, new.folder or None)
    store, settings = context.store, context.settings
    if new.check:
        async with make_fetcher(settings) as fetcher:
            added = await add_what_is_there(wanted, await read_surroundings(store, settings, fetcher))
    else:
        added = await store.write(add_unvisited, wanted, context.clock())
    response.headers["Location"] = f"/api/sources/{added.id}"
    return await told(context, added)


@router.post("/bulk", responses=problem_responses(), summary="Act on many sources")
async def bulk(
    request: Request, context: InContext, key: Annotated[ApiKey, needs("refresh")], wanted: Bulk
) -> BulkReport:
    """Refresh, pause, resume, remove or restore up to 1,000 sources. All but `refresh` needs the scope admin."""
    if wanted.action != "refresh":
        require(key, "admin")
    acted = await context.store.write(act_on_sources, wanted.action, wanted.source_ids, context.clock())
    language = preferred_language(request.headers.get("accept-language", ""))
    return BulkReport(
        done=list(acted.done),
        problems=[
            BulkProblem(id=source_id, status=status_of(problem), detail=problem.render(language))
            for source_id, problem in acted.problems
        ],
    )


@router.get(
    "/{source_id}",
    response_model=SourceEntry,
    dependencies=[needs("read")],
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One source",
)
async def one(
    request: Request, context: InContext, source_id: SourceId, if_none_match: IfNoneMatch = None
) -> Response:
    """A source, even one that was removed."""
    return answer_tagged(
        request, await told(context, await context.store.read(get_source_or_removed, source_id))
    )


@router.patch(
    "/{source_id}",
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Change a source",
)
async def change(context: InContext, source_id: SourceId, changes: SourceChanges) -> SourceEntry:
    """Change what is given. It is checked as when a source is added, and takes effect at the next visit."""
    given = changes.model_fields_set
    edit = Edit(
        name=changes.name,
        url=changes.url,
        folder=(changes.folder or "") if "folder" in given else None,
        policy=(changes.policy or "") if "policy" in given else None,
        template_id=(changes.pipeline_template_id or 0) if "pipeline_template_id" in given else None,
        config=changes.config,
    )
    return await told(context, await context.store.write(edit_source, source_id, edit, context.clock()))


@router.delete(
    "/{source_id}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove a source",
)
async def remove(context: InContext, source_id: SourceId) -> None:
    """Take a source out. Its items stay, and it can be brought back with all that it has seen."""
    await context.store.write(act_on_source, "remove", source_id, context.clock())


@router.post(
    "/{source_id}/restore",
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="Bring back a source",
)
async def restore(context: InContext, source_id: SourceId) -> SourceEntry:
    """Bring back a source that was removed. Again is no error."""
    return await told(context, await _act(context, "restore", source_id))


@router.post(
    "/{source_id}/pause",
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Switch off a source",
)
async def pause(context: InContext, source_id: SourceId) -> SourceEntry:
    """No visits until it is switched on again. Again is no error."""
    return await told(context, await _act(context, "pause", source_id))


@router.post(
    "/{source_id}/resume",
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Switch on a source",
)
async def resume(context: InContext, source_id: SourceId) -> SourceEntry:
    """Visits as planned again, at once if the time has passed. Again is no error."""
    return await told(context, await _act(context, "resume", source_id))


@router.post(
    "/{source_id}/refresh",
    status_code=202,
    dependencies=[needs("refresh")],
    responses=problem_responses(404, 409),
    summary="Visit a source now",
)
async def refresh(context: InContext, source_id: SourceId) -> Queued:
    """Visit one source now, whatever its plan says."""
    await _act(context, "refresh", source_id)
    return Queued(feed_id=source_id)


@router.get(
    "/{source_id}/plan", dependencies=[needs("read")], responses=problem_responses(404), summary="Its plan"
)
async def plan(request: Request, context: InContext, source_id: SourceId) -> PlanEntry:
    """When the source is visited next and why then, in words and numbers."""
    source = await context.store.read(get_source_or_removed, source_id)
    language = preferred_language(request.headers.get("accept-language", ""))
    return PlanEntry(
        source_id=source_id,
        next_fetch_at=source.next_fetch_at if source.schedule_enabled and not source.is_deleted else None,
        why=explain_next(source, language),
        reason=dict(source.plan_reason),
    )


@router.get(
    "/{source_id}/visits",
    response_model=VisitPage,
    dependencies=[needs("read")],
    responses={**problem_responses(400, 404), **NOT_MODIFIED},
    summary="Its visits",
)
async def visits(
    request: Request,
    context: InContext,
    source_id: SourceId,
    cursor: Cursor = None,
    limit: Limit = 50,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The visits to a source that are on record, newest first."""
    place = decode_cursor(cursor, int)
    await context.store.read(get_source_or_removed, source_id)
    found = await context.store.read(last_visits, source_id, after=place[0] if place else None, limit=limit)
    page, following = split_page(found, limit, lambda visit: (visit.lease_no,))
    shown = [
        VisitEntry(
            number=visit.lease_no,
            started_at=visit.started_at,
            finished_at=visit.finished_at,
            outcome=visit.status,
            items_found=visit.items_found,
            items_new=visit.items_new,
            items_updated=visit.items_updated,
            overflow=visit.overflow,
            http_status=visit.http_status,
            requests=visit.requests,
            bytes_received=visit.bytes_received,
            error_kind=visit.error_kind,
            error_message=visit.error_message,
        )
        for visit in page
    ]
    return answer_tagged(request, VisitPage(visits=shown, next=following))


async def _act(context: Context, action: SourceAction, source_id: int) -> Source:
    return await context.store.write(act_on_source, action, source_id, context.clock())


async def told(context: Context, source: Source) -> SourceEntry:
    return entry(source, await read_intervals(context.store, context.settings))


def public(source: Source) -> PublicSource:
    return PublicSource(
        id=source.id,
        name=source.name,
        type=source.type,
        url=source.url,
        folder=source.folder,
        title=source.metadata.title,
        site_url=source.metadata.site_url,
    )


def entry(source: Source, intervals: dict[str, float]) -> SourceEntry:
    return SourceEntry(
        **public(source).model_dump(),
        description=source.metadata.description,
        language=source.metadata.language,
        icon_url=source.metadata.icon_url,
        config=shown_config(source.config, config_model_of(source.type)),
        policy=source.policy,
        pipeline_template_id=source.pipeline_template_id,
        is_active=source.is_active,
        schedule_enabled=source.schedule_enabled,
        is_deleted=source.is_deleted,
        status=source.status,
        fetch_interval_minutes=interval_minutes(source.config, intervals.get(source.type, 0.0)),
        next_fetch_at=source.next_fetch_at,
        last_fetched_at=source.last_fetched_at,
        last_entry_at=source.last_entry_at,
        created_at=source.created_at,
        fetch_count=source.fetch_count,
        hit_count=source.hit_count,
        fetch_error_count=source.fetch_error_count,
        consecutive_failures=source.consecutive_failures,
        last_error=source.last_error,
        last_error_kind=source.last_error_kind,
    )
