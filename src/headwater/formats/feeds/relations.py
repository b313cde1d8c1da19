"""The links of a feed or entry, sorted by their relation."""

from collections.abc import Iterable
from typing import Final

from headwater.formats.feeds.scope import Element, Scope, inner_text, positive_integer, unique
from headwater.formats.html import collapse
from headwater.model import Enclosure
from headwater.records import dataclass

_IANA: Final = "http://www.iana.org/assignments/relation/"
_PAGE_TYPES: Final = ("", "text/html", "application/xhtml+xml")
_FEED_TYPES: Final = (
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "text/xml",
    "application/xml",
)


@dataclass(frozen=True, slots=True)
class Links:
    """What the links of a feed or entry lead to."""

    alternate: str | None = None
    self_link: str | None = None
    next_link: str | None = None
    archive_link: str | None = None
    replies: str | None = None
    replies_feed: str | None = None
    hubs: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()


NO_LINKS: Final = Links()


def read_links(scope: Scope, elements: Iterable[Element]) -> Links:
    """Sort link elements by their rel."""
    pages: list[str] = []
    others: list[str] = []
    found: dict[str, str] = {}
    hubs: list[str] = []
    enclosures: list[Enclosure] = []
    replies = replies_feed = None
    for element in elements:
        relation = element.get("rel")
        href = scope.link(element, element.get("href"))
        if href is None:
            # Some write Atom's link as RSS's.
            href = scope.link(element, inner_text(element)) if relation in (None, "alternate") else None
            if href is None:
                continue
        kind = (element.get("type") or "").strip().lower()
        if relation is None or relation == "alternate":
            (pages if kind in _PAGE_TYPES else others).append(href)
            continue
        for rel in relation.lower().removeprefix(_IANA).split() or ["alternate"]:
            if rel == "alternate":
                (pages if kind in _PAGE_TYPES else others).append(href)
            elif rel == "enclosure":
                enclosures.append(
                    Enclosure(
                        url=href,
                        media_type=kind or None,
                        length=positive_integer(element.get("length")),
                        title=collapse(element.get("title") or "") or None,
                    )
                )
            elif rel == "hub":
                hubs.append(href)
            elif rel == "replies" and kind in _FEED_TYPES:
                replies_feed = replies_feed or href
            elif rel == "replies":
                replies = replies or href
            else:
                found.setdefault(rel, href)
    return Links(
        alternate=next(iter(pages or others), None),
        self_link=found.get("self"),
        next_link=found.get("next"),
        archive_link=found.get("prev-archive"),
        replies=replies,
        replies_feed=replies_feed,
        hubs=unique(hubs),
        enclosures=tuple(enclosures),
    )
