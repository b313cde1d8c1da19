"""The calls of the Google Reader API. Each is answered with the rights of the app password that it brings."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, unquote, unquote_plus

import orjson
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from sqlalchemy import Connection

from headwater.collect.context import read_visit_context
from headwater.errors import HeadwaterError, InputError, NotFoundError
from headwater.fetch.client import make_fetcher
from headwater.model import FOLDER_SEPARATOR, User
from headwater.sources.importing.documents import read_opml_list
from headwater.sources.subscribing import Subscribed, export_for, import_for, subscribe_to_address
from headwater.store.people.app_passwords import (
    find_app_password,
    find_user_by_app_password,
    is_app_password_use_worth_noting,
    note_app_password_use,
)
from headwater.store.people.entries import Entry, count_entries, read_entries
from headwater.store.people.folders import change_folder, make_folder_path, move_folder, remove_folder
from headwater.store.people.marks import add_tags, delete_tag, remove_tags, rename_tag, set_starred
from headwater.store.people.reading import mark_all_read, mark_read, unread_counts
from headwater.store.people.stories import mark_read_together
from headwater.store.people.subscriptions import change_subscription, unsubscribe
from headwater.store.reading.page_sizes import count_fitting
from headwater.threads import lane_for
from headwater.web.api.subscriptions import OPML
from headwater.web.context import Context, InContext
from headwater.web.google_reader.names import LABEL, Stream, read_item_id, read_seconds, read_stream
from headwater.web.google_reader.selecting import (
    MOST_PLACES,
    Parameters,
    Shelf,
    continue_after,
    filter_of,
    find_places,
    is_loose_label,
    loose_label,
    needs_folders,
    read_shelf,
)
from headwater.web.google_reader.shapes import (
    ATOM_END,
    Json,
    atom_entry,
    atom_head,
    counts_json,
    item_json,
    length_of,
    micros,
    subscription_json,
    tags_json,
)

PREFIXES = ("", "/api/greader.php")  # the second is where FreshRSS has it, and clients of FreshRSS look
LONGEST_AUTH = 500
USUAL_ITEMS = 20
MOST_ITEMS = 1_000  # whole ones in one answer
MOST_NAMED_ITEMS = 10_000
AT_ONCE = 5  # items in memory, and in a thread that cleans their texts
BAD_TOKEN = {"Google-Bad-Token": "true", "X-Reader-Google-Bad-Token": "true"}

_AUTH_FIELD = re.compile(rb"(?:\A|&)T=([^&]{0,%d})(?=&|\Z)" % (3 * LONGEST_AUTH))
router = APIRouter(include_in_schema=False)
base = APIRouter(include_in_schema=False)  # the second prefix itself
InParameters = Annotated[Parameters, Depends(Parameters.read)]


class BadAuthError(Exception):
    """The request brings no app password that is known."""


async def find_reader(request: Request, context: InContext) -> User:
    """The user whose app password a request brings: see `_read_auth`."""
    auth = await _read_auth(request)
    name, _, password = auth.rpartition("/")
    user = await check_app_password(context, unquote(name), password) if len(auth) <= LONGEST_AUTH else None
    if user is None:
        raise BadAuthError
    return user


async def _read_auth(request: Request) -> str:
    """What ClientLogin answered as `Auth`, from `Authorization: GoogleLogin auth=…`.

    Liferea asks for items without the header, and sends it in the form as `T`. Strangers may send forms too: only
    that field is looked for before it is known who asks.
    """
    header = request.headers.get("authorization")
    if header is None and request.method == "POST":
        found = _AUTH_FIELD.search(await request.body())
        return unquote_plus(found[1].decode("latin-1")) if found else ""
    scheme, _, given = (header or "").partition(" ")
    return given.strip().removeprefix("auth=").strip().strip('"') if scheme.lower() == "googlelogin" else ""


InReader = Annotated[User, Depends(find_reader)]


async def check_app_password(context: Context, name: str, password: str) -> User | None:
    """The user with this name and app password, with its use noted."""
    if not name or not password:
        return None
    user = await context.store.read(find_user_by_app_password, name, password)
    if user is not None:
        known = await context.store.read(find_app_password, password)
        now = context.clock()
        if known is not None and is_app_password_use_worth_noting(known, now):
            await context.store.write(note_app_password_use, known.id, now)
    return user


def add_google_reader(app: FastAPI) -> None:
    """Serve the API below each of its prefixes."""
    for prefix in PREFIXES:
        app.include_router(router, prefix=prefix)
    app.include_router(base)

    @app.exception_handler(BadAuthError)
    async def refuse(request: Request, error: BadAuthError) -> Response:
        return PlainTextResponse("Unauthorized", 401, BAD_TOKEN)


def answer(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


OK = "OK"


@base.get(PREFIXES[1])
@base.get(f"{PREFIXES[1]}/")
async def is_there() -> Response:
    """What a person sees who opens the server address in a browser, to try it."""
    return PlainTextResponse(OK)


@router.api_route("/accounts/ClientLogin", methods=["GET", "POST"])
async def client_login(context: InContext, parameters: InParameters) -> Response:
    """Sign an app in: what it is to send in its Authorization header."""
    name, password = parameters.first("Email") or "", parameters.first("Passwd") or ""
    user = await check_app_password(context, name, password) if len(name + password) < LONGEST_AUTH else None
    if user is None:
        return PlainTextResponse("Error=BadAuthentication\n", 401)
    auth = f"{quote(user.name, safe='')}/{password}"
    if parameters.first("output") == "json":
        return answer({"SID": auth, "LSID": "null", "Auth": auth})
    return PlainTextResponse(f"SID={auth}\nLSID=null\nAuth={auth}\n")


API = "/reader/api/0"


@router.api_route(f"{API}/token", methods=["GET", "POST"])
async def token(request: Request, user: InReader) -> Response:
    """What forms send back as `T`. It protects nothing: every request carries the app password."""
    made = hashlib.blake2b(request.headers["authorization"].encode(), digest_size=28, person=b"greader token")
    return PlainTextResponse(made.hexdigest() + "Z")


@router.get(f"{API}/user-info")
async def user_info(user: InReader) -> Response:
    number = str(user.id)
    return answer(
        {
            "userId": number,
            "userName": user.name,
            "userProfileId": number,
            "userEmail": user.email or "",
            "isBloggerUser": False,
            "signupTimeSec": int(user.created_at),
        }
    )


@router.get(f"{API}/preference/list")
async def preferences(user: InReader) -> Response:
    return answer({"prefs": [{"id": "lhn-prefs", "value": '{"subscriptions":{"ssa":"true"}}'}]})


@router.get(f"{API}/preference/stream/list")
async def stream_preferences(user: InReader) -> Response:
    return answer({"streamprefs": {}})


@router.get(f"{API}/friend/list")
async def friends(user: InReader) -> Response:
    return answer({"friends": []})


@router.get(f"{API}/tag/list")
async def tag_list(context: InContext, user: InReader) -> Response:
    shelf = await context.store.read(read_shelf, user.id)
    return answer(tags_json(shelf.paths, sorted(shelf.tags)))


@router.get(f"{API}/subscription/list")
async def subscription_list(request: Request, context: InContext, user: InReader) -> Response:
    shelf = await context.store.read(read_shelf, user.id)
    loose = loose_label(user) if needs_folders(request) else None
    return answer({"subscriptions": [subscription_json(feed, shelf.paths, loose) for feed in shelf.feeds]})


@router.get(f"{API}/unread-count")
async def unread_count(context: InContext, user: InReader) -> Response:
    def read(connection: Connection) -> Json:
        shelf = read_shelf(connection, user.id)
        numbers = {feed.id for feed in shelf.feeds}
        counts = (each for each in unread_counts(connection, user.id) if each.subscription_id in numbers)
        return counts_json(counts, shelf.paths)

    return answer(await context.store.read(read))


@router.api_route(f"{API}/stream/items/ids", methods=["GET", "POST"])
async def item_ids(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """The numbers of a stream's items."""

    def read(connection: Connection) -> Json:
        shelf = read_shelf(connection, user.id)
        wanted = filter_of(shelf, read_stream(parameters.first("s") or ""), parameters)
        places, following = find_places(
            connection, user.id, wanted, parameters, usual=USUAL_ITEMS, most=MOST_PLACES
        )
        found: Json = {
            "itemRefs": [
                {
                    "id": str(place.id),
                    "directStreamIds": [],
                    "timestampUsec": micros(place.first_seen_at),
                }
                for place in places
            ]
        }
        if not places and parameters.first("client") == "newsplus":
            found["itemRefs"] = [{"id": "0"}]  # News+ takes an empty list for an error
        return found if following is None else {**found, "continuation": following}

    return answer(await context.store.read(read))


