"""Reddit: JSON while it is given, the feed where it is refused, the same post the same item; its limits obeyed."""

from dataclasses import replace
from typing import Any

import pytest

from headwater.collectors.reddit import FEED_FOR_SECONDS, RedditCollector, read_memory
from headwater.errors import FailureKind, InputError
from headwater.sources.adding import read_new_source
from tests.clock import FakeClock
from tests.collectors.visits import Visits, told
from tests.fake_services import BASE_TIME, CAPTCHA, PAGE, Reddit, as_json, as_page
from tests.origin import Answer, Origin


def visits(origin: Origin, reddit: Reddit, clock: FakeClock | None = None, **config: Any) -> Visits:
    collector = RedditCollector(clock) if clock else RedditCollector()
    return Visits(origin, "reddit", reddit.url, config, collector=collector)


async def test_a_post_becomes_an_item(origin: Origin) -> None:
    reddit = Reddit(origin)
    reddit.add(1)
    reddit.add(
        2,
        is_self=False,
        url="https://news.example/2",
        selftext_html=None,
        thumbnail="https://t.example/2.jpg",
    )
    async with visits(origin, reddit, listing="new") as runs:
        link, text = (await runs.visit()).items
    assert (text.external_id, text.title, text.content) == (
        "t3_000001",
        "Post 1: a < b",
        '<div class="md"><p>Hello</p>\n</div>',
    )
    assert text.url == text.comments_url == "https://www.reddit.com/r/python/comments/000001/post/"
    assert (text.author, text.published_at, text.score, text.comments_count, text.categories) == (
        "guido",
        BASE_TIME + 1.0,
        10,
        3,
        ("News",),
    )
    assert (link.url, link.content, link.image_url) == (
        "https://news.example/2",
        None,
        "https://t.example/2.jpg",
    )
    assert origin.requests[0].target == "/r/python/new.json?limit=50&raw_json=1"


async def test_pages_are_asked_for_until_one_has_a_known_post(origin: Origin) -> None:
    reddit = Reddit(origin)
    reddit.add(*range(250))
    async with visits(origin, reddit, listing="new", limit=250) as runs:
        assert await runs.cost() == (250, 3)
        assert await runs.cost() == (0, 1)
        reddit.add(*range(250, 300))
        assert await runs.cost() == (50, 1)
        reddit.add(*range(300, 420))
        assert await runs.cost() == (120, 2)


async def test_only_posts_of_the_minimum_score_are_taken_once_they_have_it(origin: Origin) -> None:
    reddit = Reddit(origin)
    reddit.add(1, 2, score=5)
    async with visits(origin, reddit, min_score=50) as runs:
        result = await runs.visit()
        assert (result.items, result.left_out_count) == ((), 2)
        reddit.posts[0]["score"] = 80
        assert await runs.cost() == (1, 1)
        reddit.posts[0]["score"] = 40
        result = await runs.visit()
        assert (result.items, result.left_out_count) == ((), 2), "nothing wanted is not an alarm"


async def test_the_last_request_of_the_budget_is_the_last(origin: Origin) -> None:
    reddit = Reddit(origin)
    reddit.add(*range(250))
    reddit.budget, reddit.reset = 2, 400
    async with visits(origin, reddit, listing="new", limit=250) as runs:
        result = await runs.visit()
        assert (len(result.items), result.requests) == (200, 2), "it stopped before a third page"
        assert result.hints.retry_after_seconds == 400
        error = await runs.failure()
        assert told(error) == (FailureKind.RATE_LIMITED, None), "nothing is sent while the host rests"
        assert error.retry_after_seconds == pytest.approx(400, abs=5)
    assert len(origin.requests) == 2


async def test_too_many_requests_are_told_with_their_end(origin: Origin) -> None:
    reddit = Reddit(origin)
    reddit.budget, reddit.reset = 0, 250
    async with visits(origin, reddit) as runs:
        error = await runs.failure()
        assert told(error) == (FailureKind.RATE_LIMITED, 429)
        assert error.retry_after_seconds == 250
        assert (await runs.failure()).http_status is None
    assert len(origin.requests) == 1


async def test_the_feed_stands_in_where_json_is_refused(origin: Origin, clock: FakeClock) -> None:
    reddit = Reddit(origin)
    reddit.add(1, 2)
    async with visits(origin, reddit, clock) as runs:
        by_json = await runs.visit()
        reddit.blocks_json = True
        by_feed = await runs.visit()
        assert by_feed.requests == 2
        for first, second in zip(by_json.items, by_feed.items, strict=True):
            alike = replace(first, score=None, comments_count=None, categories=())
            assert alike == second, "the same post is the same item, whichever way it came"
        assert await runs.cost() == (0, 1), "JSON is not tried again at once"
        clock.advance(FEED_FOR_SECONDS + 1)
        reddit.blocks_json = False
        assert await runs.cost() == (0, 1)
        assert origin.requests[-1].path.endswith(".json")


async def test_the_feed_is_used_after_a_limit(origin: Origin, clock: FakeClock) -> None:
    reddit = Reddit(origin)
    reddit.add(1)
    async with visits(origin, reddit, clock) as runs:
        reddit.bad_day = Answer(status=429, headers={"Retry-After": "1"})
        await runs.failure()
        reddit.bad_day = None
        assert await runs.cost() == (1, 1)
        assert origin.requests[-1].path == "/r/python/hot/.rss"
        assert read_memory(runs.memory) > clock()


