"""Subscribing a person to an address, and a person's lists of feeds in and out.

A source that is collected already is shared: it is not visited for another subscriber. One with credentials is not,
for what it shows was meant for the person who has them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection

from headwater.collect.context import VisitContext
from headwater.collectors.base import has_credentials
from headwater.collectors.types import collector_of, config_model_of
from headwater.errors import ConflictError
from headwater.fetch.message import without_secrets
from headwater.formats.opml import Outline, Rejected, write_opml
from headwater.model import FOLDER_SEPARATOR, User
from headwater.sources.adding import NewSource, add_what_is_there, first_feed_of, read_new_source
from headwater.sources.importing.export import Export
from headwater.sources.importing.marking import bring_marked
from headwater.sources.lists import Imported, import_export
from headwater.store.collecting.addresses import find_by_addresses
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.people.folders import folder_paths, list_folders, make_folder_path
from headwater.store.people.subscriptions import (
    OWNER,
    Subscription,
    change_subscription,
    list_subscriptions,
    subscribe,
)

REASON_LETTERS: Final = "Only an admin can add an address that letters are sent to."
CHUNK = 100  # entries of a list in one transaction


@dataclass(frozen=True, slots=True)
class Subscribed:
    subscription: Subscription
    is_new: bool  # False: the person was subscribed already


async def subscribe_to_address(
    user: User, url: str, context: VisitContext, *, title: str | None = None, folder_id: int | None = None
) -> Subscribed:
    """Subscribe a person to what is at an address: a source that is known, else a new one that is visited now.

    VisitError when it cannot be visited: then nothing is stored.
    """
    read = read_new_source(url, rules=context.rules, may_refer=user.is_admin)
    wanted = replace(read, for_owner=False)

    def take(connection: Connection, source_id: int) -> Subscribed:
        done = subscribe(connection, user.id, source_id, context.clock(), title=title, folder_id=folder_id)
        return Subscribed(*done)

    known = await context.store.read(_find_shared, user, wanted)
    if known is None:
        try:
            known = (await add_what_is_there(wanted, context)).id
        except ConflictError:  # the feed that a page names is known, or another person was faster
            known = await _find_named(user, wanted, context)
    return await context.store.write(take, known)


async def _find_named(user: User, wanted: NewSource, context: VisitContext) -> int:
    known = await context.store.read(_find_shared, user, wanted)
    if known is None:
        found = await first_feed_of(wanted, context)
        known = await context.store.read(_find_shared, user, found)
    if known is None:
        raise ConflictError("{url} is there already", url=wanted.url)
    return known


def _find_shared(connection: Connection, user: User, wanted: NewSource) -> int | None:
    """The source at this address, if a person may subscribe to it."""
    source_id = next(iter(find_by_addresses(connection, [wanted.url]).values()), None)
    if source_id is not None:
        refuse_private(connection, user, source_id)
    return source_id


def refuse_private(connection: Connection, user: User, source_id: int) -> None:
    """ConflictError for a source with credentials or of letters: only admins subscribe to it by its address."""
    source = get_source(connection, source_id)
    if user.is_admin:
        return
    if takes_letters(source.type) or has_credentials(source.config, config_model_of(source.type)):
        raise ConflictError("you cannot subscribe to {url}; ask an admin", url=without_secrets(source.url))


def takes_letters(type_name: str | None) -> bool:
    """Whether what a source of this type shows was sent to its address, and is meant for its owner."""
    collector = collector_of(type_name) if type_name else None
    return collector is not None and collector.is_delivered


def import_for(
    store: Store,
    user: User,
    export: Export,
    now: float,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Imported]:
    """Subscribe a person to every feed of a list, in the folders it names. One bad entry stops no other."""
    if not user.is_admin:
        export = _without_letters(export)
    report = import_export(store, export, now, on_progress, for_owner=user.id == OWNER)
    for start in range(0, len(report), CHUNK):  # so that no other writer waits long for the database
        with store.writing() as connection:
            part = [_take(connection, user, done, now) for done in report[start : start + CHUNK]]
        report[start : start + CHUNK] = part
    taken = report[len(export.rejected) :]
    bring_marked(store, user.id, export, [done.source_id for done in taken], now)
    return report


def _without_letters(export: Export) -> Export:
    """A list without addresses that letters are sent to: only admins give those out."""
    refused = [each for each in export.outlines if takes_letters(each.type)]
    kept = tuple(each for each in export.outlines if not takes_letters(each.type))
    rejected = tuple(Rejected(each.title, each.url, REASON_LETTERS, each.folder) for each in refused)
    return replace(export, outlines=kept, rejected=(*export.rejected, *rejected)) if refused else export


def _take(connection: Connection, user: User, done: Imported, now: float) -> Imported:
    if done.source_id is None:
        return done
    try:
        refuse_private(connection, user, done.source_id)
    except ConflictError as error:
        return replace(done, outcome="rejected", source_id=None, reason=error.render())
    names = (done.folder or "").split(FOLDER_SEPARATOR)
    folder_id = make_folder_path(connection, user.id, names)
    subscription, is_new = subscribe(
        connection, user.id, done.source_id, now, title=done.title or None, folder_id=folder_id
    )
    if not is_new and done.outcome == "added" and folder_id is not None:
        change_subscription(connection, user.id, subscription.id, folder_id=folder_id)
    return replace(done, outcome="added") if is_new else done


def export_for(store: Store, user: User, now: float) -> Iterator[bytes]:
    """An OPML file of a person's subscriptions in pieces; secrets in their addresses are starred out."""
    with store.reading() as connection:
        tree = list_folders(connection, user.id)
        found = list_subscriptions(connection, user.id)
    paths = folder_paths(tree)
    places = {folder.id: place for place, folder in enumerate(tree, 1)}
    found.sort(key=lambda each: places.get(each.folder_id or 0, 0))
    outlines = (
        Outline(
            url=without_secrets(each.url),
            title=each.title,
            folder=FOLDER_SEPARATOR.join(paths.get(each.folder_id or 0, ())) or None,
            site_url=each.site_url,
            type=None if each.type == "rss.feed" else each.type,
        )
        for each in found
    )
    yield from write_opml(outlines, title="Headwater", created=datetime.fromtimestamp(now, UTC))
