"""Pages of bookmarks: fetched in the background, tried again, given up."""

from collections.abc import AsyncIterator

import pytest

from headwater.collect.bookmarks import BookmarkFetcher
from headwater.fetch.client import Fetcher
from headwater.store.core.database import Store
from headwater.store.people.bookmarks import MOST_ATTEMPTS, RETRY_SECONDS, add_bookmark, get_bookmark
from tests.clock import FakeClock
from tests.origin import Origin

OWNER = 1
PAGE = """<html><head><title>A page</title><meta name="description" content="What it says">
<meta property="og:image" content="/picture.png"></head><body><nav>Menu</nav><main>At length</main></body></html>"""


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(user_agent="test", allow=["127.0.0.1"], host_spacing_seconds=0.0) as made:
        yield made


async def test_bookmark_fetcher_stores_what_page_says(
    store: Store, fetcher: Fetcher, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/page", body=PAGE, content_type="text/html")
    with store.writing() as connection:
        plain = add_bookmark(connection, OWNER, origin.url("/page"), clock())
        titled = add_bookmark(connection, OWNER, origin.url("/page?2"), clock(), title="Mine")
    origin.route("/page?2", body=PAGE, content_type="text/html")
    worker = BookmarkFetcher(store, fetcher, clock)
    assert await worker.act() == 2
    assert await worker.act() == 0
    with store.reading() as connection:
        found = get_bookmark(connection, OWNER, plain.id)
        assert (found.title, found.excerpt, found.content) == ("A page", "What it says", "At length")
        assert found.image_url == origin.url("/picture.png")
        assert (found.fetch_at, found.error) == (None, None)
        assert get_bookmark(connection, OWNER, titled.id).title == "Mine"


async def test_bookmark_fetcher_retries_passing_errors_and_gives_up(
    store: Store, fetcher: Fetcher, origin: Origin, clock: FakeClock
) -> None:
    origin.route("/busy", status=503)
    origin.route("/gone", status=410)
    with store.writing() as connection:
        busy = add_bookmark(connection, OWNER, origin.url("/busy"), clock())
        gone = add_bookmark(connection, OWNER, origin.url("/gone"), clock())
        private = add_bookmark(connection, OWNER, "http://10.0.0.1/secret", clock())
    worker = BookmarkFetcher(store, fetcher, clock)
    assert await worker.act() == 3
    with store.reading() as connection:
        assert get_bookmark(connection, OWNER, gone.id).fetch_at is None
        refused = get_bookmark(connection, OWNER, private.id)
        assert refused.fetch_at is None
        assert refused.error is not None
        assert "10.0.0.1" in refused.error
    for _ in range(MOST_ATTEMPTS + 2):
        clock.advance(RETRY_SECONDS + 1)
        await worker.act()
    with store.reading() as connection:
        assert get_bookmark(connection, OWNER, busy.id).fetch_at is None
    assert [request.path for request in origin.requests].count("/busy") == MOST_ATTEMPTS
