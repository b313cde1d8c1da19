"""Bluesky and Telegram as they show themselves without an account: posts, pages, what is refused and what changes."""

from typing import Any

import pytest

from headwater.errors import FailureKind
from tests.collectors.visits import Visits, told
from tests.fake_services import PAGE, as_json, as_page, query_of
from tests.origin import Answer, Origin, Received

ACTOR = "ann.example.org"


class Bluesky:
    """The AppView's methods for feeds, as the lexicons of app.bsky describe them: pages by cursor, errors as JSON."""

    def __init__(self, origin: Origin) -> None:
        self.posts: list[int] = []
        self.more: dict[int, dict[str, Any]] = {}
        self.origin = origin
        for method in ("getAuthorFeed", "getFeed", "getListFeed"):
            origin.route(f"/xrpc/app.bsky.feed.{method}", self._answer)

    def _answer(self, request: Received) -> Answer:
        query = query_of(request)
        if query.get("actor") == "gone.example.org":
            return as_json({"error": "InvalidRequest", "message": "Profile not found"}, status=400)
        start, size = int(query.get("cursor", 0)), int(query["limit"])
        posts = sorted(self.posts, reverse=True)
        said: dict[str, Any] = {"feed": [self._entry(each) for each in posts[start : start + size]]}
        if start + size < len(posts):
            said["cursor"] = str(start + size)
        return as_json(said)

    def _entry(self, number: int) -> dict[str, Any]:
        more = self.more.get(number, {})
        record = {
            "$type": "app.bsky.feed.post",
            "text": f"Post {number}",
            "createdAt": "2026-11-01T10:00:00.000Z",
        }
        post = {
            "uri": f"at://did:plc:ann/app.bsky.feed.post/3k{number}",
            "author": {"did": "did:plc:ann", "handle": ACTOR, "displayName": "Ann"},
            "record": record | more.get("record", {}),
            "embed": more.get("embed"),
            "likeCount": 7,
            "replyCount": 2,
        }
        return {"post": post} | ({"reason": more["reason"]} if "reason" in more else {})


def bluesky(origin: Origin, path: str = f"/profile/{ACTOR}", **config: Any) -> Visits:
    given = {"base_url": origin.url("").rstrip("/"), **config}
    return Visits(origin, "api.bluesky", f"https://bsky.app{path}", given)


async def test_posts_of_a_profile_are_read_to_what_is_known(origin: Origin) -> None:
    server = Bluesky(origin)
    server.posts = list(range(70))
    async with bluesky(origin, limit=200) as runs:
        result = await runs.visit()
        assert (len(result.items), result.requests, result.metadata.title) == (70, 2, "Ann")
        assert query_of(origin.requests[0]) == {"actor": ACTOR, "filter": "posts_no_replies", "limit": "50"}
        server.posts += [70, 71]
        assert await runs.cost() == (2, 1)
    async with bluesky(origin, limit=20) as runs:
        assert await runs.cost() == (20, 1)


@pytest.mark.parametrize(
    ("path", "method", "asked"),
    [
        (f"/profile/{ACTOR}/feed/cats", "getFeed", {"feed": f"at://{ACTOR}/app.bsky.feed.generator/cats"}),
        ("/profile/did:plc:x/lists/3k", "getListFeed", {"list": "at://did:plc:x/app.bsky.graph.list/3k"}),
        (
            f"/profile/{ACTOR}?show=posts_with_media",
            "getAuthorFeed",
            {"actor": ACTOR, "filter": "posts_with_media"},
        ),
        (f"/profile/{ACTOR}?show=else", "getAuthorFeed", {"actor": ACTOR, "filter": "posts_no_replies"}),
    ],
)
async def test_feeds_and_lists_are_asked_for_by_their_addresses(
    origin: Origin, path: str, method: str, asked: dict[str, str]
) -> None:
    Bluesky(origin).posts = [1]
    async with bluesky(origin, path) as runs:
        assert await runs.cost() == (1, 1)
    assert origin.requests[0].path == f"/xrpc/app.bsky.feed.{method}"
    assert query_of(origin.requests[0]) == {**asked, "limit": "50"}


async def test_post_becomes_an_item_with_links_pictures_and_quotes(origin: Origin) -> None:
    server = Bluesky(origin)
    server.posts = [1, 2]
    text = "Grüße <all>\nsee e.org/lo…"
    start = text.encode().index(b"e.org")
    server.more[2] = {
        "record": {
            "text": text,
            "langs": ["de"],
            "facets": [
                {
                    "index": {"byteStart": start, "byteEnd": len(text.encode())},
                    "features": [{"$type": "app.bsky.richtext.facet#link", "uri": 'https://e.org/long"x'}],
                },
                {
                    "index": {"byteStart": 0, "byteEnd": 3},
                    "features": [{"$type": "app.bsky.richtext.facet#link", "uri": "javascript:x"}],
                },
                {"index": {}, "features": [{"$type": "app.bsky.richtext.facet#tag", "tag": "trees"}]},
            ],
        },
        "embed": {
            "$type": "app.bsky.embed.recordWithMedia#view",
            "media": {"images": [{"fullsize": "https://cdn.example/1.jpg", "alt": "A tree"}]},
            "record": {"record": {"author": {"handle": "ben.example"}, "value": {"text": "Quoted"}}},
        },
    }
    server.more[1] = {"reason": {"$type": "app.bsky.feed.defs#reasonRepost"}}
    async with bluesky(origin) as runs:
        result = await runs.visit()
    (item,) = result.items
    assert result.left_out_count == 1, "what is passed on is not wanted unless it is said"
    assert item.content == (
        '<p>Grüße &lt;all&gt;<br>\nsee <a href="https://e.org/long&quot;x">e.org/lo…</a></p>'
        "<blockquote><p>@ben.example</p><p>Quoted</p></blockquote>"
    )
    assert (item.title, item.url) == (
        "Grüße <all> see e.org/lo…",
        f"https://bsky.app/profile/{ACTOR}/post/3k2",
    )
    assert (item.image_url, item.enclosures[0].title) == ("https://cdn.example/1.jpg", "A tree")
    assert (item.language, item.categories, item.score, item.comments_count) == ("de", ("trees",), 7, 2)


