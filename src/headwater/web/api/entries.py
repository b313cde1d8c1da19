"""`/api/entries…`: what you read: listed, marked as read, starred, tagged, put aside for later."""

from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headwater.errors import InputError, NotFoundError
from headwater.markup import LONGEST_TEXT
from headwater.model import User
from headwater.store.people.entries import (
    Entry,
    EntryFilter,
    Place,
    Sort,
    get_entry,
    list_places,
    read_entries,
)
from headwater.store.people.folders import get_folder, list_folders, with_subfolders
from headwater.store.people.marks import (
    add_tags,
    delete_tag,
    list_tags,
    remove_tags,
    rename_tag,
    set_read_later,
    set_starred,
)
from headwater.store.people.preferences import known_preferences
from headwater.store.people.reading import mark_all_read, mark_read
from headwater.store.people.stories import mark_read_together
from headwater.store.people.story_copies import show_once, with_copies
from headwater.store.people.subscriptions import get_subscription, list_subscriptions
from headwater.store.reading.page_sizes import count_fitting
from headwater.store.reading.search import index_new_items
from headwater.views.reading import EntryView, TagView, WholeEntryView, entry_json, whole_entry_json
from headwater.views.shape import Json
from headwater.web.api.auth import InUser
from headwater.web.api.items import INDEXED_AT_ONCE
from headwater.web.api.paging import Cursor, Limit, Next, decode_cursor, split_page
from headwater.web.api.problems import problem_responses
from headwater.web.api.times import Since, Until, seconds_of
from headwater.web.context import InContext
from headwater.web.etags import NOT_MODIFIED, IfNoneMatch, answer_tagged

router = APIRouter(prefix="/entries", tags=["reading"])
tags_router = APIRouter(prefix="/tags", tags=["reading"])

MOST_AT_ONCE = 1_000
LISTED_TEXT = 1_000  # characters of a text that the excerpt is made from
EntryId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The entry's number.")]
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
TagName = Annotated[str, Field(min_length=1, max_length=200)]
Days = Literal[1, 7, 30]


class EntryPage(BaseModel):
    entries: list[EntryView]
    next: Next


class WholeEntryPage(BaseModel):
    entries: list[WholeEntryView]
    next: Next


class EntryChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"is_read": True, "is_starred": True}}
    )

    is_read: bool | None = None
    is_starred: bool | None = None
    read_later: bool | None = None
    read_later_days: Days | Literal["never"] | None = Field(
        default=None, description="When it leaves the list; null: as your preferences say, else 7 days."
    )
    tags: list[TagName] | None = Field(
        default=None, max_length=100, description="All tags that it is to have."
    )


class BulkEntryChanges(EntryChanges):
    """The same changes to many entries."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"entry_ids": [1, 2], "is_read": True}}
    )

    entry_ids: list[Number] = Field(min_length=1, max_length=MOST_AT_ONCE)


class Changed(BaseModel):
    entry_ids: list[int] = Field(
        description="The entries that were changed, with copies of their stories; those not yours are left out."
    )


class MarkAllRead(BaseModel):
    """What to mark as read: a subscription, a folder with the folders in it, or everything.

    With `up_to_entry_id` or `before`, what arrived later stays unread.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"folder_id": 1, "up_to_entry_id": 7}}
    )

    feed_id: Number | None = None
    folder_id: Number | None = None
    up_to_entry_id: Number | None = Field(
        default=None, description="The newest entry that you saw: what was found after it stays unread."
    )
    before: float | None = Field(
        default=None, description="Seconds since 1970: what was found after this time stays unread."
    )


class Marked(BaseModel):
    marked: int = Field(description="How many entries were unread before.")


class Tags(BaseModel):
    tags: list[TagView]


