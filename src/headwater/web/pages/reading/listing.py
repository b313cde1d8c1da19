"""The list of entries: which ones, and what each row shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from sqlalchemy import Connection

from headwater.errors import NotFoundError
from headwater.formats.links import join
from headwater.markup import read_pieces, unescape_text, visible_text
from headwater.store.people.entries import Entry, Place, list_places, read_entries
from headwater.store.people.folders import list_folders, with_subfolders
from headwater.store.people.story_copies import show_once, with_copies
from headwater.store.people.subscriptions import get_subscription, heard_sources, icon_addresses
from headwater.web.dates import tell_date, tell_weekday
from headwater.web.pages.frame import Page
from headwater.web.pages.items import guess_language
from headwater.web.pages.reading.filters import Wanted
from headwater.web.pages.reading.highlighting import Hits, excerpt_of, mark_text
from headwater.web.pictures import IMAGE_SOURCE, PictureAddresses

ON_A_PAGE = 50
LISTED_CHARACTERS = 6_000  # of a text, for its excerpt and first picture
MOST_UNDONE = 5_000  # entries that one press marks and undo gives back
MOST_FRESH = 100  # new entries that are counted


@dataclass(frozen=True, slots=True)
class Row:
    """An entry in the list."""

    entry: Entry
    title: Markup
    excerpt: Markup
    language: str | None
    picture: str | None
    icon: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """A page of entries, and the mark from which the next goes on."""

    entries: list[Entry]
    places: list[Place]
    icons: dict[int, str | None]  # of their feeds, by the number of the subscription


def find_entries(
    connection: Connection, user_id: int, wanted: Wanted, after: tuple[float, int] | None
) -> Found:
    chosen = wanted.as_filter(sources_of(connection, user_id, wanted))
    places = list_places(connection, user_id, chosen, sort=wanted.sort, after=after, limit=ON_A_PAGE)
    shown = show_once(connection, user_id, places[:ON_A_PAGE], chosen, wanted.sort)
    numbers = [place.id for place in shown]
    entries = read_entries(connection, user_id, numbers, longest_text=LISTED_CHARACTERS)
    feeds = {entry.subscription_id for entry in entries if entry.subscription_id is not None}
    return Found(with_copies(connection, user_id, entries), places, icon_addresses(connection, feeds))


def sources_of(connection: Connection, user_id: int, wanted: Wanted) -> tuple[int, ...] | None:
    """The sources of the feed or folder that is wanted; None: of all."""
    if wanted.feed_id is not None:
        return (get_subscription(connection, user_id, wanted.feed_id).source_id,)
    if wanted.folder_id is None:
        return None
    folders = list_folders(connection, user_id)
    if all(folder.id != wanted.folder_id for folder in folders):
        raise NotFoundError("there is no folder {id}", id=wanted.folder_id)
    return heard_sources(connection, user_id, tuple(with_subfolders(folders, wanted.folder_id)))


def unread_ids(connection: Connection, user_id: int, wanted: Wanted, until: float) -> list[int]:
    """The unread entries that marking all as read will mark, as far as undo goes."""
    places = list_places(
        connection,
        user_id,
        wanted.with_view("unread").as_filter(sources_of(connection, user_id, wanted)),
        limit=MOST_UNDONE,
    )
    return [place.id for place in places if place.first_seen_at <= until]


def count_fresh(connection: Connection, user_id: int, wanted: Wanted, since: float) -> int:
    """How many entries the list has that were found after a time; at most `MOST_FRESH`."""
    chosen = wanted.as_filter(sources_of(connection, user_id, wanted), since=since)
    return min(MOST_FRESH, len(list_places(connection, user_id, chosen, limit=MOST_FRESH)))


def make_rows(entries: Sequence[Entry], addresses: PictureAddresses, hits: Hits | None) -> list[Row]:
    """What the list shows of entries; works through their texts, so off the event loop."""
    return [_row(entry, addresses, hits) for entry in entries]


def _row(entry: Entry, addresses: PictureAddresses, hits: Hits | None) -> Row:
    item = entry.item
    body = item.summary or item.content or ""
    text = visible_text(body, 4 * LISTED_CHARACTERS if hits else 600)
    picture = item.image_url or first_picture(item.content or body, item.url)
    return Row(
        entry=entry,
        title=mark_text(item.title or item.url or "", hits),
        excerpt=mark_text(excerpt_of(text, hits), hits),
        language=item.language or guess_language(item.title),
        picture=addresses.of(picture),
        icon=None,
    )


def first_picture(body: str, base: str | None) -> str | None:
    """The address of the first picture in a text."""
    for piece in read_pieces(body):
        if piece.name == "img" and (source := IMAGE_SOURCE.search(piece.text)):
            return join(base, unescape_text(source[1]))
    return None


def day_names(entries: Sequence[Entry], page: Page) -> dict[int, str]:
    """What is written above the first entry of each day, by the entry's number."""
    names: dict[int, str] = {}
    before = None
    today = datetime.fromtimestamp(page.context.clock(), page.zone).date()
    for entry in entries:
        day = datetime.fromtimestamp(entry.item.item_at, page.zone).date()
        if day != before:
            past = (today - day).days
            if past == 0:
                names[entry.item.id] = page.t("Today")
            elif past == 1:
                names[entry.item.id] = page.t("Yesterday")
            elif 1 < past < 7:
                names[entry.item.id] = tell_weekday(day, page.language)
            else:
                names[entry.item.id] = tell_date(day, page.language) + (
                    f" {day.year}" if day.year != today.year and page.language == "en" else ""
                )
        before = day
    return names
