"""What all readers' files come down to: subscriptions, and for each the entries that need not come again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
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


class Collected:
    """Subscriptions and read entries as they turn up in a file, in any order."""

    def __init__(self) -> None:
        self._outlines: dict[str, Outline] = {}
        self._seen: dict[str, list[Seen]] = {}

    def subscribe(self, url: str, title: str = "", folder: str | None = None) -> None:
        known = self._outlines.get(url)
        if known is None or (not known.folder and folder):
            self._outlines[url] = Outline(url, title or (known.title if known else ""), folder)

    def add(self, feed_url: str, external_id: str | None, url: str | None) -> None:
        if external_id or url:
            self._seen.setdefault(feed_url, []).append(Seen(external_id or None, url or None))

    def export(self, program: Program, rejected: tuple[Rejected, ...] = ()) -> Export:
        def seen(outline: Outline) -> Iterator[Seen]:
            yield from self._seen.get(outline.url, ())

        return Export(program, tuple(self._outlines.values()), rejected, seen)
