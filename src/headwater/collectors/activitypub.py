"""`api.activitypub`: what an actor of the Fediverse publishes, by its outbox.

The address is that of an actor or of an outbox. Pages of the outbox, the newest first, are read until one shows what is
known. Only what is addressed to all becomes an item.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import Field

from headwater.collectors.answer import changed_structure, read_json
from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_to
from headwater.fetch.message import NO_VALIDATORS, Response
from headwater.formats.activities import ACCEPT, Actor, read_activity, read_actor, read_page
from headwater.model import Item, SourceMetadata
from headwater.threads import read_aside

MOST_ACTIVITIES: Final = 1_000  # of one page


class ActivityPubConfig(StructuredConfig):
    boosts: bool = Field(
        default=False, description="Whether posts of others that are passed on become items."
    )
    replies: bool = Field(default=False, description="Whether replies become items.")
    limit: int = Field(default=100, ge=1, le=5_000, description="How many items at most in one visit.")
    max_pages: int = Field(default=5, ge=1, le=50, description="How many pages at most in one visit.")


class ActivityPubCollector(Collector):
    config_model = ActivityPubConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        return await _Visit(fetch_request).make()


class _Visit:
    def __init__(self, fetch_request: FetchRequest) -> None:
        self._fetch_request = fetch_request
        self._config: ActivityPubConfig = fetch_request.config
        self._first: Response | None = None
        self._requests = 0
        self._received = 0
        self._items: dict[str, Item] = {}
        self._left_out = 0

    async def make(self) -> FetchResult:
        url = self._fetch_request.source.url
        document = await self._get(url)
        actor = read_actor(document)
        if actor is not None:
            if actor.outbox is None:
                raise changed_structure(url, "outbox")
            document = await self._get(actor.outbox)
        await self._read_pages(document, url)
        assert self._first is not None  # noqa: S101 - the first request was made
        return replace(
            FetchResult.of(self._first),
            items=tuple(self._items.values())[: self._config.limit],
            metadata=_metadata(actor),
            requests=self._requests,
            bytes_received=self._received,
            left_out_count=self._left_out,
            validators=NO_VALIDATORS,  # they are of the first document, which says how to find the newest
            permanent_url=None if actor else self._first.permanent_url,
        )

    async def _read_pages(self, document: Any, url: str) -> None:
        asked: set[str] = set()
        for _ in range(self._config.max_pages):
            activities, first, following = read_page(document)
            if first is not None:
                document = first if isinstance(first, Mapping) else await self._get(first)
                activities, _, following = read_page(document)
            elif not activities and following is None and not asked and not _is_collection(document):
                raise changed_structure(url, "orderedItems")
            new = await self._take(activities)
            if not new or following is None or following in asked or len(self._items) >= self._config.limit:
                return
            asked.add(following)
            if len(asked) < self._config.max_pages:
                document = await self._get(following)

    async def _take(self, activities: list[Any]) -> bool:
        """Whether older activities may be new: nothing of these was known."""
        config = self._config
        read = [
            read_activity(each, boosts=config.boosts, replies=config.replies)
            for each in activities[:MOST_ACTIVITIES]
        ]
        items = [each for each in read if each is not None]
        self._left_out += len(read) - len(items)
        self._items |= {each.external_id: each for each in items if each.external_id not in self._items}
        known = await self._fetch_request.known([each.external_id for each in items])
        return bool(activities) and not known

    async def _get(self, url: str) -> Any:
        request = request_to(self._fetch_request.source, self._config, url, NO_VALIDATORS)
        response = await self._fetch_request.fetcher.get(replace(request, accept=ACCEPT))
        self._first = self._first or response
        self._requests += response.requests
        self._received += response.bytes_received
        return await read_aside(len(response.body), read_json, response)


def _is_collection(document: Any) -> bool:
    return isinstance(document, Mapping) and "Collection" in str(document.get("type"))


def _metadata(actor: Actor | None) -> SourceMetadata:
    if actor is None:
        return SourceMetadata()
    return SourceMetadata(actor.name, actor.summary, actor.url or actor.id or None, icon_url=actor.icon)
