"""What an outlet would publish, before it is stored."""

from dataclasses import replace

from sqlalchemy import Connection

from headwater.formats.feeds.feed import Entry
from headwater.publish.outlets import Contents, check_outlet, make_drafts, read_contents, shown_entries
from headwater.store.reading.outlets import Edition, Outlet, check_content, edition_of
from headwater.threads import showing
from headwater.web.context import Context


async def preview_outlet(context: Context, outlet: Outlet, most: int) -> list[Entry]:
    """The first entries of an outlet; InputError when something is wrong with it."""
    outlet = replace(outlet, item_limit=min(outlet.item_limit, most))
    check_outlet(outlet)
    edition, contents = await context.store.read(_read, outlet)
    return await showing.run(lambda: shown_entries(outlet, make_drafts(edition, contents)))


def _read(connection: Connection, outlet: Outlet) -> tuple[Edition, Contents]:
    check_content(connection, outlet)
    edition = edition_of(connection, outlet)
    return edition, read_contents(connection, edition)
