"""`/api/digests…`, `/api/digest-issues…`: what is gathered on a schedule, and what was made of it."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collectors.types import find_type
from headwater.publish.digest_context import open_digest_context
from headwater.publish.digests import (
    read_digest,
    remake_issue,
    send_issue,
    show_digest_config,
    shown_digest,
)
from headwater.publish.previews import digest_hints, preview_issues
from headwater.store.core.bulk import storable
from headwater.store.publishing.digests import (
    Digest,
    add_digest,
    change_digest,
    get_digest,
    get_issue,
    list_digests,
    list_issues,
    make_due,
    remove_digest,
)
from headwater.store.reading.cursors import When
from headwater.store.reading.selection import Selection
from headwater.views.digests import DigestView, IssueView, ListedIssueView, issue_json, listed_issue_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, Next, decode_number, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(tags=["digests"])

DigestName = Annotated[str, Path(pattern="^[a-z0-9-]{1,63}$", description="The digest's name.")]
IssueId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The issue's number.")]
ShortText = Annotated[str, Field(max_length=2_000)]
TargetNames = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)]


class Selects(BaseModel):
    """Which items: all conditions must hold, an empty one does not count, any value of one will do."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    source_ids: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(default=[], max_length=1_000)
    folders: list[ShortText] = Field(default=[], max_length=1_000)
    types: list[ShortText] = Field(default=[], max_length=100)
    search: Annotated[str, Field(max_length=500)] | None = None
    has: list[ShortText] = Field(default=[], max_length=20, description="With one of these results.")
    tags: list[ShortText] = Field(default=[], max_length=100, description="With one of these tags.")
    min_score: float | None = Field(default=None, allow_inf_nan=False, description="Scored this high.")

    def read(self) -> Selection:
        return Selection(
            source_ids=tuple(self.source_ids),
            folders=tuple(storable(each) or "" for each in self.folders),
            types=tuple(find_type(each).name for each in self.types),
            search=self.search or None,
            has=tuple(storable(each) or "" for each in self.has),
            tags=tuple(self.tags),
            min_score=self.min_score,
        )

    @property
    def needs_results(self) -> bool:
        return bool(self.has or self.tags or self.min_score is not None)


class NewDigest(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "morning", "schedule": "daily 07:30", "selects": {"folders": ["News"]}}
        },
    )

    name: Annotated[str, Field(max_length=63)]
    title: ShortText | None = None
    schedule: Annotated[str, Field(max_length=200)] = Field(
        description="every 6 hours, daily 07:30, weekly mon 07:30, or the five fields of cron."
    )
    zone: Annotated[str, Field(max_length=100)] = "UTC"
    selects: Selects = Field(default_factory=Selects)
    when: When | None = Field(
        default=None,
        description="Takes items as they are stored, or once they are processed; null: processed, if `selects` asks for"
        " results.",
    )
    config: JsonObject = Field(default_factory=dict, description="How it is written.")
    targets: TargetNames = Field(default=[], description="Where it is sent.")
    from_now: bool = Field(default=True, description="False: the first issue is about all that is stored.")


