"""Publishing outlets: what an outlet shows as RSS, Atom or JSON Feed, served or written to files.

    edition → contents, read from the database → drafts → bodies by the outlet's template → document

An outlet publishes of each item the first of its contents that there is: what the source delivered, a result, or what
the outlet's template makes of both. The same items give the same bytes. What is published is sanitised by the writers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from headwater import __version__
from headwater.files import write_whole
from headwater.formats.feeds.extras.vocabulary import KEYS
from headwater.formats.feeds.feed import Entry, Feed, Person
from headwater.formats.feeds.write import MEDIA_TYPES, write_feed
from headwater.formats.html import sanitize_html
from headwater.formats.links import is_absolute, join, resolve_html
from headwater.formats.xml.entities import drop_illegal
from headwater.language import translate
from headwater.markup import LONGEST_TEXT, bound_html, paragraphs_of
from headwater.model import Json, Result, StoredItem, StoredResult, read_result_key
from headwater.publish.bodies import html_of, text_of, title_of
from headwater.publish.media import MediaAddresses, with_own_media
from headwater.services.text_templates import check_template, fill_each
from headwater.store.publishing.digests import Issue, read_issues
from headwater.store.reading.outlets import (
    ORIGINAL,
    TEMPLATE,
    Edition,
    ItemSource,
    Outlet,
    read_edition,
    read_items,
)
from headwater.views.items import item_json
from headwater.views.outlets import path_of

MOST_CHARACTERS = 5_000_000  # of the bodies in one document
FILLED_CHARACTERS = 50_000  # of each text that fills an outlet's template
_SAID = "This item is too large to be shown whole: parts of it are left out."
# In both languages: an outlet is read by people who never chose one here.
CUT = f"<p>[{_SAID} {translate(_SAID, 'zh')}]</p>"


@dataclass(frozen=True, slots=True)
class Published:
    """An outlet as a document."""

    edition: Edition
    media_type: str
    body: bytes


def read_content(text: str) -> tuple[str, ...]:
    """What to publish, as people write it: `full_text, original`."""
    return tuple(part for part in (each.strip() for each in text.split(",")) if part)


def check_outlet(outlet: Outlet) -> None:
    """InputError for a template that cannot be read."""
    if outlet.template is not None:
        check_template("template", outlet.template)


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry to be published. `values`: what fills the outlet's template, if that makes the body."""

    entry: Entry
    is_cut: bool
    record: Json  # the fields of the item that an Entry lacks
    values: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """What an edition shows, as the database has it: items with their sources, or issues of a digest."""

    items: tuple[tuple[StoredItem, ItemSource], ...] = ()
    issues: tuple[Issue, ...] = ()

    @property
    def characters(self) -> int:
        """How much there is to clean."""
        items = sum(len(item.summary or "") + len(item.content or "") for item, _ in self.items)
        return items + sum(len(issue.html) for issue in self.issues)


def read_contents(connection: Connection, edition: Edition) -> Contents:
    """What an edition shows, as far as there is room for it."""
    if edition.outlet.digest is not None:
        return Contents(issues=tuple(read_issues(connection, edition.issue_ids)))
    return Contents(tuple(read_items(connection, edition, MOST_CHARACTERS)))


def make_drafts(edition: Edition, contents: Contents, addresses: MediaAddresses | None = None) -> list[Draft]:
    """The entries of an edition; archived files under these addresses. The time depends on the publishers' texts."""
    if contents.issues:
        return [_draft_of_issue(each) for each in contents.issues]
    left = MOST_CHARACTERS
    drafts: dict[str, Draft] = {}
    for item, source in contents.items:
        draft = _draft(item, source, edition.outlet)
        if addresses is not None and (own := addresses.of_item(item)):
            draft = replace(draft, entry=with_own_media(draft.entry, own))
        if draft.values is None:
            entry = _fit(draft.entry, left, is_cut=draft.is_cut)
            left = max(left - len(entry.summary or "") - len(entry.content or ""), 0)
            draft = replace(draft, entry=entry)
        drafts.setdefault(draft.entry.id or "", draft)  # two sources may carry the same article
    return list(drafts.values())


