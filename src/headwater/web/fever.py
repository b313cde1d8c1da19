"""The Fever API, as reader apps speak it: one address, everything in its parameters.

Numbers are those of items, subscriptions and folders. A folder's feeds include those of the folders in it.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from sqlalchemy import Connection

from headwater.model import User
from headwater.publish.bodies import text_of_item
from headwater.store.people.app_passwords import (
    find_app_password_by_fever_key,
    find_user_by_fever_key,
    is_app_password_use_worth_noting,
    note_app_password_use,
)
from headwater.store.people.entries import (
    Entry,
    EntryFilter,
    Place,
    count_stored,
    list_ids_between,
    list_places,
    read_entries,
)
from headwater.store.people.marks import set_starred
from headwater.store.people.reading import mark_all_read, mark_read
from headwater.store.people.stories import mark_read_together
from headwater.store.people.subscriptions import Subscription
from headwater.threads import lane_for
from headwater.web.context import Context, InContext
from headwater.web.google_reader.names import read_seconds
from headwater.web.google_reader.selecting import (
    Parameters,
    Shelf,
    loose_label,
    needs_folders,
    read_shelf,
)
from headwater.web.google_reader.shapes import length_of

API_VERSION = 3
ITEMS = 50  # in one answer, as the protocol has it
AT_ONCE = 5  # items in memory, and in a thread that cleans their texts
MOST_IDS = 200_000
LOOSE_GROUP = 2**31 - 1  # of what is in no folder, for apps that need one
Json = dict[str, Any]

router = APIRouter(include_in_schema=False)


@router.api_route("/fever", methods=["GET", "POST"])
@router.api_route("/fever/", methods=["GET", "POST"])
@router.api_route("/api/fever.php", methods=["GET", "POST"])
@router.api_route("/api/fever.php/", methods=["GET", "POST"])
async def fever(request: Request, context: InContext) -> Response:
    """Answer what the parameters ask for, to an app that knows the key of an app password."""
    parameters = await Parameters.read(request)
    key = parameters.first("api_key") or ""
    user = await _find_user(context, key) if 0 < len(key) <= 100 else None
    found: Json = {"api_version": API_VERSION, "auth": int(user is not None)}
    if user is not None:
        if parameters.first("mark") is not None or parameters.first("unread_recently_read") is not None:
            await context.store.write(_mark, user, parameters, context.clock())
        loose = loose_label(user) if needs_folders(request) else None
        found |= await context.store.read(_answer, user, parameters, loose)
        if parameters.first("items") is not None:
            numbers, found["total_items"] = await context.store.read(_chosen, user, parameters)
            found["items"] = []
            for start in range(0, len(numbers), AT_ONCE):
                found["items"] += await _read(context, user, numbers[start : start + AT_ONCE])
    return Response(orjson.dumps(found), media_type="application/json")


async def _find_user(context: Context, key: str) -> User | None:
    """The user whose app password makes this key, with its use noted."""
    user = await context.store.read(find_user_by_fever_key, key)
    if user is not None:
        known = await context.store.read(find_app_password_by_fever_key, key)
        now = context.clock()
        if known is not None and is_app_password_use_worth_noting(known, now):
            await context.store.write(note_app_password_use, known.id, now)
    return user


def _answer(connection: Connection, user: User, parameters: Parameters, loose: str | None) -> Json:
    shelf = read_shelf(connection, user.id)
    times = [each.last_fetched_at for each in shelf.feeds if each.last_fetched_at is not None]
    found: Json = {"last_refreshed_on_time": str(int(max(times, default=0)))}

    def asks_for(name: str) -> bool:
        return parameters.first(name) is not None

    if asks_for("groups"):
        found["groups"] = [{"id": number, "title": _title(shelf, number)} for number in shelf.paths]
        if loose is not None and shelf.loose:
            found["groups"].append({"id": LOOSE_GROUP, "title": loose})
    if asks_for("feeds"):
        found["feeds"] = [_feed(each) for each in shelf.feeds]
    if asks_for("groups") or asks_for("feeds"):
        found["feeds_groups"] = _feeds_groups(shelf, with_loose=loose is not None)
    if asks_for("favicons"):
        found["favicons"] = []
    if asks_for("unread_item_ids") or asks_for("mark"):
        unread = list_places(connection, user.id, EntryFilter(is_read=False), limit=MOST_IDS)
        found["unread_item_ids"] = _joined(unread)
    if asks_for("saved_item_ids") or asks_for("mark"):
        saved = list_places(connection, user.id, EntryFilter(is_starred=True), limit=MOST_IDS)
        found["saved_item_ids"] = _joined(saved)
    if asks_for("links"):
        found["links"] = []
    return found


def _title(shelf: Shelf, folder_id: int) -> str:
    return " / ".join(shelf.paths[folder_id])


def _joined(places: Sequence[Place]) -> str:
    """Rising, since Readrops takes the last number for the newest."""
    return ",".join(map(str, sorted(place.id for place in places)))


def _feeds_groups(shelf: Shelf, *, with_loose: bool) -> list[Json]:
    """The feeds of each group that has any: Readrops ends with an error at an empty list."""
    inside = {
        number: [each for each in shelf.feeds if each.folder_id in shelf.inside[number]]
        for number in shelf.paths
    }
    if with_loose:
        inside[LOOSE_GROUP] = shelf.loose
    return [
        {"group_id": number, "feed_ids": ",".join(str(each.id) for each in feeds)}
        for number, feeds in inside.items()
        if feeds
    ]


def _feed(feed: Subscription) -> Json:
    return {
        "id": feed.id,
        "favicon_id": 0,
        "title": feed.title,
        "url": feed.url,
        "site_url": feed.site_url or feed.url,
        "is_spark": 0,
        "last_updated_on_time": int(feed.last_fetched_at or 0),
    }


async def _read(context: Context, user: User, numbers: Sequence[int]) -> list[Json]:
    """Items as they are shown; cleaning their texts is done off the event loop."""
    entries = await context.store.read(read_entries, user.id, numbers)
    return await lane_for(sum(map(length_of, entries))).run(lambda: [_item(entry) for entry in entries])


def _chosen(connection: Connection, user: User, parameters: Parameters) -> tuple[list[int], int]:
    """The numbers of the items that are asked for, and how many there are in all."""
    shelf = read_shelf(connection, user.id)
    since, until = parameters.first("since_id"), parameters.first("max_id")
    named = parameters.first("with_ids")
    if named:
        numbers = [number for each in named.split(",")[:ITEMS] if (number := _number(each)) is not None]
    else:
        after = 0 if since == "" else _number(since)  # empty the first time that Read You asks
        before = _number(until) or None
        numbers = list_ids_between(
            connection,
            user.id,
            [each.source_id for each in shelf.feeds],
            after=after,
            before=before,
            limit=ITEMS,
        )
    return numbers, count_stored(connection, [each.source_id for each in shelf.feeds])


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _item(entry: Entry) -> Json:
    item = entry.item
    return {
        "id": item.id,
        "feed_id": entry.subscription_id or 0,
        "title": item.title or item.url or entry.feed_title,  # Readrops ends with an error at an empty one
        "author": item.author or "",
        "html": text_of_item(item)[0],
        "url": item.url or "",
        "is_saved": int(entry.state.starred_at is not None),
        "is_read": int(entry.state.is_read),
        "created_on_time": int(item.item_at),
    }


def _mark(connection: Connection, user: User, parameters: Parameters, now: float) -> None:
    what, how = parameters.first("mark"), parameters.first("as")
    text = (parameters.first("id") or "").strip()
    number = -1 if text == "-1" else _number(text)
    if number is None:
        return
    if what == "item":
        if how == "read":
            mark_read_together(connection, user.id, [number])
        elif how == "unread":
            mark_read(connection, user.id, [number], False)
        elif how in ("saved", "unsaved"):
            set_starred(connection, user.id, [number], how == "saved", now)
    elif what in ("feed", "group") and how == "read":
        chosen = _sources_of(read_shelf(connection, user.id), what, number)
        mark_all_read(connection, user.id, chosen, until=read_seconds(parameters.first("before")))


def _sources_of(shelf: Shelf, what: str, number: int) -> Sequence[int]:
    """The sources of a feed or a group; group 0 is everything, as the protocol has it."""
    if what == "feed":
        return [each.source_id for each in shelf.feeds if each.id == number]
    if number in (0, -1):
        return [each.source_id for each in shelf.feeds]
    if number == LOOSE_GROUP:
        return [each.source_id for each in shelf.loose]
    inside = shelf.inside.get(number, frozenset())
    return [each.source_id for each in shelf.feeds if each.folder_id in inside]
