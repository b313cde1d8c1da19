"""Hacker News: only what is not known is asked for, and what has too few points is looked at again in time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.collectors.hackernews import (
    LATEST_LOOK_SECONDS,
    MOST_LOOKS,
    SOONEST_LOOK_SECONDS,
    HackerNewsCollector,
    Story,
    next_look_at,
    read_memory,
)
from headwater.errors import FailureKind, InputError
from headwater.model import Item
from headwater.sources.adding import read_new_source
from tests.clock import FakeClock
from tests.collectors.visits import Visits, told
from tests.fake_services import BASE_TIME, CAPTCHA, PAGE, HackerNews, as_json, as_page
from tests.origin import Answer, Origin


def visits(origin: Origin, news: HackerNews, clock: FakeClock | None = None, **config: object) -> Visits:
    collector = HackerNewsCollector(clock) if clock else HackerNewsCollector()
    return Visits(origin, "hackernews", config={"base_url": news.url, **config}, collector=collector)


async def test_a_story_becomes_an_item(origin: Origin) -> None:
    news = HackerNews(origin)
    news.add(1, url=None, text="<p>Ask")
    news.add(2)
    async with visits(origin, news) as runs:
        result = await runs.visit()
    linked, asked = sorted(result.items, key=lambda item: item.external_id, reverse=True)
    assert (linked.external_id, linked.title, linked.url) == (
        "2",
        "Story 2 & more",
        "http://stories.example/2",
    )
    assert (linked.author, linked.published_at, linked.score, linked.comments_count) == (
        "pg",
        BASE_TIME + 2.0,
        57,
        15,
    )
    assert linked.comments_url == "https://news.ycombinator.com/item?id=2"
    assert (asked.url, asked.content) == ("https://news.ycombinator.com/item?id=1", "<p>Ask")
    assert result.metadata.title == "Hacker News: top"


async def test_only_unseen_stories_are_asked_for(origin: Origin) -> None:
    news = HackerNews(origin)
    news.add(1, 2, 3)
    async with visits(origin, news) as runs:
        assert await runs.cost() == (3, 4)
        assert await runs.cost() == (0, 1), "the list alone, when nothing is new"
        news.add(4)
        assert await runs.cost() == (1, 2)
        news.lists["top"] = [4, 1, 3, 2]
        result = await runs.visit()
        assert (result.items, result.known_count, result.requests) == ((), 4, 1)


async def test_no_more_requests_at_once_or_in_a_visit_than_allowed(origin: Origin) -> None:
    news = HackerNews(origin)
    news.add(*range(1, 151))
    async with visits(origin, news, limit=150) as runs:
        assert await runs.cost() == (MOST_LOOKS, MOST_LOOKS + 1)
        assert await runs.cost() == (50, 51), (
            "the rest comes with the next visit, though the list is the same"
        )
        assert await runs.cost() == (0, 1)
    assert origin.most_at_once <= 2


async def test_what_has_too_few_points_is_looked_at_again_until_it_has_them(
    origin: Origin, clock: FakeClock
) -> None:
    news = HackerNews(origin)
    news.add(1, score=200, time=clock() - 3600)
    news.add(2, score=50, time=clock() - 3600)
    async with visits(origin, news, clock, min_score=100) as runs:
        result = await runs.visit()
        assert [item.external_id for item in result.items] == ["1"]
        assert result.left_out_count == 1
        clock.advance(60)
        assert await runs.cost() == (0, 1), "it cannot have them yet"
        news.stories[2]["score"] = 130
        clock.advance(3600)
        assert await runs.cost() == (1, 2)
        clock.advance(86_400)
        assert await runs.cost() == (0, 1)


async def test_a_story_that_never_makes_it_costs_a_handful_of_requests(
    origin: Origin, clock: FakeClock
) -> None:
    news = HackerNews(origin)
    news.add(7, score=2, time=clock() - 600)
    async with visits(origin, news, clock, min_score=100) as runs:
        for _ in range(24):
            await runs.visit()
            clock.advance(3600)
        assert 2 <= len(news.item_requests()) <= 10, "a day of hourly visits"
        news.lists["top"] = [8]
        news.stories[8] = news.story(8, score=300)
        await runs.visit()
        assert 7 not in read_memory(runs.memory), "what has dropped off the list is forgotten"
        assert runs.known == {"8"}


async def test_dead_and_missing_stories_are_no_items(origin: Origin, clock: FakeClock) -> None:
    news = HackerNews(origin)
    news.add(1, dead=True, title=None)
    news.add(2)
    news.stories[2] = None  # on the list before the item is to be had
    async with visits(origin, news, clock) as runs:
        assert await runs.cost() == (0, 3)
        news.stories[2] = news.story(2)
        clock.advance(SOONEST_LOOK_SECONDS + 1)
        assert await runs.cost() == (1, 2), "the missing one is asked for again, the dead one is not"


async def test_one_bad_story_costs_only_itself(origin: Origin) -> None:
    news = HackerNews(origin)
    news.add(1, 2, 3)
    news.bad_items[2] = Answer(status=500)
    async with visits(origin, news) as runs:
        assert await runs.cost() == (2, 4)
        del news.bad_items[2]
        assert await runs.cost() == (1, 2)


async def test_no_more_is_asked_once_it_is_too_much(origin: Origin) -> None:
    news = HackerNews(origin)
    news.add(*range(1, 31))
    for number in range(1, 31):
        news.bad_items[number] = Answer(status=429, headers={"Retry-After": "120"})
    async with visits(origin, news) as runs:
        error = await runs.failure()
    assert told(error) == (FailureKind.RATE_LIMITED, 429)
    assert error.retry_after_seconds == 120
    assert len(news.item_requests()) <= 4


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (as_page(PAGE), FailureKind.NOT_A_FEED, "web page where JSON was expected"),
        (as_page(CAPTCHA), FailureKind.FORBIDDEN, "captcha"),
        (as_json({"error": "gone"}), FailureKind.CHANGED_STRUCTURE, "without a list"),
        (as_json(["1", "2"]), FailureKind.CHANGED_STRUCTURE, "a list of numbers"),
        (Answer("[1, 2", content_type="application/json"), FailureKind.MALFORMED, "not JSON"),
        (Answer(""), FailureKind.MALFORMED, "empty response"),
        (Answer(status=503), FailureKind.SERVER_ERROR, "503"),
        (as_json([]), FailureKind.CHANGED_STRUCTURE, "lists nothing, where it used to list items"),
    ],
)
async def test_bad_days(origin: Origin, answer: Answer, kind: FailureKind, words: str) -> None:
    news = HackerNews(origin)
    news.add(1)
    async with visits(origin, news) as runs:
        await runs.visit()
        news.bad_day = answer
        error = await runs.failure()
        assert error.kind is kind
        assert words in str(error)
        news.bad_day = None
        assert await runs.cost() == (0, 1), "a bad day leaves no trace"


async def test_stories_without_a_title_are_a_changed_structure(origin: Origin) -> None:
    news = HackerNews(origin)
    news.add(1, 2, title=None)
    async with visits(origin, news) as runs:
        error = await runs.failure()
    assert error.kind is FailureKind.CHANGED_STRUCTURE
    assert "title" in str(error)


async def test_a_new_source_may_be_empty(origin: Origin) -> None:
    news = HackerNews(origin)
    async with visits(origin, news) as runs:
        assert await runs.cost() == (0, 1)


def test_the_address_follows_from_the_config_and_the_other_way_round() -> None:
    api = "https://hacker-news.firebaseio.com/v0"
    assert read_new_source(None, "hackernews").url == f"{api}/topstories.json"
    assert read_new_source(None, "hackernews", {"list": "best"}).url == f"{api}/beststories.json"
    recognised = read_new_source("https://news.ycombinator.com/newest")
    assert (recognised.type.name, recognised.config) == ("api.hackernews", {"list": "new"})
    own = read_new_source("http://mirror.example/v0/jobstories.json", "hackernews")
    assert own.config == {"base_url": "http://mirror.example/v0", "list": "job"}
    assert own.url == "http://mirror.example/v0/jobstories.json"
    for url, config in (
        ("https://news.ycombinator.com/item?id=1", {}),
        (None, {"list": "job", "min_score": 5}),
        (None, {"list": "worst"}),
        (None, {"limit": 0}),
    ):
        with pytest.raises(InputError):
            read_new_source(url, "hackernews", config)


@given(st.integers(0, 499), st.floats(0, 1e6), st.floats(1.6e9, 1.8e9))
def test_another_look_is_never_too_soon_and_never_too_late(score: int, age: float, now: float) -> None:
    story = Story(Item("1", score=score), now - age)
    wait = next_look_at(story, 500, now) - now
    assert SOONEST_LOOK_SECONDS - 1 <= wait <= LATEST_LOOK_SECONDS + 1


@pytest.mark.parametrize("memory", [None, b"", b"nonsense", b"[]", b'{"x": 1}', b'{"1": null}', b"\xff"])
def test_a_damaged_memory_is_an_empty_one(memory: bytes | None) -> None:
    assert read_memory(memory) == {}
