"""Pages that people bookmark: fetched in the background for their title, excerpt, picture and text."""

import asyncio
import logging
from collections.abc import Callable

from headwater.errors import FailureKind, FetchError, StoreError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request, Response
from headwater.formats.pages.metadata import read_page
from headwater.store.core.database import Store
from headwater.store.people.bookmarks import (
    FoundPage,
    claim_bookmarks,
    is_bookmark_due,
    note_page,
    note_page_error,
)
from headwater.threads import read_aside

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
BATCH = 10
MOST_BYTES = 5_000_000
TIMEOUT_SECONDS = 60.0
EXCERPT_CHARACTERS = 500
ACCEPT_PAGE = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
_FOR_GOOD = (FailureKind.GONE, FailureKind.NOT_FOUND, FailureKind.BLOCKED)


class BookmarkFetcher:
    """Fetches the pages of bookmarks as they come due; the engine runs it beside the visits."""

    def __init__(self, store: Store, fetcher: Fetcher, clock: Callable[[], float]) -> None:
        self._store = store
        self._fetcher = fetcher
        self._clock = clock

    async def run(self) -> None:
        """Do what is due, again and again, until cancelled."""
        while True:
            try:
                while await self.act():
                    pass
            except StoreError as error:
                log.warning("bookmarks: %s", error)
            except Exception:
                log.exception("bookmarks: unexpected error")
            await asyncio.sleep(LOOK_SECONDS)

    async def act(self) -> int:
        """Fetch the pages of a batch of bookmarks; returns how many there were."""
        if not await self._store.read(is_bookmark_due, self._clock()):
            return 0
        claimed = await self._store.write(claim_bookmarks, BATCH, self._clock())
        await asyncio.gather(
            *(
                fetch_bookmark_metadata_task(self._store, self._fetcher, number, url, self._clock)
                for number, url in claimed
            )
        )
        return len(claimed)


async def fetch_bookmark_metadata_task(
    store: Store, fetcher: Fetcher, bookmark_id: int, url: str, clock: Callable[[], float]
) -> None:
    """Fetch a bookmark's page and store what it says, or why it cannot be read."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            response = await fetcher.get(Request(url, accept=ACCEPT_PAGE, max_bytes=MOST_BYTES))
            page = await read_aside(len(response.body), _read, response)
    except FetchError as error:
        is_passing = error.kind not in _FOR_GOOD
        await store.write(note_page_error, bookmark_id, error.render(), is_passing, clock())
    except TimeoutError:
        await store.write(
            note_page_error, bookmark_id, f"no answer within {TIMEOUT_SECONDS:.0f} s", True, clock()
        )
    else:
        await store.write(note_page, bookmark_id, page, clock())


def _read(response: Response) -> FoundPage:
    page = read_page(response.body, url=response.url, content_type=response.content_type)
    excerpt = page.description or (page.text or "")[:EXCERPT_CHARACTERS] or None
    return FoundPage(page.title, excerpt, page.image, page.text)
