"""The table of source types: names, aliases, default intervals, and where each one's collector is.

Types that other packages bring (see `plugins`) are looked for when a name is none of ours, or all are asked for.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from headwater.errors import InputError, SettingError, Text
from headwater.language import Language
from headwater.plugins import COLLECTORS, DisabledPlugin, Plugins, load_plugins

if TYPE_CHECKING:
    from headwater.collectors.base import Collector, SourceConfig


@dataclass(frozen=True, slots=True)
class SourceType:
    name: str
    alias: str | None
    interval_minutes: float
    collector: str | None = None  # module:class, imported on first use; None: nothing to collect it with
    package: str | None = None  # the package that brings it; None: Headwater's own


_FEED = "headwater.collectors.feed:FeedCollector"
_TWITTER = "headwater.collectors.twitter:TwitterCollector"

TYPES: tuple[SourceType, ...] = (
    SourceType("rss.feed", "rss", 240, _FEED),
    SourceType("rss.digest", "digest_feed", 240, _FEED),
    SourceType("rss.hub", None, 240, "headwater.collectors.rsshub:RssHubCollector"),
    SourceType("web.sitemap", "sitemap", 120, "headwater.collectors.sitemap:SitemapCollector"),
    SourceType("web.scraper", "website", 240, "headwater.collectors.scraper:ScraperCollector"),
    SourceType(
        "web.github_trending",
        "github_trending",
        240,
        "headwater.collectors.github_trending:TrendingCollector",
    ),
    SourceType(
        "api.hackernews",
        "hackernews",
        60,
        "headwater.collectors.hackernews:HackerNewsCollector",
    ),
    SourceType(
        "api.reddit",
        "reddit",
        60,
        "headwater.collectors.reddit:RedditCollector",
    ),
    SourceType("api.json", "custom_api", 120, "headwater.collectors.json_api:JsonApiCollector"),
    SourceType("api.graphql", "graphql", 120, "headwater.collectors.graphql:GraphqlCollector"),
    SourceType("api.activitypub", "activitypub", 60, "headwater.collectors.activitypub:ActivityPubCollector"),
    SourceType("api.bluesky", "bluesky", 60, "headwater.collectors.bluesky:BlueskyCollector"),
    SourceType("api.npm", "npm", 240, "headwater.collectors.npm:NpmCollector"),
    SourceType("api.pubmed", "pubmed", 720, "headwater.collectors.pubmed:PubmedCollector"),
    SourceType("web.telegram", "telegram", 60, "headwater.collectors.telegram:TelegramCollector"),
    SourceType("file.table", "table", 240, "headwater.collectors.table:TableCollector"),
    SourceType("file.calendar", "calendar", 240, "headwater.collectors.calendar:CalendarCollector"),
    SourceType("file.listing", "listing", 240, "headwater.collectors.listing:ListingCollector"),
    SourceType(
        "video.bilibili",
        "bilibili",
        60,
        "headwater.collectors.bilibili:BilibiliCollector",
    ),
    SourceType("mail.imap", "mailbox", 15, "headwater.collectors.mailbox:MailboxCollector"),
    SourceType("mail.inbox", "newsletter", 1440, "headwater.collectors.inbox:InboxCollector"),
    SourceType("twitter.feed", "twitter_feed", 30, _TWITTER),
    SourceType("twitter.list", "twitter_list", 30, _TWITTER),
    SourceType("twitter.bookmarks", "twitter_bookmarks", 60, _TWITTER),
)


_TITLES: Mapping[str, Text] = {
    "rss.feed": Text("Feed"),
    "rss.digest": Text("Digest feed"),
    "rss.hub": Text("RSSHub route"),
    "web.sitemap": Text("Sitemap"),
    "web.scraper": Text("Web page"),
    "web.github_trending": Text("GitHub Trending"),
    "api.hackernews": Text("Hacker News"),
    "api.reddit": Text("Reddit"),
    "api.json": Text("JSON API"),
    "api.graphql": Text("GraphQL"),
    "api.activitypub": Text("ActivityPub"),
    "api.bluesky": Text("Bluesky"),
    "api.npm": Text("npm package"),
    "api.pubmed": Text("PubMed search"),
    "web.telegram": Text("Telegram channel"),
    "file.table": Text("Table"),
    "file.calendar": Text("Calendar"),
    "file.listing": Text("List of files"),
    "video.bilibili": Text("Bilibili"),
    "mail.imap": Text("Mailbox"),
    "mail.inbox": Text("Newsletter"),
    "twitter.feed": Text("Twitter feed"),
    "twitter.list": Text("Twitter list"),
    "twitter.bookmarks": Text("Twitter bookmarks"),
}


def type_title(name: str, language: Language | None = None) -> str:
    """What people call a type; a plugin's is called by its name."""
    return _TITLES[name].render(language) if name in _TITLES else name


