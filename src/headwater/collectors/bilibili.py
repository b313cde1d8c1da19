"""`video.bilibili`: the videos of an uploader, newest first, by the site's own web API.

Requests to it carry a signature (WBI) made with keys that the site changes daily; they are asked for once a day and
remembered, so a visit is one request. What its risk control answers is told as what it is.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import md5
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from pydantic import Field

from headwater.collectors.answer import changed_structure, number_of, read_json, read_list, text_of, time_of
from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.errors import FailureKind, InputError, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response, public_url
from headwater.model import Item, Json, SourceMetadata

API: Final = "https://api.bilibili.com"
SPACE: Final = "https://space.bilibili.com"
PAGE_SIZE = 30
KEY_SECONDS = 86_400.0

_ADDRESS: Final = re.compile(
    r"(?:https?://)?(?:space\.|m\.)?bilibili\.com/(?:space/)?(\d+)(?:[/?#].*)?\Z", re.IGNORECASE
)
_ANSWERS: Final = frozenset((412,))  # how the risk control answers where it does not even look at a request
# The order in which the site's own script takes the characters of both keys.
_MIX: Final = (
    *(
        46,
        47,
        18,
        2,
        53,
        8,
        23,
        32,
        15,
        50,
        10,
        31,
        58,
        3,
        45,
        35,
        27,
        43,
        5,
        49,
        33,
        9,
        42,
        19,
        29,
        28,
        14,
        39,
    ),
    *(12, 38, 41, 13),
)
_NOT_SIGNED: Final = re.compile(r"[!'()*]")
_RISK_CODES: Final = frozenset((-352, -412))
_STALE_KEY_CODES: Final = frozenset((-352, -403))
_KINDS: Final = {
    -101: FailureKind.UNAUTHORIZED,
    -352: FailureKind.FORBIDDEN,
    -400: FailureKind.CLIENT_ERROR,
    -403: FailureKind.FORBIDDEN,
    -404: FailureKind.NOT_FOUND,
    -412: FailureKind.FORBIDDEN,
    -626: FailureKind.NOT_FOUND,
    -799: FailureKind.RATE_LIMITED,
}


class BilibiliConfig(StructuredConfig):
    uid: int = Field(ge=1, description="The uploader's number, as in https://space.bilibili.com/UID.")
    limit: int = Field(default=PAGE_SIZE, ge=1, le=300, description="How many videos at most in one visit.")
    base_url: str = Field(
        default=API, pattern=r"^https?://", description="The API's address, for a mirror of it."
    )


@dataclass(frozen=True, slots=True)
class Key:
    """What requests are signed with, and when it was asked for."""

    text: str
    at: float


class RefusedKeyError(VisitError):
    """An answer that a signature with an old key gets, among other things."""


class BilibiliCollector(Collector):
    config_model = BilibiliConfig
    remembers = True

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        if url is not None:
            found = _ADDRESS.match(url)
            if found is None:
                raise InputError(
                    "{url} is not an uploader of bilibili; give it as https://space.bilibili.com/UID",
                    url=public_url(url),
                )
            config = {"uid": int(found[1]), **config}
        return f"{SPACE}/{config.get('uid', '')}", config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        key = read_memory(fetch_request.memory)
        if key is None or self._clock() - key.at > KEY_SECONDS:
            return await self._collect_with_new_key(fetch_request)
        try:
            return await self._collect_videos(fetch_request, key, 0)
        except RefusedKeyError:  # the site changed its keys, or it means us: a new key tells which
            result = await self._collect_with_new_key(fetch_request)
            return replace(result, requests=result.requests + 1)

    async def _collect_with_new_key(self, fetch_request: FetchRequest) -> FetchResult:
        address = f"{fetch_request.config.base_url.rstrip('/')}/x/web-interface/nav"
        response = await _ask(fetch_request, address)
        return await self._collect_videos(
            fetch_request, Key(parse_key(response), self._clock()), response.requests
        )

    async def _collect_videos(self, fetch_request: FetchRequest, key: Key, requests: int) -> FetchResult:
        """Page after page until there are enough videos or one is known."""
        config: BilibiliConfig = fetch_request.config
        videos: list[Item] = []
        received, number = 0, 1
        while True:
            query = sign(
                {"mid": config.uid, "ps": PAGE_SIZE, "pn": number, "order": "pubdate", "platform": "web"},
                key.text,
                int(self._clock()),
            )
            response = await _ask(
                fetch_request, f"{config.base_url.rstrip('/')}/x/space/wbi/arc/search?{query}"
            )
            requests, received = requests + response.requests, received + response.bytes_received
            page, total = parse_videos(response)
            videos += page
            if not page or len(videos) >= min(config.limit, total):
                break
            if await fetch_request.known([video.external_id for video in page]):
                break
            number += 1
        author = videos[0].author if videos else None
        return replace(
            FetchResult.of(response),
            unchanged=False,
            validators=NO_VALIDATORS,  # the number of plays changes with every answer
            items=tuple(videos[: config.limit]),
            metadata=SourceMetadata(author, site_url=f"{SPACE}/{config.uid}"),
            permanent_url=None,  # the config says where it is
            requests=requests,
            bytes_received=received,
            memory=orjson.dumps({"key": key.text, "at": key.at}),
        )


async def _ask(fetch_request: FetchRequest, url: str) -> Response:
    request = request_for(fetch_request.source, fetch_request.config, url)
    response = await fetch_request.fetcher.get(replace(request, validators=NO_VALIDATORS, answers=_ANSWERS))
    if response.status in _ANSWERS and not response.body.lstrip().startswith(b"{"):
        raise _refusal(response, -412, "")
    return response


def sign(parameters: Mapping[str, object], key: str, now: int) -> str:
    """The query of a request with its signature, as the site's own script makes it."""
    texts = {name: _NOT_SIGNED.sub("", str(value)) for name, value in {**parameters, "wts": now}.items()}
    query = urlencode(sorted(texts.items()), quote_via=quote)
    return f"{query}&w_rid={md5((query + key).encode(), usedforsecurity=False).hexdigest()}"


