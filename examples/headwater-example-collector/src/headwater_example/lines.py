"""`example.lines`: a text page on which every line is an item."""

from typing import ClassVar

from pydantic import Field

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_for
from headwater.errors import FailureKind, ParseError
from headwater.model import Item


class LinesConfig(SourceConfig):
    """What a source of this type takes beyond the keys that every source has."""

    marker: str = Field(default="", description="Only lines that begin with this are items.")


class LinesCollector(Collector):
    alias: ClassVar[str | None] = "lines"
    interval_minutes: ClassVar[float] = 90
    config_model = LinesConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        # The fetcher is the only way to the network; the request carries validators, credentials and proxy.
        response = await fetch_request.fetcher.get(request_for(fetch_request.source, fetch_request.config))
        if response.unchanged:
            return FetchResult.of(response)
        return FetchResult.of(response, items=parse(response.body, response.url, fetch_request.config.marker))


def parse(body: bytes, url: str, marker: str = "") -> tuple[Item, ...]:
    """The items of a page. Pure, so that it can be tested without a network."""
    text = body.decode("utf-8", "replace")
    if text.lstrip().startswith("<"):
        raise ParseError("This is a web page, not lines of text.", kind=FailureKind.NOT_A_FEED)
    lines = [line.strip() for line in text.splitlines()]
    return tuple(
        Item(external_id=line, url=url, title=line.removeprefix(marker).strip())
        for line in lines
        if line and line.startswith(marker)
    )