@pytest.mark.parametrize(
    ("config", "path"), [({"way": "json"}, "/r/python/hot.json"), ({"min_score": 5}, "/r/python/hot.json")]
)
async def test_no_feed_where_it_cannot_stand_in(origin: Origin, config: dict[str, Any], path: str) -> None:
    reddit = Reddit(origin)
    reddit.add(1)
    reddit.blocks_json = True
    async with visits(origin, reddit, **config) as runs:
        assert told(await runs.failure()) == (FailureKind.FORBIDDEN, 403)
    assert [request.path for request in origin.requests] == [path]


async def test_the_feed_by_config(origin: Origin) -> None:
    reddit = Reddit(origin)
    reddit.add(1)
    async with visits(origin, reddit, way="rss", listing="top", period="week") as runs:
        assert await runs.cost() == (1, 1)
        assert await runs.cost() == (0, 1)
    assert origin.requests[0].target == "/r/python/top/.rss?limit=50&t=week"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            as_json({"reason": "private", "message": "Forbidden", "error": 403}, status=403),
            FailureKind.FORBIDDEN,
            "r/python cannot be read: it is private",
        ),
        (
            as_json({"reason": "banned", "message": "Not Found", "error": 404}, status=404),
            FailureKind.NOT_FOUND,
            "r/python is no more: it is banned",
        ),
        (
            as_json({"message": "Not Found", "error": 404}, status=404),
            FailureKind.NOT_FOUND,
            "no subreddit r/python",
        ),
        (as_page(PAGE), FailureKind.NOT_A_FEED, "web page where JSON was expected"),
        (as_page(CAPTCHA), FailureKind.FORBIDDEN, "captcha"),
        (as_json({"kind": "Listing"}), FailureKind.CHANGED_STRUCTURE, "data.children"),
        (
            as_json({"data": {"children": [{"kind": "t3", "data": {"heading": "x"}}]}}),
            FailureKind.CHANGED_STRUCTURE,
            "title",
        ),
        (as_json({"data": {"children": [None, 5]}}), FailureKind.CHANGED_STRUCTURE, "title"),
        (
            as_json({"data": {"after": None, "children": []}}),
            FailureKind.CHANGED_STRUCTURE,
            "lists nothing, where it used to list items",
        ),
        (Answer(status=500), FailureKind.SERVER_ERROR, "500"),
    ],
)
async def test_bad_days(origin: Origin, answer: Answer, kind: FailureKind, words: str) -> None:
    reddit = Reddit(origin)
    reddit.add(1)
    async with visits(origin, reddit) as runs:
        await runs.visit()
        reddit.bad_day = answer
        before = len(origin.requests)
        error = await runs.failure()
        assert error.kind is kind
        assert words in str(error)
        assert len(origin.requests) == before + 1, "what is the subreddit's own state is not asked twice"


async def test_a_subreddit_that_never_was(origin: Origin) -> None:
    reddit = Reddit(origin, "other")
    async with Visits(origin, "reddit", origin.url("/r/pyhton")) as runs:
        error = await runs.failure()
    assert error.kind is FailureKind.NOT_FOUND
    assert "there is no subreddit r/pyhton" in str(error)
    assert reddit.posts == []


@pytest.mark.parametrize(
    ("given", "url", "config"),
    [
        ("https://www.reddit.com/r/python", "/hot/", {"subreddit": "python"}),
        ("old.reddit.com/r/python/new/", "/new/", {"subreddit": "python", "listing": "new"}),
        ("https://reddit.com/r/python/top/?t=week", "/top/?t=week", {"listing": "top", "period": "week"}),
        ("r/python", "/hot/", {"subreddit": "python"}),
    ],
)
def test_addresses(given: str, url: str, config: dict[str, str]) -> None:
    wanted = read_new_source(given, "reddit")
    assert wanted.url == f"https://www.reddit.com/r/python{url}"
    assert config.items() <= wanted.config.items()
    assert read_new_source(None, "reddit", wanted.config).url == wanted.url


def test_addresses_that_are_recognised() -> None:
    assert read_new_source("https://www.reddit.com/r/python/").type.name == "api.reddit"
    assert read_new_source("https://www.reddit.com/r/python/.rss").type.name == "rss.feed"


@pytest.mark.parametrize(
    ("url", "config"),
    [
        ("https://www.reddit.com/user/spez", {}),
        (None, {}),
        (None, {"subreddit": "a/b"}),
        (None, {"subreddit": "python", "way": "rss", "min_score": 5}),
        (None, {"subreddit": "python", "listing": "worst"}),
    ],
)
def test_what_is_no_subreddit(url: str | None, config: dict[str, object]) -> None:
    with pytest.raises(InputError):
        read_new_source(url, "reddit", config)


@pytest.mark.parametrize("memory", [None, b"", b"nonsense", b"[]", b'{"feed_until": "x"}'])
def test_a_damaged_memory_is_an_empty_one(memory: bytes | None) -> None:
    assert read_memory(memory) == 0.0