def write_document(
    edition: Edition, drafts: Sequence[Draft], format: str, base_url: str | None = None
) -> Published:
    """An edition in one format. `base_url` is where the outlets are found, for the document to say so. Blocking."""
    outlet = edition.outlet
    self_link = None
    if base_url:
        self_link = f"{base_url.rstrip('/')}/{path_of(outlet.name, format)}"
        if outlet.token:
            self_link += f"?token={outlet.token}"
    records = {draft.entry.id or "": draft.record for draft in drafts}
    feed = Feed(
        format,
        title=outlet.title,
        id=f"urn:headwater:outlet:{outlet.name}",
        link=base_url,
        description=outlet.description,
        generator=f"Headwater {__version__}",
        updated=datetime.fromtimestamp(edition.changed_at, UTC),
        self_link=self_link,
        hub_links=(outlet.hub_url,) if outlet.hub_url else (),
        entries=tuple(draft.entry for draft in _filled(outlet, drafts)),
    )
    return Published(edition, MEDIA_TYPES[format], write_feed(feed, format, records))


def shown_entries(outlet: Outlet, drafts: Sequence[Draft]) -> list[Entry]:
    """The entries as they are published: bodies filled and sanitised. Blocking."""
    entries = [draft.entry for draft in _filled(outlet, drafts)]
    return [
        replace(
            entry,
            summary=None if entry.summary is None else sanitize_html(entry.summary),
            content=None if entry.content is None else sanitize_html(entry.content),
        )
        for entry in entries
    ]


def render_outlet(
    connection: Connection, edition: Edition, format: str, base_url: str | None = None
) -> Published:
    """An edition in one format, read and written. Blocking."""
    return write_document(edition, make_drafts(edition, read_contents(connection, edition)), format, base_url)


