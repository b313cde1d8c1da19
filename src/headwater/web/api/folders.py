"""`/api/subscriptions…` and `/api/folders…`: what you subscribe to, and in which order."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.collect.context import read_visit_context
from headwater.fetch.client import make_fetcher
from headwater.model import User
from headwater.sources.subscribing import subscribe_to_address
from headwater.store.people.folders import (
    Folder,
    add_folder,
    change_folder,
    get_folder,
    list_folders,
    move_folder,
    remove_folder,
)
from headwater.store.people.reading import unread_counts
from headwater.store.people.subscriptions import (
    change_subscription,
    get_subscription,
    list_subscriptions,
    unsubscribe,
)
from headwater.views.reading import FolderView, SubscriptionView, folders_json, subscription_json
from headwater.views.shape import Json
from headwater.web.api.auth import InUser
from headwater.web.api.feeds import SubscriptionId
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

subscriptions_router = APIRouter(prefix="/subscriptions", tags=["reading"])
folders_router = APIRouter(prefix="/folders", tags=["reading"])

FolderId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The folder's number.")]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Position = Annotated[int, Field(ge=0, le=1_000_000)]
ShortText = Annotated[str, Field(max_length=1_000)]


class Subscriptions(BaseModel):
    subscriptions: list[SubscriptionView]


class Folders(BaseModel):
    folders: list[FolderView]


class NewSubscription(BaseModel):
    """What to subscribe to."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"url": "https://example.org/", "folder_id": 1}}
    )

    url: Annotated[str, Field(max_length=2_000)] = Field(
        description="The address of a feed, or of a page that names one."
    )
    title: ShortText | None = Field(default=None, description="Your title; null: the source's name.")
    folder_id: Number | None = None


class SubscriptionChanges(BaseModel):
    """What to change; what is left out stays as it is. null clears a title or a folder."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"title": "Another title", "folder_id": None}}
    )

    title: ShortText | None = None
    folder_id: Number | None = None
    position: Position = 0
    is_muted: bool = False


class NewFolder(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "News", "parent_id": None}}
    )

    name: Annotated[str, Field(max_length=1_000)]
    parent_id: Number | None = Field(default=None, description="The folder that it is in; null: none.")


class FolderChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "World", "position": 0}}
    )

    name: Annotated[str, Field(max_length=1_000)] | None = None
    parent_id: Number | None = Field(default=None, description="The folder to move it into; null: the top.")
    position: Position | None = Field(
        default=None, description="Its place among the folders beside it; 0: first."
    )


@subscriptions_router.get(
    "",
    response_model=Subscriptions,
    responses={**problem_responses(), **NOT_MODIFIED},
    summary="List subscriptions",
)
async def list_(
    request: Request, context: InContext, user: InUser, if_none_match: IfNoneMatch = None
) -> Response:
    """Everything that you subscribe to, with how much of it is unread."""
    found = await context.store.read(list_subscriptions, user.id)
    return answer_tagged(request, {"subscriptions": [subscription_json(each) for each in found]})


@subscriptions_router.post(
    "",
    status_code=201,
    response_model=SubscriptionView,
    responses={**problem_responses(400, 404, 409), 200: {"description": "You subscribed to it before."}},
    summary="Subscribe",
)
async def subscribe_(context: InContext, user: InUser, wanted: NewSubscription, response: Response) -> Json:
    """Subscribe to a feed. A feed without subscribers is visited now: if that fails, nothing is stored."""
    if wanted.folder_id is not None:
        await context.store.read(get_folder, user.id, wanted.folder_id)
    async with make_fetcher(context.settings) as fetcher:
        visit = await read_visit_context(context.store, context.settings, fetcher, clock=context.clock)
        done = await subscribe_to_address(
            user, wanted.url, visit, title=wanted.title, folder_id=wanted.folder_id
        )
    if not done.is_new:
        response.status_code = 200
    return subscription_json(done.subscription)


@subscriptions_router.get(
    "/{subscription_id}",
    response_model=SubscriptionView,
    responses=problem_responses(404),
    summary="One subscription",
)
async def one(context: InContext, user: InUser, subscription_id: SubscriptionId) -> Json:
    """A subscription, with how much of it is unread."""
    return subscription_json(await context.store.read(get_subscription, user.id, subscription_id))


@subscriptions_router.patch(
    "/{subscription_id}",
    response_model=SubscriptionView,
    responses=problem_responses(400, 404),
    summary="Change a subscription",
)
async def change(
    context: InContext, user: InUser, subscription_id: SubscriptionId, changes: SubscriptionChanges
) -> Json:
    """Change its title, folder or place, or mute it."""
    values: dict[str, Any] = changes.model_dump(include=changes.model_fields_set)
    return subscription_json(
        await context.store.write(change_subscription, user.id, subscription_id, **values)
    )


@subscriptions_router.delete(
    "/{subscription_id}",
    status_code=204,
    responses=problem_responses(404),
    summary="Unsubscribe",
)
async def remove(context: InContext, user: InUser, subscription_id: SubscriptionId) -> None:
    """End a subscription. What you starred, tagged or bookmarked stays."""
    await context.store.write(unsubscribe, user.id, subscription_id)


def _folders(connection: Connection, user: User) -> list[Json]:
    unread: dict[int, int] = {}
    for each in unread_counts(connection, user.id):
        if each.folder_id is not None and not each.is_muted:
            unread[each.folder_id] = unread.get(each.folder_id, 0) + each.count
    return folders_json(list_folders(connection, user.id), unread)


def _folder(connection: Connection, user: User, folder_id: int) -> Json:
    get_folder(connection, user.id, folder_id)
    return next(each for each in _folders(connection, user) if each["id"] == folder_id)


@folders_router.get("", response_model=Folders, responses=problem_responses(), summary="List folders")
async def list_all_folders(context: InContext, user: InUser) -> Json:
    """Your folders in the order of the tree: each after the folder that it is in."""
    return {"folders": await context.store.read(_folders, user)}


@folders_router.post(
    "",
    status_code=201,
    response_model=FolderView,
    responses=problem_responses(400, 404, 409),
    summary="Make a folder",
)
async def make(context: InContext, user: InUser, wanted: NewFolder) -> Json:
    """Make a folder, last among those beside it."""

    def write(connection: Connection) -> Json:
        made: Folder = add_folder(connection, user.id, wanted.name, wanted.parent_id)
        return _folder(connection, user, made.id)

    return await context.store.write(write)


@folders_router.patch(
    "/{folder_id}",
    response_model=FolderView,
    responses=problem_responses(400, 404, 409),
    summary="Change a folder",
)
async def change_one_folder(
    context: InContext, user: InUser, folder_id: FolderId, changes: FolderChanges
) -> Json:
    """Rename a folder, move it into another one, or give it another place."""

    def write(connection: Connection) -> Json:
        if "parent_id" in changes.model_fields_set:
            move_folder(connection, user.id, folder_id, changes.parent_id)
        change_folder(connection, user.id, folder_id, name=changes.name, position=changes.position)
        return _folder(connection, user, folder_id)

    return await context.store.write(write)


@folders_router.delete(
    "/{folder_id}",
    status_code=204,
    responses=problem_responses(404),
    summary="Delete a folder",
)
async def remove_one_folder(context: InContext, user: InUser, folder_id: FolderId) -> None:
    """Delete a folder and the folders in it. What you subscribe to in them stays, in no folder."""
    await context.store.write(remove_folder, user.id, folder_id)