def source_types() -> tuple[SourceType, ...]:
    """Every type there is: Headwater's own, then those of plugins."""
    return TYPES + _plugin_types()


def disabled_types() -> tuple[DisabledPlugin, ...]:
    """The plugins that bring a type which cannot be used, each with what is wrong."""
    return _plugins().disabled


def _spellings(source_type: SourceType) -> set[str]:
    """Every name of a type that is accepted: two-part name, alias, and the name as environment variables have it."""
    names = (source_type.name, source_type.alias, source_type.name.replace(".", "_"))
    return {name for name in names if name}


def _by_any_name(types: Iterable[SourceType]) -> dict[str, SourceType]:
    names = {source_type.name: source_type for source_type in types}
    for source_type in list(names.values()):
        for spelling in _spellings(source_type):
            names.setdefault(spelling, source_type)  # no type's alias hides another's name
    return names


@cache
def _own_by_any_name() -> dict[str, SourceType]:
    return _by_any_name(TYPES)


@cache
def _all_by_any_name() -> dict[str, SourceType]:
    return _by_any_name(source_types())


@cache
def _plugin_types() -> tuple[SourceType, ...]:
    types = []
    for plugin in _plugins().usable.values():
        collector: type[Collector] = plugin.loaded
        place = f"{collector.__module__}:{collector.__qualname__}"
        types.append(
            SourceType(
                plugin.name, collector.alias, collector.interval_minutes, place, package=plugin.package
            )
        )
    return tuple(types)


def _plugins() -> Plugins:
    from headwater.collectors.base import Collector

    return load_plugins(COLLECTORS, Collector, frozenset(_own_by_any_name()), _find_fault)


def _find_fault(name: str, loaded: "type[Collector]") -> Text | None:
    """What is wrong with a collector that a package brings, beyond its being one."""
    from headwater.collectors.base import SourceConfig

    if not re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", name):
        return Text("a type has a name of two parts in lower-case letters, such as web.example")
    alias, minutes = loaded.alias, loaded.interval_minutes
    if alias is not None and not re.fullmatch(r"[a-z][a-z0-9_]*", alias):
        return Text("its alias {alias} is not one word in lower-case letters", alias=alias)
    for spelling in _spellings(SourceType(name, alias, minutes)):
        if spelling in _own_by_any_name():
            return Text("{name} is built in; a plugin cannot replace it", name=spelling)
    if isinstance(minutes, bool) or not 0.01 <= minutes <= 525_600:
        return Text("its interval_minutes = {minutes} is not between 0.01 and 525600", minutes=minutes)
    model: type = loaded.config_model
    if not issubclass(model, SourceConfig):
        return Text("its config_model does not extend SourceConfig")
    loaded()  # what cannot be made cannot be used
    return None


def find_type(text: str) -> SourceType:
    """The type that `text` means; InputError suggests the nearest one, or says why it is disabled."""
    wanted = text.strip().lower()
    found = _own_by_any_name().get(wanted) or _all_by_any_name().get(wanted)
    if found:
        return found
    for source_type in TYPES:  # by what people read in lists
        if wanted in (type_title(source_type.name, "en").lower(), type_title(source_type.name, "zh").lower()):
            return source_type
    if disabled := _plugins().why_not(wanted):
        raise InputError(
            "the source type {type} cannot be used: the plugin of {package} is disabled: {problem}",
            type=text,
            package=disabled.package,
            problem=disabled.problem,
        )
    near = get_close_matches(wanted, list(_all_by_any_name()), n=1, cutoff=0.5)
    if near:
        raise InputError("there is no source type {type}; did you mean {near}?", type=text, near=near[0])
    raise InputError(
        "there is no source type {type}; choose one of {known}",
        type=text,
        known=", ".join(source_type.name for source_type in source_types()),
    )


def is_type(text: str) -> bool:
    """Whether `text` is a name or an alias of a type."""
    wanted = text.strip().lower()
    return wanted in _own_by_any_name() or wanted in _all_by_any_name()


def alias_of(type_name: str) -> str:
    """The one-word name of a type, itself where it has none."""
    found = _own_by_any_name().get(type_name) or _all_by_any_name().get(type_name)
    return (found.alias if found else None) or type_name


@cache
def collector_of(type_name: str) -> "Collector | None":
    """The collector for a type, or None when there is nothing to collect it with."""
    source_type = find_type(type_name)
    if source_type.collector is None:
        return None
    if source_type.package is not None:
        made: Collector = _plugins().usable[source_type.name].loaded()
        return made
    module, _, name = source_type.collector.partition(":")
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
    intervals = {source_type.name: source_type.interval_minutes for source_type in source_types()}
    for layer in (configured, stored):
        for spelling, minutes in layer.items():
            try:
                intervals[find_type(spelling).name] = minutes
            except InputError as error:
                raise SettingError(
                    "fetch interval for {type}: {problem}", type=spelling, problem=error.render()
                ) from None
    return intervals
