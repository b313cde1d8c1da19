"""Open pages are told when something has happened, by one look for all, and their streams end with the process."""

import asyncio

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.web.changes import Changes
from tests.publish.test_outlets import store_items


async def test_stream_tells_what_has_changed_and_ends_when_closed(store: Store) -> None:
    told = Changes(store, lambda: 1_000.0)
    stream = told.stream()
    assert await anext(stream) == "retry: 2000\n\n"
    assert await anext(stream) == "event: changed\ndata: visits items runs\n\n", "the first look"
    with store.writing() as connection:
        store_items(connection, Item("1", title="one"))
    changed = await asyncio.wait_for(anext(stream), 10)
    assert changed == "event: changed\ndata: items\n\n"
    assert not told.is_full
    await told.close()
    assert [each async for each in stream] == []
    assert told.is_full
