"""What all readers' files come down to: subscriptions, and for each the entries that need not come again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from headwater.formats.opml import Outline, Rejected

Program = Literal["freshrss", "miniflux", "tt-rss", "reader", "opml", "csv"]


@dataclass(frozen=True, slots=True)
class Seen:
    """An entry that was read: its id as its publisher gave it, if the reader has kept that, and its address."""

    external_id: str | None
    url: str | None


def _nothing(outline: Outline) -> Iterable[Seen]:
    return ()


@dataclass(frozen=True, slots=True)
class Export:
    """One file of another reader. `seen` gives what was read of a subscription."""

    program: Program
    outlines: tuple[Outline, ...]
    rejected: tuple[Rejected, ...] = ()
    seen: Callable[[Outline], Iterable[Seen]] = _nothing
    close: Callable[[], None] = field(default=lambda: None)
    stars: int = 0  # entries with a star, and with tags: what there is no place for here
    tags: int = 0


class Collected:
    """Subscriptions and read entries as they turn up in a file, in any order."""

    def __init__(self) -> None:
        self._outlines: dict[str, Outline] = {}
        self._seen: dict[str, list[Seen]] = {}
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

    def export(self, program: Program, rejected: tuple[Rejected, ...] = ()) -> Export:
        def seen(outline: Outline) -> Iterator[Seen]:
            yield from self._seen.get(outline.url, ())

        outlines = tuple(self._outlines.values())
        return Export(program, outlines, rejected, seen, stars=self.stars, tags=self.tags)