class TagChanges(BaseModel):
    """A tag, and what to call it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "later", "new_name": "soon"}}
    )

    name: TagName
    new_name: TagName


@router.get(
    "",
    response_model=EntryPage | WholeEntryPage,
    responses={**problem_responses(400, 404), **NOT_MODIFIED},
    summary="List entries",
)
async def list_(
    request: Request,
    context: InContext,
    user: InUser,
    limit: Limit = 50,
    cursor: Cursor = None,
    feed_id: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Of this subscription.")] = None,
    folder_id: Annotated[
        int | None, Query(ge=1, le=2**63 - 1, description="Of this folder and the folders in it.")
    ] = None,
    is_read: Annotated[bool | None, Query(description="Read ones only, or unread ones only.")] = None,
    is_starred: Annotated[bool | None, Query(description="Starred ones only, or the others.")] = None,
    read_later: Annotated[
        bool | None, Query(description="Those put aside for later only, or the others.")
    ] = None,
    tag: Annotated[str | None, Query(max_length=200, description="With this tag.")] = None,
    search: Annotated[str | None, Query(max_length=500, description="With these words.")] = None,
    sort: Annotated[Sort, Query(description="By time.")] = "newest",
    since: Since = None,
    until: Until = None,
    full: Annotated[bool, Query(description="With their texts.")] = False,
    once: Annotated[
        bool, Query(description="Show a story once that several sources tell, where preferences say so.")
    ] = True,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Your entries by time. Conditions must all hold. `since` and `until` are about when a visit found the entry.

    A story that several sources tell stands once, with `also_in`; a page may then hold fewer than `limit`.
    """
    store = context.store
    search = (search or "").strip() or None
    if search:
        await index_new_items(store, context.clock(), INDEXED_AT_ONCE)
    after = decode_cursor(cursor, float, int)

    def read(connection: Connection) -> tuple[list[Place], list[Entry], int]:
        wanted = EntryFilter(
            source_ids=chosen_sources(connection, user, feed_id, folder_id),
            is_read=is_read,
            is_starred=is_starred,
            read_later=read_later,
            tag=tag,
            search=search,
            since=seconds_of(since),
            until=seconds_of(until),
        )
        places = list_places(
            connection,
            user.id,
            wanted,
            sort=sort,
            after=None if after is None else (after[0], after[1]),
            limit=limit,
        )
        room = count_fitting(connection, [place.id for place in places[:limit]]) if full else limit
        shown = places[: min(room, limit)]
        if once:
            shown = show_once(connection, user.id, shown, wanted, sort)
        length = LONGEST_TEXT if full else LISTED_TEXT
        entries = read_entries(connection, user.id, [place.id for place in shown], longest_text=length)
        return places, with_copies(connection, user.id, entries), room

    places, found, room = await store.read(read)
    _, following = split_page(places, room, lambda place: (place.item_at, place.id))
    show = whole_entry_json if full else entry_json
    return answer_tagged(request, {"entries": [show(entry) for entry in found], "next": following})


def chosen_sources(
    connection: Connection, user: User, feed_id: int | None, folder_id: int | None
) -> tuple[int, ...] | None:
    """The sources of a subscription or a folder; None: of all subscriptions that are not muted."""
    if feed_id is not None:
        return (get_subscription(connection, user.id, feed_id).source_id,)
    if folder_id is None:
        return None
    get_folder(connection, user.id, folder_id)
    inside = with_subfolders(list_folders(connection, user.id), folder_id)
    return tuple(
        each.source_id
        for each in list_subscriptions(connection, user.id)
        if each.folder_id in inside and not each.is_muted
    )


@router.post(
    "/mark-all-read",
    responses=problem_responses(404),
    summary="Mark all as read",
)
async def mark_all(context: InContext, user: InUser, wanted: MarkAllRead) -> Marked:
    """Mark a subscription, a folder or everything as read."""
    return Marked(marked=await context.store.write(_mark_all, user, wanted))


def _mark_all(connection: Connection, user: User, wanted: MarkAllRead) -> int:
    until = wanted.before
    if wanted.up_to_entry_id is not None:
        seen = get_entry(connection, user.id, wanted.up_to_entry_id).item.first_seen_at
        until = seen if until is None else min(seen, until)
    chosen = chosen_sources(connection, user, wanted.feed_id, wanted.folder_id)
    if chosen is None:
        chosen = tuple(each.source_id for each in list_subscriptions(connection, user.id))
    return mark_all_read(connection, user.id, chosen, until=until)


@router.patch(
    "",
    responses=problem_responses(400),
    summary="Change many entries",
)
async def change_many(context: InContext, user: InUser, changes: BulkEntryChanges) -> Changed:
    """Give many entries the same state."""
    done = await context.store.write(_change, user, changes.entry_ids, changes, context.clock())
    return Changed(entry_ids=sorted(done))


