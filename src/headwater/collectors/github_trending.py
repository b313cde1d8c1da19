"""`web.github_trending`: the repositories that GitHub shows as trending.

A repository is one item for as long as the source is there: it is news when it begins to trend, not again on every
day it still does. Which page is asked for follows from the source's address and its config, which wins.
"""

from dataclasses import replace
from typing import Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from pydantic import Field

from headwater.collectors.base import Collector, Errand, Harvest, SourceConfig, request_for
from headwater.collectors.scraper import ACCEPT_PAGE, in_thread_if_big
from headwater.errors import FailureKind, ParseError
from headwater.formats.trending import read_trending
from headwater.model import SourceMetadata


class TrendingConfig(SourceConfig):
    language: str | None = Field(
        default=None,
        max_length=60,
        description="Only repositories in this programming language, e.g. python.",
    )
    since: Literal["daily", "weekly", "monthly"] | None = Field(
        default=None, description="Trending over which time: daily, weekly or monthly."
    )
    spoken_language: str | None = Field(
        default=None, pattern="^[a-z]{2}$", description="Only those described in this language, e.g. zh."
    )


class TrendingCollector(Collector):
    config_model = TrendingConfig

    async def collect(self, errand: Errand) -> Harvest:
        url = trending_url(errand.source.url, errand.config)
        await errand.fetcher.robots.check(url)
        response = await errand.fetcher.get(
            replace(request_for(errand.source, errand.config, url), accept=ACCEPT_PAGE)
        )
        if response.unchanged:
            return Harvest.of(response)
        items = await in_thread_if_big(
            response,
            lambda answer: read_trending(answer.body, url=answer.url, content_type=answer.content_type),
        )
        if items is None:
            raise ParseError(
                "{url}: no trending repository is on the page, and it does not say that there are none: it has changed",
                kind=FailureKind.MALFORMED,
                url=url,
            )
        return Harvest.of(response, items=items, metadata=SourceMetadata(title=_title(url), site_url=url))


def trending_url(url: str, config: TrendingConfig) -> str:
    """The page to ask for: the source's address with what its config says put in."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/") or "/trending"
    if config.language is not None:
        head, _, _ = path.partition("/trending")
        path = f"{head}/trending/{quote(config.language.strip().lower().replace(' ', '-'), safe='+')}"
    query = dict(parse_qsl(parts.query))
    if config.since is not None:
        query["since"] = config.since
    if config.spoken_language is not None:
        query["spoken_language_code"] = config.spoken_language
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))


def _title(url: str) -> str:
    parts = urlsplit(url)
    language = parts.path.rstrip("/").partition("/trending")[2].strip("/")
    since = dict(parse_qsl(parts.query)).get("since")
    return " ".join(word for word in ("GitHub trending", language, since) if word)
