"""Finds the feeds of a page: in its HTML, by the rules of known sites, and at the usual places.

Pure: it names candidates, best first, and never asks the network whether they are there.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from headwater.formats.html import collapse
from headwater.formats.links import join
from headwater.formats.pages.document import base_of, read_html
from headwater.formats.pages.rules import known_feeds

How = Literal["rule", "link", "body", "guess", "watch", "answer"]

MAX_CANDIDATES: Final = 50
COMMON_PATHS: Final = (
    "/feed",
    "/rss.xml",
    "/atom.xml",
    "/feed.xml",
    "/index.xml",
    "/rss",
    "/feed.json",
    "/feeds/posts/default",
    "/blog/feed",
    "/blog/rss.xml",
    "/?feed=rss2",
)

_FEED_TYPES: Final = {
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/x-rss+xml",
    "text/rss",
    "text/rss+xml",
    "text/atom+xml",
    "application/rss",
    "application/atom",
}
# Types that a feed may have, and much else too: they count only when the address looks like a feed.
_MAYBE_TYPES: Final = {"application/json", "application/xml", "text/xml", ""}
_FEED_LOOK = re.compile(
    r"(?:^|[/?&=._-])(?:feeds?|rss2?|atom|rdf)(?:[/?&=._-]|$)|\.(?:rss|atom|rdf)(?:$|[?#])|feed\.json|feedburner",
    re.IGNORECASE,
)
_FEED_WORDS = re.compile(r"\b(?:rss|atom|feed|xml feed|订阅)\b", re.IGNORECASE)
_COMMENTS = re.compile(r"comments?\b|评论", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a feed may be, and what says so."""

    url: str
    title: str | None = None
    type: str | None = None
    how: How = "link"


def find_feeds(page: bytes, url: str, content_type: str | None = None) -> list[Candidate]:
    """Candidates from the page at `url`, best first: site rules, declared links, then links in the body."""
    found: dict[str, Candidate] = {feed: Candidate(feed, how="rule") for feed in known_feeds(url)}
    document = read_html(page, content_type)
    base = base_of(document, url)
    declared = [*_youtube_channel(document, url), *_declared(document, base)]
    # Comment feeds last: people who subscribe to a site mean its articles.
    declared.sort(key=lambda candidate: bool(_COMMENTS.search(f"{candidate.title or ''} {candidate.url}")))
    for candidate in (*declared, *_hinted(document, base)):
        if len(found) >= MAX_CANDIDATES:
            break
        if candidate.url.lower().startswith(("http://", "https://")):
            found.setdefault(candidate.url, candidate)
    return list(found.values())


def guess_feeds(url: str) -> list[Candidate]:
    """The usual places on the site of `url`, for when the page itself names none."""
    try:
        parts = urlsplit(url)
        directory = parts.path.rpartition("/")[0]
    except ValueError:
        return []
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return []
    origin = f"{parts.scheme}://{parts.netloc}"
    places = [origin + path for path in COMMON_PATHS]
    if directory:
        places = [f"{origin}{directory}{path}" for path in COMMON_PATHS[:5]] + places
    return [Candidate(place, how="guess") for place in dict.fromkeys(places)]


def _declared(document: LexborHTMLParser, base: str) -> list[Candidate]:
    candidates = []
    for node in document.css("link[href]"):
        attributes = node.attributes
        rel = (attributes.get("rel") or "").lower().split()
        kind = (attributes.get("type") or "").lower().partition(";")[0].strip()
        url = join(base, attributes.get("href"))
        if not url or not ({"alternate", "feed"} & set(rel)) or "stylesheet" in rel:
            continue
        if kind in _FEED_TYPES or "feed" in rel or (kind in _MAYBE_TYPES and kind and _FEED_LOOK.search(url)):
            title = collapse(attributes.get("title") or "") or None
            candidates.append(Candidate(url, title=title, type=kind or None))
    return candidates


def _youtube_channel(document: LexborHTMLParser, url: str) -> list[Candidate]:
    """The feed of the channel that a page of YouTube belongs to. Pages of single videos do not declare it."""
    if "youtube.com/" not in url:
        return []
    node = document.css_first('meta[itemprop="channelId"][content], meta[itemprop="identifier"][content]')
    channel = (node.attributes.get("content") or "") if node else ""
    return [Candidate(feed) for feed in known_feeds(f"https://www.youtube.com/channel/{channel}")[:1]]


def _hinted(document: LexborHTMLParser, base: str) -> list[Candidate]:
    candidates = []
    for node in document.css("a[href]"):
        href = node.attributes.get("href") or ""
        url = join(base, href)
        if not url or href.startswith("#"):
            continue
        text = collapse(node.text() or "")[:100]
        label = f"{text} {node.attributes.get('title') or ''} {node.attributes.get('class') or ''}"
        if _FEED_LOOK.search(_path_and_query(url)) and (_FEED_WORDS.search(label) or _FEED_LOOK.search(href)):
            candidates.append(Candidate(url, title=text or None, how="body"))
    return candidates


def _path_and_query(url: str) -> str:
    """ "" where the address cannot be split."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
