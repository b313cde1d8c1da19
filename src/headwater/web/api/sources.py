"""`/api/sources…`: what is collected from, one by one and many at once; its plans and visits."""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collect.context import read_intervals, read_planner, read_visit_context
from headwater.collectors.recognition import rules_from
from headwater.collectors.types import find_type
from headwater.errors import InputError
from headwater.fetch.client import make_fetcher
from headwater.language import preferred_language
from headwater.model import Source
from headwater.sources.adding import add_unvisited, add_what_is_there, read_new_source
from headwater.sources.editing import (
    INTERVAL,
    Acted,
    Edit,
    SourceAction,
    act_on_source,
    act_on_sources,
    edit_checked,
    edit_source,
    edit_sources,
)
from headwater.store.collecting.push import read_subscription
from headwater.store.collecting.sources import get_source_or_removed
from headwater.store.core.bulk import storable
from headwater.store.core.versions import version_of
from headwater.store.people.keys import ApiKey
from headwater.store.pipelines.attaching import templates_for
from headwater.store.reports.catalog import SourceFilter, State, last_visits, matching_ids, sources_page
from headwater.store.reports.statistics import read_source_statistics
from headwater.views.shape import Json
from headwater.views.sources import (
    PlanView,
    PublicSourceView,
    SourceView,
    WholeSourceView,
    plan_json,
    public_source_json,
    source_json,
    whole_source_json,
)
from headwater.views.templates import SourcePipelineView, source_pipeline_json
from headwater.views.visits import VisitView, visit_json
from headwater.web.api.auth import needs, require, welcomes
from headwater.web.api.feeds import Queued, SourceId
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, Next, answer_page, decode_number, split_page
from headwater.web.api.problems import problem_responses, status_of
from headwater.web.context import Context, InContext
from headwater.web.etags import NOT_MODIFIED, IfMatch, IfNoneMatch, answer_tagged, expected_version
from headwater.web.masking import for_holder, found_openly

router = APIRouter(prefix="/sources", tags=["sources"])

MOST_IN_BULK = 1_000
LONGEST_TEXT = 2_000
ATTENTION_DESCRIPTION = "True: only a person can help: credentials are refused, or it has moved."

ShortText = Annotated[str, Field(max_length=LONGEST_TEXT)]


class SourcePage(BaseModel):
    sources: list[SourceView | PublicSourceView]
    next: Next


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
    folder: ShortText | None = Field(default=None, description="Made if there is none of this name.")
    policy: ShortText | None = Field(default=None, description="Its own policy; null: the one of all.")
    fetch_interval_minutes: Annotated[float, Field(ge=0.01, le=525_600)] | None = Field(
        default=None, description="A fixed time between visits; null: the default."
    )
    config: JsonObject = Field(default_factory=dict, description="What its type takes.")
    check: bool = Field(
        default=True,
        description=(
            "Visit it now: if that fails, nothing is stored. Without, it is stored as it is and first in line for "
            "the collector."
        ),
    )


class CommonChanges(BaseModel):
    """What can be changed of many sources at once; what is left out stays as it is, and null clears it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"folder": "News", "fetch_interval_minutes": 30}}
    )

    folder: ShortText | None = Field(default=None, description="A folder that other sources are in.")
    new_folder: bool = Field(default=False, description="Make the folder if there is none of this name.")
    policy: ShortText | None = None
    fetch_interval_minutes: Annotated[float, Field(ge=0.01, le=525_600)] | None = Field(
        default=None, description="A fixed time between visits; null: back to the default."
    )
    pipeline_template_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None

    def read(self) -> Edit:
        given = self.model_fields_set
        return Edit(
            folder=(self.folder or "") if "folder" in given else None,
            new_folder=self.new_folder,
            policy=(self.policy or "") if "policy" in given else None,
            interval_minutes=(
                (self.fetch_interval_minutes or 0) if "fetch_interval_minutes" in given else None
            ),
            template_id=(self.pipeline_template_id or 0) if "pipeline_template_id" in given else None,
        )


class SourceChanges(CommonChanges):
    """What to change; what is left out stays as it is. null clears a folder, a policy, an interval or a template."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Another name", "folder": None}}
    )

    name: ShortText | None = None
    url: ShortText | None = Field(
        default=None, description="Its new address, or that of a page that names its feed."
    )
    config: JsonObject | None = Field(
        default=None, description="The whole config; a value shown as *** keeps the secret that is stored."
    )
    check: bool = Field(
        default=True,
        description="Visit a new address first: if that fails, nothing is changed. Without, it is taken as it is.",
    )

    def read(self) -> Edit:
        common = super().read()
        return replace(common, name=self.name, url=self.url, config=self.config)


