"""`api.hackernews`: the lists of Hacker News, by its official API of one request for a list and one for each story.

Only stories that are not known are asked for. One that has too few points stays in the collector's memory and is
looked at again when it can have enough, about half-way to when it would at its pace, until it does or drops off
the list: a handful of requests for a story, not one for each visit.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import unescape
from typing import Any, Final, Literal, Self

import orjson
from pydantic import Field, model_validator

from headwater.collectors.answer import changed_structure, number_of, read_json, read_list, text_of, time_of
from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.errors import FailureKind, InputError, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response
from headwater.model import Item, Json, SourceMetadata

log = logging.getLogger(__name__)

API: Final = "https://hacker-news.firebaseio.com/v0"
SITE: Final = "https://news.ycombinator.com"
AT_ONCE = 4
MOST_LOOKS = 100  # in one visit; the rest waits for the next
SOONEST_LOOK_SECONDS = 600.0
LATEST_LOOK_SECONDS = 6 * 3600.0
NEVER = 4e9

_PAGES: Final = {"top": "news", "new": "newest", "best": "best", "show": "show", "ask": "ask", "job": "jobs"}
_LIST_ADDRESS: Final = re.compile(r"(?P<base>.*)/(?P<list>top|new|best|show|ask|job)stories\.json\Z")
_SITE_ADDRESS: Final = re.compile(
    r"(?:https?://)?news\.ycombinator\.com(?:/(|news|newest|best|show|ask|jobs))?\Z", re.IGNORECASE
)


class HackerNewsConfig(StructuredConfig):
    list: Literal["top", "new", "best", "show", "ask", "job"] = Field(
        default="top", description="Which list to follow."
    )
    limit: int = Field(default=30, ge=1, le=500, description="How many stories from the head of the list.")
    min_score: int = Field(
        default=0, ge=0, le=100_000, description="Take a story only once it has this many points."
    )
    base_url: str = Field(
        default=API, pattern=r"^https?://", description="The API's address, for a mirror of it."
    )

    @model_validator(mode="after")
    def _jobs_have_no_score(self) -> Self:
        if self.list == "job" and self.min_score:
            raise ValueError("jobs have no score; leave out min_score")
        return self


@dataclass(frozen=True, slots=True)
class Story:
    """One answer for one id: the item, or why there is none (yet)."""

    item: Item | None
    posted_at: float = 0.0

    @property
    def score(self) -> int:
        return (self.item.score if self.item else None) or 0


class HackerNewsCollector(Collector):
    config_model = HackerNewsConfig
    remembers = True

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        if url is not None:
            config = {**_read_address(url), **config}
        base = str(config.get("base_url", API)).rstrip("/")
        return f"{base}/{config.get('list', 'top')}stories.json", config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: HackerNewsConfig = fetch_request.config
        address = f"{config.base_url.rstrip('/')}/{config.list}stories.json"
        response = await fetch_request.fetcher.get(request_for(fetch_request.source, config, address))
        waiting = read_memory(fetch_request.memory)
        known_count, listed_count = 0, len(waiting)
        if not response.unchanged:
            ids = parse_list(response)
            known_count, waiting = await _choose(fetch_request, ids, config.limit, waiting)
            listed_count = len(ids)
        now = self._clock()
        due = sorted((story for story, at in waiting.items() if at <= now), key=lambda story: waiting[story])
        looked_at, requests, received = await _look_at(fetch_request, due[:MOST_LOOKS])
        items = []
        for story_id, story in looked_at.items():
            if story.item is not None and story.score >= config.min_score:
                items.append(story.item)
                del waiting[story_id]
            else:
                waiting[story_id] = next_look_at(story, config.min_score, now)
        return replace(
            FetchResult.of(response),
            unchanged=response.unchanged and not looked_at,
            items=tuple(items),
            metadata=SourceMetadata(f"Hacker News: {config.list}", site_url=f"{SITE}/{_PAGES[config.list]}"),
            permanent_url=None,  # the config says where it is
            requests=response.requests + requests,
            bytes_received=response.bytes_received + received,
            known_count=known_count,
            left_out_count=listed_count - known_count - len(items),
            memory=orjson.dumps({str(story): at for story, at in waiting.items()}),
        )


async def _choose(
    fetch_request: FetchRequest, ids: list[int], limit: int, waiting: dict[int, float]
) -> tuple[int, dict[int, float]]:
    """How many of the head of the list are known, and when to look at each of the others."""
    on_list = set(ids)
    waiting = {story: at for story, at in waiting.items() if story in on_list}
    head = [story for story in ids[:limit] if story not in waiting]
    known = await fetch_request.known([str(story) for story in head])
    return len(known), waiting | {story: 0.0 for story in head if str(story) not in known}


async def _look_at(fetch_request: FetchRequest, ids: Iterable[int]) -> tuple[dict[int, Story], int, int]:
    """The stories that could be had, and what they cost. VisitError when none could.

    A bad answer costs its story alone, which is asked for again at the next visit; at a word that there are too
    many requests, no more are sent.
    """
    stories: dict[int, Story] = {}
    failures: list[VisitError] = []
    requests = received = 0
    left = iter(list(ids))

    async def work() -> None:
        nonlocal requests, received
        for story_id in left:  # shared by all workers
            if any(failure.kind is FailureKind.RATE_LIMITED for failure in failures):
                return
            url = f"{fetch_request.config.base_url.rstrip('/')}/item/{story_id}.json"
            request = replace(
                request_for(fetch_request.source, fetch_request.config, url), validators=NO_VALIDATORS
            )
            requests += 1
            try:
                response = await fetch_request.fetcher.get(request)
                received += response.bytes_received
                stories[story_id] = parse_story(response)
            except VisitError as error:
                failures.append(error)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    if failures and not stories:
        raise failures[0]
    if failures:
        log.info(
            "source %s: %s stories could not be had: %s", fetch_request.source.id, len(failures), failures[0]
        )
    return stories, requests, received


def parse_list(response: Response) -> list[int]:
    """The ids of a list, in its order."""
    ids = read_list(read_json(response), "", response.url)
    if not all(isinstance(each, int) for each in ids):
        raise changed_structure(response.url, "a list of numbers")
    return list(dict.fromkeys(ids))


def parse_story(response: Response) -> Story:
    """A story, or that there is none: deleted, or not there yet."""
    data = read_json(response)
    if data is None:
        return Story(None)
    if not isinstance(data, dict) or number_of(data.get("id")) is None:
        raise changed_structure(response.url, "id")
    if data.get("deleted") or data.get("dead"):
        return Story(None, NEVER)
    title, posted_at = text_of(data.get("title")), time_of(data.get("time"))
    if title is None or posted_at is None:
        raise changed_structure(response.url, "title" if title is None else "time")
    discussion = f"{SITE}/item?id={data['id']}"
    return Story(
        Item(
            external_id=str(data["id"]),
            url=text_of(data.get("url")) or discussion,
            title=unescape(title),
            author=text_of(data.get("by")),
            content=text_of(data.get("text")),
            published_at=posted_at,
            comments_url=discussion,
            score=number_of(data.get("score")),
            comments_count=number_of(data.get("descendants")),
        ),
        posted_at,
    )


def next_look_at(story: Story, min_score: int, now: float) -> float:
    """When a story that does not count yet is worth another look."""
    if story.item is None:
        return NEVER if story.posted_at == NEVER else now + SOONEST_LOOK_SECONDS
    age = max(now - story.posted_at, SOONEST_LOOK_SECONDS)
    pace = max(story.score - 1, 0) / age  # a story begins with its author's own point
    wait = (min_score - story.score) / pace if pace else age
    return now + min(max(min(wait, age) / 2, SOONEST_LOOK_SECONDS), LATEST_LOOK_SECONDS)


def read_memory(memory: bytes | None) -> dict[int, float]:
    """When to look at which story again. A memory that cannot be read costs some requests, nothing else."""
    try:
        found: dict[str, Any] = orjson.loads(memory or b"{}")
        return {int(story): float(at) for story, at in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _read_address(url: str) -> dict[str, str]:
    """What an address says of the list: a page of the site, or the list's own address in the API."""
    if found := _LIST_ADDRESS.match(url):
        base = {} if found["base"] == API else {"base_url": found["base"]}
        return {**base, "list": found["list"]}
    if not (page := _SITE_ADDRESS.match(url)):
        raise InputError("{url} is not a list of Hacker News; give one of its pages, or no address", url=url)
    lists = [name for name, each in _PAGES.items() if each == page[1]]
    return {"list": lists[0]} if lists else {}
