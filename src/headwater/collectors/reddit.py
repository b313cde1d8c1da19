"""`api.reddit`: the posts of a subreddit, as JSON with scores, or as a feed where Reddit gives no JSON.

Reddit says in headers how many requests it still takes and from when on it takes them again; that is obeyed for the
whole host. Where it refuses JSON (status 403) the feed is asked for at once; where it limits it (429), at the next
visit. Either way the next try with JSON is a day later.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from typing import Any, Final, Literal, Self
from urllib.parse import parse_qs, urlsplit

import orjson
from pydantic import Field, model_validator

from headwater.collectors.answer import (
    changed_structure,
    number_of,
    read_json,
    read_list,
    refuse_captcha,
    text_of,
    time_of,
)
from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.collectors.feed import read_feed
from headwater.errors import FailureKind, InputError, VisitError
from headwater.fetch.faults import status_error
from headwater.fetch.message import NO_VALIDATORS, Response, public_url
from headwater.formats.feeds.feed import Feed, to_item
from headwater.model import Hints, Item, Json, SourceMetadata

SITE: Final = "https://www.reddit.com"
PAGE_SIZE = 100  # the most Reddit gives at once
FEED_FOR_SECONDS = 86_400.0  # how long JSON is not asked for after it was refused

_ADDRESS: Final = re.compile(r"(?P<base>https?://[^/]+)?/r/(?P<name>\w+)(?:/(?P<listing>\w+))?/?\Z")
_OWN_HOST: Final = re.compile(r"(?:\w+\.)?reddit\.com\Z", re.IGNORECASE)
_ANSWERS: Final = frozenset((403, 404, 429))
_LINK: Final = re.compile(r'<a href="([^"]+)">\[link\]</a>')


class RedditConfig(StructuredConfig):
    subreddit: str = Field(pattern=r"^\w{2,30}$", description="The subreddit, without r/.")
    listing: Literal["hot", "new", "top", "rising"] = Field(
        default="hot", description="Which of its listings."
    )
    period: Literal["hour", "day", "week", "month", "year", "all"] = Field(
        default="day", description="The time that the listing top looks back."
    )
    limit: int = Field(default=50, ge=1, le=500, description="How many posts at most in one visit.")
    min_score: int = Field(
        default=0, ge=0, le=1_000_000, description="Take only posts of this score or more."
    )
    way: Literal["auto", "json", "rss"] = Field(
        default="auto",
        description="How to ask: json has scores, rss is refused less often, auto takes json while it can.",
    )
    base_url: str = Field(default=SITE, pattern=r"^https?://", description="The site's address.")

    @model_validator(mode="after")
    def _feeds_have_no_scores(self) -> Self:
        if self.way == "rss" and self.min_score:
            raise ValueError("the feed has no scores; min_score needs way=json or way=auto")
        return self


class RedditCollector(Collector):
    config_model = RedditConfig
    remembers = True

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        if url is not None:
            config = {**_read_address(url), **config}
        listing, period = config.get("listing", "hot"), config.get("period", "day")
        url = f"{str(config.get('base_url', SITE)).rstrip('/')}/r/{config.get('subreddit', '')}/{listing}/"
        return f"{url}?t={period}" if listing == "top" else url, config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: RedditConfig = fetch_request.config
        memory = fetch_request.memory
        may_fall_back = config.way == "auto" and not config.min_score  # a feed has no scores
        use_feed = config.way == "rss"
        if may_fall_back:
            limited = fetch_request.source.last_error_kind is FailureKind.RATE_LIMITED
            use_feed = limited or self._clock() < read_memory(memory)
            if limited:
                memory = self._feed_from_now()
        if not use_feed:
            try:
                return await _collect_json(fetch_request)
            except VisitError as error:
                # What Reddit has a reason for is the subreddit's own state and the same either way.
                if not may_fall_back or error.http_status != 403 or "reason" in error.values:
                    raise
                memory = self._feed_from_now()
                refused = 1
        else:
            refused = 0
        result = await _collect_feed(fetch_request)
        return replace(result, requests=result.requests + refused, memory=memory)

    def _feed_from_now(self) -> bytes:
        return orjson.dumps({"feed_until": self._clock() + FEED_FOR_SECONDS})


async def _collect_json(fetch_request: FetchRequest) -> FetchResult:
    """Page after page until there are enough posts, one is known, or Reddit wants no more requests."""
    config: RedditConfig = fetch_request.config
    posts: list[Item] = []
    after, requests, received = None, 0, 0
    while True:
        size = min(config.limit - len(posts), PAGE_SIZE)
        query = f"limit={size}&raw_json=1" + (f"&t={config.period}" if config.listing == "top" else "")
        response = await _ask(
            fetch_request, f"{config.listing}.json?{query}" + (f"&after={after}" if after else "")
        )
        requests, received = requests + response.requests, received + response.bytes_received
        page, after = parse_listing(response)
        posts += page
        wait = rest_wanted(response.headers)
        if after is None or not page or wait or len(posts) >= config.limit:
            break
        if await fetch_request.known([post.external_id for post in page]):
            break
    good = tuple(post for post in posts[: config.limit] if (post.score or 0) >= config.min_score)
    return replace(
        FetchResult.of(response),
        unchanged=False,
        validators=NO_VALIDATORS,  # scores change with every answer
        items=good,
        metadata=_metadata(config),
        hints=Hints(retry_after_seconds=wait),
        permanent_url=None,  # the config says where it is
        requests=requests,
        bytes_received=received,
        left_out_count=len(posts) - len(good),
    )


async def _collect_feed(fetch_request: FetchRequest) -> FetchResult:
    config: RedditConfig = fetch_request.config
    query = f"limit={min(config.limit, PAGE_SIZE)}" + (
        f"&t={config.period}" if config.listing == "top" else ""
    )
    response = await _ask(fetch_request, f"{config.listing}/.rss?{query}", conditional=True)
    result = replace(
        FetchResult.of(response),
        permanent_url=None,
        hints=Hints(retry_after_seconds=rest_wanted(response.headers)),
        metadata=_metadata(config),
    )
    return result if response.unchanged else replace(result, items=parse_feed(await read_feed(response)))


async def _ask(fetch_request: FetchRequest, path: str, *, conditional: bool = False) -> Response:
    """One answer that is a listing; VisitError tells what became of the subreddit."""
    config: RedditConfig = fetch_request.config
    url = f"{config.base_url.rstrip('/')}/r/{config.subreddit}/{path}"
    request = request_for(fetch_request.source, config, url)
    validators = request.validators if conditional else NO_VALIDATORS
    response = await fetch_request.fetcher.get(replace(request, validators=validators, answers=_ANSWERS))
    wait = rest_wanted(response.headers)
    if wait:
        fetch_request.fetcher.rest(url, wait)
    if response.status >= 400:
        raise _refusal(response, config.subreddit, wait)
    if (
        "/subreddits/search" in urlsplit(response.url).path
    ):  # where Reddit sends who asks for what is not there
        raise _missing(response, config.subreddit)
    return response


def _refusal(response: Response, subreddit: str, wait: float | None) -> VisitError:
    """The error for an answer that refuses."""
    if response.status == 429:
        return status_error(response.url, 429, wait or response.hints.retry_after_seconds)
    reason = read_reason(response.body)
    if response.status == 403:
        if reason is None:
            refuse_captcha(response)
            return status_error(response.url, 403, None)
        return VisitError(
            FailureKind.FORBIDDEN,
            "r/{subreddit} cannot be read: it is {reason}",
            http_status=403,
            subreddit=subreddit,
            reason=reason,
        )
    if reason is not None:
        return VisitError(
            FailureKind.NOT_FOUND,
            "r/{subreddit} is no more: it is {reason}",
            http_status=404,
            subreddit=subreddit,
            reason=reason,
        )
    return _missing(response, subreddit)


def _missing(response: Response, subreddit: str) -> VisitError:
    return VisitError(
        FailureKind.NOT_FOUND,
        "there is no subreddit r/{subreddit}; look at its spelling",
        http_status=response.status,
        subreddit=subreddit,
    )


def read_reason(body: bytes) -> str | None:
    """Reddit's word for why a subreddit cannot be read: private, banned, quarantined, …"""
    try:
        reason = orjson.loads(body).get("reason")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return reason[:60] if isinstance(reason, str) and reason else None


