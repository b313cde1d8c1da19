"""CPU time of our feed reader against feedparser's, in the same run, as a ratio.

    python -m benchmarks.parse [FOLDER_OF_FEEDS]

Without a folder it makes feeds itself. Both read the same bytes and the bodies of all entries; only CPU time
of this process counts, so that a busy machine disturbs both alike.
"""

import io
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import feedparser

from benchmarks.verdict import Verdict
from headwater.errors import ParseError
from headwater.formats.feed import parse

WORDS = ("water", "source", "river", "stream", "spring", "delta", "rain", "cloud", "valley", "field", "stone")
ROUNDS = 3
LEAST_OF_FEEDPARSER = 15


def make_feeds() -> list[tuple[str, bytes]]:
    """RSS 2.0 and Atom feeds of three sizes, with bodies as blogs have them."""
    rng = random.Random(7)
    feeds = []
    for entries, paragraphs in ((10, 2), (25, 8), (100, 4)):
        feeds.append((f"rss-{entries}", _rss(rng, entries, paragraphs)))
        feeds.append((f"atom-{entries}", _atom(rng, entries, paragraphs)))
    return feeds


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)).capitalize() + "."


def _body(rng: random.Random, paragraphs: int) -> str:
    parts = []
    for number in range(paragraphs):
        link = f'<a href="/page/{rng.randrange(1000)}">{rng.choice(WORDS)}</a>'
        image = f'<img src="https://example.org/{number}.png" alt=""/>' if number % 3 == 0 else ""
        parts.append(f"<p>{_sentence(rng, 40)} {link} <em>{_sentence(rng, 20)}</em> {image}</p>")
    return "".join(parts)


def _rss(rng: random.Random, entries: int, paragraphs: int) -> bytes:
    items = "".join(
        f"<item><title>{_sentence(rng, 6)}</title><link>https://example.org/{n}</link><guid>https://example.org/{n}"
        f"</guid><pubDate>Tue, 10 Jun 2025 {n % 24:02}:15:00 +0200</pubDate>"
        f"<dc:creator>{rng.choice(WORDS)}</dc:creator>"
        f"<category>{rng.choice(WORDS)}</category><description>{_sentence(rng, 30)}</description>"
        f"<content:encoded><![CDATA[{_body(rng, paragraphs)}]]></content:encoded></item>"
        for n in range(entries)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Streams</title>'
        f"<link>https://example.org/</link><description>All of them</description>{items}</channel></rss>"
    ).encode()


def _atom(rng: random.Random, entries: int, paragraphs: int) -> bytes:
    items = "".join(
        f"<entry><title>{_sentence(rng, 6)}</title><link href='https://example.org/{n}'/><id>urn:example:{n}</id>"
        f"<updated>2025-06-10T{n % 24:02}:15:00+02:00</updated>"
        f"<author><name>{rng.choice(WORDS)}</name></author>"
        f"<category term='{rng.choice(WORDS)}'/><summary>{_sentence(rng, 30)}</summary><content type='xhtml'>"
        f"<div xmlns='http://www.w3.org/1999/xhtml'>{_body(rng, paragraphs)}</div></content></entry>"
        for n in range(entries)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Streams</title>'
        f"<id>urn:example:feed</id><updated>2025-06-10T00:00:00Z</updated>{items}</feed>"
    ).encode()


def read_folder(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]


def read_ours(data: bytes) -> int:
    try:
        feed = parse(data, url="https://example.org/feed")
    except ParseError:
        return 0
    return sum(len(entry.content or entry.summary or "") for entry in feed.entries)


def read_theirs(data: bytes) -> int:
    # A file object, because feedparser would open a local file that is named like the bytes.
    feed = feedparser.parse(
        io.BytesIO(data), response_headers={"content-location": "https://example.org/feed"}
    )
    size = 0
    for entry in feed.entries:
        content = entry.get("content")
        size += len(content[0].value if content else entry.get("summary", ""))
    return size


def cpu_seconds(read: Callable[[bytes], int], feeds: Iterable[tuple[str, bytes]]) -> float:
    """The best of some rounds over all feeds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _, data in feeds:
            read(data)
        best = min(best, time.process_time() - start)
    return best


def main(arguments: list[str]) -> int:
    feeds = read_folder(Path(arguments[0])) if arguments else make_feeds()
    if not feeds:
        print(f"No files in {arguments[0]}.", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # feedparser's own
    ours = cpu_seconds(read_ours, feeds)
    theirs = cpu_seconds(read_theirs, feeds)
    size = sum(len(data) for _, data in feeds)
    print(
        f"{len(feeds)} documents, {size / 1e6:.1f} MB, bodies extracted, best of {ROUNDS} rounds (CPU time)"
    )
    print(f"  headwater   {ours * 1e6 / len(feeds):10.0f} µs per document")
    print(f"  feedparser  {theirs * 1e6 / len(feeds):10.0f} µs per document")
    verdict = Verdict("parse")
    verdict.tell("times less CPU than feedparser", theirs / ours, "×", least=LEAST_OF_FEEDPARSER)
    return verdict.exit_code()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
