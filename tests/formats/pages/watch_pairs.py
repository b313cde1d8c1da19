"""Pairs of pages as they stood and as they stand, judged by hand: has what a person watches changed?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    name: str
    before: str
    after: str
    changed: bool
    selector: str | None = None


def page(body: str, *, title: str = "Page", head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


def pair(name: str, before: str, after: str, changed: bool, selector: str | None = None) -> Pair:
    return Pair(name, page(before), page(after), changed, selector)


ARTICLE = "<main><h1>The bridge</h1><p>The bridge is closed until the works are done.</p>{}</main>"
SHOP = '<div class="product"><h1>Lamp</h1><p class="price">{}</p><p class="stock">{}</p></div>'
LIST = "<ul class='jobs'>{}</ul>"

UNCHANGED = (
    pair(
        "ago",
        ARTICLE.format("<p>Posted 3 minutes ago</p>"),
        ARTICLE.format("<p>Posted 2 hours ago</p>"),
        False,
    ),
    pair(
        "ago-chinese",
        ARTICLE.format("<p>发布于 3 分钟前</p>"),
        ARTICLE.format("<p>发布于 2 小时前</p>"),
        False,
    ),
    pair("time-element", ARTICLE.format("<time>12:01</time>"), ARTICLE.format("<time>12:44</time>"), False),
    pair(
        "updated",
        ARTICLE.format("<p>Last updated: 12 Mar 2026, 09:14</p>"),
        ARTICLE.format("<p>Last updated: 13 Mar 2026, 10:02</p>"),
        False,
    ),
    pair(
        "updated-chinese",
        ARTICLE.format("<p>最后更新时间：2026-03-12 09:14</p>"),
        ARTICLE.format("<p>最后更新时间：2026-03-13 10:02</p>"),
        False,
    ),
    pair(
        "server-time",
        "<p>Rules</p><p>Server time 12:30:01</p>",
        "<p>Rules</p><p>Server time 12:31:09</p>",
        False,
    ),
    pair("views", ARTICLE.format("<p>1,024 views</p>"), ARTICLE.format("<p>1.2k views</p>"), False),
    pair(
        "likes",
        ARTICLE.format("<p>Likes: 12 · Shares: 3</p>"),
        ARTICLE.format("<p>Likes: 15 · Shares: 4</p>"),
        False,
    ),
    pair(
        "comments",
        ARTICLE.format("<a href=#c>Comments (3)</a>"),
        ARTICLE.format("<a href=#c>Comments (14)</a>"),
        False,
    ),
    pair("reads-chinese", ARTICLE.format("<p>阅读 1024</p>"), ARTICLE.format("<p>阅读 2.3万</p>"), False),
    pair(
        "counted-chinese", ARTICLE.format("<p>1024 次浏览</p>"), ARTICLE.format("<p>1100 次浏览</p>"), False
    ),
    pair(
        "watching-now",
        SHOP.format("€ 20", "In stock") + "<p>7 people are viewing this</p>",
        SHOP.format("€ 20", "In stock") + "<p>12 people are viewing this</p>",
        False,
    ),
    pair(
        "advertisement",
        ARTICLE.format('<div class="ad-slot">Buy shoes</div>'),
        ARTICLE.format('<div class="ad-slot">Buy hats</div>'),
        False,
    ),
    pair(
        "adsense",
        ARTICLE.format('<ins class="adsbygoogle">One</ins>'),
        ARTICLE.format('<ins class="adsbygoogle">Two</ins>'),
        False,
    ),
    pair(
        "sponsored",
        ARTICLE.format('<div id="sponsored">Fly to Rome</div>'),
        ARTICLE.format('<div id="sponsored">Fly to Oslo</div>'),
        False,
    ),
    pair(
        "related",
        ARTICLE.format("") + '<div class="related-posts"><a href=/a>A</a></div>',
        ARTICLE.format("") + '<div class="related-posts"><a href=/b>B</a></div>',
        False,
    ),
    pair(
        "aside",
        "<p>Text that stays.</p><aside>Tip 1</aside>",
        "<p>Text that stays.</p><aside>Tip 2</aside>",
        False,
    ),
    pair(
        "cookies",
        ARTICLE.format(""),
        ARTICLE.format("") + '<div id="cookie-consent">We use cookies</div>',
        False,
    ),
    pair(
        "token",
        ARTICLE.format('<form><input type="hidden" name="csrf" value="a1b2c3d4"></form>'),
        ARTICLE.format('<form><input type="hidden" name="csrf" value="ffee0011"></form>'),
        False,
    ),
    pair(
        "script",
        ARTICLE.format("<script>var now = 1</script>"),
        ARTICLE.format("<script>var now = 2</script><style>p{}</style>"),
        False,
    ),
    pair(
        "request-id",
        "<p>All is well.</p><footer>Request ID: 8f3a9c1d77</footer>",
        "<p>All is well.</p><footer>Request ID: 0b1c2d3e4f</footer>",
        False,
    ),
    pair(
        "generated", "<p>Rules</p><p>Generated in 12 ms</p>", "<p>Rules</p><p>Generated in 37 ms</p>", False
    ),
    pair(
        "copyright",
        "<p>Rules of the house</p><p>© 2025 House</p>",
        "<p>Rules of the house</p><p>© 2026 House</p>",
        False,
    ),
    pair("markup", "<p>One text</p>", "<section><div><p class=x>One\n   text</p></div></section>", False),
    pair(
        "countdown",
        "<p>Sale</p><p>Ends in 2 days 03 hours</p>",
        "<p>Sale</p><p>Ends in 1 day 22 hours</p>",
        False,
    ),
    pair("asset", '<p>A<img src="/x.png?v=1"></p>', '<p>A<img src="/x.png?v=2"></p>', False),
)
CHANGED = (
    pair("text", ARTICLE.format(""), ARTICLE.format("").replace("closed", "open"), True),
    pair("paragraph", ARTICLE.format(""), ARTICLE.format("<p>Works end in May.</p>"), True),
    pair("price", SHOP.format("€ 20", "In stock"), SHOP.format("€ 18", "In stock"), True),
    pair("stock", SHOP.format("€ 20", "Sold out"), SHOP.format("€ 20", "In stock"), True),
    pair("stock-chinese", SHOP.format("¥ 20", "缺货"), SHOP.format("¥ 20", "有货"), True),
    pair("item", LIST.format("<li>Cook</li>"), LIST.format("<li>Cook</li><li>Gardener</li>"), True),
    pair("item-gone", LIST.format("<li>Cook</li><li>Gardener</li>"), LIST.format("<li>Cook</li>"), True),
    pair(
        "event-time", "<p>Concert on Friday, doors 19:30</p>", "<p>Concert on Friday, doors 20:00</p>", True
    ),
    pair("event-date", "<p>The exam is on 12 May 2026.</p>", "<p>The exam is on 19 May 2026.</p>", True),
    pair("version", "<h1>Tool</h1><p>Version 3.1.4</p>", "<h1>Tool</h1><p>Version 3.2.0</p>", True),
    pair("version-date", "<p>Release 2026.3</p>", "<p>Release 2026.4</p>", True),
    pair("phone", "<p>Call 030 1234567</p>", "<p>Call 030 7654321</p>", True),
    pair(
        "rate",
        "<table><tr><td>USD</td><td>1.0832</td></tr></table>",
        "<table><tr><td>USD</td><td>1.0907</td></tr></table>",
        True,
    ),
    pair("places", "<p>Places left: 4</p>", "<p>Places left: 0 – waiting list</p>", True),
    pair("status", "<p>Status: <b>operational</b></p>", "<p>Status: <b>degraded</b></p>", True),
    pair(
        "change-beside-noise",
        ARTICLE.format("<p>1,024 views</p>"),
        ARTICLE.format("<p>1,030 views</p>").replace("closed", "open"),
        True,
    ),
    pair("heading", "<h1>Rules</h1><p>No dogs.</p>", "<h1>Rules</h1><p>Dogs welcome.</p>", True),
    pair("selected", SHOP.format("€ 20", "In stock"), SHOP.format("€ 20", "Sold out"), False, ".price"),
    pair("selected-change", SHOP.format("€ 20", "In stock"), SHOP.format("€ 21", "Sold out"), True, ".price"),
    pair("notice-chinese", "<p>本周六照常开放。</p>", "<p>本周六闭馆。</p>", True),
)
PAIRS = UNCHANGED + CHANGED
