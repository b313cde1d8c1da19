"""`twitter.feed`, `twitter.list` and `twitter.bookmarks`: by X's official API with a token of the user's own.

Without a token a bridge may turn them into a feed; without either they are skipped. X counts, and bills, every post
that it hands out: a visit asks for what is newer than the newest post that is known, where the API can be asked that.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from pydantic import Field

from headwater.collectors.answer import changed_structure, read_json, text_of
from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, request_for
from headwater.collectors.feed import read_result
from headwater.errors import FailureKind, Text, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response, public_url
from headwater.formats.dates import parse_date
from headwater.formats.html import collapse, text_as_html
from headwater.model import Enclosure, Item, Json, SourceMetadata
from headwater.threads import read_aside

SITE: Final = "https://x.com"
PAGE_SIZE: Final = 100
LEAST: Final = 5  # posts that the API gives at least
TITLE_CHARACTERS: Final = 100
_USER: Final = re.compile(
    r"(?:https?://)?(?:www\.|mobile\.)?(?:x|twitter)\.com/(\w{1,15})/?(?:[?#].*)?\Z", re.IGNORECASE
)
_LIST: Final = re.compile(
    r"(?:https?://)?(?:www\.|mobile\.)?(?:x|twitter)\.com/i/lists/(\d{1,20})/?", re.IGNORECASE
)
_FIELDS: Final = {
    "tweet.fields": "created_at,author_id,entities,attachments,referenced_tweets,note_tweet,lang",
    "expansions": "author_id,attachments.media_keys,referenced_tweets.id,referenced_tweets.id.author_id",
    "user.fields": "name,username",
    "media.fields": "url,preview_image_url,type,alt_text",
}


class TwitterConfig(SourceConfig):
    bridge_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="The address at which your bridge (Nitter, RSSHub, RSS-Bridge) serves this as a feed.",
    )
    replies: bool = Field(default=False, description="By the API: whether replies become items.")
    reposts: bool = Field(
        default=True, description="By the API: whether posts of others that are passed on do."
    )
    limit: int = Field(
        default=25,
        ge=LEAST,
        le=800,
        description="By the API: how many posts at most in one visit; X bills each.",
    )
    base_url: str = Field(
        default="https://api.x.com", pattern=r"^https?://", description="The API's address."
    )


class TwitterCollector(Collector):
    config_model = TwitterConfig
    remembers = True

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        return url or config.get("bridge_url"), config

    def why_skipped(self, config: Any) -> Text | None:
        if config.bridge_url or config.bearer_token:
            return None
        return Text(
            "X has no feed to collect; a bearer_token for its API in their config makes them collectable, or a"
            " bridge_url"
        )

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: TwitterConfig = fetch_request.config
        if config.bridge_url:
            request = request_for(fetch_request.source, config, config.bridge_url)
            result = await read_result(await fetch_request.fetcher.get(request))
            return replace(result, permanent_url=None)  # the config says where it is
        return await _Visit(fetch_request, self._clock).make()


@dataclass(frozen=True, slots=True)
class _Memory:
    """Whom the posts are of, and the newest that is known."""

    user: str | None = None
    name: str | None = None
    newest: str | None = None

    @classmethod
    def read(cls, memory: bytes | None) -> "_Memory":
        try:
            found = orjson.loads(memory or b"{}")
            return cls(found.get("user"), found.get("name"), found.get("newest"))
        except (orjson.JSONDecodeError, AttributeError):
            return cls()

    def to_bytes(self) -> bytes:
        return orjson.dumps({"user": self.user, "name": self.name, "newest": self.newest})


class _Visit:
    """One visit by the API, version 2."""

    def __init__(self, fetch_request: FetchRequest, clock: Callable[[], float]) -> None:
        self._request = fetch_request
        self._config: TwitterConfig = fetch_request.config
        self._clock = clock
        self._memory = _Memory.read(fetch_request.memory)
        self._requests = 0
        self._received = 0
        self._last: Response | None = None

    async def make(self) -> FetchResult:
        path, about = await self._find()
        items: dict[str, Item] = {}
        newest = self._memory.newest
        params = dict(_FIELDS)
        if path.endswith("/tweets") and path.startswith("/2/users/"):
            left_out = [
                name
                for name, wanted in (("replies", self._config.replies), ("retweets", self._config.reposts))
                if not wanted
            ]
            params |= {"exclude": ",".join(left_out)} if left_out else {}
            params |= {"since_id": newest} if newest else {}
        while True:
            size = min(max(self._config.limit - len(items), LEAST), PAGE_SIZE)
            answer = await self._get(path, {"max_results": str(size), **params})
            posts = answer.get("data") or []
            if not isinstance(posts, list):
                raise changed_structure(self._request.source.url, "data")
            page = await read_aside(len(posts) * 1_000, _read_posts, posts, answer.get("includes"))
            items |= {item.external_id: item for item in page}
            newest = max(
                (newest or "", *(item.external_id for item in page)), key=lambda each: (len(each), each)
            )
            meta = answer.get("meta")
            following = text_of(meta.get("next_token")) if isinstance(meta, Mapping) else None
            if following is None or len(items) >= self._config.limit:
                break
            if await self._request.known([item.external_id for item in page]):
                break
            params["pagination_token"] = following
        assert self._last is not None  # noqa: S101 - requests were made
        return replace(
            FetchResult.of(self._last),
            unchanged=False,
            items=tuple(items.values())[: self._config.limit],
            metadata=about,
            validators=NO_VALIDATORS,
            permanent_url=None,
            requests=self._requests,
            bytes_received=self._received,
            memory=replace(self._memory, newest=newest or None).to_bytes(),
        )

    async def _find(self) -> tuple[str, SourceMetadata]:
        """Where the posts are, and what the source is called."""
        url, kind = self._request.source.url, self._request.source.type
        if kind == "twitter.list":
            found = _LIST.match(url)
            if found is None:
                raise _not_found(url)
            if self._memory.name is None:
                said = await self._look_up(f"/2/lists/{found[1]}", {})
                self._memory = replace(
                    self._memory, user=found[1], name=text_of(said.get("name")) or found[1]
                )
            return f"/2/lists/{found[1]}/tweets", SourceMetadata(
                self._memory.name, site_url=f"{SITE}/i/lists/{found[1]}"
            )
        if self._memory.user is None:
            if kind == "twitter.bookmarks":
                said = await self._look_up("/2/users/me", {})
            else:
                user = _USER.match(url)
                if user is None:
                    raise _not_found(url)
                said = await self._look_up(
                    f"/2/users/by/username/{user[1]}", {"user.fields": "name,username"}
                )
            number, name = text_of(said.get("id")), text_of(said.get("name"))
            if number is None:
                raise changed_structure(url, "data.id")
            self._memory = replace(self._memory, user=number, name=name)
        if kind == "twitter.bookmarks":
            return f"/2/users/{self._memory.user}/bookmarks", SourceMetadata(site_url=f"{SITE}/i/bookmarks")
        return f"/2/users/{self._memory.user}/tweets", SourceMetadata(self._memory.name, site_url=url)

    async def _look_up(self, path: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        data = (await self._get(path, params)).get("data")
        return data if isinstance(data, Mapping) else {}

    async def _get(self, path: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        url = f"{self._config.base_url.rstrip('/')}{path}" + (f"?{urlencode(params)}" if params else "")
        request = request_for(self._request.source, self._config, url)
        response = await self._request.fetcher.get(
            replace(request, accept="application/json", validators=NO_VALIDATORS, answers=frozenset((429,)))
        )
        self._last = response
        self._requests += response.requests
        self._received += response.bytes_received
        if response.status == 429:
            raise VisitError(
                FailureKind.RATE_LIMITED,
                "{url}: the server asks for fewer requests (status 429).",
                http_status=429,
                retry_after_seconds=self._rest(response),
                url=public_url(url),
            )
        answer = read_json(response)
        if not isinstance(answer, Mapping):
            raise changed_structure(url, "data")
        errors = answer.get("errors")
        if "data" not in answer and isinstance(errors, list) and errors:
            raise _refusal(errors[0], url, response)
        return answer

    def _rest(self, response: Response) -> float | None:
        """Seconds until X takes requests again, by its own word."""
        try:
            seconds = float(response.headers["x-rate-limit-reset"]) - self._clock()
        except (KeyError, ValueError):
            return None
        return seconds if 0 < seconds < 86_400 else None


def _refusal(error: Any, url: str, response: Response) -> VisitError:
    """What X says where it answers 200 all the same: of users who are gone, suspended or protected."""
    said = error if isinstance(error, Mapping) else {}
    is_missing = str(said.get("type")).endswith("resource-not-found")
    return VisitError(
        FailureKind.NOT_FOUND if is_missing else FailureKind.FORBIDDEN,
        "{url}: X answers: {problem}",
        http_status=response.status,
        url=public_url(url),
        problem=collapse(text_of(said.get("detail")) or text_of(said.get("title")) or str(error))[:300],
    )


def _not_found(url: str) -> VisitError:
    return VisitError(
        FailureKind.NOT_FOUND, "{url} is not the address of a profile or a list on X", url=public_url(url)
    )


def _read_posts(posts: list[Any], includes: Any) -> list[Item]:
    included = includes if isinstance(includes, Mapping) else {}
    users = _by("id", included.get("users"))
    media = _by("media_key", included.get("media"))
    others = _by("id", included.get("tweets"))
    return [
        _item(each, users, media, others)
        for each in posts
        if isinstance(each, Mapping) and text_of(each.get("id"))
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _by(key: str, listed: Any) -> dict[str, Mapping[str, Any]]:
    return {str(each[key]): each for each in _list(listed) if isinstance(each, Mapping) and key in each}


def _item(
    post: Mapping[str, Any],
    users: Mapping[str, Mapping[str, Any]],
    media: Mapping[str, Mapping[str, Any]],
    others: Mapping[str, Mapping[str, Any]],
) -> Item:
    number = str(post["id"])
    author = users.get(str(post.get("author_id")), {})
    name = text_of(author.get("username"))
    text = _text_of_post(post)
    parts = [text_as_html(text)]
    files = _files(post, media)
    for each in _list(post.get("referenced_tweets")):
        other = others.get(str(each.get("id"))) if isinstance(each, Mapping) else None
        if other is None or each.get("type") == "replied_to":
            continue
        by = text_of(users.get(str(other.get("author_id")), {}).get("username"))
        quoted = (
            f"<blockquote>{f'<p>@{by}</p>' if by else ''}{text_as_html(_text_of_post(other))}</blockquote>"
        )
        # A repost is cut off in its own text; the whole is what is passed on.
        parts = [quoted] if each.get("type") == "retweeted" else [*parts, quoted]
        files = files or _files(other, media)
    at = parse_date(text_of(post.get("created_at")))
    line = collapse(text)
    tags = (post.get("entities") or {}).get("hashtags") if isinstance(post.get("entities"), Mapping) else None
    return Item(
        external_id=number,
        url=f"{SITE}/{name or 'i'}/status/{number}",
        title=line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…",
        author=text_of(author.get("name")) or name,
        content="\n".join(parts),
        published_at=at.timestamp() if at else None,
        language=text_of(post.get("lang")) if post.get("lang") != "und" else None,
        image_url=next((file.url for file in files), None),
        categories=tuple(
            tag for each in _list(tags) if isinstance(each, Mapping) and (tag := text_of(each.get("tag")))
        ),
        enclosures=files,
    )


def _text_of_post(post: Mapping[str, Any]) -> str:
    """The whole text, with the addresses that X's short ones stand for."""
    note = post.get("note_tweet")
    said = note if isinstance(note, Mapping) and text_of(note.get("text")) else post
    text = text_of(said.get("text")) or ""
    entities = said.get("entities")
    for each in _list(entities.get("urls")) if isinstance(entities, Mapping) else ():
        if isinstance(each, Mapping) and (short := text_of(each.get("url"))):
            text = text.replace(
                short, text_of(each.get("unwound_url")) or text_of(each.get("expanded_url")) or short
            )
    for sign, entity in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(sign, entity)
    return text


def _files(post: Mapping[str, Any], media: Mapping[str, Mapping[str, Any]]) -> tuple[Enclosure, ...]:
    attached = post.get("attachments")
    keys = attached.get("media_keys") if isinstance(attached, Mapping) else None
    found = []
    for key in _list(keys):
        each = media.get(str(key), {})
        if url := text_of(each.get("url")) or text_of(each.get("preview_image_url")):
            found.append(Enclosure(url, "image/jpeg", title=text_of(each.get("alt_text"))))
    return tuple(found)