class WantedSources(BaseModel):
    """Sources by what they are; what is left out does not count."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"folder": "News", "state": "failing"}}
    )

    search: Annotated[str, Field(max_length=500)] = ""
    type: Annotated[str, Field(max_length=100)] = ""
    folder: ShortText = ""
    state: State | None = None


class Bulk(BaseModel):
    """One action on many sources: on those that are numbered, or on all that a filter finds."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"action": "edit", "filter": {"folder": "Old"}, "changes": {"folder": "News"}}
        },
    )

    action: SourceAction | Literal["edit"]
    source_ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] | None = Field(
        default=None, min_length=1, max_length=MOST_IN_BULK
    )
    filter: WantedSources | None = Field(default=None, description="Instead of numbers.")
    changes: CommonChanges | None = Field(default=None, description="For the action `edit`.")


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
                        "detail": "there is no source 3",
                    }
                ],
            }
        }
    )

    done: list[int]
    problems: list[BulkProblem]


class VisitPage(BaseModel):
    visits: list[VisitView]
    next: Next


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
        Query(description="In this state; needs_attention: refusing credentials; due: waiting for a visit."),
    ] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Sources by number. Without a key, on this machine, they are told without their plans, configs and visits."""
    wanted = _read_filter(search, type, folder, state)
    found = await context.store.read(
        sources_page, wanted, now=context.clock(), after=decode_number(cursor), limit=limit
    )
    page, following = split_page(found, limit, lambda source: (source.id,))
    if key is None or not key.allows("admin"):
        page = found_openly(page, wanted.search)
    if key is None:
        shown = [public_source_json(each) for each in page]
    else:
        intervals = await read_intervals(context.store, context.settings)
        shown = [source_json(each, intervals) for each in page]
    return answer_tagged(request, {"sources": shown, "next": following})


@router.post(
    "",
    status_code=201,
    response_model=WholeSourceView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 409),
    summary="Add a source",
)
async def add(context: InContext, response: Response, new: NewSource) -> Json:
    """Add a source; a page is added as the first feed that it names. It is visited at once, or first in line."""
    interval = {} if new.fetch_interval_minutes is None else {INTERVAL: new.fetch_interval_minutes}
    store, settings = context.store, context.settings
    wanted = read_new_source(
        *(new.url, new.type, {**new.config, **interval}, new.name or None, new.folder or None, new.policy),
        rules=rules_from(settings.address_rules),
    )
    if new.check:
        async with make_fetcher(settings) as fetcher:
            added = await add_what_is_there(wanted, await read_visit_context(store, settings, fetcher))
    else:
        added = await store.write(add_unvisited, wanted, context.clock())
    response.headers["Location"] = f"/api/sources/{added.id}"
    return await _whole(context, added)


@router.post("/bulk", responses=problem_responses(400, 404), summary="Act on many sources")
async def bulk(
    request: Request, context: InContext, key: Annotated[ApiKey, needs("refresh")], wanted: Bulk
) -> BulkReport:
    """Refresh, pause, resume, remove, restore or edit many sources. All but `refresh` needs the scope admin."""
    if wanted.action != "refresh":
        require(key, "admin")
    acted = await context.store.write(_act_on_many, wanted, context.clock())
    language = preferred_language(request.headers.get("accept-language", ""))
    return BulkReport(
        done=list(acted.done),
        problems=[
            BulkProblem(id=source_id, status=status_of(problem), detail=problem.render(language))
            for source_id, problem in acted.problems
        ],
    )


def _act_on_many(connection: Connection, wanted: Bulk, now: float) -> Acted:
    if (wanted.source_ids is None) == (wanted.filter is None):
        raise InputError("say which sources: either source_ids or a filter")
    if (wanted.changes is None) == (wanted.action == "edit"):
        raise InputError("the action edit takes changes, and no other does")
    ids = wanted.source_ids
    if ids is None:
        chosen = wanted.filter or WantedSources()
        ids = matching_ids(
            connection, _read_filter(chosen.search, chosen.type, chosen.folder, chosen.state), now
        )
    if wanted.action == "edit":
        return edit_sources(connection, ids, (wanted.changes or CommonChanges()).read(), now)
    return act_on_sources(connection, wanted.action, ids, now)


def _read_filter(search: str, type_name: str, folder: str, state: State | None) -> SourceFilter:
    return SourceFilter(
        storable(search.strip()) or "",
        find_type(type_name).name if type_name else "",
        storable(folder) or "",
        state,
    )


@router.get(
    "/{source_id}",
    response_model=WholeSourceView,
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One source",
)
async def one(
    request: Request,
    context: InContext,
    key: Annotated[ApiKey, needs("read")],
    source_id: SourceId,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """A source, even one that was removed."""
    source = await context.store.read(get_source_or_removed, source_id)
    shown = await _whole(context, for_holder(source, key.allows))
    return answer_tagged(request, shown, version_of(source))


@router.patch(
    "/{source_id}",
    response_model=WholeSourceView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409, 412),
    summary="Change a source",
)
async def change(
    request: Request,
    context: InContext,
    source_id: SourceId,
    changes: SourceChanges,
    if_match: IfMatch = None,
) -> Response:
    """Change what is given, checked as when a source is added. A new address is visited now and again at once by the
    collector; a change of interval or policy is in effect at once.
    """
    store, settings = context.store, context.settings
    edit = replace(changes.read(), version=expected_version(if_match))
    if edit.url is None or not changes.check:
        planner = await read_planner(store, settings)
        source = await store.write(edit_source, source_id, edit, context.clock(), planner)
    else:
        async with make_fetcher(settings) as fetcher:
            visit_context = await read_visit_context(store, settings, fetcher)
            source = await edit_checked(source_id, edit, visit_context)
    return answer_tagged(request, await _whole(context, source), version_of(source))


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
    response_model=WholeSourceView,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="Bring back a source",
)
async def restore(context: InContext, source_id: SourceId) -> Json:
    """Bring back a source that was removed. Again is not an error."""
    return await _whole(context, await _act(context, "restore", source_id))


@router.post(
    "/{source_id}/pause",
    response_model=WholeSourceView,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Pause a source",
)
async def pause(context: InContext, source_id: SourceId) -> Json:
    """No visits until it is resumed. Again is not an error."""
    return await _whole(context, await _act(context, "pause", source_id))


@router.post(
    "/{source_id}/resume",
    response_model=WholeSourceView,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Resume a source",
)
async def resume(context: InContext, source_id: SourceId) -> Json:
    """Visits as planned again, at once if the time has passed. Again is not an error."""
    return await _whole(context, await _act(context, "resume", source_id))


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
    "/{source_id}/plan",
    response_model=PlanView,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="Its plan",
)
async def plan(request: Request, context: InContext, source_id: SourceId) -> Json:
    """When the source is visited next and why then, in words and numbers."""
    source = await context.store.read(get_source_or_removed, source_id)
    statistics = await context.store.read(read_source_statistics, source_id, context.clock())
    language = preferred_language(request.headers.get("accept-language", ""))
    return plan_json(source, statistics, language)


class SourcePipelines(BaseModel):
    pipelines: list[SourcePipelineView]


@router.get(
    "/{source_id}/pipelines",
    response_model=SourcePipelines,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="Its pipelines",
)
async def pipelines(context: InContext, source_id: SourceId) -> Json:
    """The templates that run for its new items, in order. One attached to a tag runs for items with that tag only."""
    source = await context.store.read(get_source_or_removed, source_id)
    found = await context.store.read(templates_for, source)
    return {"pipelines": [source_pipeline_json(each) for each in found]}


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
    await context.store.read(get_source_or_removed, source_id)
    found = await context.store.read(last_visits, source_id, after=decode_number(cursor), limit=limit)
    return answer_page(request, "visits", found, limit, lambda visit: (visit.lease_no,), visit_json)


async def _act(context: Context, action: SourceAction, source_id: int) -> Source:
    return await context.store.write(act_on_source, action, source_id, context.clock())


async def _whole(context: Context, source: Source) -> Json:
    store = context.store
    return whole_source_json(
        source,
        await read_intervals(store, context.settings),
        await store.read(read_subscription, source.id),
        await store.read(read_source_statistics, source.id, context.clock()),
    )
