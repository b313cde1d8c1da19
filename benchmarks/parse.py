"""CPU time and memory of our feed reader beside feedparser, feedparser-rs and fastfeedparser, in the same run.

    python -m benchmarks.parse [FOLDER_OF_FEEDS]

Without a folder it makes feeds itself. All read the same bytes, and every field of all entries is read. Only CPU time
of this process counts; the readers take turns at each document, and the best of some readings counts, so that a busy
machine disturbs all alike. Memory is the most that a separate process holds above its start while it reads every feed
once.
"""

import html
import io
import multiprocessing
import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from operator import attrgetter
from pathlib import Path

import fastfeedparser
import feedparser
import feedparser_rs

from benchmarks.verdict import Verdict
from headwater.errors import ParseError
from headwater.formats.feeds.extras.vocabulary import NAMESPACES as VOCABULARIES
from headwater.formats.feeds.feed import Entry
from headwater.formats.feeds.parse import parse

WORDS = ("water", "source", "river", "stream", "spring", "delta", "rain", "cloud", "valley", "field", "stone")
ROUNDS = 9
LEAST_OF_FEEDPARSER = 25
MOST_OF_FEEDPARSER_RS = 0.8
MOST_MEMORY = 1.0
RELATIVE_LINKS = 0.05
NAMESPACES = {**VOCABULARIES, "content": "http://purl.org/rss/1.0/modules/content/"}
ADDRESS = "https://example.org/feed"


def make_feeds() -> list[tuple[str, bytes]]:
    """Blogs, news, podcasts and videos in the formats and vocabularies that they use."""
    rng = random.Random(7)
    feeds = [
        ("news", _rss(25, partial(_news_item, rng))),
        ("podcast", _rss(50, partial(_episode, rng))),
        ("videos", _atom(rng, 15, partial(_video, rng))),
        ("xhtml", _atom(rng, 10, partial(_blog_entry, rng, paragraphs=4, is_xhtml=True))),
    ]
    for entries, paragraphs in ((10, 2), (10, 20), (25, 8), (50, 4)):
        feeds.append((f"rss-{entries}", _rss(entries, partial(_blog_item, rng, paragraphs=paragraphs))))
        feeds.append(
            (f"atom-{entries}", _atom(rng, entries, partial(_blog_entry, rng, paragraphs=paragraphs)))
        )
    return feeds


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)).capitalize() + "."


def _body(rng: random.Random, paragraphs: int) -> str:
    """Paragraphs with links, of which few are relative, as in most blogs."""
    parts = []
    for number in range(paragraphs):
        place = "" if rng.random() < RELATIVE_LINKS else "https://example.org"
        link = f'<a href="{place}/page/{rng.randrange(1000)}">{rng.choice(WORDS)}</a>'
        image = f'<img src="https://example.org/{number}.png" alt=""/>' if number % 3 == 0 else ""
        parts.append(f"<p>{_sentence(rng, 40)} {link} <em>{_sentence(rng, 20)}</em> {image}</p>")
    return "".join(parts)


def _common(rng: random.Random, n: int) -> str:
    return (
        f"<title>{_sentence(rng, 6)}</title><link>https://example.org/{n}</link><guid>https://example.org/{n}</guid>"
        f"<pubDate>Tue, 10 Jun 2025 {n % 24:02}:15:00 +0200</pubDate><description>{_sentence(rng, 30)}</description>"
    )


def _blog_item(rng: random.Random, n: int, paragraphs: int) -> str:
    return (
        f"{_common(rng, n)}<dc:creator>{rng.choice(WORDS)}</dc:creator>"
        f"<category>{rng.choice(WORDS)}</category><category>{rng.choice(WORDS)}</category>"
        f"<comments>https://example.org/{n}#comments</comments><slash:comments>{n}</slash:comments>"
        f"<content:encoded><![CDATA[{_body(rng, paragraphs)}]]></content:encoded>"
    )


def _news_item(rng: random.Random, n: int) -> str:
    return (
        f"{_common(rng, n)}<media:content url='https://example.org/{n}.jpg' medium='image' width='800' height='600'>"
        f"<media:credit>{_sentence(rng, 2)}</media:credit></media:content><category>{rng.choice(WORDS)}</category>"
    )


def _episode(rng: random.Random, n: int) -> str:
    return (
        f"{_common(rng, n)}<enclosure url='https://example.org/{n}.mp3' length='{n + 1}000' type='audio/mpeg'/>"
        f"<itunes:duration>{n}:02:03</itunes:duration><itunes:episode>{n}</itunes:episode>"
        "<itunes:explicit>no</itunes:explicit><itunes:image href='https://example.org/cover.png'/>"
        f"<podcast:transcript url='https://example.org/{n}.vtt' type='text/vtt'/>"
        f"<podcast:chapters url='https://example.org/{n}.json' type='application/json+chapters'/>"
        f"<content:encoded><![CDATA[{_body(rng, 6)}]]></content:encoded>"
    )


def _rss(entries: int, make: Callable[[int], str]) -> bytes:
    items = "".join(f"<item>{make(n)}</item>" for n in range(entries))
    namespaces = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"{namespaces}><channel><title>Streams</title>'
        f"<link>https://example.org/</link><description>All of them</description>{items}</channel></rss>"
    ).encode()


