"""The rules of RSS 2.0 and Atom 1.0 (RFC 4287) that a published feed must keep: what must be there, how often, and in
which form. They are those that feed validators check first."""

import re
from collections import Counter
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from lxml import etree

ATOM = "{http://www.w3.org/2005/Atom}"
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+\Z")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+\Z")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)\Z")
_CHANNEL = (
    "title link description language copyright managingEditor webMaster pubDate lastBuildDate category generator docs"
    " cloud ttl image rating textInput skipHours skipDays item"
)
_ITEM = "title link description author category comments enclosure guid pubDate source"
_IN_RSS_ITEM = "link id title summary author contributor content published updated"
_FEED = "author category contributor generator icon id link logo rights subtitle title updated entry"
_ENTRY = "author category content contributor id link published rights source summary title updated"
_OFTEN = frozenset(("category", "item", "enclosure", "author", "contributor", "link", "entry"))

Element = etree._Element


def find_faults(body: bytes) -> list[str]:
    """What an RSS or Atom document has wrong; empty for a valid one."""
    root = etree.fromstring(body, etree.XMLParser(resolve_entities=False))
    return list(_check_atom(root) if root.tag == f"{ATOM}feed" else _check_rss(root))


def _check_rss(root: Element) -> Iterator[str]:
    if root.tag != "rss" or root.get("version") != "2.0" or [child.tag for child in root] != ["channel"]:
        yield "no <rss version='2.0'> with one channel"
        return
    channel = root[0]
    yield from _check_children(channel, "", _CHANNEL, "title link description", once="link")
    for name in ("pubDate", "lastBuildDate"):
        yield from _check_dates(channel, name)
    for item in channel.iterfind("item"):
        yield from _check_item(item)


def _check_item(item: Element) -> Iterator[str]:
    yield from _check_children(item, "", _ITEM, "", once="link")
    yield from _check_children(item, ATOM, _IN_RSS_ITEM, "")
    yield from _check_dates(item, "pubDate")
    if not any((item.findtext(name) or "").strip() for name in ("title", "description")):
        yield "an item without title and description"
    for guid in item.iterfind("guid"):
        if guid.get("isPermaLink", "true") == "true" and not (guid.text or "").startswith("http"):
            yield f"the guid {guid.text} is not an address, and is said to be one"
    for source in item.iterfind("source"):
        if not source.get("url"):
            yield "a source without its address"
    for file in item.iterfind("enclosure"):
        if not _IRI.match(file.get("url") or "") or not (file.get("length") or "").isdigit():
            yield "an enclosure without address or length"
        if not _MEDIA_TYPE.match(file.get("type") or ""):
            yield f"an enclosure of the type {file.get('type')}"


def _check_atom(feed: Element) -> Iterator[str]:
    yield from _check_children(feed, ATOM, _FEED, "id title updated")
    yield from _check_construct(feed)
    has_author = feed.find(f"{ATOM}author") is not None
    for entry in feed.iterfind(f"{ATOM}entry"):
        yield from _check_children(entry, ATOM, _ENTRY, "id title updated")
        yield from _check_construct(entry)
        links = [link for link in entry.iterfind(f"{ATOM}link") if link.get("rel") == "alternate"]
        if entry.find(f"{ATOM}content") is None and not links:
            yield "an entry without content and link"
        if max(Counter((link.get("type"), link.get("hreflang")) for link in links).values(), default=0) > 1:
            yield "two alternate links of one type"
        if not has_author and entry.find(f"{ATOM}author") is None:
            yield "an entry without author in a feed without one"


def _check_construct(holder: Element) -> Iterator[str]:
    """What holds for feeds and entries alike."""
    if not _IRI.match(holder.findtext(f"{ATOM}id") or ""):
        yield f"the id {holder.findtext(f'{ATOM}id')} is not an IRI"
    for name in ("updated", "published"):
        for date in holder.iterfind(f"{ATOM}{name}"):
            if not _RFC3339.match(date.text or ""):
                yield f"the date {date.text}"
    for link in holder.iterfind(f"{ATOM}link"):
        if not link.get("href"):
            yield "a link that leads nowhere"
    for author in holder.iterfind(f"{ATOM}author"):
        if not (author.findtext(f"{ATOM}name") or "").strip():
            yield "an author without a name"


def _check_children(
    holder: Element, namespace: str, allowed: str, needed: str, once: str = ""
) -> Iterator[str]:
    tags = [str(child.tag) for child in holder]
    locals_ = [
        tag.removeprefix(namespace)
        for tag in tags
        if tag.startswith(namespace) and "{" not in tag[len(namespace) :]
    ]
    yield from (f"<{name}> in <{holder.tag}>" for name in locals_ if name not in allowed.split())
    yield from (f"<{holder.tag}> without <{name}>" for name in needed.split() if name not in locals_)
    often = _OFTEN - set(once.split())
    yield from (
        f"<{name}> {count} times in <{holder.tag}>"
        for name, count in Counter(locals_).items()
        if count > 1 and name not in often
    )


def _check_dates(holder: Element, name: str) -> Iterator[str]:
    for date in holder.iterfind(name):
        try:
            parsedate_to_datetime(date.text or "")
        except ValueError:
            yield f"the date {date.text}"
