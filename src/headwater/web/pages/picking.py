"""Choosing sources in a form: a list to tick while they are few, and names to write where they are many."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from headwater.store.collecting.sources import find_source, get_source
from headwater.store.reports.catalog import source_names_by_name
from headwater.web.pages.frame import Action

MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Picks:
    """The sources that a form offers, and those that are ticked in it."""

    listed: list[tuple[int, str]]
    chosen: frozenset[int]
    is_more: bool


def read_picks(connection: Connection, chosen: Sequence[int] = ()) -> Picks:
    listed = source_names_by_name(connection, chosen, limit=MOST_LISTED + 1)
    return Picks(listed[: MOST_LISTED + len(chosen)], frozenset(chosen), len(listed) > MOST_LISTED)


def read_picked(connection: Connection, ticked: Sequence[int], written: str) -> list[int]:
    """The sources that were ticked, and those whose names were written; InputError for one that is not there."""
    found = [get_source(connection, source_id).id for source_id in ticked]
    for text in filter(None, (each.strip() for each in written.replace("\n", ",").split(","))):
        found.append(find_source(connection, text).id)
    return list(dict.fromkeys(found))


async def picked(action: Action) -> list[int]:
    """What a form with a picker says."""
    store = action.page.context.store
    return await store.read(read_picked, action.numbers("source"), action.text("source_names"))
