"""`/api/rules` and `/api/notifications`: what happens automatically with new items of your subscriptions."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.errors import InputError
from headwater.model import User
from headwater.people.rules import read_filter, read_week, try_filter
from headwater.store.people.preferences import READ_LATER_DAYS, Days
from headwater.store.people.rules import (
    Rule,
    RuleActions,
    add_rule,
    change_rule,
    get_rule,
    list_notifications,
    list_rules,
    note_notifications_seen,
    remove_rule,
)
from headwater.store.publishing.targets import refuse_unknown_targets
from headwater.threads import showing
from headwater.views.rules import (
    NotificationView,
    RuleView,
    TrialView,
    notification_json,
    rule_json,
    trial_json,
)
from headwater.views.shape import Json
from headwater.web.api.auth import InUser
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, Next, answer_page, decode_number
from headwater.web.api.problems import problem_responses
from headwater.web.context import Context, InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/rules", tags=["reading"])
notifications_router = APIRouter(prefix="/notifications", tags=["reading"])

LARGEST_NUMBER = 2**63 - 1
MOST_SOURCES = 1_000
Number = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]
RuleId = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The rule's number.")]
Name = Annotated[str, Field(min_length=1, max_length=1_000)]
SourceIds = Annotated[
    list[Number], Field(max_length=MOST_SOURCES, description="Of these sources only; empty: of all.")
]
EXAMPLE: dict[str, Any] = {"include_keywords": ["bridge"], "languages": ["en"]}


class GivenActions(BaseModel):
    """What a rule is to do with an item."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    mute: bool = Field(default=False, description="It counts as read from the start.")
    star: bool = False
    read_later: bool = False
    read_later_days: Days = READ_LATER_DAYS
    tags: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=list, max_length=20
    )
    notify: bool = Field(default=False, description="It is listed under `GET /api/notifications`.")
    target: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="A target to tell; for admins only."
    )


class NewRule(BaseModel):
    """A rule for new items. All conditions of its filter must hold."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "Bridges", "filter": EXAMPLE, "actions": {"star": True, "tags": ["bridges"]}}
        },
    )

    name: Name
    filter: JsonObject = Field(description="A config of the step `filter_content`.")
    source_ids: SourceIds = []
    actions: GivenActions
    is_active: bool = True


class RuleChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"is_active": False}}
    )

    name: Name | None = None
    filter: JsonObject | None = None
    source_ids: SourceIds | None = None
    actions: GivenActions | None = None
    is_active: bool | None = None


class TriedRule(BaseModel):
    """A filter to try on the last week."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"filter": EXAMPLE}}
    )

    filter: JsonObject
    source_ids: SourceIds = []


class Rules(BaseModel):
    rules: list[RuleView]


class NotificationPage(BaseModel):
    notifications: list[NotificationView]
    next: Next


class SeenUpTo(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"up_to_id": 7}}
    )

    up_to_id: Number


class Seen(BaseModel):
    marked: int = Field(description="How many had not been seen before.")


@router.get(
    "", response_model=Rules, responses={**problem_responses(), **NOT_MODIFIED}, summary="List your rules"
)
async def list_(
    request: Request, context: InContext, user: InUser, if_none_match: IfNoneMatch = None
) -> Response:
    """Your rules, the oldest first. All that match an item act on it."""
    found = await context.store.read(list_rules, user.id)
    return answer_tagged(request, {"rules": [rule_json(rule) for rule in found]})


@router.post(
    "",
    status_code=201,
    response_model=RuleView,
    responses=problem_responses(400, 404, 409),
    summary="Make a rule",
)
async def make(context: InContext, user: InUser, wanted: NewRule) -> Json:
    """Make a rule for items that arrive from now on."""
    rule = Rule(
        0,
        user.id,
        wanted.name,
        read_filter(wanted.filter),
        tuple(wanted.source_ids),
        await read_actions(context, user, wanted.actions.model_dump()),
        wanted.is_active,
    )
    return rule_json(await context.store.write(add_rule, rule, context.clock()))


@router.post("/try", response_model=TrialView, responses=problem_responses(400, 404), summary="Try a rule")
async def try_(context: InContext, user: InUser, wanted: TriedRule) -> Json:
    """How many of your entries of the last week a filter would have matched, and which. Changes nothing."""
    filter_ = read_filter(wanted.filter)
    week, is_cut = await context.store.read(read_week, user.id, wanted.source_ids, context.clock())
    return trial_json(await showing.run(try_filter, filter_, week, is_cut=is_cut))


@router.get(
    "/{rule_id}",
    response_model=RuleView,
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One rule",
)
async def one(
    request: Request, context: InContext, user: InUser, rule_id: RuleId, if_none_match: IfNoneMatch = None
) -> Response:
    """A rule of yours."""
    return answer_tagged(request, rule_json(await context.store.read(get_rule, user.id, rule_id)))


@router.patch(
    "/{rule_id}",
    response_model=RuleView,
    responses=problem_responses(400, 404, 409),
    summary="Change a rule",
)
async def change(context: InContext, user: InUser, rule_id: RuleId, wanted: RuleChanges) -> Json:
    """Change a rule, for items that arrive from now on."""
    values: dict[str, Any] = {}
    if wanted.filter is not None:
        values["filter"] = read_filter(wanted.filter)
    if wanted.source_ids is not None:
        values["source_ids"] = tuple(wanted.source_ids)
    if wanted.actions is not None:
        values["actions"] = await read_actions(context, user, wanted.actions.model_dump())
    if wanted.name is not None:
        values["name"] = wanted.name
    if wanted.is_active is not None:
        values["is_active"] = wanted.is_active
    before = await context.store.read(get_rule, user.id, rule_id)
    return rule_json(await context.store.write(change_rule, replace(before, **values)))


@router.delete("/{rule_id}", status_code=204, responses=problem_responses(404), summary="Delete a rule")
async def remove(context: InContext, user: InUser, rule_id: RuleId) -> None:
    """Delete a rule. What it did stays."""
    await context.store.write(remove_rule, user.id, rule_id)


async def read_actions(context: Context, user: User, given: dict[str, Any]) -> RuleActions:
    """What a rule is to do, if its owner may have it done."""
    actions = RuleActions(**given | {"tags": tuple(given["tags"])})
    if actions.target is not None:
        if not user.is_admin:
            raise InputError("only an admin's rules can send to a target; choose notify")
        await context.store.read(refuse_unknown_targets, [actions.target])
    return actions


@notifications_router.get(
    "",
    response_model=NotificationPage,
    responses={**problem_responses(400), **NOT_MODIFIED},
    summary="List notifications",
)
async def list_told(
    request: Request,
    context: InContext,
    user: InUser,
    limit: Limit = 50,
    cursor: Cursor = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """What your rules told you, the newest first."""
    found = await context.store.read(
        list_notifications, user.id, before_id=decode_number(cursor), limit=limit
    )
    return answer_page(request, "notifications", found, limit, lambda each: (each.id,), notification_json)


@notifications_router.post("/seen", responses=problem_responses(), summary="Mark notifications as seen")
async def mark_seen(context: InContext, user: InUser, wanted: SeenUpTo) -> Seen:
    """Mark what your rules told you as seen, up to a number."""
    marked = await context.store.write(note_notifications_seen, user.id, wanted.up_to_id, context.clock())
    return Seen(marked=marked)
