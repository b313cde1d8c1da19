"""What a web page says of itself: title, description, dates, picture, and its main text. Pure."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from headwater.formats.dates import parse_date
from headwater.formats.html import collapse
from headwater.formats.links import join
from headwater.formats.pages.document import MAX_PAGE_BYTES, read_html

LONGEST_DESCRIPTION: Final = 2_000
LONGEST_TEXT: Final = 500_000

_WRITTEN_DATE = re.compile(r'"(datePublished|dateModified)"\s*:\s*"([^"]{4,40})"')
_PUBLISHED: Final = (
    "article:published_time",
    "datepublished",
    "date",
    "dc.date",
    "pubdate",
    "parsely-pub-date",
)
_MODIFIED: Final = ("article:modified_time", "og:updated_time", "datemodified", "last-modified")
# What is on every page of a site, or moves with every visit, is not the page's own text.
_BESIDE: Final = [
    *("script", "style", "noscript", "template", "nav", "header", "footer", "aside", "form"),
    *("iframe", "svg", "button", "time"),
]


@dataclass(frozen=True, slots=True)
class Page:
    """What was found. All of it is plain text as the publisher wrote it; addresses are absolute."""

    title: str | None = None
    description: str | None = None
    published: datetime | None = None
    modified: datetime | None = None
    language: str | None = None
    image: str | None = None
    author: str | None = None
    text: str | None = None  # its main text; None where there is none
    text_hash: str | None = None  # of the whole main text


def read_page(data: bytes, *, url: str, content_type: str | None = None) -> Page:
    """What the page says. A document that is not HTML says nothing."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind and kind not in ("text/html", "application/xhtml+xml", "application/xml", "text/xml"):
        return Page()
    document = read_html(data, content_type)
    names = _metadata(document)
    written = dict(_WRITTEN_DATE.findall(data[:MAX_PAGE_BYTES].decode("utf-8", "replace")))
    root = document.css_first("html")
    title = names.get("og:title") or _line(document, "title") or _line(document, "h1")
    description = names.get("og:description") or names.get("description")
    text = _main_text(document)
    return Page(
        title=title or None,
        description=description[:LONGEST_DESCRIPTION] if description else None,
        published=_first_date(names, _PUBLISHED, written.get("datePublished")),
        modified=_first_date(names, _MODIFIED, written.get("dateModified")),
        language=collapse((root.attributes.get("lang") if root else None) or "")[:35] or None,
        image=join(url, names.get("og:image")),
        author=names.get("author"),
        text=text[:LONGEST_TEXT] if text else None,
        text_hash=_hash(text) if text else None,
    )


def _metadata(document: LexborHTMLParser) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in document.css("meta[content]"):
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop")
        if name and (content := collapse(attributes.get("content") or "")):
            names.setdefault(name.lower(), content)
    return names


def _line(document: LexborHTMLParser, selector: str) -> str:
    node = document.css_first(selector)
    return collapse(node.text(deep=True, separator=" ")) if node else ""


def _first_date(names: dict[str, str], wanted: tuple[str, ...], written: str | None) -> datetime | None:
    for text in (*(names.get(name) for name in wanted), written):
        if text and (date := parse_date(text)):
            return date
    return None


def _main_text(document: LexborHTMLParser) -> str:
    document.strip_tags(_BESIDE)
    main = document.css_first("article, main, [role=main]") or document.body
    return " ".join(main.text(deep=True, separator=" ").split()) if main else ""


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