def mix_key(image_key: str, sub_key: str) -> str:
    both = image_key + sub_key
    return "".join(both[place] for place in _MIX)


def parse_key(response: Response) -> str:
    """The key of the day. The site gives it to every caller, in an answer that also says "not signed in"."""
    data = read_json(response)
    try:
        urls = data["data"]["wbi_img"]
        parts = [urls[name].rpartition("/")[2].partition(".")[0] for name in ("img_url", "sub_url")]
        return mix_key(*parts)
    except (KeyError, TypeError, AttributeError, IndexError):
        _refuse_code(response, data)
        raise changed_structure(response.url, "data.wbi_img") from None


def parse_videos(response: Response) -> tuple[list[Item], int]:
    """The videos of a page, and how many there are in all."""
    data = read_json(response)
    _refuse_code(response, data)
    listed = read_list(data, "data.list.vlist", response.url)
    videos = [video for each in listed if (video := _video(each)) is not None]
    if listed and not videos:
        raise changed_structure(response.url, "data.list.vlist[].bvid, title or created")
    page = data["data"].get("page")
    total = number_of(page.get("count")) if isinstance(page, dict) else None
    if total and not listed and page.get("pn") == 1:
        raise changed_structure(response.url, "data.list.vlist[]")
    return videos, total or 0


def _video(data: Any) -> Item | None:
    if not isinstance(data, dict):
        return None
    number, title, created = (
        text_of(data.get("bvid")),
        text_of(data.get("title")),
        time_of(data.get("created")),
    )
    if number is None or title is None or created is None:
        return None
    address = f"https://www.bilibili.com/video/{number}"
    picture = text_of(data.get("pic"))
    return Item(
        external_id=number,
        url=address,
        title=title,
        author=text_of(data.get("author")),
        summary=text_of(data.get("description")),
        published_at=created,
        image_url=f"https:{picture}" if picture and picture.startswith("//") else picture,
        comments_url=address,
        comments_count=number_of(data.get("comment")),
    )


def _refuse_code(response: Response, data: Any) -> None:
    """VisitError when the answer is not good by its own word: every answer of this API has a code."""
    code = data.get("code") if isinstance(data, dict) else None
    if not isinstance(code, int):
        raise changed_structure(response.url, "code")
    inside = data.get("data")
    if code == 0 and isinstance(inside, dict) and "v_voucher" in inside:
        raise _refusal(response, -352, "")  # "good", but all it has is a ticket to a captcha
    if code != 0:
        raise _refusal(response, code, text_of(data.get("message")) or "")


def _refusal(response: Response, code: int, message: str) -> VisitError:
    url = public_url(response.url.partition("?")[0])
    if code in _RISK_CODES:
        template = (
            "{url}: bilibili's risk control refuses us (code {code}); visit less often, or set the cookies of a"
            " browser session (buvid3) in its config"
        )
    elif code == -799:
        template = "{url}: bilibili asks for fewer requests (code {code})"
    else:
        template = "{url}: bilibili returned code {code}: {message}"
    kind = _KINDS.get(code, FailureKind.SERVER_ERROR)
    error = RefusedKeyError if code in _STALE_KEY_CODES else VisitError
    return error(kind, template, http_status=response.status, url=url, code=code, message=message[:200])


def read_memory(memory: bytes | None) -> Key | None:
    try:
        found = orjson.loads(memory or b"null")
        return Key(str(found["key"]), float(found["at"]))
    except (ValueError, TypeError, KeyError):
        return None
