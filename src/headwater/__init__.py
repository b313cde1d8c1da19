"""Headwater collects feeds, sitemaps and other web sources on time and with as few requests as possible.

What is listed in `__all__` is the public Python API. Names are imported on first use, so that importing
`headwater` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwater.version import __version__

if TYPE_CHECKING:
    from headwater.errors import FailureKind, HeadwaterError, IncrementalStateCorrupted, ParseError
    from headwater.formats.feeds.feed import Entry, Feed, Person
    from headwater.formats.feeds.parse import parse
    from headwater.model import Enclosure, Hints
    from headwater.sitemaps.state import (
        IncrementalResult,
        IncrementalStateManager,
        SitemapEntry,
        SiteState,
    )

_HOMES = {
    "Enclosure": "headwater.model",
    "Entry": "headwater.formats.feeds.feed",
    "FailureKind": "headwater.errors",
    "Feed": "headwater.formats.feeds.feed",
    "HeadwaterError": "headwater.errors",
    "Hints": "headwater.model",
    "IncrementalResult": "headwater.sitemaps.state",
    "IncrementalStateCorrupted": "headwater.errors",
    "IncrementalStateManager": "headwater.sitemaps.state",
    "ParseError": "headwater.errors",
    "Person": "headwater.formats.feeds.feed",
    "SiteState": "headwater.sitemaps.state",
    "SitemapEntry": "headwater.sitemaps.state",
    "parse": "headwater.formats.feeds.parse",
}

__all__ = [
    "Enclosure",
    "Entry",
    "FailureKind",
    "Feed",
    "HeadwaterError",
    "Hints",
    "IncrementalResult",
    "IncrementalStateCorrupted",
    "IncrementalStateManager",
    "ParseError",
    "Person",
    "SiteState",
    "SitemapEntry",
    "__version__",
    "parse",
]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'headwater' has no attribute {name!r}")
