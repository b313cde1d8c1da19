"""`twitter.feed`, `twitter.list` and `twitter.bookmarks`: skipped, unless a bridge turns them into a feed."""

from dataclasses import replace
from typing import Any

from pydantic import Field

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_for
from headwater.collectors.feed import read_result
from headwater.errors import Text
from headwater.model import Json


class TwitterConfig(SourceConfig):
    bridge_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="The address at which your bridge (Nitter, RSSHub, RSS-Bridge) serves this as a feed.",
    )


class TwitterCollector(Collector):
    config_model = TwitterConfig

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        return url or config.get("bridge_url"), config

    def why_skipped(self, config: Any) -> Text | None:
        if config.bridge_url:
            return None
        return Text("X has no feed to collect; set bridge_url in their config to collect them")

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        request = request_for(fetch_request.source, fetch_request.config, fetch_request.config.bridge_url)
        result = await read_result(await fetch_request.fetcher.get(request))
        return replace(result, permanent_url=None)  # the config says where it is
