"""`web.github_trending`: the repositories that GitHub shows as trending.

A repository is one item for as long as the source is there: it is news when it begins to trend, not again on every
day it still does. Which page is asked for follows from the source's address and its config, which wins.
"""

from dataclasses import replace
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from pydantic import Field

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_for
from headwater.collectors.scraper import ACCEPT_PAGE, in_thread_if_big, with_remembered_robots
from headwater.errors import FailureKind, ParseError
from headwater.formats.pages.trending import read_trending
from headwater.model import Json, SourceMetadata

PAGE = "https://github.com/trending"
_PARAMETERS = {"since": "since", "spoken_language": "spoken_language_code"}


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
    remembers = True

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        url = url or PAGE
        config = {**_read_address(url), **config}
        return trending_url(url, config), config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        return await with_remembered_robots(fetch_request, _collect)


async def _collect(fetch_request: FetchRequest) -> FetchResult:
    url = trending_url(fetch_request.source.url, dict(fetch_request.config))
    await fetch_request.fetcher.robots.check(url)
    response = await fetch_request.fetcher.get(
        replace(request_for(fetch_request.source, fetch_request.config, url), accept=ACCEPT_PAGE)
    )
    if response.unchanged:
        return FetchResult.of(response)
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
    return FetchResult.of(response, items=items, metadata=SourceMetadata(title=_title(url), site_url=url))


def trending_url(url: str, config: Json) -> str:
    """The page to ask for: the source's address with what its config says put in."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    head, trending, language = parts.path.rstrip("/").partition("/trending")
    query = dict(parse_qsl(parts.query))
    if config.get("language"):
        language = "/" + quote(str(config["language"]).strip().lower().replace(" ", "-"), safe="+%")
    for key, parameter in _PARAMETERS.items():
        if config.get(key):
            query[parameter] = str(config[key])
    if query.get("since") == "daily":
        del query["since"]  # as it is without
    path = f"{head}/trending{language}" if trending or not head or language else head
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(sorted(query.items())), ""))


def _read_address(url: str) -> dict[str, str]:
    """What the address of a trending page says of the config."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    found = {key: query[parameter] for key, parameter in _PARAMETERS.items() if query.get(parameter)}
    if language := unquote(parts.path.rstrip("/").partition("/trending")[2].strip("/")):
        found["language"] = language
    return found


def _title(url: str) -> str:
    parts = urlsplit(url)
    language = parts.path.rstrip("/").partition("/trending")[2].strip("/")
    since = dict(parse_qsl(parts.query)).get("since")
    return " ".join(word for word in ("GitHub trending", language, since) if word)