@router.get(
    "/{entry_id}",
    response_model=WholeEntryView,
    responses={**problem_responses(404), **NOT_MODIFIED},
    summary="One entry",
)
async def one(
    request: Request, context: InContext, user: InUser, entry_id: EntryId, if_none_match: IfNoneMatch = None
) -> Response:
    """An entry with its text."""
    return answer_tagged(request, whole_entry_json(await context.store.read(_one, user, entry_id)))


def _one(connection: Connection, user: User, entry_id: int) -> Entry:
    return with_copies(connection, user.id, [get_entry(connection, user.id, entry_id)])[0]


@router.patch(
    "/{entry_id}",
    response_model=WholeEntryView,
    responses=problem_responses(400, 404),
    summary="Change an entry",
)
async def change(context: InContext, user: InUser, entry_id: EntryId, changes: EntryChanges) -> Json:
    """Mark an entry as read or unread, star it, put it aside for later, tag it."""

    def write(connection: Connection) -> Entry:
        get_entry(connection, user.id, entry_id)
        _change(connection, user, [entry_id], changes, context.clock())
        return _one(connection, user, entry_id)

    return whole_entry_json(await context.store.write(write))


def _change(
    connection: Connection, user: User, entry_ids: list[int], changes: EntryChanges, now: float
) -> set[int]:
    done: set[int] = set()
    if changes.is_starred is not None:
        done |= set_starred(connection, user.id, entry_ids, changes.is_starred, now)
    if changes.read_later is not None:
        days = later_days(user) if changes.read_later_days is None else changes.read_later_days
        done |= set_read_later(
            connection,
            user.id,
            entry_ids,
            None if days == "never" else float(days),
            now,
            is_later=changes.read_later,
        )
    elif changes.read_later_days is not None:
        raise InputError("read_later_days goes with read_later: true")
    if changes.tags is not None:
        for entry in read_entries(connection, user.id, entry_ids, longest_text=1):
            remove_tags(connection, user.id, [entry.item.id], set(entry.state.tags) - set(changes.tags))
        done |= add_tags(connection, user.id, entry_ids, changes.tags, now)
    if changes.is_read:
        done |= mark_read_together(connection, user.id, entry_ids)
    elif changes.is_read is not None:
        done |= mark_read(connection, user.id, entry_ids, False)
    return done


def later_days(user: User) -> float | Literal["never"]:
    """How long a person's list of what to read later keeps an entry."""
    days = known_preferences(user.preferences).read_later_days
    return "never" if days == "never" else float(days)


@tags_router.get("", response_model=Tags, responses=problem_responses(), summary="List tags")
async def tags(context: InContext, user: InUser) -> Json:
    """Your tags, with how many entries each is on."""
    found = await context.store.read(list_tags, user.id)
    return {"tags": [{"name": name, "count": count} for name, count in found]}


@tags_router.patch(
    "",
    response_model=Tags,
    responses=problem_responses(400, 404),
    summary="Rename a tag",
)
async def rename(context: InContext, user: InUser, changes: TagChanges) -> Json:
    """Rename a tag; if there is one of the new name, it takes the entries over."""

    def write(connection: Connection) -> list[tuple[str, int]]:
        _refuse_unknown(connection, user, changes.name)
        rename_tag(connection, user.id, changes.name, changes.new_name)
        return list_tags(connection, user.id)

    found = await context.store.write(write)
    return {"tags": [{"name": name, "count": count} for name, count in found]}


@tags_router.delete(
    "",
    status_code=204,
    responses=problem_responses(404),
    summary="Delete a tag",
)
async def remove_tag(
    context: InContext, user: InUser, name: Annotated[str, Query(max_length=200, description="The tag.")]
) -> None:
    """Take a tag off all entries."""

    def write(connection: Connection) -> None:
        _refuse_unknown(connection, user, name)
        delete_tag(connection, user.id, name)

    await context.store.write(write)


def _refuse_unknown(connection: Connection, user: User, tag: str) -> None:
    if tag not in dict(list_tags(connection, user.id)):
        raise NotFoundError("there is no tag {name}", name=tag[:100])