def rest_wanted(headers: Mapping[str, str]) -> float | None:
    """Seconds until Reddit takes requests again, when its headers say that this was the last one."""
    try:
        remaining, reset = float(headers["x-ratelimit-remaining"]), float(headers["x-ratelimit-reset"])
    except (KeyError, ValueError):
        return None
    return reset if remaining < 1 and 0 < reset < 86_400 else None


def parse_listing(response: Response) -> tuple[list[Item], str | None]:
    """The posts of a page of a listing, and what to ask the next page with."""
    data = read_json(response)
    children = read_list(data, "data.children", response.url)
    posts = [post for child in children if (post := _post(child, response.url)) is not None]
    if children and not posts:
        raise changed_structure(response.url, "data.children[].data.title")
    after = data["data"].get("after")
    return posts, after if isinstance(after, str) and after else None


def _post(child: Any, url: str) -> Item | None:
    data = child.get("data") if isinstance(child, dict) else None
    if not isinstance(data, dict):
        return None
    name, title, path = (text_of(data.get(key)) for key in ("name", "title", "permalink"))
    created = time_of(data.get("created_utc"))
    if name is None or title is None or path is None or created is None:
        return None
    discussion = SITE + path
    link = text_of(data.get("url"))
    flair = text_of(data.get("link_flair_text"))
    body = text_of(data.get("selftext_html"))
    return Item(
        external_id=name,
        url=link if link and link.startswith("http") and not data.get("is_self") else discussion,
        title=unescape(title),
        author=text_of(data.get("author")),
        content=_post_body(body) or body,
        published_at=created,
        image_url=_preview(data),
        comments_url=discussion,
        categories=(flair,) if flair else (),
        score=number_of(data.get("score")),
        comments_count=number_of(data.get("num_comments")),
    )


