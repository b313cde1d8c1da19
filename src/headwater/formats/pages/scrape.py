"""Reads items out of a web page by CSS selectors: bytes and selectors in, items out. Pure.

A selector is looked for inside the item; `selector@attribute` takes an attribute's value instead of the text. What
has no selector is taken from where pages usually have it: the title from the first heading, the link from the first
link in it, the date from a <time>.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from headwater.formats.dates import parse_date
from headwater.formats.feeds.feed import Entry, to_item
from headwater.formats.html import collapse, plain_text
from headwater.formats.links import join, resolve_html
from headwater.formats.pages.document import base_of, read_html
from headwater.model import Item, SourceMetadata

MAX_ITEMS: Final = 1_000
LONGEST_SUMMARY: Final = 50_000

_HEADINGS: Final = "h1, h2, h3, h4, h5, h6"
_NEXT: Final = 'a[rel~="next"], link[rel~="next"]'
_DATE_ATTRIBUTES: Final = ("datetime", "content", "data-datetime", "data-date", "data-time", "title")
_IMAGE_ATTRIBUTES: Final = ("src", "data-src", "data-original", "data-lazy-src")
_ATTRIBUTE = re.compile(r"(.*?)@([A-Za-z_][\w:.-]*)\s*\Z", re.DOTALL)
_STRINGS = re.compile(r"\[[^\]]*\]|\"[^\"]*\"|'[^']*'")
_HAS = re.compile(r":has\(((?:[^()]|\([^()]*\))*)", re.IGNORECASE)
_COMBINATORS = re.compile(r"\s*([>+,])\s*")
_MONTH: Final = r"[^\W\d_]{3,10}\.?"
_DATE_IN_TEXT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?",
        r"\b\d{4}[/.]\d{1,2}[/.]\d{1,2}\b(?: \d{1,2}:\d{2}(?::\d{2})?)?",
        r"\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日?(?: ?\d{1,2}:\d{2})?",
        rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b",
        rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)? (?:de )?{_MONTH},? (?:de )?\d{{4}}\b",
    )
)


@dataclass(frozen=True, slots=True)
class Selectors:
    """Where the items of a page are, and the parts of one in it; `next` leads to the page's older part."""

    item: str
    title: str | None = None
    link: str | None = None
    date: str | None = None
    summary: str | None = None
    image: str | None = None
    next: str | None = None


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    items: tuple[Item, ...]
    next_url: str | None = None
    metadata: SourceMetadata = SourceMetadata()


def find_selector_fault(selector: str) -> str | None:
    """The part of `selector` that is not CSS, or None when there is nothing wrong with it."""
    css, _ = _split(selector)
    try:
        _empty_page().css(css or "*")
    except SelectolaxError:
        return css
    return None


def is_costly(selector: str) -> bool:
    """Whether a page can be made on which `selector` takes for ever: `:has()` with a search inside the search."""
    for inside in _HAS.findall(_STRINGS.sub("", selector)):
        if ":has" in inside or "~" in inside or " " in _COMBINATORS.sub(r"\1", inside.strip()):
            return True
    return False


@cache
def _empty_page() -> LexborHTMLParser:
    return LexborHTMLParser("<p></p>")


def scrape(page: bytes, selectors: Selectors, *, url: str, content_type: str | None = None) -> ScrapedPage:
    """The items of the page at `url`. What has neither a title nor a link is not an item."""
    document = read_html(page, content_type)
    base = base_of(document, url)
    metadata = _metadata(document, base)
    items = []
    for node in document.css(selectors.item)[:MAX_ITEMS]:
        entry = _read_entry(node, selectors, base)
        if entry.title or entry.link:
            items.append(to_item(entry))
    return ScrapedPage(tuple(items), _next_url(document, selectors.next, base, url), metadata)


def text_of(node: LexborNode) -> str:
    return plain_text(node.inner_html or "")


def find_date(text: str) -> datetime | None:
    """The date that `text` is, or that it contains."""
    text = collapse(text)[:500]
    if whole := parse_date(text):
        return whole
    for pattern in _DATE_IN_TEXT:
        for match in pattern.finditer(text):
            if found := parse_date(match[0]):
                return found
    return None


def link_of(node: LexborNode) -> LexborNode | None:
    """The link that an item most likely means: the one in its heading, itself, or its first with a text."""
    heading = node.css_first(_HEADINGS)
    links = [link for link in (heading.css("a[href]") if heading else []) if _leads_on(link)]
    if heading and not links and heading.parent and heading.parent.tag == "a" and _leads_on(heading.parent):
        links = [heading.parent]
    links = links or [link for link in node.css("a[href]") if _leads_on(link)]
    return next((link for link in links if text_of(link)), links[0] if links else None)


