"""A collector's memory is kept with the visit it belongs to."""

from dataclasses import replace

from headwater.model import Visit
from headwater.store.collecting.memory import read_memory
from headwater.store.collecting.queue import Settlement, claim_sources, settle_batch
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store


def test_memory_is_written_with_its_visit_and_left_alone_without_one(store: Store) -> None:
    with store.writing() as connection:
        source = add_source(connection, name="a", type="rss.feed", url="http://a.example/", now=1.0)
        assert read_memory(connection, source.id) is None
        for at, memory in ((2.0, b"first"), (3.0, b"second"), (4.0, None)):
            (claimed,) = claim_sources(connection, [source.id], now=at, lease_until=at + 0.5)
            after = replace(claimed, next_fetch_at=at + 1)
            settle_batch(
                connection, [Settlement(claimed, after, Visit(source.id, at, at, "new"), memory=memory)]
            )
        assert read_memory(connection, source.id) == b"second"
        stale = Settlement(claimed, claimed, Visit(source.id, 5.0, 5.0, "new"), memory=b"from the dead")
        settle_batch(connection, [stale])
        assert read_memory(connection, source.id) == b"second"
