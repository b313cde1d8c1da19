"""Services as tests have them: answers on loopback in the shape of the real ones, with their limits and errors.

    news = HackerNews(origin)
    news.stories[1] = news.story(1, score=5)
    news.lists["top"] = [1]
    collect(news.url)

What each was asked is in `origin.requests`.
"""

import hashlib
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headwater.collectors.bilibili import mix_key
from tests.origin import Answer, Origin, Received

BASE_TIME = 1_700_000_000
CAPTCHA = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>"
    '<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script></body></html>'
)
PAGE = "<!DOCTYPE html><html><head><title>Service unavailable</title></head><body>Back soon.</body></html>"


def as_json(data: Any, **more: Any) -> Answer:
    return Answer(json.dumps(data), content_type="application/json; charset=utf-8", **more)


def as_page(html: str, **more: Any) -> Answer:
    return Answer(html, content_type="text/html; charset=utf-8", **more)


def query_of(request: Received) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}


class HackerNews:
    """`/v0/topstories.json` is a list of ids, `/v0/item/ID.json` one story, null where there is none."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.lists: dict[str, list[int]] = {"top": []}
        self.stories: dict[int, Any] = {}
        self.bad_day: Answer | None = None  # the answer to everything
        self.bad_items: dict[int, Answer] = {}
        self.url = origin.url("/v0")
        origin.otherwise(self._answer)

    def add(self, *ids: int, **fields: Any) -> None:
        for number in ids:
            self.stories[number] = self.story(number, **fields)
        self.lists["top"] = [*ids, *self.lists["top"]]

    def story(self, number: int, **fields: Any) -> dict[str, Any]:
        return {
            "by": "pg",
            "descendants": 15,
            "id": number,
            "kids": [number + 1],
            "score": 57,
            "time": BASE_TIME + number,
            "title": f"Story {number} &amp; more",
            "type": "story",
            "url": f"http://stories.example/{number}",
        } | fields

    def item_requests(self) -> list[int]:
        found = [re.search(r"/item/(\d+)\.json", request.path) for request in self.origin.requests]
        return [int(match[1]) for match in found if match]

    def _answer(self, request: Received) -> Answer:
        if self.bad_day is not None:
            return self.bad_day
        if match := re.fullmatch(r"/v0/(\w+)stories\.json", request.path):
            return as_json(self.lists[match[1]])
        if match := re.fullmatch(r"/v0/item/(\d+)\.json", request.path):
            number = int(match[1])
            return self.bad_items.get(number) or as_json(self.stories.get(number))
        return as_json({"error": "Permission denied"}, status=401)


class Reddit:
    """`/r/NAME/LISTING.json` in pages, `/r/NAME/LISTING/.rss`, and a budget of requests told in headers."""

    def __init__(self, origin: Origin, name: str = "python") -> None:
        self.origin = origin
        self.name = name
        self.posts: list[dict[str, Any]] = []
        self.budget = 100
        self.reset = 300
        self.blocks_json = False
        self.bad_day: Answer | None = None
        self.url = origin.url(f"/r/{name}")
        origin.otherwise(self._answer)

    def add(self, *numbers: int, **fields: Any) -> None:
        self.posts[:0] = [self.post(number, **fields) for number in sorted(numbers, reverse=True)]

    def post(self, number: int, **fields: Any) -> dict[str, Any]:
        return {
            "name": f"t3_{number:06x}",
            "id": f"{number:06x}",
            "subreddit": self.name,
            "title": f"Post {number}: a < b",
            "author": "guido",
            "selftext": "Hello",
            "selftext_html": '<!-- SC_OFF --><div class="md"><p>Hello</p>\n</div><!-- SC_ON -->',
            "is_self": True,
            "url": f"https://www.reddit.com/r/{self.name}/comments/{number:06x}/post/",
            "permalink": f"/r/{self.name}/comments/{number:06x}/post/",
            "created_utc": float(BASE_TIME + number),
            "score": 10,
            "num_comments": 3,
            "link_flair_text": "News",
            "thumbnail": "self",
            "over_18": False,
            "stickied": False,
        } | fields

    def _answer(self, request: Received) -> Answer:
        self.budget -= 1
        headers = {
            "x-ratelimit-remaining": f"{max(self.budget, 0)}.0",
            "x-ratelimit-used": "1",
            "x-ratelimit-reset": str(self.reset),
        }
        if self.bad_day is not None:
            return self.bad_day
        if self.budget < 0:
            return as_json({"message": "Too Many Requests", "error": 429}, status=429, headers=headers)
        parts = request.path.split("/")
        if parts[:2] != ["", "r"] or parts[2].lower() != self.name:
            if request.path == "/subreddits/search.json":
                return as_json({"kind": "Listing", "data": {"after": None, "children": []}})
            return Answer(status=302, location=f"/subreddits/search.json?q={parts[2]}")
        if request.path.endswith(".rss"):
            return Answer(self.feed(), content_type="application/atom+xml; charset=UTF-8", headers=headers)
        if self.blocks_json:
            return as_page("<html><head><title>Blocked</title></head></html>", status=403, headers=headers)
        query = query_of(request)
        size, after = int(query.get("limit", 25)), query.get("after")
        names = [post["name"] for post in self.posts]
        start = names.index(after) + 1 if after else 0
        page = self.posts[start : start + size]
        more = start + size < len(self.posts)
        listing = {
            "after": page[-1]["name"] if page and more else None,
            "dist": len(page),
            "modhash": "",
            "geo_filter": "",
            "children": [{"kind": "t3", "data": post} for post in page],
            "before": None,
        }
        return as_json({"kind": "Listing", "data": listing}, headers=headers)

    def feed(self) -> str:
        entries = "".join(
            f'<entry><author><name>/u/guido</name></author><category term="{self.name}" label="r/{self.name}"/>'
            f'<content type="html">&lt;!-- SC_OFF --&gt;&lt;div class="md"&gt;&lt;p&gt;Hello&lt;/p&gt;\n&lt;/div&gt;'
            f"&lt;!-- SC_ON --&gt; &amp;#32; submitted by &lt;a href=&quot;{post['url']}&quot;&gt;[link]&lt;/a&gt;"
            f'</content><id>{post["name"]}</id><link href="https://www.reddit.com{post["permalink"]}"/>'
            f"<updated>{iso(post['created_utc'])}</updated><published>{iso(post['created_utc'])}</published>"
            f"<title>Post {int(post['id'], 16)}: a &lt; b</title></entry>"
            for post in self.posts
        )
        return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>r/{self.name}</title>{entries}</feed>'


def iso(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat()


class Bilibili:
    """`/x/web-interface/nav` has the keys of the day, `/x/space/wbi/arc/search` the videos to who signs with them."""

    def __init__(self, origin: Origin, uid: int = 1234) -> None:
        self.origin = origin
        self.uid = uid
        self.videos: list[dict[str, Any]] = []
        self.keys = ("7cd084941338484aae1ad9425b84077c", "4932caff0ff746eab6f01bf08b70ac45")
        self.bad_day: Answer | None = None  # the answer to who asks for videos
        self.url = origin.url("")
        origin.otherwise(self._answer)

    def add(self, *numbers: int) -> None:
        self.videos[:0] = [self.video(number) for number in sorted(numbers, reverse=True)]

    def video(self, number: int) -> dict[str, Any]:
        return {
            "comment": 12,
            "typeid": 122,
            "play": 1000,
            "pic": f"//i0.hdslb.com/bfs/archive/{number}.jpg",
            "description": f"第 {number} 期",
            "title": f"视频 {number}",
            "author": "UP主",
            "mid": self.uid,
            "created": BASE_TIME + number,
            "length": "12:34",
            "aid": number,
            "bvid": f"BV1xx{number:06d}",
        }

    def _answer(self, request: Received) -> Answer:
        if request.path == "/x/web-interface/nav":
            pictures = [f"https://i0.hdslb.com/bfs/wbi/{key}.png" for key in self.keys]
            wbi = {"img_url": pictures[0], "sub_url": pictures[1]}
            data = {"isLogin": False, "wbi_img": wbi}
            return as_json({"code": -101, "message": "账号未登录", "ttl": 1, "data": data})
        if self.bad_day is not None:
            return self.bad_day
        signed, _, signature = urlsplit(request.target).query.rpartition("&w_rid=")
        if (
            hashlib.md5((signed + mix_key(*self.keys)).encode(), usedforsecurity=False).hexdigest()
            != signature
        ):
            return as_json({"code": -403, "message": "访问权限不足", "ttl": 1})
        query = query_of(request)
        number, size = int(query["pn"]), int(query["ps"])
        page = self.videos[(number - 1) * size : number * size] if int(query["mid"]) == self.uid else []
        listed = {"list": {"vlist": page}, "page": {"pn": number, "ps": size, "count": len(self.videos)}}
        return as_json({"code": 0, "message": "0", "ttl": 1, "data": listed})


class Library:
    """A JSON API of no name: pages by number, offset or cursor, newest first, behind a key in a header or the query."""

    def __init__(self, origin: Origin, *, key: str | None = None) -> None:
        self.origin = origin
        self.key = key
        self.books: list[dict[str, Any]] = []
        self.size = 10
        self.bad_day: Answer | None = None
        self.url = origin.url("/books")
        origin.otherwise(self._answer)

    def add(self, *numbers: int, **fields: Any) -> None:
        self.books[:0] = [self.book(number, **fields) for number in sorted(numbers, reverse=True)]

    def book(self, number: int, **fields: Any) -> dict[str, Any]:
        return {
            "isbn": number,
            "name": f"Book {number}",
            "link": f"/book/{number}",
            "released": (BASE_TIME + number) * 1000,
            "writers": [{"name": "Ann"}, {"name": "Ben"}],
            "blurb": "<p>Good.</p>",
            "tags": ["new", "red"],
            "cover": {"src": f"/cover/{number}.png"},
        } | fields

    def _answer(self, request: Received) -> Answer:
        query = query_of(request)
        if self.bad_day is not None:
            return self.bad_day
        if self.key and self.key not in (request.headers.get("x-key"), query.get("api_key")):
            return as_json({"error": "no key"}, status=401)
        start = int(query.get("offset", 0)) or (int(query.get("page", 1)) - 1) * self.size
        start = int(query.get("cursor", start))
        page = self.books[start : start + self.size]
        following = start + self.size if start + self.size < len(self.books) else None
        address = f"/books?cursor={following}" if following else None
        return as_json({"data": {"books": page}, "next": following and str(following), "next_url": address})


BOOK_CONFIG = {
    "items": "data.books",
    "id": "isbn",
    "title": "name",
    "url": "link",
    "date": "released",
    "author": "writers[].name",
    "summary": "blurb",
    "categories": "tags",
    "image": "cover.src",
}


def hub_error(message: str, status: int = 503) -> Answer:
    """RSSHub's page for a route that failed."""
    return as_page(
        "<!DOCTYPE html><html><head><title>Welcome to RSSHub!</title></head><body><div>"
        '<h1 class="text-4xl">Looks like something went wrong</h1><p class="message">Error Message:<br/>'
        f'<code class="mt-2 block details">{message}</code></p><p>Route: <code>/x/:id</code></p></div></body></html>',
        status=status,
    )
