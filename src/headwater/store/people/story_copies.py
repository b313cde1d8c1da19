"""Shows the first copy of a story in a list, and the other feeds that tell it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from headwater.store.people.entries import Copy, Entry, EntryFilter, Place, Sort, read_entries
from headwater.store.people.stories import copies_of


def with_copies(connection: Connection, user_id: int, entries: Sequence[Entry]) -> list[Entry]:
    """The entries with where else each story is told."""
    copies = copies_of(connection, user_id, [entry.item.id for entry in entries])
    if not copies:
        return list(entries)
    others = _read(connection, user_id, copies.values())
    return [
        replace(
            entry,
            also_in=tuple(
                Copy(
                    other.item.id,
                    other.subscription_id,
                    other.feed_title,
                    other.item.title,
                    other.item.url,
                    other.state.is_read,
                )
                for number in copies.get(entry.item.id, ())
                if (other := others.get(number)) is not None
            ),
        )
        for entry in entries
    ]


def show_once(
    connection: Connection, user_id: int, places: Sequence[Place], wanted: EntryFilter, sort: Sort
) -> list[Place]:
    """The places of a page without those whose story stands before them in the same list.

    Lists of what a person starred, tagged or put aside show every item.
    """
    if wanted.is_starred or wanted.read_later or wanted.tag is not None or wanted.search is not None:
        return list(places)
    copies = copies_of(connection, user_id, [place.id for place in places])
    if not copies:
        return list(places)
    others = _read(connection, user_id, copies.values())
    return [
        place
        for place in places
        if not any(
            _stands_before(others[number], place, wanted, sort)
            for number in copies.get(place.id, ())
            if number in others
        )
    ]


def _read(connection: Connection, user_id: int, copies: Iterable[Sequence[int]]) -> dict[int, Entry]:
    numbers = sorted({number for those in copies for number in those})
    return {entry.item.id: entry for entry in read_entries(connection, user_id, numbers, longest_text=1)}


def _stands_before(other: Entry, place: Place, wanted: EntryFilter, sort: Sort) -> bool:
    """Whether a copy is in the same list, before this place."""
    item = other.item
    if wanted.source_ids is not None and item.source_id not in wanted.source_ids:
        return False
    if wanted.source_ids is None and other.is_muted:
        return False
    if wanted.is_read is not None and other.state.is_read != wanted.is_read:
        return False
    if wanted.since is not None and item.first_seen_at < wanted.since:
        return False
    if wanted.until is not None and item.first_seen_at >= wanted.until:
        return False
    first, second = (item.item_at, item.id), (place.item_at, place.id)
    return first > second if sort == "newest" else first < second
