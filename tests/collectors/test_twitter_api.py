"""X by its official API, version 2, with the user's own token: users, lists, bookmarks, errors and limits."""

from typing import Any

from headwater.collectors.twitter import TwitterCollector
from headwater.errors import FailureKind
from tests.collectors.visits import Visits, told
from tests.fake_services import as_json, query_of
from tests.origin import Answer, Origin, Received

NOW = 1_760_000_000.0


class X:
    """The API as X documents it: look-ups, timelines in pages by tokens, rate limits, errors with status 200."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.posts: list[int] = []
        self.more: dict[int, dict[str, Any]] = {}
        self.limited = False
        origin.route(
            "/2/users/by/username/ann", self._guarded({"data": {"id": "7", "name": "Ann", "username": "ann"}})
        )
        origin.route("/2/users/me", self._guarded({"data": {"id": "7", "name": "Ann", "username": "ann"}}))
        origin.route("/2/lists/99", self._guarded({"data": {"id": "99", "name": "Gardeners"}}))
        missing = {
            "type": "https://api.twitter.com/2/problems/resource-not-found",
            "title": "Not Found Error",
            "detail": "Could not find user with username: [ben].",
        }
        origin.route("/2/users/by/username/ben", self._guarded({"errors": [missing]}))
        for path in ("/2/users/7/tweets", "/2/users/7/bookmarks", "/2/lists/99/tweets"):
            origin.route(path, self._timeline)

    def _guarded(self, said: dict[str, Any]):  # type: ignore[no-untyped-def]
        return lambda request: self._refusal(request) or as_json(said)

    def _refusal(self, request: Received) -> Answer | None:
        if request.headers.get("authorization") != "Bearer t0ken":
            return as_json({"title": "Unauthorized", "status": 401}, status=401)
        if self.limited:
            return as_json(
                {"title": "Too Many Requests"},
                status=429,
                headers={"x-rate-limit-reset": str(int(NOW) + 300)},
            )
        return None

    def _timeline(self, request: Received) -> Answer:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        query = query_of(request)
        size = int(query["max_results"])
        assert 5 <= size <= 100
        newer = [each for each in self.posts if each > int(query.get("since_id", 0))]
        found = sorted(newer, reverse=True)
        start = int(query.get("pagination_token", 0))
        page = found[start : start + size]
        meta: dict[str, Any] = {"result_count": len(page)}
        if start + size < len(found):
            meta["next_token"] = str(start + size)
        if not page:
            return as_json({"meta": meta})
        return as_json(
            {"data": [self._post(each) for each in page], "includes": self._included(), "meta": meta}
        )

    def _post(self, number: int) -> dict[str, Any]:
        return {
            "id": str(number),
            "text": f"Post {number}",
            "author_id": "7",
            "created_at": "2026-11-01T10:00:00.000Z",
            "lang": "en",
            **self.more.get(number, {}),
        }

    def _included(self) -> dict[str, Any]:
        return {
            "users": [
                {"id": "7", "name": "Ann", "username": "ann"},
                {"id": "8", "name": "Ben", "username": "ben"},
            ],
            "media": [
                {"media_key": "m1", "type": "photo", "url": "https://pbs.example/1.jpg", "alt_text": "A tree"}
            ],
            "tweets": [{"id": "500", "text": "The whole of it", "author_id": "8"}],
        }


def visits(
    origin: Origin, url: str = "https://x.com/ann", kind: str = "twitter.feed", **config: Any
) -> Visits:
    given = {"bearer_token": "t0ken", "base_url": origin.url("").rstrip("/"), **config}
    return Visits(origin, kind, url, given, collector=TwitterCollector(lambda: NOW))


async def test_posts_of_a_user_are_asked_for_from_the_newest_known(origin: Origin) -> None:
    x = X(origin)
    x.posts = [100, 101]
    async with visits(origin) as runs:
        assert await runs.cost() == (2, 2)  # who it is, and the posts
        assert runs.source.metadata.title is None
        assert await runs.cost() == (0, 1)
        assert query_of(origin.requests[-1])["since_id"] == "101"
        assert query_of(origin.requests[-1])["exclude"] == "replies"
        x.posts.append(102)
        assert await runs.cost() == (1, 1)
        assert await runs.cost() == (0, 1)


async def test_limit_is_of_what_is_billed(origin: Origin) -> None:
    x = X(origin)
    x.posts = list(range(100, 400))
    async with visits(origin, limit=120) as runs:
        assert await runs.cost() == (120, 3)
    sizes = [query_of(each).get("max_results") for each in origin.requests]
    assert sizes == [None, "100", "20"]


async def test_post_becomes_an_item(origin: Origin) -> None:
    x = X(origin)
    x.posts = [100, 101, 102]
    x.more[100] = {
        "text": "cut https://t.co/1",
        "note_tweet": {
            "text": "A long one &amp; more https://t.co/1",
            "entities": {"urls": [{"url": "https://t.co/1", "expanded_url": "https://e.org/a"}]},
        },
        "entities": {"hashtags": [{"tag": "trees"}]},
        "attachments": {"media_keys": ["m1"]},
    }
    x.more[101] = {"text": "RT @ben: The wh…", "referenced_tweets": [{"type": "retweeted", "id": "500"}]}
    x.more[102] = {"text": "Yes", "referenced_tweets": [{"type": "quoted", "id": "500"}]}
    async with visits(origin) as runs:
        quoted, repost, long = (await runs.visit()).items
    assert (long.title, long.url, long.author) == (
        "A long one & more https://e.org/a",
        "https://x.com/ann/status/100",
        "Ann",
    )
    assert (long.categories, long.image_url, long.language) == (("trees",), "https://pbs.example/1.jpg", "en")
    assert repost.content == "<blockquote><p>@ben</p><p>The whole of it</p></blockquote>"
    assert quoted.content == "<p>Yes</p>\n<blockquote><p>@ben</p><p>The whole of it</p></blockquote>"


async def test_lists_and_bookmarks_are_read_to_what_is_known(origin: Origin) -> None:
    x = X(origin)
    x.posts = list(range(100, 130))
    async with visits(origin, "https://x.com/i/lists/99", "twitter.list", limit=10) as runs:
        result = await runs.visit()
        assert (len(result.items), result.metadata.title) == (10, "Gardeners")
        assert await runs.cost() == (0, 1)
        assert "since_id" not in query_of(origin.requests[-1])
    async with visits(origin, "https://x.com/i/bookmarks", "twitter.bookmarks", limit=10) as runs:
        assert await runs.cost() == (10, 2)


async def test_what_x_refuses_is_told(origin: Origin) -> None:
    x = X(origin)
    x.posts = [1]
    async with visits(origin, "https://x.com/ben") as runs:
        error = await runs.failure()
        assert told(error)[0] is FailureKind.NOT_FOUND
        assert "Could not find user" in str(error)
    async with visits(origin, bearer_token="wr0ng") as runs:
        error = await runs.failure()
        assert told(error) == (FailureKind.UNAUTHORIZED, 401)
        assert "wr0ng" not in str(error)
    async with visits(origin, "https://x.com/i/settings/x") as runs:
        assert told(await runs.failure())[0] is FailureKind.NOT_FOUND
    x.limited = True
    async with visits(origin) as runs:
        error = await runs.failure()
    assert (told(error), error.retry_after_seconds) == ((FailureKind.RATE_LIMITED, 429), 300)


def test_token_or_bridge_makes_it_collectable() -> None:
    collector = TwitterCollector()
    config = collector.config_model
    assert collector.why_skipped(config()) is not None
    assert collector.why_skipped(config(bearer_token="x")) is None


async def test_post_with_other_values_than_documented_is_read_all_the_same(origin: Origin) -> None:
    x = X(origin)
    x.posts = [100]
    odd = {
        "referenced_tweets": True,
        "attachments": {"media_keys": 7},
        "note_tweet": {"text": "x", "entities": {"urls": 1}},
    }
    x.more[100] = {**odd, "entities": {"hashtags": 1.5}}
    async with visits(origin) as runs:
        assert [item.title for item in (await runs.visit()).items] == ["x"]
