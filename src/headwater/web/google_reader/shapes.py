"""What the Google Reader API returns: items, subscriptions, tags and counts as its clients read them."""

from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from headwater.formats.xml.entities import drop_illegal
from headwater.model import FOLDER_SEPARATOR
from headwater.publish.bodies import text_of_item
from headwater.store.people.entries import Entry
from headwater.store.people.reading import Unread
from headwater.store.people.subscriptions import Subscription
from headwater.web.google_reader.names import LABEL, READ, READING_LIST, STARRED, long_id
from headwater.wording import iso

Json = dict[str, Any]
Paths = Mapping[int, tuple[str, ...]]
MOST_SHOWN = 1_000_000
ATOM_END = "\n</feed>"


def label_of(path: tuple[str, ...]) -> str:
    """The label of a folder: the names from the top to it."""
    return FOLDER_SEPARATOR.join(path)


def labels_of(folder_id: int | None, paths: Paths) -> list[str]:
    """The label of what is in a folder, if it is in one."""
    return [LABEL + label_of(paths[folder_id])] if folder_id is not None and folder_id in paths else []


def micros(seconds: float) -> str:
    return str(int(seconds * 1_000_000))


def categories_of(entry: Entry, paths: Paths) -> list[str]:
    """An entry's states, folder and tags."""
    state = entry.state
    found = [READING_LIST]
    if state.is_read:
        found.append(READ)
    if state.starred_at is not None:
        found.append(STARRED)
    found += labels_of(entry.folder_id, paths)
    return found + [LABEL + tag for tag in state.tags]


def stream_of(entry: Entry) -> str:
    return f"feed/{entry.subscription_id}" if entry.subscription_id is not None else "feed/0"


def length_of(entry: Entry) -> int:
    """How many characters of an entry's text have to be cleaned."""
    return len(entry.item.content or entry.item.summary or "")


def item_json(entry: Entry, paths: Paths, feeds: Mapping[int, Subscription]) -> Json:
    item = entry.item
    feed = feeds.get(item.source_id)
    site = (feed.site_url or feed.url) if feed else ""
    address = item.url or (site if site.startswith(("https://", "http://")) else "")
    shown: Json = {
        "id": long_id(item.id),
        "crawlTimeMsec": str(int(item.first_seen_at * 1000)),
        "timestampUsec": micros(item.first_seen_at),
        "published": int(item.item_at),
        "updated": int(item.updated_at or item.item_at),
        "title": item.title,
        "author": item.author or "",
        # Never without one: apps take the first without a look.
        "canonical": [{"href": address}],
        "alternate": [{"href": address, "type": "text/html"}],
        "categories": categories_of(entry, paths),
        "origin": {
            "streamId": stream_of(entry),
            "title": entry.feed_title,
            "htmlUrl": site,
            "feedUrl": feed.url if feed else "",
        },
        "summary": {"direction": "ltr", "content": text_of_item(item)[0]},
    }
    if entry.state.starred_at is not None:
        shown["marked"] = True  # where Liferea looks for stars; the categories say it to others
    if item.enclosures:
        shown["enclosure"] = [
            {
                "href": file.url,
                "type": file.media_type or "",
                **({"length": file.length} if file.length is not None else {}),
            }
            for file in item.enclosures
        ]
    return shown


def subscription_json(feed: Subscription, paths: Paths, loose: str | None = None) -> Json:
    """A subscription; `loose` is the label of one that is in no folder (None: it has none)."""
    labels = [name.removeprefix(LABEL) for name in labels_of(feed.folder_id, paths)]
    if not labels and loose is not None:
        labels = [loose]
    return {
        "id": f"feed/{feed.id}",
        "title": feed.title,
        "categories": [{"id": LABEL + label, "label": label, "type": "folder"} for label in labels],
        "sortid": f"{feed.id & 0xFFFFFFFF:08X}",
        "firstitemmsec": str(int(feed.created_at * 1000)),
        "url": feed.url,
        "htmlUrl": feed.site_url or feed.url,
        "iconUrl": feed.icon_url or "",
    }


def tags_json(paths: Paths, tags: Iterable[str]) -> Json:
    return {
        "tags": [
            {"id": STARRED, "sortid": "00000001"},
            *({"id": LABEL + label_of(path), "type": "folder"} for path in paths.values()),
            *({"id": LABEL + tag, "type": "tag"} for tag in tags),
        ]
    }


def counts_json(counts: Iterable[Unread], paths: Paths) -> Json:
    """Unread counts of each subscription, each folder and everything."""
    shown: list[Json] = []
    sums: dict[str, tuple[int, float]] = {}
    for each in counts:
        newest = each.last_stored_at or 0.0
        shown.append(_count(f"feed/{each.subscription_id}", each.count, newest))
        if each.is_muted:
            continue
        for name in (READING_LIST, *labels_of(each.folder_id, paths)):
            count, latest = sums.get(name, (0, 0.0))
            sums[name] = count + each.count, max(latest, newest)
    shown += [_count(name, count, newest) for name, (count, newest) in sums.items()]
    return {"max": MOST_SHOWN, "unreadcounts": shown}


def _count(name: str, count: int, newest: float) -> Json:
    return {"id": name, "count": count, "newestItemTimestampUsec": micros(newest)}


def atom_head(stream: str, title: str, continuation: str | None, now: float) -> str:
    """The beginning of a stream as Atom; its entries and ATOM_END follow."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:gr="http://www.google.com/schemas/reader/atom/">',
        f"<id>tag:google.com,2005:reader/{_text(stream)}</id><title>{_text(title)}</title>",
        f"<updated>{iso(now)}</updated>",
    ]
    if continuation is not None:
        parts.append(f"<gr:continuation>{_text(continuation)}</gr:continuation>")
    return "\n".join(parts)


def atom_entry(entry: Entry, paths: Paths) -> str:
    """An entry with its state in its categories."""
    item = entry.item
    states = ["read" if entry.state.is_read else "fresh"]
    if not entry.state.is_read:
        states.append("kept-unread")
    if entry.state.starred_at is not None:
        states.append("starred")
    parts = [
        f'<entry gr:crawl-timestamp-msec="{int(item.first_seen_at * 1000)}"><id>{long_id(item.id)}</id>',
        *(
            f'<category term="user/-/state/com.google/{state}"'
            f' scheme="http://www.google.com/reader/" label="{state}"/>'
            for state in states
        ),
        *(
            f"<category term={_attribute(name)}"
            f' scheme="http://www.google.com/reader/" label={_attribute(name.removeprefix(LABEL))}/>'
            for name in categories_of(entry, paths)
            if name.startswith(LABEL)
        ),
        f'<title type="text">{_text(item.title)}</title>',
        f"<published>{iso(item.item_at)}</published><updated>{iso(item.updated_at or item.item_at)}</updated>",
    ]
    if item.url:
        parts.append(f'<link rel="alternate" href={_attribute(item.url)} type="text/html"/>')
    for file in item.enclosures:
        kind = f" type={_attribute(file.media_type)}" if file.media_type else ""
        parts.append(f'<link rel="enclosure" href={_attribute(file.url)}{kind}/>')
    if item.author:
        parts.append(f"<author><name>{_text(item.author)}</name></author>")
    parts += [
        f'<content type="html">{_text(text_of_item(item)[0])}</content>',
        f"<source gr:stream-id={_attribute(stream_of(entry))}><title>{_text(entry.feed_title)}</title></source>",
        "</entry>",
    ]
    return "".join(parts)


def _text(text: str) -> str:
    return escape(drop_illegal(text))


def _attribute(text: str) -> str:
    return quoteattr(drop_illegal(text))