def _filled(outlet: Outlet, drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with the bodies that the outlet's template makes."""
    waiting = [draft for draft in drafts if draft.values is not None]
    if not waiting or outlet.template is None:
        return list(drafts)
    made = iter(fill_each("template", outlet.template, [draft.values or {} for draft in waiting]))
    return [
        draft
        if draft.values is None
        else replace(draft, entry=_fit(replace(draft.entry, content=next(made)), LONGEST_TEXT, is_cut=False))
        for draft in drafts
    ]


def _fit(entry: Entry, left: int, *, is_cut: bool) -> Entry:
    """An entry as it is published where there is so much room left; one that lacks something says so."""
    bodies: dict[str, Any] = {}
    for name in ("summary", "content"):
        if body := getattr(entry, name):
            bodies[name], cut = bound_html(body, min(left, LONGEST_TEXT - len(CUT)))
            is_cut = is_cut or cut
            left = max(left - len(bodies[name]), 0)
    if is_cut:
        last = "content" if entry.content else "summary"
        bodies[last] = bodies.get(last, "") + CUT
    return replace(entry, **bodies)


def write_outlet(
    connection: Connection,
    name: str,
    directory: Path,
    formats: Iterable[str],
    base_url: str | None = None,
    addresses: MediaAddresses | None = None,
) -> list[tuple[Path, bool]]:
    """Write an outlet's files, each whole or not at all. Answers each path and whether it had to be written.

    Files are read without the token, so they do not contain it.
    """
    edition = read_edition(connection, name)
    edition = replace(edition, outlet=replace(edition.outlet, token=None))
    written = []
    contents = read_contents(connection, edition)
    drafts = make_drafts(edition, contents, addresses if edition.outlet.own_media else None)
    for format in formats:
        path = directory / path_of(name, format)
        body = write_document(edition, drafts, format, base_url).body
        written.append((path, write_whole(path, body, make_directory=True)))
    return written


def _absolute(url: str | None, base: str) -> str | None:
    joined = join(base, url)
    return joined if joined and is_absolute(joined) else None


def _draft(item: StoredItem, source: ItemSource, outlet: Outlet) -> Draft:
    """An item as the outlet publishes it: with the first of its contents that there is."""
    entry, record = _entry(item, source), _record(item)
    for content in outlet.content:
        if content == TEMPLATE:
            return Draft(replace(entry, summary=None, content=None), item.is_cut, record, _values(item))
        if content != ORIGINAL and (stored := _find_result(item, content)) is not None:
            return Draft(_with_result(entry, stored.result), is_cut=False, record=record)
    return Draft(entry, item.is_cut, record)


def _draft_of_issue(issue: Issue) -> Draft:
    """An issue of a digest as an entry."""
    entry = Entry(
        id=f"urn:headwater:digest:{issue.digest}:{issue.due_at:.0f}{issue.language and ':' + issue.language}",
        title=issue.title,
        published=_moment(issue.due_at),
        updated=_moment(issue.made_at),
        content=issue.html,
        language=issue.language or None,
    )
    return Draft(_fit(entry, LONGEST_TEXT, is_cut=False), False, {})


def _find_result(item: StoredItem, content: str) -> StoredResult | None:
    """The result of this key; of a kind that has names, without one, the first."""
    kind, name = read_result_key(content)
    if name:
        return item.results.get(content)
    return next((each for each in item.results.values() if each.result.kind == kind), None)


def _with_result(entry: Entry, result: Result) -> Entry:
    return replace(
        entry,
        title=title_of(result) or entry.title,
        language=result.language or entry.language,
        summary=entry.summary if result.kind == "full_text" else None,
        content=html_of(result),
    )


def _values(item: StoredItem) -> dict[str, Any]:
    """What fills an outlet's template: the item as programs read it, its text and its results as text."""
    content = paragraphs_of((item.content or item.summary or "")[:FILLED_CHARACTERS])
    results = {key: text_of(each.result)[:FILLED_CHARACTERS] for key, each in item.results.items()}
    return {
        "item": _without_texts(item),
        "text": results.get("full_text") or content,
        "results": {
            key: {"text": results[key], "data": each.result.data} for key, each in item.results.items()
        },
    }


_without_texts = item_json.without("content", "results")


def _entry(item: StoredItem, source: ItemSource) -> Entry:
    """An item as it is published. Of its source only the name: many a feed's address is its subscriber's secret.

    What is relative belongs to the source, never to us, who publish it.
    """
    extra = item.extras or {}
    link = _absolute(item.url, source.url)
    base = link or source.url
    return Entry(
        id=_id(item, source.added_at),
        link=link,
        title=item.title,
        authors=(Person(name=item.author),) if item.author else (),
        published=_moment(item.published_at if not item.date_invented else item.first_seen_at),
        updated=_moment(item.updated_at) or _moment(item.published_at) or _moment(item.first_seen_at),
        summary=resolve_html(item.summary, base) if item.summary else None,
        content=resolve_html(item.content, base) if item.content else None,
        categories=item.categories,
        enclosures=tuple(
            replace(file, url=url) for file in item.enclosures if (url := _absolute(file.url, base))
        ),
        image=_absolute(item.image_url, base),
        language=item.language,
        comments_url=_absolute(item.comments_url, base),
        comments_feed=_absolute(extra.get("comments_feed"), base),
        comments_count=item.comments_count,
        source_title=extra.get("source_title") or item.source_name,
        source_url=_absolute(extra.get("source_url"), base),
        extras={key: extra[key] for key in KEYS.intersection(extra)} or None,
    )


# What an Entry has no field for. `status` changes while the item, and so the document's tag, stays the same.
_record = item_json.without(
    *(
        "external_id",
        "url",
        "title",
        "author",
        "published_at",
        "updated_at",
        "summary",
        "content",
        "categories",
    ),
    *("enclosures", "image_url", "language", "comments_url", "comments_count", "extra", "status"),
    *("result_keys", "pipeline_score", "tags", "results"),
)


def _id(item: StoredItem, source_added_at: float) -> str:
    """The publisher's own id where it is one for the whole world, else one made of it and its source.

    A source may move, so its address is not part of that.
    """
    scheme, colon, _ = item.external_id.partition(":")
    if colon and scheme.lower() in ("http", "https", "tag", "urn"):
        return drop_illegal(item.external_id).strip()
    text = f"{item.source_id}\n{source_added_at}\n{item.external_id}"
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=16)
    return f"urn:headwater:item:{digest.hexdigest()}"


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