@router.api_route(f"{API}/stream/items/count", methods=["GET", "POST"])
async def item_count(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """How many items a stream of stars or of a tag has; of subscriptions, how many are unread."""

    def read(connection: Connection) -> int:
        shelf = read_shelf(connection, user.id)
        stream = read_stream(parameters.first("s") or "")
        sources = shelf.sources_of(stream)
        if sources is None:
            return count_entries(connection, user.id, filter_of(shelf, stream, parameters))
        return sum(each.count for each in unread_counts(connection, user.id) if each.source_id in sources)

    return PlainTextResponse(str(await context.store.read(read)))


@router.api_route(f"{API}/stream/items/contents", methods=["GET", "POST"])
async def item_contents(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """The items with these names, as they are asked for."""
    named = [read_item_id(text) for text in parameters.all("i")[:MOST_NAMED_ITEMS]]
    numbers = [number for number in named if number is not None]
    shelf = await context.store.read(read_shelf, user.id)
    head: Json = {"direction": "ltr", "id": "user/-/state/com.google/reading-list", "title": "Headwater"}
    head["updated"] = int(context.clock())
    return _stream_json(context, user, head, numbers, shelf)


def _stream_json(
    context: Context, user: User, head: Json, numbers: Sequence[int], shelf: Shelf
) -> StreamingResponse:
    """An answer with these items: a few are in memory at a time, and their texts are cleaned off the event loop."""
    feeds = shelf.by_source

    def shown(entry: Entry) -> bytes:
        return orjson.dumps(item_json(entry, shelf.paths, feeds))

    async def pieces() -> AsyncIterator[bytes]:
        yield orjson.dumps(head)[:-1] + b',"items":['
        separator = b""
        async for part in _shown(context, user, numbers, shown):
            yield separator + b",".join(part)
            separator = b","
        yield b"]}"

    return StreamingResponse(pieces(), media_type="application/json")


async def _shown(
    context: Context, user: User, numbers: Sequence[int], show: Callable[[Entry], bytes]
) -> AsyncIterator[list[bytes]]:
    """These items as they are shown, a few at a time."""
    for start in range(0, len(numbers), AT_ONCE):
        entries = await context.store.read(read_entries, user.id, numbers[start : start + AT_ONCE])
        if entries:
            yield await lane_for(sum(map(length_of, entries))).run(list, map(show, entries))


@dataclass(frozen=True, slots=True)
class Page:
    shelf: Shelf
    numbers: list[int]
    following: str | None


def _read_page(connection: Connection, user: User, name: str, parameters: Parameters) -> Page:
    shelf = read_shelf(connection, user.id)
    wanted = filter_of(shelf, read_stream(name), parameters)
    places, following = find_places(
        connection, user.id, wanted, parameters, usual=USUAL_ITEMS, most=MOST_ITEMS
    )
    room = count_fitting(connection, [place.id for place in places])
    if room < len(places):
        following = continue_after(places[room - 1])
    return Page(shelf, [place.id for place in places[:room]], following)


@router.get(f"{API}/stream/contents")
@router.get(f"{API}/stream/contents/")
@router.get(f"{API}/stream/contents/{{stream:path}}")
async def stream_contents(
    context: InContext, user: InReader, parameters: InParameters, stream: str = ""
) -> Response:
    """A stream's items."""
    name = stream or parameters.first("s") or ""
    page = await context.store.read(_read_page, user, name, parameters)
    head: Json = {
        "direction": "ltr",
        "id": name or "user/-/state/com.google/reading-list",
        "title": "Headwater",
        "updated": int(context.clock()),
    }
    if page.following is not None:
        head["continuation"] = page.following
    return _stream_json(context, user, head, page.numbers, page.shelf)


@router.get("/reader/atom")
@router.get("/reader/atom/")
@router.get("/reader/atom/{stream:path}")
async def atom(context: InContext, user: InReader, parameters: InParameters, stream: str = "") -> Response:
    """A stream's items as Atom."""
    page = await context.store.read(_read_page, user, stream, parameters)
    feed = page.shelf.feed_of(read_stream(stream))
    head = atom_head(
        stream or "user/-/state/com.google/reading-list",
        feed.title if feed else "Headwater",
        page.following,
        context.clock(),
    )

    async def pieces() -> AsyncIterator[str | bytes]:
        yield head
        async for part in _shown(context, user, page.numbers, _atom_of(page.shelf)):
            yield b"".join(part)
        yield ATOM_END

    return StreamingResponse(pieces(), media_type="application/atom+xml")


def _atom_of(shelf: Shelf) -> Callable[[Entry], bytes]:
    return lambda entry: b"\n" + atom_entry(entry, shelf.paths).encode()


@router.post(f"{API}/edit-tag")
async def edit_tag(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """Mark items as read or unread, star them, tag them."""
    named = [read_item_id(text) for text in parameters.all("i")[:MOST_NAMED_ITEMS]]
    numbers = [number for number in named if number is not None]
    added = [read_stream(text) for text in parameters.all("a")]
    removed = [read_stream(text) for text in parameters.all("r")]
    await context.store.write(_edit, user, numbers, added, removed, context.clock())
    return PlainTextResponse(OK)


def _edit(
    connection: Connection,
    user: User,
    numbers: list[int],
    added: list[Stream],
    removed: list[Stream],
    now: float,
) -> None:
    kinds, gone = {each.kind for each in added}, {each.kind for each in removed}
    if tags := [each.name for each in added if each.kind == "label"]:
        add_tags(connection, user.id, numbers, tags, now)
    if tags := [each.name for each in removed if each.kind == "label"]:
        remove_tags(connection, user.id, numbers, tags)
    if "starred" in kinds | gone:
        set_starred(connection, user.id, numbers, "starred" in kinds, now)
    if "read" in kinds:
        mark_read_together(connection, user.id, numbers)
    elif "unread" in kinds or "read" in gone:
        mark_read(connection, user.id, numbers, False)


@router.post(f"{API}/mark-all-as-read")
async def mark_all_as_read(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """Mark everything in a stream as read, or what was found up to a time."""
    until = read_seconds(parameters.first("ts"))

    def write(connection: Connection) -> None:
        shelf = read_shelf(connection, user.id)
        for text in parameters.all("s") or [""]:
            stream = read_stream(text)
            sources = shelf.sources_of(stream)
            if sources is not None:
                mark_all_read(connection, user.id, sources, until=until)
                continue
            wanted = filter_of(shelf, stream, Parameters({}))
            places, _ = find_places(
                connection, user.id, wanted, Parameters({}), usual=MOST_PLACES, most=MOST_PLACES
            )
            old = [place.id for place in places if until is None or place.first_seen_at <= until]
            mark_read_together(connection, user.id, old)

    await context.store.write(write)
    return PlainTextResponse(OK)


async def _subscribe(
    context: Context, user: User, url: str, title: str | None, label: str | None
) -> Subscribed:
    async with make_fetcher(context.settings) as fetcher:
        visit = await read_visit_context(context.store, context.settings, fetcher, clock=context.clock)
        done = await subscribe_to_address(user, url, visit, title=title)
    if label:
        await context.store.write(_put, user, done.subscription.id, label)
    return done


def _put(connection: Connection, user: User, subscription_id: int, label: str | None) -> None:
    """Put a subscription into the folder of this label (None: into none)."""
    folder_id = (
        None if label is None else make_folder_path(connection, user.id, label.split(FOLDER_SEPARATOR))
    )
    change_subscription(connection, user.id, subscription_id, folder_id=folder_id)


@router.post(f"{API}/subscription/quickadd")
async def quick_add(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """Subscribe to an address."""
    url = (parameters.first("quickadd") or "").removeprefix("feed/")
    try:
        done = (await _subscribe(context, user, url, None, None)).subscription
    except HeadwaterError as error:
        return answer({"query": url, "numResults": 0, "error": error.render()})
    return answer({"query": url, "numResults": 1, "streamId": f"feed/{done.id}", "streamName": done.title})


@router.post(f"{API}/subscription/edit")
async def edit_subscription(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """Subscribe, unsubscribe, rename, or move to a folder; many at once."""
    action = parameters.first("ac") or "edit"
    titles = parameters.all("t")
    labels = [each.name for each in map(read_stream, parameters.all("a")) if each.kind == "label"]
    left = [each.name for each in map(read_stream, parameters.all("r")) if each.kind == "label"]
    for place, text in enumerate(parameters.all("s")):
        title = titles[place] if place < len(titles) else None
        stream = read_stream(text)
        if action == "subscribe":
            url = stream.name if stream.kind == "address" else text
            await _subscribe(context, user, url, title, labels[0] if labels else None)
        else:
            await context.store.write(_edit_one, user, action, stream, title, labels, left)
    return PlainTextResponse(OK)


def _edit_one(
    connection: Connection,
    user: User,
    action: str,
    stream: Stream,
    title: str | None,
    labels: list[str],
    left: list[str],
) -> None:
    shelf = read_shelf(connection, user.id)
    feed = shelf.feed_of(stream)
    if feed is None:
        if action == "unsubscribe":
            return  # an app that repeats itself
        raise NotFoundError("there is no subscription {id}", id=stream.name or stream.number)
    if action == "unsubscribe":
        unsubscribe(connection, user.id, feed.id)
        return
    if action != "edit":
        raise InputError("ac is one of subscribe, unsubscribe, edit")
    if title:
        change_subscription(connection, user.id, feed.id, title=title)
    if labels:
        _put(connection, user, feed.id, None if is_loose_label(user, shelf, labels[0]) else labels[0])
    elif left and feed.folder_id is not None and shelf.folder_named(left[0]) == feed.folder_id:
        _put(connection, user, feed.id, None)


@router.get(f"{API}/subscription/export")
async def export(context: InContext, user: InReader) -> Response:
    return StreamingResponse(export_for(context.store, user, context.clock()), media_type=OPML)


@router.post(f"{API}/subscription/import")
async def import_(request: Request, context: InContext, user: InReader) -> Response:
    data = await request.body()

    def work() -> None:
        import_for(context.store, user, read_opml_list(data), context.clock())

    await asyncio.to_thread(work)
    return PlainTextResponse(OK)


def _label(parameters: Parameters) -> str:
    """The label that a request names, as a stream or by its bare name."""
    text = parameters.first("s") or LABEL + (parameters.first("t") or "")
    return read_stream(text).name


@router.post(f"{API}/rename-tag")
async def rename(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """Give a folder or a tag another name."""
    old, new = _label(parameters), read_stream(parameters.first("dest") or "").name
    if not old or not new:
        raise InputError("rename-tag takes s and dest, each user/-/label/NAME")
    await _change_label(
        context, user, old, lambda connection, folder: _rename(connection, user, folder, old, new)
    )
    return PlainTextResponse(OK)


def _rename(connection: Connection, user: User, folder: int | None, old: str, new: str) -> None:
    if folder is None:
        rename_tag(connection, user.id, old, new)
        return
    *above, name = new.split(FOLDER_SEPARATOR)
    move_folder(connection, user.id, folder, make_folder_path(connection, user.id, above))
    change_folder(connection, user.id, folder, name=name)


@router.post(f"{API}/disable-tag")
async def disable(context: InContext, user: InReader, parameters: InParameters) -> Response:
    """Delete a folder or a tag; subscriptions and items stay."""
    name = _label(parameters)

    def remove(connection: Connection, folder: int | None) -> None:
        if folder is None:
            delete_tag(connection, user.id, name)
        else:
            remove_folder(connection, user.id, folder)

    await _change_label(context, user, name, remove)
    return PlainTextResponse(OK)


async def _change_label(
    context: Context, user: User, name: str, change: Callable[[Connection, int | None], None]
) -> None:
    def write(connection: Connection) -> None:
        shelf = read_shelf(connection, user.id)
        folder = shelf.folder_named(name)
        if folder is None and name not in shelf.tags:
            raise NotFoundError("there is no tag {name}", name=name[:100])
        change(connection, folder)

    await context.store.write(write)
