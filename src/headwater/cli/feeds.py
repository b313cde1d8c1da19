"""`headwater parse`, `discover`, `import` and `export`: reading, finding and moving feeds."""

import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.loop import run
from headwater.cli.output import Json, escaped, print_json, print_table, progress_bar, say
from headwater.cli.session import Session
from headwater.config import without_password
from headwater.errors import InputError, ParseError
from headwater.language import translate as t
from headwater.wording import NOTHING

if TYPE_CHECKING:
    from headwater.config import Settings
    from headwater.formats.feeds.feed import Feed


class ImportFrom(StrEnum):
    FRESHRSS = "freshrss"
    MINIFLUX = "miniflux"
    TT_RSS = "tt-rss"
    READER = "reader"
    OPML = "opml"
    CSV = "csv"


def parse(
    context: typer.Context,
    place: Annotated[
        str, typer.Argument(metavar="FILE|URL", help=t("A file, an address, or - for standard input."))
    ],
    json: Json = False,
) -> None:
    from headwater.formats.feeds.parse import parse as parse_feed
    from headwater.sources.addresses import read_url

    session: Session = context.obj
    settings = session.settings
    with _naming(place):
        if _is_address(place):
            feed = run(_fetch_feed(settings, read_url(place)))
        else:
            feed = parse_feed(_read(place))
    if json:
        print_json(feed)
        return
    facts = {
        t("Format"): feed.format,
        t("Title"): feed.title,
        t("Address"): feed.link,
        t("Language"): feed.language,
        t("Items"): len(feed.entries),
    }
    for name, value in facts.items():
        say(f"{name}: {NOTHING if value in (None, '') else value}")
    for repair in feed.repairs:
        say(f"{t('Note')}: {repair.render()}")
    print_table(
        (t("Published"), t("Title"), t("Address"), t("Text")),
        (
            (
                (entry.published or entry.updated or NOTHING),
                entry.title,
                entry.link,
                t("{count} {count:character|characters}").format(
                    count=len(entry.content or entry.summary or "")
                ),
            )
            for entry in feed.entries
        ),
        empty=t("It has no items."),
    )


async def _fetch_feed(settings: "Settings", url: str) -> "Feed":
    from headwater.fetch.client import make_fetcher
    from headwater.fetch.message import Request
    from headwater.formats.feeds.parse import parse as parse_feed

    async with make_fetcher(settings) as fetcher:
        response = await fetcher.get(Request(url))
    return parse_feed(response.body, url=response.url, content_type=response.content_type)


def discover(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="ANYTHING", help=t("An address, or a handle such as r/python."))
    ],
    json: Json = False,
) -> None:
    from headwater.collectors.recognition import rules_from
    from headwater.collectors.types import type_title
    from headwater.fetch.client import make_fetcher
    from headwater.sources.discovery import FoundFeed, look_up, mark_subscribed

    session: Session = context.obj

    async def look() -> list[FoundFeed]:
        rules = rules_from(session.settings.address_rules)
        async with make_fetcher(session.settings) as fetcher:
            return await look_up(url, fetcher, rules=rules)

    found = run(look())
    if session.has_database():
        with session.open_store() as store, store.reading() as connection:
            found = mark_subscribed(connection, found)
    if json:
        from headwater.views.feeds import found_feed_json

        print_json([found_feed_json(each) for each in found])
        return
    how = {
        None: t("it is a feed itself"),
        "rule": t("by the site's rule"),
        "link": t("named by the page"),
        "body": t("linked in the page"),
        "guess": t("at a usual place"),
        "watch": t("names no feed, but can be watched"),
        "answer": t("not a feed, but can be collected"),
    }
    print_table(
        (t("Address"), t("Type"), t("Title"), t("Items"), t("How"), t("Note")),
        (
            (
                each.url,
                type_title(each.type),
                ": ".join(text for text in (each.title, each.choice) if text),
                NOTHING if each.items is None else each.items,
                how[each.how],
                t("subscribed already") if each.source_id else each.problem or "",
            )
            for each in found
        ),
        empty="",
    )