def _blog_entry(rng: random.Random, n: int, paragraphs: int, *, is_xhtml: bool = False) -> str:
    body = _body(rng, paragraphs)
    if is_xhtml:
        content = f"<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>{body}</div></content>"
    else:
        content = f"<content type='html'>{html.escape(body)}</content>"
    return (
        f"<author><name>{rng.choice(WORDS)}</name></author><category term='{rng.choice(WORDS)}'/>"
        f"<summary>{_sentence(rng, 30)}</summary>{content}"
    )


def _video(rng: random.Random, n: int) -> str:
    return (
        f"<author><name>{rng.choice(WORDS)}</name><uri>https://example.org/who</uri></author><media:group>"
        f"<media:title>{_sentence(rng, 6)}</media:title><media:description>{_sentence(rng, 200)}</media:description>"
        f"<media:content url='https://example.org/v/{n}' type='video/mp4' width='640' height='390'/>"
        f"<media:thumbnail url='https://example.org/v/{n}.jpg' width='480' height='360'/></media:group>"
    )


def _atom(rng: random.Random, entries: int, make: Callable[[int], str]) -> bytes:
    items = "".join(
        f"<entry><title>{_sentence(rng, 6)}</title><link href='https://example.org/{n}'/><id>urn:example:{n}</id>"
        f"<published>2025-06-10T{n % 24:02}:15:00Z</published><updated>2025-06-10T{n % 24:02}:15:00+02:00</updated>"
        f"{make(n)}</entry>"
        for n in range(entries)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"'
        f' xmlns:media="{NAMESPACES["media"]}"><title>Streams</title>'
        f"<id>urn:example:feed</id><updated>2025-06-10T00:00:00Z</updated>{items}</feed>"
    ).encode()


def read_folder(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]


read_fields = attrgetter(*(field.name for field in fields(Entry)))


def read_ours(data: bytes) -> int:
    try:
        feed = parse(data, url=ADDRESS)
    except ParseError:
        return 0
    return sum(len(read_fields(entry)) for entry in feed.entries)


def read_feedparser(data: bytes) -> int:
    # A file object, because feedparser would open a local file that is named like the bytes.
    feed = feedparser.parse(io.BytesIO(data), response_headers={"content-location": ADDRESS})
    return sum(len(list(entry.values())) for entry in feed.entries)


def read_feedparser_rs(data: bytes) -> int:
    return sum(len(list(entry.values())) for entry in feedparser_rs.parse(data).entries)


def read_fastfeedparser(data: bytes) -> int:
    try:
        return sum(len(list(entry.values())) for entry in fastfeedparser.parse(data).entries)
    except (ValueError, TypeError, AttributeError, KeyError):  # which it raises for what it cannot read
        return 0


READERS: dict[str, Callable[[bytes], int]] = {
    "headwater": read_ours,
    "feedparser": read_feedparser,
    "feedparser-rs": read_feedparser_rs,
    "fastfeedparser": read_fastfeedparser,
}


def cpu_seconds(feeds: Sequence[tuple[str, bytes]]) -> dict[str, float]:
    """For every reader the sum of its best times over all feeds."""
    total = dict.fromkeys(READERS, 0.0)
    for _, data in feeds:
        for name, read in READERS.items():
            total[name] += min(_measure(read, data) for _ in range(ROUNDS))
    return total


def _measure(read: Callable[[bytes], int], data: bytes) -> float:
    start = time.process_time()
    read(data)
    return time.process_time() - start


def peak_bytes(name: str, folder: str | None) -> int:
    """How much a fresh process grows while it reads every feed once."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return int(pool.apply(_grow, (name, folder)))


def _grow(name: str, folder: str | None) -> int:
    warnings.simplefilter("ignore")
    feeds = read_folder(Path(folder)) if folder else make_feeds()
    read = READERS[name]
    read(b"<rss version='2.0'><channel><title>x</title></channel></rss>")
    before = _most_held()
    for _, data in feeds:
        read(data)
    return _most_held() - before


def _most_held() -> int:
    """The most memory that this process has held; what `getrusage` tells is its parent's, too."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def main(arguments: list[str]) -> int:
    feeds = read_folder(Path(arguments[0])) if arguments else make_feeds()
    if not feeds:
        print(f"No files in {arguments[0]}.", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # feedparser's own
    seconds = cpu_seconds(feeds)
    grown = {name: peak_bytes(name, arguments[0] if arguments else None) for name in READERS}
    size = sum(len(data) for _, data in feeds)
    print(
        f"{len(feeds)} documents, {size / 1e6:.1f} MB, all fields, best of {ROUNDS} readings each (CPU time)"
    )
    for name in READERS:
        print(
            f"  {name:15} {seconds[name] * 1e6 / len(feeds):8.0f} µs per document, {grown[name] / 1e6:6.1f} MB more"
        )
    ours = seconds["headwater"]
    verdict = Verdict("parse")
    verdict.tell(
        "times less CPU than feedparser", seconds["feedparser"] / ours, "×", least=LEAST_OF_FEEDPARSER
    )
    # Compiled readers gain most on feeds as clean as those that are made here.
    most = MOST_OF_FEEDPARSER_RS if arguments else None
    verdict.tell("of the CPU of feedparser-rs", ours / seconds["feedparser-rs"], "×", most=most)
    verdict.tell("of the CPU of fastfeedparser", ours / seconds["fastfeedparser"], "×")
    verdict.tell(
        "of the memory of feedparser", grown["headwater"] / grown["feedparser"], "×", most=MOST_MEMORY
    )
    return verdict.exit_code()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
