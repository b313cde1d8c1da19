"""Every type by command line: added, collected from an origin that behaves like its service, again, and on a bad day.

Adding is the first visit. The second stores nothing new and costs the fewest requests the service allows. A bad day is
one clear error in the record, and what was stored stays as it was.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from headwater.collect.engine import Engine
from headwater.collectors.types import TYPES
from headwater.config import load_settings
from headwater.model import StoredItem
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records
from headwater.store.reading.items import list_items
from tests.command import Headwater
from tests.fake_services import (
    BOOK_CONFIG,
    CAPTCHA,
    PAGE,
    Bilibili,
    HackerNews,
    Library,
    Reddit,
    as_json,
    as_page,
    hub_error,
)
from tests.origin import Answer, Origin

pytestmark = pytest.mark.slow

FEED = "<rss version='2.0'><channel><title>Hub</title>{items}</channel></rss>"


class FeedService:
    """A feed at one path, as a bridge or an RSSHub instance gives it."""

    def __init__(self, origin: Origin, path: str) -> None:
        self.numbers: list[int] = []
        self.bad_day: Answer | None = None
        self.url = origin.route(path, lambda request: self._answer())

    def add(self, *numbers: int) -> None:
        self.numbers += numbers

    def _answer(self) -> Answer:
        items = "".join(f"<item><guid>{n}</guid><title>Item {n}</title></item>" for n in self.numbers)
        return self.bad_day or Answer(FEED.format(items=items), etag=f'"{len(self.numbers)}"')


@dataclass
class Case:
    """A service that has been set up with three items, and how to add it."""

    service: Any
    arguments: list[str]
    first_cost: int  # requests
    second_cost: int = 1
    one_more_cost: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    bad_days: dict[str, tuple[Answer, str, str]] = field(default_factory=dict)  # name: answer, kind, words


HTML: dict[str, tuple[Answer, str, str]] = {
    "html": (as_page(PAGE), "not_a_feed", "web page"),
    "captcha": (as_page(CAPTCHA), "forbidden", "captcha"),
    "limit": (Answer(status=429, headers={"Retry-After": "3600"}), "rate_limited", "429"),
}


def settings_of(config: dict[str, Any]) -> list[str]:
    return [word for key, value in config.items() for word in ("--config", f"{key}={value}")]


def hackernews(origin: Origin) -> Case:
    news = HackerNews(origin)
    news.add(1, 2, 3)
    return Case(
        news,
        ["--type", "hackernews", *settings_of({"base_url": news.url})],
        first_cost=4,
        one_more_cost=2,
        bad_days=HTML
        | {
            "structure": (as_json({"ids": []}), "changed_structure", "without a list"),
            "empty": (as_json([]), "changed_structure", "lists nothing"),
        },
    )


def reddit(origin: Origin) -> Case:
    subreddit = Reddit(origin)
    subreddit.add(1, 2, 3)
    gone = as_json({"reason": "banned", "message": "Not Found", "error": 404}, status=404)
    private = as_json({"reason": "private", "message": "Forbidden", "error": 403}, status=403)
    limit = as_json(
        {"error": 429}, status=429, headers={"x-ratelimit-remaining": "0.0", "x-ratelimit-reset": "240"}
    )
    nameless = as_json({"data": {"children": [{"kind": "t3", "data": {"score": 1}}]}})
    return Case(
        subreddit,
        [subreddit.url, "--type", "reddit", *settings_of({"listing": "new"})],
        first_cost=1,
        bad_days=HTML
        | {
            "banned": (gone, "not_found", "r/python is no more: it is banned"),
            "private": (private, "forbidden", "r/python cannot be read: it is private"),
            "limit": (limit, "rate_limited", "429"),
            "fields": (nameless, "changed_structure", "title"),
            "empty": (as_json({"data": {"children": []}}), "changed_structure", "lists nothing"),
        },
    )


def json_api(origin: Origin) -> Case:
    library = Library(origin, key="s3cr3t-key")
    library.add(1, 2, 3)
    config = BOOK_CONFIG | {"pagination": "cursor", "cursor": "next", "params": '{"api_key": "${LIBRARY}"}'}
    return Case(
        library,
        [library.url, "--type", "custom_api", *settings_of(config)],
        first_cost=1,
        environment={"HEADWATER_SECRET_LIBRARY": "s3cr3t-key"},
        bad_days=HTML
        | {
            "structure": (as_json({"volumes": []}), "changed_structure", "items = data.books"),
            "fields": (as_json({"data": {"books": [{"isbn": 1}]}}), "changed_structure", "title = name"),
            "empty": (as_json({"data": {"books": []}}), "changed_structure", "lists nothing"),
        },
    )


def bilibili(origin: Origin) -> Case:
    site = Bilibili(origin)
    site.add(1, 2, 3)
    return Case(
        site,
        ["https://space.bilibili.com/1234", *settings_of({"base_url": site.url})],
        first_cost=2,
        bad_days=HTML
        | {
            "risk": (as_json({"code": -352, "message": "x"}), "forbidden", "risk control"),
            "intercepted": (as_page(PAGE, status=412), "forbidden", "risk control"),
            "limit": (as_json({"code": -799, "message": "x"}), "rate_limited", "fewer requests"),
            "structure": (as_json({"code": 0, "data": {}}), "changed_structure", "data.list.vlist"),
        },
    )


def rsshub(origin: Origin) -> Case:
    hub = FeedService(origin, "/github/issue/x")
    hub.add(1, 2, 3)
    return Case(
        hub,
        ["--type", "rss.hub", *settings_of({"instance": origin.url(""), "route": "/github/issue/x"})],
        first_cost=1,
        bad_days=HTML
        | {
            "error": (hub_error("FetchError: 502 Bad Gateway"), "server_error", "502 Bad Gateway"),
            "empty": (hub_error("Error: this route is empty"), "changed_structure", "this route is empty"),
        },
    )


def twitter(origin: Origin) -> Case:
    bridge = FeedService(origin, "/user/rss")
    bridge.add(1, 2, 3)
    return Case(
        bridge,
        ["https://x.com/user", "--type", "twitter_feed", *settings_of({"bridge_url": bridge.url})],
        first_cost=1,
        bad_days={"html": (as_page(PAGE), "not_a_feed", "web page")},
    )


CASES: dict[str, Callable[[Origin], Case]] = {
    "api.hackernews": hackernews,
    "api.reddit": reddit,
    "api.json": json_api,
    "video.bilibili": bilibili,
    "rss.hub": rsshub,
    "twitter.feed": twitter,
}


def visits(database_url: str) -> list[Any]:
    with Store.open(database_url) as store, store.reading() as connection:
        return list(connection.execute(select(collection_records).order_by(collection_records.c.id)))


@pytest.mark.parametrize("type_name", CASES)
def test_added_and_collected_with_the_fewest_requests(
    tmp_path: Path, database_url: str, origin: Origin, type_name: str
) -> None:
    case = CASES[type_name](origin)
    headwater = Headwater(tmp_path, database_url)
    headwater.environment |= case.environment

    added = headwater.json("source", "add", *case.arguments)
    assert (added["type"], added["status"]) == (type_name, "ok")
    assert "s3cr3t" not in str(added)
    assert len(origin.requests) == case.first_cost
    if type_name == "api.hackernews":  # which has no address but what its config makes
        assert "is there already: source 1" in headwater.refused("source", "add", *case.arguments)

    summary = headwater.json("collect", "--all")
    assert (summary["visits"], summary["items_new"], summary["failed"]) == (1, 0, 0)
    assert len(origin.requests) == case.first_cost + case.second_cost

    case.service.add(4)
    before = len(origin.requests)
    summary = headwater.json("collect", "--all")
    assert (summary["items_new"], summary["items_updated"], summary["failed"]) == (1, 0, 0)
    assert len(origin.requests) == before + case.one_more_cost
    records = visits(database_url)
    assert [record.items_new for record in records] == [3, 0, 1]
    assert not any(record.overflow for record in records)
    assert sum(record.requests for record in records) == len(origin.requests), (
        "each visit's cost is on record"
    )


@pytest.mark.parametrize("type_name", CASES)
async def test_a_bad_day_is_one_clear_error_and_nothing_else(
    tmp_path: Path, store: Store, origin: Origin, type_name: str
) -> None:
    case = CASES[type_name](origin)
    command = Headwater(tmp_path, store.url.render_as_string(hide_password=False))
    settings = load_settings(directory=tmp_path, environment=command.environment | case.environment)

    async def collect() -> Any:
        async with Engine(store, settings) as engine:
            await engine.collect_sources([source.id])
        return visits(command.environment["HEADWATER_DATABASE_URL"])[-1]

    url, given = case.arguments[0], case.arguments
    config = dict(word.split("=", 1) for word in given if "=" in word)
    if "params" in config:
        config["params"] = json.loads(config["params"])
    with store.writing() as connection:
        wanted = read_new_source(None if url == "--type" else url, type_name, config)
        source = add_unvisited(connection, wanted, 1.0)
    assert (await collect()).items_new == 3
    stored = all_items(store)
    for name, (answer, kind, words) in case.bad_days.items():
        case.service.bad_day = answer
        record = await collect()
        assert (record.status, record.error_kind) == ("failed", kind), name
        assert words in record.error_message
        assert "s3cr3t" not in record.error_message
        assert all_items(store) == stored, "nothing was stored wrong"
        with store.reading() as connection:
            assert get_source(connection, source.id).last_error == record.error_message
    case.service.bad_day = None
    record = await collect()
    assert (record.status, record.items_new, record.items_updated) == ("unchanged", 0, 0), (
        "it recovers without a person"
    )


def all_items(store: Store) -> list[StoredItem]:
    with store.reading() as connection:
        return list_items(connection)


def test_timelines_are_skipped_without_a_bridge_and_never_an_error(tmp_path: Path, origin: Origin) -> None:
    headwater = Headwater(tmp_path, None)
    for number, kind in enumerate(("twitter_feed", "twitter_list", "twitter_list", "twitter_bookmarks")):
        headwater.ok("source", "add", f"https://x.com/{number}", "--type", kind)
    code, out, err = headwater.run("collect", "--all", "--json")
    assert code == 0
    assert json.loads(out)["skipped"] == 4
    assert [line.partition("sources of type ")[2].split()[0] for line in err.splitlines()] == [
        "twitter.feed",
        "twitter.list",
        "twitter.bookmarks",
    ]


def test_a_source_is_shown_before_it_is_added(tmp_path: Path, origin: Origin) -> None:
    headwater = Headwater(tmp_path, None)
    case = reddit(origin)
    shown = headwater.json("source", "test", *case.arguments)
    assert (shown["type"], shown["requests"], len(shown["items"])) == ("api.reddit", 1, 3)
    assert shown["items"][0]["published_at"] == "2023-11-14T22:13:23.000Z"
    out = headwater.ok("source", "test", *case.arguments)
    assert "3 items with 1 request" in out
    assert "Post 3: a < b" in out
    assert not (tmp_path / ".local").exists(), "there is not even a database"

    news = HackerNews(origin)
    news.add(1)
    assert "Story 1 & more" in headwater.ok(
        "source", "test", "hackernews", "--config", f"base_url={news.url}"
    )
    news.bad_day = as_page(CAPTCHA)
    assert "captcha" in headwater.refused("source", "test", "hackernews", "--config", f"base_url={news.url}")
    assert "bridge_url" in headwater.refused("source", "test", "https://x.com/me", "--type", "twitter_feed")
    assert "needs an address" in headwater.refused("source", "test", "custom_api", "--config", "title=t")
    assert "--type" in headwater.refused("source", "add")


def test_the_types_are_listed_with_what_they_take(tmp_path: Path) -> None:
    headwater = Headwater(tmp_path, None)
    listed = {each["name"]: each for each in headwater.json("types")}
    assert set(listed) == {kind.name for kind in TYPES}
    assert (listed["api.reddit"]["alias"], listed["api.reddit"]["interval_minutes"]) == ("reddit", 60)
    assert listed["api.reddit"]["collected"]
    properties = listed["api.json"]["config_schema"]["properties"]
    assert properties["params"]["secret"] is True
    assert properties["date"]["description"].startswith("Of an item: when it was published")
    assert headwater.json("types", "reddit", FETCH_INTERVAL_REDDIT="7")["interval_minutes"] == 7
    table = headwater.ok("types")
    assert "twitter_bookmarks" in table
    assert "with a bridge" in table
    one = headwater.ok("types", "reddit")
    assert "hot | new | top | rising" in one
    assert "Take only posts of this score or more." in one
    assert "required" in one
    assert "只收录分数不低于此值的帖子" in headwater.ok("types", "reddit", HEADWATER_LANGUAGE="zh")
    assert "did you mean reddit" in headwater.refused("types", "redit")


def test_a_secret_is_in_no_output_file_or_log(tmp_path: Path, origin: Origin) -> None:
    case = json_api(origin)
    headwater = Headwater(tmp_path, f"sqlite:///{tmp_path / 'headwater.db'}")
    missing = headwater.refused("source", "add", *case.arguments)
    assert "HEADWATER_SECRET_LIBRARY in params.api_key" in missing
    headwater.environment |= case.environment | {"HEADWATER_LOG_LEVEL": "debug"}
    said = "".join(
        part
        for command in (
            ("source", "test", *case.arguments),
            ("source", "add", *case.arguments),
            ("source", "show", "1", "--json"),
            ("items", "--json"),
            ("export", "-"),
            ("collect", "--all"),
            ("config", "--json"),
        )
        for part in map(str, headwater.run(*command))
    )
    case.service.bad_day = Answer(status=404)
    said += str(headwater.run("collect", "--all")) + str(headwater.run("source", "test", *case.arguments))
    assert "Book 1" in said
    assert "404" in said
    assert "s3cr3t" not in said
    assert b"s3cr3t" not in b"".join(path.read_bytes() for path in tmp_path.glob("headwater.db*"))
