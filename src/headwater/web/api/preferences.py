"""`/api/preferences` and `/api/saved-searches`: how you read, and the searches you keep."""

from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.errors import InputError
from headwater.model import User
from headwater.store.people.folders import get_folder
from headwater.store.people.preferences import Days, Layout, change_preferences, read_preferences
from headwater.store.people.saved_searches import (
    SavedSearch,
    add_saved_search,
    change_saved_search,
    list_saved_searches,
    remove_saved_search,
)
from headwater.store.people.subscriptions import get_subscription
from headwater.views.preferences import (
    PreferencesView,
    SavedSearchView,
    preferences_json,
    saved_search_json,
)
from headwater.views.shape import Json
from headwater.web.api.auth import InUser
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/preferences", tags=["reading"])
searches_router = APIRouter(prefix="/saved-searches", tags=["reading"])

MOST_FOLDERS = 1_000
LARGEST_NUMBER = 2**63 - 1
Number = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]
SearchId = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="The search's number.")]
Name = Annotated[str, Field(min_length=1, max_length=1_000)]


class FolderViewChanges(BaseModel):
    """What one folder does otherwise; null takes one back."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    layout: Layout | None = None
    sort: Literal["newest", "oldest"] | None = None
    unread_only: bool | None = None
    same_story_once: bool | None = None


class PreferenceChanges(BaseModel):
    """What to change; what is left out stays as it is, null takes one back to its default."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"theme": "dark", "folder_views": {"1": {"layout": "cards"}}}},
    )

    language: Literal["en", "zh"] | None = None
    theme: Literal["auto", "light", "dark"] | None = None
    density: Literal["normal", "compact", "relaxed"] | None = None
    size: Literal["normal", "small", "large"] | None = None
    layout: Layout | None = None
    sort: Literal["newest", "oldest"] | None = None
    start_view: Literal["unread", "all", "starred", "later"] | None = None
    unread_only: bool | None = None
    mark_read_on_scroll: bool | None = None
    same_story_once: bool | None = None
    single_keys: bool | None = None
    read_later_days: Days | None = None
    folder_views: dict[str, FolderViewChanges | None] = Field(
        default_factory=dict, max_length=MOST_FOLDERS, description="By the folders' numbers."
    )


class SearchFilter(BaseModel):
    """Parameters of `GET /api/entries`; those left out do not count."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    search: Annotated[str, Field(max_length=500)] | None = None
    feed_id: Number | None = None
    folder_id: Number | None = None
    is_read: bool | None = None
    is_starred: bool | None = None
    read_later: bool | None = None
    tag: Annotated[str, Field(max_length=200)] | None = None
    sort: Literal["newest", "oldest"] | None = None


class NewSavedSearch(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"name": "Bridges", "filter": {"search": "bridge", "is_read": False}}},
    )

    name: Name
    filter: SearchFilter


class SavedSearchChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Tunnels", "position": 0}}
    )

    name: Name | None = None
    filter: SearchFilter | None = None
    position: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None, description="Its place among the others; 0: first."
    )


class SavedSearches(BaseModel):
    saved_searches: list[SavedSearchView]


@router.get(
    "",
    response_model=PreferencesView,
    responses={**problem_responses(), **NOT_MODIFIED},
    summary="Show your preferences",
)
async def show(
    request: Request, context: InContext, user: InUser, if_none_match: IfNoneMatch = None
) -> Response:
    """How you read: what you chose, and defaults for the rest."""
    return answer_tagged(request, preferences_json(await context.store.read(read_preferences, user.id)))


@router.patch(
    "",
    response_model=PreferencesView,
    responses=problem_responses(400, 404),
    summary="Change your preferences",
)
async def change(context: InContext, user: InUser, wanted: PreferenceChanges) -> Json:
    """Set some preferences, of all lists or of single folders."""
    values: dict[str, Any] = wanted.model_dump(exclude_unset=True)
    views = {_folder_number(text): view for text, view in values.pop("folder_views", {}).items()}
    return preferences_json(await context.store.write(change_preferences, user.id, values, views))


def _folder_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError("{text} is not the number of a folder", text=text[:40])
    return int(text)


@searches_router.get(
    "",
    response_model=SavedSearches,
    responses={**problem_responses(), **NOT_MODIFIED},
    summary="List saved searches",
)
async def list_(
    request: Request, context: InContext, user: InUser, if_none_match: IfNoneMatch = None
) -> Response:
    """The searches that you keep, in your order."""
    found = await context.store.read(list_saved_searches, user.id)
    return answer_tagged(request, {"saved_searches": [saved_search_json(each) for each in found]})


@searches_router.post(
    "",
    status_code=201,
    response_model=SavedSearchView,
    responses=problem_responses(400, 404, 409),
    summary="Save a search",
)
async def save(context: InContext, user: InUser, wanted: NewSavedSearch) -> Json:
    """Keep the conditions of a list of entries under a name."""

    def write(connection: Connection) -> SavedSearch:
        chosen = _checked(connection, user, wanted.filter)
        return add_saved_search(connection, user.id, wanted.name, chosen, context.clock())

    return saved_search_json(await context.store.write(write))


@searches_router.patch(
    "/{search_id}",
    response_model=SavedSearchView,
    responses=problem_responses(400, 404, 409),
    summary="Change a saved search",
)
async def change_search(
    context: InContext, user: InUser, search_id: SearchId, wanted: SavedSearchChanges
) -> Json:
    """Rename a search, move it, or give it other conditions."""

    def write(connection: Connection) -> SavedSearch:
        chosen = None if wanted.filter is None else _checked(connection, user, wanted.filter)
        return change_saved_search(
            connection, user.id, search_id, name=wanted.name, wanted=chosen, position=wanted.position
        )

    return saved_search_json(await context.store.write(write))


@searches_router.delete(
    "/{search_id}", status_code=204, responses=problem_responses(404), summary="Delete a saved search"
)
async def remove(context: InContext, user: InUser, search_id: SearchId) -> None:
    """Forget a search. The entries stay."""
    await context.store.write(remove_saved_search, user.id, search_id)


def _checked(connection: Connection, user: User, wanted: SearchFilter) -> Json:
    """The conditions as they are stored, if the folder or subscription in them is the person's."""
    if wanted.feed_id is not None:
        get_subscription(connection, user.id, wanted.feed_id)
    if wanted.folder_id is not None:
        get_folder(connection, user.id, wanted.folder_id)
    return wanted.model_dump(exclude_none=True)
