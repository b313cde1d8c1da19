"""`/api/targets…`, `/api/deliveries…`: where messages are sent, and what became of them."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.formats.html import sanitize_html, text_as_html
from headwater.publish.targets import (
    MOST_BATCH_ITEMS,
    MOST_BATCH_MINUTES,
    preview_message,
    read_target,
    send_test,
    shown_target,
)
from headwater.services.targets import Kind
from headwater.store.core.bulk import storable
from headwater.store.publishing.outbox import (
    Delivery,
    Status,
    get_delivery,
    list_deliveries,
    retry_delivery,
)
from headwater.store.publishing.targets import (
    Target,
    add_target,
    change_target,
    get_target,
    list_targets,
    remove_target,
)
from headwater.store.reading.items import get_item
from headwater.views.shape import Json
from headwater.views.targets import DeliveryView, TargetView, delivery_json
from headwater.web.api.auth import needs
from headwater.web.api.json import JsonObject
from headwater.web.api.paging import Cursor, Limit, Next, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(tags=["targets"])

NAME = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
TargetName = Annotated[str, Path(pattern=NAME, description="The target's name.")]
DeliveryId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The delivery's number.")]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
BatchMinutes = Annotated[float, Field(ge=1, le=MOST_BATCH_MINUTES, allow_inf_nan=False)]
BatchItems = Annotated[int, Field(ge=1, le=MOST_BATCH_ITEMS)]


class Targets(BaseModel):
    targets: list[TargetView]


class NewTarget(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "team", "kind": "email", "config": {"recipients": ["ann@example.org"]}}
        },
    )

    name: Annotated[str, Field(max_length=100)]
    kind: Kind
    config: JsonObject = Field(
        default_factory=dict, description="As publish_content takes it, and templates."
    )
    batch_minutes: BatchMinutes | None = None
    batch_items: BatchItems = 20


class TargetChanges(BaseModel):
    """What to change; what is left out stays as it is. A config's value shown as *** keeps the secret."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"batch_minutes": 60}}
    )

    config: JsonObject | None = None
    batch_minutes: BatchMinutes | None = None
    batch_items: BatchItems | None = None


class PreviewWanted(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"item_id": 7}}
    )

    item_id: Number
    config: JsonObject | None = Field(
        default=None, description="Show it with this config, which is not saved."
    )


class MessageShown(BaseModel):
    """A message as it would be sent."""

    title: str
    text: str
    html: str = Field(description="Sanitised.")


class Deliveries(BaseModel):
    deliveries: list[DeliveryView]
    next: Next


@router.get(
    "/targets",
    response_model=Targets,
    dependencies=[needs("read")],
    responses=problem_responses(),
    summary="List targets",
)
async def list_(context: InContext) -> Json:
    """All targets, by name."""
    return {"targets": [shown_target(target) for target in await context.store.read(list_targets)]}


@router.post(
    "/targets",
    status_code=201,
    response_model=TargetView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 409),
    summary="Add a target",
)
async def add(context: InContext, response: Response, new: NewTarget) -> Json:
    """Add a webhook, a mailbox or chat services under a name."""
    target = read_target(new.name, new.kind, new.config, new.batch_minutes, new.batch_items)
    added = await context.store.write(add_target, target, context.clock())
    response.headers["Location"] = f"/api/targets/{added.name}"
    return shown_target(added)


@router.get(
    "/targets/{name}",
    response_model=TargetView,
    dependencies=[needs("read")],
    responses=problem_responses(404),
    summary="One target",
)
async def one(context: InContext, name: TargetName) -> Json:
    """A target."""
    return shown_target(await context.store.read(get_target, name))


@router.patch(
    "/targets/{name}",
    response_model=TargetView,
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Change a target",
)
async def change(context: InContext, name: TargetName, changes: TargetChanges) -> Json:
    """Change what is given."""
    return shown_target(await context.store.write(_change, name, changes, context.clock()))


@router.delete(
    "/targets/{name}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Remove a target",
)
async def remove(context: InContext, name: TargetName) -> None:
    """Remove a target and its unsent messages."""
    await context.store.write(remove_target, name)


@router.post(
    "/targets/{name}/test",
    status_code=202,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="Send a test message",
)
async def test(context: InContext, name: TargetName) -> None:
    """Put a message into the outbox that shows whether the target can be reached."""
    await context.store.write(send_test, name, None, context.clock())


@router.post(
    "/targets/{name}/preview",
    dependencies=[needs("admin")],
    responses=problem_responses(400, 404),
    summary="Preview a message",
)
async def preview(context: InContext, name: TargetName, wanted: PreviewWanted) -> MessageShown:
    """The message about an item as this target would get it. Nothing is sent."""
    target = await context.store.read(get_target, name)
    if wanted.config is not None:
        target = read_target(name, target.kind, wanted.config, before=target)
    message = await preview_message(target, await context.store.read(get_item, wanted.item_id))
    html = sanitize_html(text_as_html(message.text) if message.html is None else message.html)
    return MessageShown(title=message.title, text=message.text, html=html)


@router.get(
    "/deliveries",
    response_model=Deliveries,
    dependencies=[needs("read")],
    responses=problem_responses(400, 404),
    summary="List deliveries",
)
async def deliveries(
    context: InContext,
    cursor: Cursor = None,
    limit: Limit = 50,
    status: Annotated[Status | None, Query(description="Only those in this state.")] = None,
    target: Annotated[str | None, Query(max_length=100, description="Only those to this target.")] = None,
) -> Json:
    """What was sent, is to be sent, or could not be sent; the newest first."""
    place = decode_cursor(cursor, int)
    found = await context.store.read(
        list_deliveries,
        status=status,
        target=storable(target),
        before_id=place[0] if place else None,
        limit=limit + 1,
    )
    page, following = split_page(found, limit, lambda each: (each.id,))
    return {"deliveries": [delivery_json(each) for each in page], "next": following}


@router.post(
    "/deliveries/{delivery_id}/retry",
    response_model=DeliveryView,
    dependencies=[needs("admin")],
    responses=problem_responses(404, 409),
    summary="Send again",
)
async def retry(context: InContext, delivery_id: DeliveryId) -> Json:
    """Send a delivery again that failed, under the same idempotency key."""
    return delivery_json(await context.store.write(_retry, delivery_id, context.clock()))


def _change(connection: Connection, name: str, changes: TargetChanges, now: float) -> Target:
    before = get_target(connection, name)
    given = changes.model_fields_set
    wanted = read_target(
        name,
        before.kind,
        before.config if changes.config is None else changes.config,
        changes.batch_minutes if "batch_minutes" in given else before.batch_minutes,
        before.batch_items if changes.batch_items is None else changes.batch_items,
        before=before,
    )
    return change_target(
        connection,
        name,
        now,
        config=wanted.config,
        batch_minutes=wanted.batch_minutes,
        batch_items=wanted.batch_items,
    )


def _retry(connection: Connection, delivery_id: int, now: float) -> Delivery:
    retry_delivery(connection, delivery_id, now)
    return get_delivery(connection, delivery_id)