def _leads_on(link: LexborNode) -> bool:
    href = (link.attributes.get("href") or "").strip().lower()
    return bool(href) and href != "#" and not href.startswith(("javascript:", "mailto:", "tel:", "data:"))


def _read_entry(node: LexborNode, selectors: Selectors, base: str) -> Entry:
    link = _link(node, selectors.link)
    title = _title(node, selectors.title, link)
    summary = _summary(node, selectors.summary)
    address = join(base, _value(link, selectors.link, "href")) if link else None
    return Entry(
        link=address if address and address.lower().startswith(("http://", "https://")) else None,
        title=title,
        published=_date(node, selectors.date),
        summary=resolve_html(summary, base) if summary else None,
        image=_image(node, selectors.image, base),
    )


def _split(selector: str) -> tuple[str, str | None]:
    """A selector and the attribute it asks for."""
    match = _ATTRIBUTE.match(selector)
    return (match[1].strip(), match[2]) if match else (selector.strip(), None)


def _find(node: LexborNode, selector: str) -> LexborNode | None:
    css, _ = _split(selector)
    return node.css_first(css) if css else node


def _value(node: LexborNode, selector: str | None, *attributes: str) -> str | None:
    """The attribute that the selector asks for, else the first of `attributes` that is there."""
    _, wanted = _split(selector) if selector else ("", None)
    values = (node.attributes.get(name) for name in ((wanted,) if wanted else attributes))
    return next((value for value in values if value), None)


def _link(node: LexborNode, selector: str | None) -> LexborNode | None:
    if selector is None:
        return link_of(node)
    found = _find(node, selector)
    if found is not None and "@" not in selector and found.tag != "a":
        return found.css_first("a[href]")  # the selector is for what the link is in
    return found


def _title(node: LexborNode, selector: str | None, link: LexborNode | None) -> str:
    if selector is not None:
        found = _find(node, selector)
        return "" if found is None else _text(found, selector)
    heading = node.css_first(_HEADINGS)
    for place in (heading, link):
        if place is not None and (text := text_of(place)):
            return text
    return text_of(node)[:300]


def _text(node: LexborNode, selector: str) -> str:
    _, attribute = _split(selector)
    return collapse(node.attributes.get(attribute) or "") if attribute else text_of(node)


def _date(node: LexborNode, selector: str | None) -> datetime | None:
    found = _find(node, selector) if selector else node.css_first("time")
    if found is None:
        return None
    stated = _value(found, selector, *_DATE_ATTRIBUTES)
    return (find_date(stated) if stated else None) or find_date(text_of(found))


def _summary(node: LexborNode, selector: str | None) -> str | None:
    if selector is None:
        return None
    found = _find(node, selector)
    if found is None:
        return None
    _, attribute = _split(selector)
    markup = found.attributes.get(attribute) if attribute else found.inner_html
    return (markup or "").strip()[:LONGEST_SUMMARY] or None


def _image(node: LexborNode, selector: str | None, base: str) -> str | None:
    if selector is None:
        return None
    found = _find(node, selector)
    address = _value(found, selector, *_IMAGE_ATTRIBUTES) if found is not None else None
    joined = join(base, address)
    return joined if joined and joined.lower().startswith(("http://", "https://")) else None


def _next_url(document: LexborHTMLParser, selector: str | None, base: str, url: str) -> str | None:
    if selector is None:
        return None
    found = document.css_first(_split(selector)[0])
    joined = join(base, _value(found, selector, "href")) if found is not None else None
    if not joined or not joined.lower().startswith(("http://", "https://")):
        return None
    return joined if joined.partition("#")[0] != url.partition("#")[0] else None


def find_next(document: LexborHTMLParser) -> str | None:
    """The selector of what the page itself calls its next page."""
    return _NEXT if document.css_first(_NEXT) is not None else None


def _metadata(document: LexborHTMLParser, base: str) -> SourceMetadata:
    title = document.css_first("head > title")
    root = document.css_first("html[lang]")
    icon = document.css_first('link[rel~="icon"][href]')
    about = document.css_first('meta[name="description"][content]')
    return SourceMetadata(
        title=(text_of(title) or None) if title else None,
        description=collapse(about.attributes.get("content") or "") or None if about else None,
        site_url=base,
        language=root.attributes.get("lang") or None if root else None,
        icon_url=join(base, icon.attributes.get("href")) if icon else None,
    )