class DigestChanges(BaseModel):
    """What to change; what is left out stays as it is. A config's value shown as *** keeps the secret."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"schedule": "weekly mon 07:30"}}
    )

    title: ShortText | None = None
    schedule: Annotated[str, Field(max_length=200)] | None = None
    zone: Annotated[str, Field(max_length=100)] | None = None
    selects: Selects | None = None
    when: When | None = None
    config: JsonObject | None = None
    targets: TargetNames | None = None
    is_enabled: bool | None = None


class Digests(BaseModel):
    digests: list[DigestView]


class Issues(BaseModel):
    issues: list[ListedIssueView]
    next: Next


class PreviewedIssue(BaseModel):
    language: str
    title: str
    text: str
    html: str
    item_ids: list[int]
    omitted: int
    error_message: str | None


class PreviewedIssues(BaseModel):
    issues: list[PreviewedIssue] = Field(description="One for each language; none: no item matches.")
    is_sample: bool = Field(
        description="Whether there is nothing new, so that it is about the newest items that match."
    )
    hints: list[str] = Field(description="What the digest needs and no pipeline makes.")


class Sending(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"targets": ["team"]}}
    )

    targets: TargetNames = Field(default=[], description="Other targets than those of its digest.")


@router.get(
    "/digests",
    response_model=Digests,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="List digests",
)
async def list_(context: InContext) -> Json:
    """All digests, by name."""
    return {"digests": [shown_digest(digest) for digest in await context.store.read(list_digests)]}


@router.post(
    "/digests",
    status_code=201,
    response_model=DigestView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404, 409),
    summary="Add a digest",
)
async def add(context: InContext, response: Response, new: NewDigest) -> Json:
    """Gather new items on a schedule."""
    digest = Digest(
        new.name,
        new.title or new.name,
        new.schedule,
        new.zone,
        new.selects.read(),
        new.when or ("processed" if new.selects.needs_results else "stored"),
        new.config,
        tuple(new.targets),
    )
    now = context.clock()
    added = await context.store.write(add_digest, read_digest(digest, now), now, from_now=new.from_now)
    response.headers["Location"] = f"/api/digests/{added.name}"
    return shown_digest(added)


@router.get(
    "/digests/{name}",
    response_model=DigestView,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="One digest",
)
async def one(context: InContext, name: DigestName) -> Json:
    """A digest and when its next issue is due."""
    return shown_digest(await context.store.read(get_digest, name))


@router.patch(
    "/digests/{name}",
    response_model=DigestView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Change a digest",
)
async def change(context: InContext, name: DigestName, changes: DigestChanges) -> Json:
    """Change what is given."""
    return shown_digest(await context.store.write(_change, name, changes, context.clock()))


@router.delete(
    "/digests/{name}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="Remove a digest",
)
async def remove(context: InContext, name: DigestName) -> None:
    """Remove a digest with its issues."""
    await context.store.write(remove_digest, name)


@router.post(
    "/digests/{name}/make",
    status_code=202,
    response_model=DigestView,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Make an issue now",
)
async def make(context: InContext, name: DigestName) -> Json:
    """Have the next issue made at once, about what is new until now."""
    return shown_digest(await context.store.write(make_due, name, context.clock()))


@router.post(
    "/digests/{name}/preview",
    response_model=PreviewedIssues,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Preview a digest",
)
async def preview(context: InContext, name: DigestName) -> Json:
    """The next issue as it would be made now. Nothing is stored, nothing is sent."""
    async with open_digest_context(context.store, context.settings, context.clock) as digest_context:
        made = await preview_issues(context.store, digest_context, name, context.clock())
    hints = await context.store.read(
        lambda connection: digest_hints(connection, get_digest(connection, name))
    )
    return {
        "issues": [
            {field: getattr(issue, field) for field in PreviewedIssue.model_fields} for issue in made.issues
        ],
        "is_sample": made.is_sample,
        "hints": [hint.render("en") for hint in hints],
    }


@router.get(
    "/digest-issues",
    response_model=Issues,
    dependencies=[needs("read")],
    responses=problem_responses(400, 404),
    summary="List issues",
)
async def issues(
    context: InContext,
    cursor: Cursor = None,
    limit: Limit = 50,
    digest: Annotated[str | None, Query(max_length=63, description="Of this digest only.")] = None,
) -> Json:
    """Issues that were made, newest first."""
    found = await context.store.read(
        list_issues, storable(digest), before_id=decode_number(cursor), limit=limit + 1
    )
    page, following = split_page(found, limit, lambda issue: (issue.id,))
    return {"issues": [listed_issue_json(issue) for issue in page], "next": following}


@router.get(
    "/digest-issues/{issue_id}",
    response_model=IssueView,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="One issue",
)
async def one_issue(context: InContext, issue_id: IssueId) -> Json:
    """An issue as a whole."""
    return issue_json(await context.store.read(get_issue, issue_id))


@router.post(
    "/digest-issues/{issue_id}/remake",
    response_model=IssueView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Make an issue again",
)
async def remake(context: InContext, issue_id: IssueId) -> Json:
    """Make an issue again from the same items. It is not sent."""
    async with open_digest_context(context.store, context.settings, context.clock) as digest_context:
        return issue_json(await remake_issue(context.store, digest_context, issue_id, context.clock()))


@router.post(
    "/digest-issues/{issue_id}/send",
    status_code=202,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Send an issue again",
)
async def send(context: InContext, issue_id: IssueId, wanted: Sending) -> None:
    """Put an issue into the outbox again."""
    await context.store.write(send_issue, issue_id, context.clock(), wanted.targets)


def _change(connection: Connection, name: str, changes: DigestChanges, now: float) -> Digest:
    before = get_digest(connection, name)
    given: dict[str, Any] = {
        key: value
        for key, value in changes.model_dump(exclude={"selects", "config", "targets"}).items()
        if value is not None
    }
    if changes.selects is not None:
        given["selection"] = changes.selects.read()
    if changes.targets is not None:
        given["targets"] = tuple(changes.targets)
    if changes.config is not None:
        shown = show_digest_config(before)
        kept = {
            key: before.config[key] for key, value in changes.config.items() if shown.get(key, ...) == value
        }
        given["config"] = {**changes.config, **kept}
    wanted = read_digest(replace(before, **given), now)
    if {"schedule", "zone", "is_enabled"}.intersection(given):
        given["due_at"] = wanted.due_at
    return change_digest(connection, name, now, **given)