async def test_what_bluesky_refuses_is_told(origin: Origin) -> None:
    server = Bluesky(origin)
    async with bluesky(origin, "/profile/gone.example.org") as runs:
        assert told(await runs.failure()) == (FailureKind.CLIENT_ERROR, 400)
    async with bluesky(origin, "/about") as runs:
        assert told(await runs.failure())[0] is FailureKind.NOT_FOUND
    async with bluesky(origin) as runs:
        server.posts = [1]
        await runs.visit()
        server.posts = []
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/xrpc/app.bsky.feed.getAuthorFeed", body=PAGE, content_type="text/html")
        assert "a web page where JSON was expected" in str(await runs.failure())
        origin.route("/xrpc/app.bsky.feed.getAuthorFeed", status=429, headers={"Retry-After": "60"})
        assert told(await runs.failure()) == (FailureKind.RATE_LIMITED, 429)


class Telegram:
    """A channel's public page: twenty posts, the newest last, older ones by `?before=`."""

    def __init__(self, origin: Origin) -> None:
        self.posts: list[int] = []
        self.more: dict[int, str] = {}
        self.is_private = False
        self.url = origin.route("/s/trees", self._answer)

    def _answer(self, request: Received) -> Answer:
        if self.is_private:  # a page that invites to the app, after a redirect
            return as_page("<div class=tgme_page><div class=tgme_page_title>Trees</div></div>")
        before = int(query_of(request).get("before", 10**9))
        posts = [each for each in sorted(self.posts) if each < before][-20:]
        return as_page(
            "<div class=tgme_channel_info_header_title><span>Trees</span></div>"
            "<div class=tgme_channel_info_description>All <b>of</b> them</div>"
            + "".join(self._post(each) for each in posts)
        )

    def _post(self, number: int) -> str:
        return (
            "<div class=tgme_widget_message_wrap><div class='tgme_widget_message text_not_supported_wrap'"
            f" data-post='trees/{number}'><a class=tgme_widget_message_owner_name><span>Trees</span></a>"
            f"{self.more.get(number) or f'<div class=tgme_widget_message_text>Post {number}<br>more</div>'}"
            f"<span class=tgme_widget_message_views>1.2K</span>"
            f"<a class=tgme_widget_message_date href='https://t.me/trees/{number}'>"
            f"<time datetime='2026-11-01T10:00:00+00:00'>10:00</time></a></div></div>"
        )


async def test_posts_of_a_channel_are_read_newest_first_to_what_is_known(origin: Origin) -> None:
    channel = Telegram(origin)
    channel.posts = list(range(1, 51))
    async with Visits(origin, "web.telegram", channel.url) as runs:
        result = await runs.visit()
        assert (len(result.items), result.requests, result.metadata.title) == (50, 3, "Trees")
        item = result.items[0]
        assert (item.external_id, item.title, item.url) == ("trees/50", "Post 50", "https://t.me/trees/50")
        assert (item.author, item.score, item.content) == ("Trees", 1_200, "Post 50<br>more")
        channel.posts += [51]
        assert await runs.cost() == (1, 1)
        channel.posts += range(52, 80)
        assert await runs.cost() == (28, 2)


async def test_pictures_and_previews_are_kept(origin: Origin) -> None:
    channel = Telegram(origin)
    channel.posts = [1, 2]
    channel.more[1] = (
        "<a class=tgme_widget_message_photo_wrap style=\"width:9px;background-image:url('https://cdn.example/1.jpg')\"></a>"
        "<a class=tgme_widget_message_link_preview href='https://e.org/a'>A page</a>"
    )
    async with Visits(origin, "web.telegram", channel.url) as runs:
        _, item = (await runs.visit()).items
    assert (item.title, item.image_url) == ("trees/1", "https://cdn.example/1.jpg")
    assert 'href="https://e.org/a"' in (item.content or "")


async def test_channel_that_shows_nothing_says_why(origin: Origin) -> None:
    channel = Telegram(origin)
    channel.posts = [1]
    async with Visits(origin, "web.telegram", channel.url) as runs:
        channel.is_private = True
        error = await runs.failure()
        assert told(error)[0] is FailureKind.NOT_FOUND
        assert "the channel is private, is missing" in str(error)
        channel.is_private = False
        await runs.visit()
        channel.posts = []
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/s/trees", status=429)
        assert told(await runs.failure()) == (FailureKind.RATE_LIMITED, 429)
