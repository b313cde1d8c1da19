"""The door to reading feeds: bytes in, a typed Feed out, or a ParseError that says what the bytes are
instead.

    bytes → gzip? → unwrap.unzip_feed
          → JSON?  → jsonfeed.read_json_feed
          → XML    → tree.read_tree (strict, repaired or soup) → find the root → rss.read_rss | atom.read_atom

Pure: no network, no clock, the same bytes give the same feed. It raises nothing but ParseError.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.feeds.atom import read_atom, read_entry
from headwater.formats.feeds.feed import Feed
from headwater.formats.feeds.jsonfeed import read_json_feed
from headwater.formats.feeds.rss import read_item, read_rss
from headwater.formats.feeds.scope import Element, Scope
from headwater.formats.feeds.unwrap import unwrap, unzip_feed
from headwater.formats.limits import cut_entries
from headwater.formats.xml.names import ATOM, RSS, find_names, namespace_prefix, split_tag
from headwater.formats.xml.tree import MAX_BYTES, Tree, check_size, read_tree
from headwater.model import Repair

_ROOTS: Final = frozenset(("rss", "rdf", "feed", "channel", "entry", "redirect"))
_ITEMS: Final = frozenset(("item", "entry"))
_ADDRESSES: Final = frozenset(("link", "guid", "id"))
_PAGES: Final = frozenset(("html", "head", "body"))
_SEARCH_DEPTH: Final = 4
_PAGE_DEPTH: Final = 12  # how deep in a page a feed may stand
_PLAIN_ROOTS: Final = frozenset(("rss", "rdf", "feed"))  # names that no page has for anything else
_BLANK: Final = b" \t\r\n\x00\xef\xbb\xbf"
_NETSCAPE: Final = "netscape.com"


def parse(data: bytes | str, *, url: str | None = None, content_type: str | None = None) -> Feed:
    """Read a feed of any format, as bytes or as text that was decoded already.

    `url` is where it came from: relative links are resolved against it. `content_type` is the HTTP header,
    which may name the charset. Raises ParseError when the bytes are not a feed.
    """
    if isinstance(data, str):
        data, content_type = data.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    elif not isinstance(data, bytes):
        raise TypeError(f"parse takes the bytes or the text of a feed, not {type(data).__name__}")
    data = unzip_feed(data, MAX_BYTES)
    check_size(data)
    try:
        return _parse(data, url, content_type)
    except ParseError:
        inside = unwrap(data)
        if inside is None:
            raise
    document, around = inside
    feed = _parse(document, url, content_type)
    return replace(feed, repairs=(Repair("wrapped", detail=around), *feed.repairs))


def _parse(data: bytes, url: str | None, content_type: str | None) -> Feed:
    if not data[:1024].strip(_BLANK) and not data.strip(_BLANK):
        raise ParseError("The document is empty.", kind=FailureKind.MALFORMED)
    if _looks_like_json(data):
        return read_json_feed(data, url=url, content_type=content_type)
    try:
        data, left_out = cut_entries(data)
        feed = _read(read_tree(data, content_type), url)
        return replace(feed, left_out_count=left_out) if left_out else feed
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
    names = find_names(namespace, ATOM if is_atom else RSS)
    scope = Scope(names, url, tree)
    if is_atom:
        feed = read_atom(scope, root, _atom_format(namespace))
    else:
        feed = read_rss(scope, root, _rss_format(root, local))
    repairs = tree.repairs
    if not feed.entries and (strays := _stray_items(tree.root)):
        read = partial(read_entry, feed_authors=feed.authors) if is_atom else read_item
        feed = replace(feed, entries=tuple(read(scope, item) for item in strays))
        repairs = (*repairs, Repair("misplaced_items", detail=str(len(strays))))
    if not feed.entries and tree.has_items:
        raise ParseError(
            "The document is damaged: it has items, but none of them can be read.",
            kind=FailureKind.MALFORMED,
        )
    return replace(feed, repairs=repairs) if repairs else feed


def _stray_items(root: Element) -> list[Element]:
    """Items in places where no format puts them, such as a wrapper of the publisher's own."""
    found = []
    for element in root.iter(etree.Element):
        if len(element) and _is_item(element) and not any(map(_is_item, element.iterancestors())):
            found.append(element)
    return found


def _is_item(element: Element) -> bool:
    return split_tag(element.tag)[1].lower() in _ITEMS


def _find_root(root: Element) -> Element:
    """The element that is the feed: the root itself, or one a little below it when something was wrapped
    around."""
    if split_tag(root.tag)[1] == "soup" and (items := _loose_items(root)):
        return _name_root(items[0])
    level = [root]
    for depth in range(_PAGE_DEPTH):
        roots = _ROOTS if depth < _SEARCH_DEPTH else _PLAIN_ROOTS
        for element in level:
            if isinstance(element.tag, str) and (name := split_tag(element.tag)[1].lower()) in roots:
                return _name_root(element) if name == "entry" and _has_siblings(element) else element
        level = [child for element in level for child in element][:1000]
    first = root if split_tag(root.tag)[1] != "soup" else next(iter(root), root)
    name = split_tag(first.tag)[1].lower() if isinstance(first.tag, str) else ""
    if name in _PAGES:
        raise ParseError("This is a web page, not a feed.")
    if name in ("urlset", "sitemapindex"):
        raise ParseError("This is a sitemap, not a feed.")
    if name == "opml":
        raise ParseError("This is an OPML list of feeds, not a feed.")
    if split_tag(root.tag)[1] == "soup" and (items := [*filter(_is_telling, _stray_items(root))]):
        return _name_root(items[0])
    if name in ("", "soup"):
        raise ParseError("This is neither XML nor JSON, so not a feed.")
    raise ParseError("This is not a feed: its root element is <{name}>.", name=name[:60])


def _loose_items(root: Element) -> list[Element]:
    """Items that stand in no element, where there are several or something beside one."""
    items = [element for element in root if isinstance(element.tag, str) and _is_item(element)]
    return items if len(items) > 1 or len(root) > 1 else []


def _is_telling(item: Element) -> bool:
    """Whether an element is surely an item of a feed, so that the name of the root must be damaged."""
    names = {split_tag(child.tag)[1].lower() for child in item if isinstance(child.tag, str)}
    return "title" in names and not _ADDRESSES.isdisjoint(names)


def _has_siblings(item: Element) -> bool:
    parent = item.getparent()
    return parent is not None and sum(1 for each in parent.iterchildren(etree.Element) if _is_item(each)) > 1


def _name_root(item: Element) -> Element:
    """The element around an item, given the name that it must have had."""
    root = item.getparent()
    if root is None:
        return item
    namespace, local = split_tag(item.tag)
    name = "feed" if local.lower() == "entry" else "channel"
    root.tag = f"{{{namespace}}}{name}" if namespace else name
    return root


def _atom_format(namespace: str) -> str:
    return "atom-1.0" if "2005" in namespace or namespace_prefix(namespace) != ATOM else "atom-0.3"


def _rss_format(root: Element, local: str) -> str:
    if local == "channel":
        return "cdf" if root.tag.isupper() else "rss"
    if local == "rdf":
        namespaces = {split_tag(child.tag)[0] for child in root if isinstance(child.tag, str)}
        return "rss-0.90" if any(_NETSCAPE in namespace for namespace in namespaces) else "rss-1.0"
    version = (root.get("version") or "").strip()
    if version in ("0.91", "0.92", "0.93", "0.94", "0.90"):
        return f"rss-{version}"
    return "rss-2.0" if version.startswith("2") else "rss"
