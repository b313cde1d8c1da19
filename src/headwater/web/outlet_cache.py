"""A cache of outlet documents: each edition in each format is made once, off the event loop.

How long it takes to clean what publishers wrote is up to them. Large outlets wait for each other and for nothing else,
callers that ask for the same document at the same time get the same one, and the last few are kept.
"""

import asyncio
import secrets
from collections import OrderedDict
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import orjson

from headwater.publish.media import MediaAddresses
from headwater.publish.outlets import Contents, Published, make_drafts, read_contents, write_document
from headwater.store.core.database import Store
from headwater.store.reading.media import media_secret
from headwater.store.reading.outlets import Edition
from headwater.threads import lane_for

MOST_KEPT_BYTES: Final = 24_000_000

Key = tuple[str, str]  # the edition's tag, the format


class OutletCache:
    """Makes the documents of outlets, and keeps the most recent."""

    def __init__(self, store: Store, data_dir: Path) -> None:
        self._store = store
        self._data_dir = data_dir
        # Stands for our own address in what is kept. No publisher can know it.
        self._site = f"https://{secrets.token_hex(16)}.invalid"
        self._kept: OrderedDict[Key, bytes] = OrderedDict()
        self._under_way: dict[Key, asyncio.Task[bytes]] = {}

    async def document(self, edition: Edition, format: str, site: str) -> bytes:
        """The document of an edition, for a reader who finds Headwater at `site`. StepError: its template fails."""
        key = (edition.tag, format)
        body = self._kept.get(key)
        if body is None:
            body = await asyncio.shield(self._make(key, edition, format))
        else:
            self._kept.move_to_end(key)
        address = orjson.dumps(site)[1:-1].decode() if format == "json" else escape(site, {'"': "&quot;"})
        return body.replace(self._site.encode(), address.encode())

    def _make(self, key: Key, edition: Edition, format: str) -> asyncio.Task[bytes]:
        if key not in self._under_way:
            task = asyncio.create_task(self._render(key, edition, format))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return self._under_way[key]

    async def _render(self, key: Key, edition: Edition, format: str) -> bytes:
        contents = await self._store.read(read_contents, edition)
        addresses = None
        if edition.outlet.own_media:
            secret = await self._store.read(media_secret)
            addresses = MediaAddresses.under(self._data_dir, secret, self._site)
        published = await lane_for(contents.characters).run(
            _write, edition, contents, format, self._site, addresses
        )
        self._keep(key, published.body)
        return published.body

    def _keep(self, key: Key, body: bytes) -> None:
        self._kept[key] = body
        while sum(map(len, self._kept.values())) > MOST_KEPT_BYTES:
            self._kept.popitem(last=False)


def _write(
    edition: Edition, contents: Contents, format: str, site: str, addresses: MediaAddresses | None
) -> Published:
    return write_document(edition, make_drafts(edition, contents, addresses), format, f"{site}/outlets")
