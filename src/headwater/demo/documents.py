"""The documents the demo's sources are published as. Pure: items in, bytes out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import formatdate
from xml.sax.saxutils import escape

import orjson

from headwater.demo.sources import DemoItem, DemoSource

CONTENT_TYPES = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "rdf": "application/rdf+xml",
    "json": "application/feed+json",
    "sitemap": "application/xml",
}


def render(source: DemoSource, items: Sequence[DemoItem], base: str) -> bytes:
    """The document of a source, with `items` newest first."""
    site = f"{base}/{source.slug}/"
    match source.format:
        case "rss":
            text = _rss(source, items, site)
        case "atom":
            text = _atom(source, items, site)
        case "rdf":
            text = _rdf(source, items, site)
        case "json":
            return _json(source, items, site)
        case "sitemap":
            text = _sitemap(items, site)
    return f'<?xml version="1.0" encoding="{source.charset}"?>\n{text}'.encode(source.charset)


def _rss(source: DemoSource, items: Sequence[DemoItem], site: str) -> str:
    entries = "".join(
        f"<item><title>{escape(item.title)}</title><link>{site}{item.number}</link>"
        f'<guid isPermaLink="false">{source.slug}-{item.number}</guid>'
        f"<pubDate>{formatdate(item.published_at)}</pubDate>"
        f"<description>{escape(item.body)}</description></item>"
        for item in items
    )
    return (
        f'<rss version="2.0"><channel><title>{escape(source.name)}</title><link>{site}</link>'
        f"<description>{escape(source.name)}</description><language>{source.language}</language>{entries}</channel></rss>"
    )


def _atom(source: DemoSource, items: Sequence[DemoItem], site: str) -> str:
    entries = "".join(
        f"<entry><title>{escape(item.title)}</title><id>{site}{item.number}</id>"
        f'<link href="{site}{item.number}"/><updated>{_iso(item.published_at)}</updated>'
        f"<published>{_iso(item.published_at)}</published>"
        f'<content type="html">{escape(item.body)}</content></entry>'
        for item in items
    )
    updated = _iso(items[0].published_at) if items else _iso(0)
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(source.name)}</title><id>{site}</id>'
        f'<link href="{site}"/><updated>{updated}</updated>{entries}</feed>'
    )


def _rdf(source: DemoSource, items: Sequence[DemoItem], site: str) -> str:
    listed = "".join(f'<rdf:li rdf:resource="{site}{item.number}"/>' for item in items)
    entries = "".join(
        f'<item rdf:about="{site}{item.number}"><title>{escape(item.title)}</title><link>{site}{item.number}</link>'
        f"<description>{escape(item.body)}</description><dc:date>{_iso(item.published_at)}</dc:date></item>"
        for item in items
    )
    return (
        '<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="{site}"><title>{escape(source.name)}</title>'
        f"<link>{site}</link><description>{escape(source.name)}</description>"
        f"<items><rdf:Seq>{listed}</rdf:Seq></items></channel>{entries}</rdf:RDF>"
    )


def _json(source: DemoSource, items: Sequence[DemoItem], site: str) -> bytes:
    return orjson.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": source.name,
            "home_page_url": site,
            "language": source.language,
            "items": [
                {
                    "id": f"{source.slug}-{item.number}",
                    "url": f"{site}{item.number}",
                    "title": item.title,
                    "content_html": item.body,
                    "date_published": _iso(item.published_at),
                }
                for item in items
            ],
        }
    )


def _sitemap(items: Sequence[DemoItem], site: str) -> str:
    urls = "".join(
        f"<url><loc>{site}{item.number}-{_slug(item.title)}</loc><lastmod>{_iso(item.published_at)}</lastmod></url>"
        for item in items
    )
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'


def _slug(title: str) -> str:
    return "-".join(title.lower().rpartition(" (")[0].split())


def _iso(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")