def _preview(data: dict[str, Any]) -> str | None:
    try:
        found = data["preview"]["images"][0]["source"]["url"]
    except (KeyError, IndexError, TypeError):
        found = data.get("thumbnail")
    return unescape(found) if isinstance(found, str) and found.startswith("http") else None


def parse_feed(feed: Feed) -> tuple[Item, ...]:
    """The posts of Reddit's feed, as alike to those of its JSON as the feed allows: the same post is the same item."""
    return tuple(_feed_post(to_item(entry)) for entry in feed.entries)


def _feed_post(item: Item) -> Item:
    link = _LINK.search(item.content or "")
    author = item.author.removeprefix("/u/") if item.author else None
    return replace(
        item,
        url=unescape(link[1]) if link else item.url,
        author=author,
        content=_post_body(item.content),
        updated_at=None,
        comments_url=item.url,
        categories=(),  # the subreddit's own name
    )


def _post_body(html: str | None) -> str | None:
    """The text of a post; Reddit's feed has a table of links around it."""
    _, opening, rest = (html or "").partition("<!-- SC_OFF -->")
    body, closing, _ = rest.partition("<!-- SC_ON -->")
    return body.strip() or None if opening and closing else None


def _metadata(config: RedditConfig) -> SourceMetadata:
    site = f"{config.base_url.rstrip('/')}/r/{config.subreddit}/"
    return SourceMetadata(f"r/{config.subreddit}: {config.listing}", site_url=site)


def read_memory(memory: bytes | None) -> float:
    """Until when to use the feed."""
    try:
        return float(orjson.loads(memory or b"{}").get("feed_until", 0.0))
    except (ValueError, TypeError, AttributeError):
        return 0.0


def _read_address(url: str) -> dict[str, str]:
    """Subreddit, listing and site from the address of a subreddit's page, or from r/name."""
    parts = urlsplit(url if "://" in url or url.startswith(("r/", "/r/")) else f"https://{url}")
    found = _ADDRESS.match("/" + parts.path.lstrip("/"))
    if found is None or found["listing"] not in (None, "hot", "new", "top", "rising"):
        raise InputError(
            "{url} is not a subreddit; give it as https://www.reddit.com/r/NAME", url=public_url(url)
        )
    config = {"subreddit": found["name"]}
    if found["listing"]:
        config["listing"] = found["listing"]
    if (period := parse_qs(parts.query).get("t")) is not None:
        config["period"] = period[0]
    if parts.netloc and not _OWN_HOST.match(parts.hostname or ""):
        config["base_url"] = f"{parts.scheme}://{parts.netloc}"
    return config
