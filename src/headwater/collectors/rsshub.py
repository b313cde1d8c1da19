"""`rss.hub`: a route of an RSSHub instance. What RSSHub says when a route fails is read from its error page."""

import re
from dataclasses import replace
from html import unescape
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import orjson
from pydantic import Field

from headwater.collectors.answer import refuse_captcha
from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_for
from headwater.collectors.feed import read_result
from headwater.errors import FailureKind, VisitError
from headwater.fetch.faults import status_error
from headwater.fetch.message import Response, public_url
from headwater.model import Json

PUBLIC_INSTANCE: Final = "https://rsshub.app"
_ERROR_STATUSES: Final = frozenset((400, 403, 404, 500, 502, 503, 504))
_OWN_PAGE: Final = re.compile(
    r"Welcome to RSSHub|Looks like something went wrong|docs\.rsshub\.app", re.IGNORECASE
)
_MESSAGE: Final = re.compile(r"Error Message:?\s*(?:<[^>]*>\s*)*([^<]{1,2000})", re.IGNORECASE)
_KINDS: Final = (
    ("ConfigNotFoundError", FailureKind.CLIENT_ERROR),  # before the one whose name is its end
    ("NotFoundError", FailureKind.NOT_FOUND),
    ("wrong path", FailureKind.NOT_FOUND),
    ("RejectError", FailureKind.FORBIDDEN),
    ("InvalidParameterError", FailureKind.CLIENT_ERROR),
    ("this route is empty", FailureKind.CHANGED_STRUCTURE),
)


class RssHubConfig(SourceConfig):
    route: str = Field(
        pattern=r"^/[^\s]+$", description="The route, as RSSHub documents it: /github/issue/DIYgod/RSSHub."
    )
    instance: str = Field(
        default=PUBLIC_INSTANCE, pattern=r"^https?://", description="The RSSHub instance to ask."
    )


class RssHubCollector(Collector):
    config_model = RssHubConfig

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        if url is not None:
            config = {**_read_address(url), **config}
        instance, route = config.get("instance", PUBLIC_INSTANCE), config.get("route")
        if isinstance(instance, str) and isinstance(route, str):
            url = instance.rstrip("/") + route
        return url or PUBLIC_INSTANCE, config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: RssHubConfig = fetch_request.config
        request = request_for(fetch_request.source, config, config.instance.rstrip("/") + config.route)
        response = await fetch_request.fetcher.get(replace(request, answers=_ERROR_STATUSES))
        refuse_error_page(response)
        refuse_captcha(response)
        if response.status >= 400:
            raise status_error(response.url, response.status, response.hints.retry_after_seconds)
        return replace(await read_result(response), permanent_url=None)  # the config says where it is


def refuse_error_page(response: Response) -> None:
    """VisitError with RSSHub's own words when the answer is one of its error pages."""
    message = read_error(response.body)
    if message is None:
        return
    kind = next((kind for mark, kind in _KINDS if mark in message), FailureKind.SERVER_ERROR)
    raise VisitError(
        kind,
        "{url}: RSSHub cannot make this feed: {problem}",
        http_status=response.status,
        retry_after_seconds=response.hints.retry_after_seconds,
        url=public_url(response.url),
        problem=message,
    )


def read_error(body: bytes) -> str | None:
    """What an error page of RSSHub says, as page or as JSON; None for any other document."""
    text = body[:100_000].decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        try:
            error = orjson.loads(body).get("error")
        except (orjson.JSONDecodeError, AttributeError):
            return None
        message = error.get("message") if isinstance(error, dict) else None
        return _one_line(message) if isinstance(message, str) else None
    if not re.match(r"\s*<(!doctype html|html)", text, re.IGNORECASE) or not _OWN_PAGE.search(text):
        return None
    found = _MESSAGE.search(text)
    return _one_line(unescape(found[1])) if found else "it shows its front page"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _read_address(url: str) -> dict[str, str]:
    """Instance and route from an address of either kind: rsshub://route, or that of the feed itself."""
    if url.lower().startswith("rsshub://"):
        return {"route": "/" + url[len("rsshub://") :].lstrip("/")}
    parts = urlsplit(url if "://" in url else f"https://{url}")
    config = {"instance": f"{parts.scheme}://{parts.netloc}"}
    if parts.path.strip("/"):
        config["route"] = urlunsplit(("", "", parts.path, parts.query, ""))
    return config