def import_(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help=t("An OPML file or another reader's export or database; - for standard input."),
        ),
    ],
    program: Annotated[
        ImportFrom | None,
        typer.Option("--from", help=t("The program that exported the file. Default: detected.")),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.sources.importing.marking import bring_marked
    from headwater.sources.importing.reading import read_export
    from headwater.sources.lists import import_export
    from headwater.store.core.clock import measured_clock
    from headwater.store.people.subscriptions import OWNER

    session: Session = context.obj
    data = _read(file)
    with _naming(file):
        exported = read_export(
            None if file == "-" else Path(file), data, None if program is None else program.value
        )
    with (
        contextlib.closing(exported),
        _naming(file),
        session.open_store() as store,
        progress_bar(t("Importing"), quiet=json) as advance,
    ):
        report = import_export(
            store, exported, measured_clock(store)(), lambda done, total: advance(done, total, "")
        )
        taken = [done.source_id for done in report[len(exported.rejected) :]]
        brought = bring_marked(store, OWNER, exported, taken, measured_clock(store)())
    counts = Counter(entry.outcome for entry in report)
    if json:
        from headwater.views.feeds import import_report_json

        print_json(import_report_json(report))
        return
    for entry in report:
        if entry.outcome != "added":
            name = f"{entry.title} ({entry.url})" if entry.title not in ("", entry.url) else entry.url
            say(f"{name}: {entry.reason}", error=True)
    say(
        t("{added} added, {known} known already, {rejected} rejected").format(
            added=counts["added"], known=counts["known"], rejected=counts["rejected"]
        )
    )
    if brought:
        say(t("{count} starred or tagged {count:entry|entries} came along").format(count=brought))
    if (exported.stars or exported.tags) and not exported.has_marked:
        say(
            t("not imported: {stars} {stars:star|stars}, tags of {tags} {tags:entry|entries}").format(
                stars=exported.stars, tags=exported.tags
            )
        )
    if paused := sum(outline.paused for outline in exported.outlines):
        say(t("{count} {count:feed is|feeds are} paused, as in the other reader").format(count=paused))
    if seen := sum(entry.seen for entry in report):
        say(
            t("{count} {count:entry that was|entries that were} read there will not come back as new").format(
                count=seen
            )
        )


def export(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.opml", help=t("Else to standard output."))
    ] = None,
    with_secrets: Annotated[
        bool,
        typer.Option("--with-secrets", help=t("Write addresses whole, with the tokens in them.")),
    ] = False,
) -> None:
    from headwater.files import write_whole
    from headwater.sources.lists import export_opml

    session: Session = context.obj
    masked = 0

    def count(url: str) -> None:
        nonlocal masked
        masked += 1

    with session.open_store() as store:
        pieces = export_opml(store, time.time(), with_secrets=with_secrets, on_masked=count)
        if file is None:
            for piece in pieces:
                sys.stdout.buffer.write(escaped(piece.decode(), "&#x{:x};").encode())
        else:
            write_whole(file, pieces)
    if masked:
        told = t(
            "{count} {count:address holds|addresses hold} a secret, shown as ***; --with-secrets writes them whole"
        )
        say(told.format(count=masked), error=True)


def _is_address(place: str) -> bool:
    """Whether `place` means the web: it says so, or there is no such file and it begins like a host's name."""
    if re.match(r"(https?|feed):", place, re.IGNORECASE):
        return True
    return bool(re.match(r"[^/.\s]+(\.[^/.\s]+)+/", place)) and not Path(place).exists()


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
    """Say which file or address it was that could not be read."""
    try:
        yield
    except ParseError as error:
        shown = without_password(place)
        raise ParseError("{path}: {problem}", kind=error.kind, path=shown, problem=error.render()) from error


def _read(place: str) -> bytes:
    if not place:
        raise InputError("an empty name is not a file; give a file, or - for standard input")
    try:
        return sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise InputError("cannot read {path}: {problem}", path=place, problem=error.strerror) from None
