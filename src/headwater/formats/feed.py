"""The door to reading feeds: bytes in, a typed Feed out, or a ParseError that says what the bytes are
instead.

    bytes → JSON?  → jsonfeed.read_json_feed
          → XML    → tree.read_tree (strict, repaired or soup) → find the root → rss.read_rss | atom.read_atom

Pure: no network, no clock, the same bytes give the same feed. It raises nothing but ParseError.
"""

from dataclasses import replace
from typing import Final

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.atom import read_atom
from headwater.formats.elements import Element, Scope
from headwater.formats.entry import Entry, Feed, Person, external_id, to_item
from headwater.formats.jsonfeed import read_json_feed
from headwater.formats.names import ATOM, RSS, Names, namespace_prefix, split_tag
from headwater.formats.rss import read_rss
from headwater.formats.tree import Tree, check_size, read_tree

__all__ = ["Entry", "Feed", "Person", "external_id", "parse", "to_item"]

_ROOTS: Final = frozenset(("rss", "rdf", "feed", "channel", "entry", "redirect"))
_PAGES: Final = frozenset(("html", "head", "body"))
_SEARCH_DEPTH: Final = 4
_BLANK: Final = b" \t\r\n\x00\xef\xbb\xbf"
_NETSCAPE: Final = "netscape.com"


def parse(data: bytes, *, url: str | None = None, content_type: str | None = None) -> Feed:
    """Read a feed of any format.

    `url` is where it came from: relative links are resolved against it. `content_type` is the HTTP header,
    which may name the charset. Raises ParseError when the bytes are no feed.
    """
    check_size(data)
    if not data[:1024].strip(_BLANK) and not data.strip(_BLANK):
        raise ParseError("The document is empty.", kind=FailureKind.MALFORMED)
    if _looks_like_json(data):
        return read_json_feed(data, url=url, content_type=content_type)
    try:
        tree = read_tree(data, content_type)
        return _read(tree, url)
    except (etree.LxmlError, RecursionError, MemoryError) as error:
        raise ParseError(
            "The document cannot be read: {reason}.", kind=FailureKind.MALFORMED, reason=type(error).__name__
        ) from error


def _looks_like_json(data: bytes) -> bool:
    start = data[:4096].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\x00")
    return start[:1] == b"{" or (start[:1] == b"[" and not start.startswith(b"[CDATA"))


def _read(tree: Tree, url: str | None) -> Feed:
    root = _find_root(tree.root)
    namespace, local = split_tag(root.tag)
    local = local.lower()
    is_atom = local in ("feed", "entry")
    names = Names(namespace, ATOM if is_atom else RSS)
    scope = Scope(names, url, tree.has_xml_base)
    if is_atom:
        feed = read_atom(scope, root, _atom_format(namespace))
    else:
        feed = read_rss(scope, root, _rss_format(root, local, names))
    return replace(feed, notes=tree.notes) if tree.notes else feed


def _find_root(root: Element) -> Element:
    """The element that is the feed: the root itself, or one a little below it when something was wrapped
    around."""
    level = [root]
    for _ in range(_SEARCH_DEPTH):
        for element in level:
            if isinstance(element.tag, str) and split_tag(element.tag)[1].lower() in _ROOTS:
                return element
        level = [child for element in level for child in element][:1000]
    first = root if split_tag(root.tag)[1] != "soup" else next(iter(root), root)
    name = split_tag(first.tag)[1].lower() if isinstance(first.tag, str) else ""
    if name in _PAGES:
        raise ParseError("This is a web page, not a feed.")
    if name in ("urlset", "sitemapindex"):
        raise ParseError("This is a sitemap, not a feed.")
    if name == "opml":
        raise ParseError("This is an OPML list of feeds, not a feed.")
    if name in ("", "soup"):
        raise ParseError("This is neither XML nor JSON, so not a feed.")
    raise ParseError("This is not a feed: its root element is <{name}>.", name=name[:60])


def _atom_format(namespace: str) -> str:
    return "atom-1.0" if "2005" in namespace or namespace_prefix(namespace) != ATOM else "atom-0.3"


def _rss_format(root: Element, local: str, names: Names) -> str:
    if local == "channel":
        return "cdf" if root.tag.isupper() else "rss"
    if local == "rdf":
        namespaces = {split_tag(child.tag)[0] for child in root if isinstance(child.tag, str)}
        return "rss-0.90" if any(_NETSCAPE in namespace for namespace in namespaces) else "rss-1.0"
    version = (root.get("version") or "").strip()
    if version in ("0.91", "0.92", "0.93", "0.94", "0.90"):
        return f"rss-{version}"
    return "rss-2.0" if version.startswith("2") else "rss"
