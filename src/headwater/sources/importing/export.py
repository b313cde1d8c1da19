"""What all readers' files come down to: subscriptions, and for each the entries that need not come again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headwater.formats.opml import Outline, Rejected

Program = Literal["freshrss", "miniflux", "tt-rss", "reader", "opml", "csv"]


@dataclass(frozen=True, slots=True)
class Seen:
    """An entry that was read: its id as its publisher gave it, if the reader has kept that, and its address."""

    external_id: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class Marked:
    """An entry with a star or tags, with what the file holds of it."""

    external_id: str | None
    url: str | None
    title: str = ""
    author: str | None = None
    content: str | None = None
    published_at: float | None = None
    is_starred: bool = False
    is_read: bool = True
    tags: tuple[str, ...] = ()


def _nothing(outline: Outline) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, slots=True)
class Export:
    """One file of another reader. `seen` gives what was read of a subscription."""

    program: Program
    outlines: tuple[Outline, ...]
    rejected: tuple[Rejected, ...] = ()
    seen: Callable[[Outline], Iterable[Seen]] = _nothing
    close: Callable[[], None] = field(default=lambda: None)
    stars: int = 0  # how many entries have a star, and how many have tags
    tags: int = 0
    marked: Callable[[Outline], Iterable[Marked]] = _nothing  # those of them that come along
    has_marked: bool = False  # whether they come along


class Collected:
    """Subscriptions and read entries as they turn up in a file, in any order."""

    def __init__(self) -> None:
        self._outlines: dict[str, Outline] = {}
        self._seen: dict[str, list[Seen]] = {}
        self._marked: dict[str, list[Marked]] = {}
        self.stars = 0
        self.tags = 0

    def subscribe(
        self, url: str, title: str = "", folder: str | None = None, *, paused: bool = False
    ) -> None:
        known = self._outlines.get(url) or Outline(url)
        self._outlines[url] = replace(
            known,
            title=known.title or title,
            folder=known.folder or folder,
            paused=known.paused or paused,
        )

    def add(self, feed_url: str, external_id: str | None, url: str | None) -> None:
        if external_id or url:
            self._seen.setdefault(feed_url, []).append(Seen(external_id or None, url or None))

    def mark(self, feed_url: str, entry: Marked) -> None:
        """Take an entry along that has a star or tags."""
        self.stars += entry.is_starred
        self.tags += bool(entry.tags)
        if (entry.is_starred or entry.tags) and (entry.external_id or entry.url):
            self._marked.setdefault(feed_url, []).append(entry)

    def export(self, program: Program, rejected: tuple[Rejected, ...] = ()) -> Export:
        def seen(outline: Outline) -> Iterator[Seen]:
            yield from self._seen.get(outline.url, ())

        outlines = tuple(self._outlines.values())
        return Export(
            program,
            outlines,
            rejected,
            seen,
            stars=self.stars,
            tags=self.tags,
            marked=lambda outline: self._marked.get(outline.url, ()),
            has_marked=True,
        )
