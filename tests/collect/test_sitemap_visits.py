"""A sitemap's memory is stored with its items or not at all: a visit that is never settled is made good by the next."""

from headwater.collect.context import read_visit_context
from headwater.collect.visit import visit
from headwater.config import load_settings
from headwater.fetch.client import make_fetcher
from headwater.sources.adding import add_and_visit, read_new_source
from headwater.store.collecting.queue import Settlement, claim_sources, settle_batch
from headwater.store.core.database import Store
from headwater.store.reading.listing import newest_items
from tests.origin import Answer, Origin


async def test_news_is_told_once_though_a_worker_dies_before_it_settles(store: Store, origin: Origin) -> None:
    origin.otherwise(Answer(b"<title>A page</title>", content_type="text/html"))
    pages = [f"<url><loc>{origin.url(f'/p{n}')}</loc></url>" for n in range(30)]

    def publish(count: int) -> str:
        return origin.route("/map.xml", body=f"<urlset>{''.join(pages[:count])}</urlset>")

    settings = load_settings(
        environment={"HEADWATER_ALLOW_HOSTS": "127.0.0.1", "HEADWATER_HOST_SPACING_SECONDS": "0"}
    )
    async with make_fetcher(settings) as fetcher:
        context = await read_visit_context(store, settings, fetcher)
        source = await add_and_visit(read_new_source(publish(20), "sitemap"), context)

        async def claimed_visit() -> Settlement:
            with store.writing() as connection:
                now = context.clock()
                (claimed,) = claim_sources(connection, [source.id], now=now, lease_until=now - 1)
            return await visit(claimed, context)

        publish(22)
        lost = await claimed_visit()  # its worker dies here
        kept = await claimed_visit()
        for settlement in (lost, kept):
            assert [change.item.url for change in settlement.changes] == [
                origin.url("/p20"),
                origin.url("/p21"),
            ]
            assert not settlement.visit.overflow
        with store.writing() as connection:
            settle_batch(connection, [lost, kept])
        again = await claimed_visit()
        assert (again.changes, again.visit.outcome) == ((), "unchanged")
    with store.reading() as connection:
        stored = [item.url for item in newest_items(connection, limit=100)]
    assert len(stored) == len(set(stored)) == 12
