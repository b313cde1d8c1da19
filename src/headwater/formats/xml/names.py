"""Turns XML tag names into the short canonical names the readers know, such as `dc:creator` or `atom:link`.

Publishers spell namespaces in many ways (other case, a missing slash, a draft's address, or an undeclared
prefix); that variety ends here. It knows names only, never what an element means.
"""

from functools import lru_cache
from typing import Final

RSS: Final = ""
ATOM: Final = "atom"
UNKNOWN: Final = "?"
UNDECLARED: Final = "urn:undeclared:"  # + prefix: the namespace of a prefix that the document never declares

LONGEST_NAME: Final = 500  # of those that are remembered
_MOST_NAMES: Final = 2_000  # remembered for one vocabulary
XHTML_NAMESPACE: Final = "http://www.w3.org/1999/xhtml"
XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"

# Compared in lower case, without scheme, `www.`, white space and trailing `/` or `#`.
_NAMESPACES: Final[dict[str, str]] = {
    "": RSS,
    "backend.userland.com/rss": RSS,
    "backend.userland.com/rss2": RSS,
    "backend.userland.com/rss091": RSS,
    "backend.userland.com/rss092": RSS,
    "blogs.law.harvard.edu/tech/rss": RSS,
    "cyber.law.harvard.edu/rss": RSS,
    "cyber.law.harvard.edu/rss/rss.html": RSS,
    "channel.netscape.com/rdf/simple/0.9": RSS,
    "my.netscape.com/publish/formats/rss-0.91.dtd": RSS,
    "my.netscape.com/rdf/simple/0.9": RSS,
    "purl.org/net/rss1.1": RSS,
    "purl.org/rss/1.0": RSS,
    "purl.org/rss/2.0": RSS,
    "purl.org/atom/ns": ATOM,
    "purl.org/echo": ATOM,
    "purl.org/echo/ns": ATOM,
    "purl.org/pie": ATOM,
    "w3.org/2005/atom": ATOM,
    "w3.org/1999/02/22-rdf-syntax-ns": "rdf",
    "w3.org/1999/xhtml": "xhtml",
    "w3.org/xml/1998/namespace": "xml",
    "purl.org/rss/1.0/modules/content": "content",
    "purl.org/dc/elements/1.0": "dc",
    "purl.org/dc/elements/1.1": "dc",
    "purl.org/rss/1.0/modules/dc": "dc",
    "purl.org/dc/terms": "dcterms",
    "purl.org/rss/1.0/modules/dcterms": "dcterms",
    "purl.org/rss/1.0/modules/syndication": "sy",
    "purl.org/rss/1.0/modules/slash": "slash",
    "purl.org/syndication/thread/1.0": "thr",
    "purl.org/rss/1.0/modules/wiki": "wiki",
    "wellformedweb.org/commentapi": "wfw",
    "itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "example.com/dtds/podcast-1.0.dtd": "itunes",
    "search.yahoo.com/mrss": "media",
    "video.search.yahoo.com/mrss": "media",
    "tools.search.yahoo.com/mrss": "media",
    "api.search.yahoo.com/mrss": "media",
    "podcastindex.org/namespace/1.0": "podcast",
    "github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": "podcast",
    "google.com/schemas/play-podcasts/1.0": "googleplay",
    "google.com/schemas/play-podcasts/1.0/play-podcasts.xsd": "googleplay",
    "podlove.org/simple-chapters": "psc",
    "rssnamespace.org/feedburner/ext/1.0": "feedburner",
    "webns.net/mvcb": "admin",
    "a9.com/-/spec/opensearch/1.1": "opensearch",
    "georss.org/georss": "georss",
    "w3.org/2003/01/geo/wgs84_pos": "geo",
    "creativecommons.org/ns": "cc",
    "web.resource.org/cc": "cc",
    "backend.userland.com/creativecommonsrssmodule": "cc",
}

# What a prefix means when it is not declared.
_PREFIXES: Final[dict[str, str]] = {
    **{prefix: prefix for prefix in _NAMESPACES.values() if prefix},
    "a10": ATOM,
    "atom10": ATOM,
    "atom03": ATOM,
    "rss": RSS,
    "taxo": "taxo",
    "creativecommons": "cc",
}


def namespace_prefix(uri: str) -> str:
    """The canonical prefix of a namespace address, `?` for one that no reader cares for."""
    return _find_prefix(uri) if len(uri) <= LONGEST_NAME else UNKNOWN


@lru_cache(maxsize=1024)
def _find_prefix(uri: str) -> str:
    key = uri.strip().lower()
    if key.startswith(UNDECLARED):
        return _PREFIXES.get(key.removeprefix(UNDECLARED), UNKNOWN)
    key = key.removeprefix("http://").removeprefix("https://").removeprefix("www.").rstrip("/#")
    return _NAMESPACES.get(key, UNKNOWN)


def undeclared_namespace(prefix: str) -> str:
    """The namespace made from a prefix that a document does not declare."""
    return UNDECLARED + prefix.replace(":", "-").lower()


class Names(dict[str, str]):
    """Tag as lxml gives it → canonical name, remembered from one document to the next.

    The namespace of the root element is the document's own vocabulary whatever its address says: a made-up
    one must not hide a feed.
    """

    __slots__ = ("_own", "_own_prefix")

    def __init__(self, own_namespace: str = "", own_prefix: str = RSS) -> None:
        super().__init__()
        self._own = own_namespace
        self._own_prefix = own_prefix

    def __missing__(self, tag: str) -> str:
        uri, local = split_tag(tag)
        prefix = namespace_prefix(uri) if tag[:1] == "{" else self._own_prefix
        if prefix == UNKNOWN and uri == self._own:
            prefix = self._own_prefix
        local = local.lower()
        name = f"{prefix}:{local}" if prefix else local
        if len(self) < _MOST_NAMES and len(tag) <= LONGEST_NAME:
            self[tag] = name
        return name


def find_names(own_namespace: str, own_prefix: str) -> Names:
    """The names of documents in a vocabulary."""
    if len(own_namespace) > LONGEST_NAME:
        return Names(own_namespace, own_prefix)
    return _shared_names(own_namespace, own_prefix)


_shared_names = lru_cache(maxsize=64)(Names)


def split_tag(tag: str) -> tuple[str, str]:
    """`{namespace}local` → (namespace, local)."""
    if tag[:1] == "{":
        uri, _, local = tag[1:].partition("}")
        return uri, local
    return "", tag
