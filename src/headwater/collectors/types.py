"""The table of source types: names, aliases, default intervals, and where each one's collector is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from headwater.errors import InputError, SettingError

if TYPE_CHECKING:
    from headwater.collectors.base import Collector, SourceConfig


@dataclass(frozen=True, slots=True)
class SourceType:
    name: str
    alias: str | None
    interval_minutes: float
    collector: str | None = None  # module:class, imported on first use; None: nothing to collect it with
    addresses: str | None = None  # a pattern of the addresses that mean this type where none is given


_FEED = "headwater.collectors.feed:FeedCollector"
_TWITTER = "headwater.collectors.twitter:TwitterCollector"

TYPES: tuple[SourceType, ...] = (
    SourceType("rss.feed", "rss", 240, _FEED),
    SourceType("rss.digest", "digest_feed", 240, _FEED),
    SourceType("rss.hub", None, 240, "headwater.collectors.rsshub:RssHubCollector", r"rsshub://"),
    SourceType("web.sitemap", "sitemap", 120, "headwater.collectors.sitemap:SitemapCollector"),
    SourceType("web.scraper", "website", 240),
    SourceType("web.github_trending", "github_trending", 240),
    SourceType(
        "api.hackernews",
        "hackernews",
        60,
        "headwater.collectors.hackernews:HackerNewsCollector",
        r"(https?://)?news\.ycombinator\.com(/(news|newest|best|show|ask|jobs)?)?\Z",
    ),
    SourceType(
        "api.reddit",
        "reddit",
        60,
        "headwater.collectors.reddit:RedditCollector",
        r"(https?://)?((www|old|new)\.)?reddit\.com/r/\w+(/(hot|new|top|rising))?/?\Z",
    ),
    SourceType("api.json", "custom_api", 120, "headwater.collectors.json_api:JsonApiCollector"),
    SourceType(
        "video.bilibili",
        "bilibili",
        60,
        "headwater.collectors.bilibili:BilibiliCollector",
        r"(https?://)?space\.bilibili\.com/\d+",
    ),
    SourceType("twitter.feed", "twitter_feed", 30, _TWITTER),
    SourceType("twitter.list", "twitter_list", 30, _TWITTER),
    SourceType("twitter.bookmarks", "twitter_bookmarks", 60, _TWITTER),
)


@cache
def _by_any_name() -> dict[str, SourceType]:
    """Every spelling that is accepted: two-part name, alias, and the name as environment variables have it."""
    names: dict[str, SourceType] = {}
    for source_type in TYPES:
        for name in (source_type.name, source_type.alias, source_type.name.replace(".", "_")):
            if name:
                names.setdefault(name, source_type)
    return names


def find_type(text: str) -> SourceType:
    """The type somebody means by `text`; InputError suggests the nearest one."""
    found = _by_any_name().get(text.strip().lower())
    if found:
        return found
    near = get_close_matches(text.strip().lower(), list(_by_any_name()), n=1, cutoff=0.5)
    if near:
        raise InputError("there is no source type {type}; did you mean {near}?", type=text, near=near[0])
    raise InputError(
        "there is no source type {type}; choose one of {known}",
        type=text,
        known=", ".join(source_type.name for source_type in TYPES),
    )


def is_type(text: str) -> bool:
    """Whether `text` is a name or an alias of a type."""
    return text.strip().lower() in _by_any_name()


def recognise_type(url: str) -> SourceType:
    """The type that an address means where nobody says one: a feed, unless it is a page of a known service."""
    for source_type in TYPES:
        if source_type.addresses and re.match(source_type.addresses, url.strip(), re.IGNORECASE):
            return source_type
    return find_type("rss.feed")


def alias_of(type_name: str) -> str:
    """The one-word name of a type, itself where it has none."""
    found = _by_any_name().get(type_name)
    return (found.alias if found else None) or type_name


@cache
def collector_of(type_name: str) -> "Collector | None":
    """The collector for a type, or None when there is nothing to collect it with."""
    place = find_type(type_name).collector
    if place is None:
        return None
    module, _, name = place.partition(":")
    collector: Collector = getattr(import_module(module), name)()
    return collector


def config_model_of(type_name: str) -> "type[SourceConfig]":
    """What a source of this type takes in its config; the keys of every source where there is no collector."""
    from headwater.collectors.base import SourceConfig

    try:
        collector = collector_of(type_name)
    except InputError:  # stored by a Headwater that knows more types
        return SourceConfig
    return collector.config_model if collector else SourceConfig


def intervals_by_type(configured: Mapping[str, float], stored: Mapping[str, float]) -> dict[str, float]:
    """Minutes between visits for every type: the table's, then the environment's, then the database's."""
    intervals = {source_type.name: source_type.interval_minutes for source_type in TYPES}
    for layer in (configured, stored):
        for spelling, minutes in layer.items():
            try:
                intervals[find_type(spelling).name] = minutes
            except InputError as error:
                raise SettingError(
                    "fetch interval for {type}: {problem}", type=spelling, problem=error.render()
                ) from None
    return intervals
