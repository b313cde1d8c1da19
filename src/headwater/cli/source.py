"""`headwater source …`: what to collect from."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.choosing import InFolder, InState, Matching, OfType, OneSource, read_filter
from headwater.cli.loop import run
from headwater.cli.output import Json, from_now, print_facts, print_json, print_json_list, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.model import Source
from headwater.wording import size

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.formats.pages.rules import AddressRules

app = typer.Typer(no_args_is_help=True, help=t("Add, list, edit, pause, resume, remove and restore sources."))


TypeName = Annotated[
    str | None,
    typer.Option("--type", help=t("The type of source; else by its address, and else a feed.")),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        help=t("A key of the source's config, as KEY=VALUE (VALUE may be JSON); may be repeated."),
    ),
]


@app.command(help=t("Add a source. It is visited at once; if that fails, nothing is stored."))
def add(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="ANYTHING",
            help=t("An address or a handle such as r/python; some types do without, by their config."),
        ),
    ] = None,
    type_name: TypeName = None,
    name: Annotated[str | None, typer.Option(help=t("A name; else the source's own title."))] = None,
    folder: Annotated[
        str | None, typer.Option(help=t("A folder to keep it in; made if there is none of this name."))
    ] = None,
    interval: Annotated[
        float | None, typer.Option(min=0.01, help=t("Minutes between visits, instead of the default."))
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help=t("How its visits are planned: adaptive, cadence or interval."))
    ] = None,
    config: Assignments = None,
    check: Annotated[
        bool, typer.Option(help=t("Visit it now; --no-check leaves the first visit to the collector."))
    ] = True,
    json: Json = False,
) -> None:
    from headwater.collect.context import read_visit_context
    from headwater.collectors.inbox import mail_address
    from headwater.collectors.recognition import rules_from
    from headwater.fetch.client import make_fetcher
    from headwater.sources.adding import add_unvisited, add_what_is_there, read_new_source
    from headwater.store.core.clock import database_time
    from headwater.store.reading.listing import list_folders

    session: Session = context.obj
    if url is None and type_name is None:
        raise InputError("give an address, or a --type that needs none")
    _ = session.settings  # complains in the language they ask for
    rules = rules_from(session.settings.address_rules)
    given = read_assignments(config or [], url, type_name, rules)
    if interval is not None:
        given["fetch_interval_minutes"] = interval
    wanted = read_new_source(url, type_name, given, name, folder, policy, rules)
    with session.open_store() as store:
        with store.reading() as connection:
            makes_folder = bool(wanted.folder) and wanted.folder not in list_folders(connection)

        async def visit() -> Source:
            async with make_fetcher(session.settings) as fetcher:
                visit_context = await read_visit_context(store, session.settings, fetcher)
                return await add_what_is_there(wanted, visit_context)

        if check:
            added = run(visit())
        else:
            with store.writing() as connection:
                added = add_unvisited(connection, wanted, database_time(connection))
        if json:
            with store.reading() as connection:
                print_json(whole_source_as_json(session, connection, added))
            return
    if makes_folder:
        say(t("made the folder {name}").format(name=added.folder))
    if (address := mail_address(added.url, session.settings.mail_domain)) is not None:
        say(t("added source {id}: {name}").format(id=added.id, name=added.name))
        say(t("E-mails to {address} become its items.").format(address=address))
        if session.settings.mail_listen is None:
            say(t("Set HEADWATER_MAIL_LISTEN, so that `headwater serve` receives e-mail."))
    elif added.last_fetched_at is None:
        say(t("added source {id}: {name}; the collector visits it next").format(id=added.id, name=added.name))
    else:
        say(
            t("added source {id}: {name}; next visit {when}").format(
                id=added.id, name=added.name, when=from_now(added.next_fetch_at)
            )
        )


@app.command(help=t("Show what a source would yield; stores nothing."))
def test(
    context: typer.Context,
    place: Annotated[
        str, typer.Argument(metavar="URL|TYPE", help=t("An address, or a type that needs none."))
    ],
    type_name: TypeName = None,
    config: Assignments = None,
    json: Json = False,
) -> None:
    from headwater.collect.visit import NO_COLLECTOR
    from headwater.collectors.base import FetchResult
    from headwater.collectors.recognition import rules_from
    from headwater.collectors.types import collector_of, is_type, type_title
    from headwater.fetch.client import make_fetcher
    from headwater.sources.adding import first_visit, read_new_source, read_wanted_config
    from headwater.views.items import collected_item_json

    session: Session = context.obj
    settings = session.settings
    session.log_to_terminal()
    url: str | None = place
    if type_name is None and is_type(place):
        url, type_name = None, place
    rules = rules_from(settings.address_rules)
    given = read_assignments(config or [], url, type_name, rules)
    wanted = read_new_source(url, type_name, given, rules=rules)
    collector = collector_of(wanted.type.name)
    reason = (
        NO_COLLECTOR if collector is None else collector.why_skipped(read_wanted_config(wanted, collector))
    )
    if collector is None or reason is not None:
        raise InputError("sources of type {type} are skipped: {reason}", type=wanted.type.name, reason=reason)

    async def visit() -> FetchResult:
        async with make_fetcher(settings) as fetcher:
            return await first_visit(
                wanted, collector, fetcher, settings.secrets, settings.visit_timeout_seconds
            )

    result = run(visit())
    if json:
        print_json(
            {
                "type": wanted.type.name,
                "url": wanted.url,
                "title": result.metadata.title,
                "requests": result.requests,
                "bytes_received": result.bytes_received,
                "left_out": result.left_out_count,
                "items": [collected_item_json(item) for item in result.items],
            }
        )
        return
    say(
        t(
            "{type} at {url}: {count} {count:item|items} with {requests} {requests:request|requests}"
            " and {size}; nothing was stored"
        ).format(
            type=type_title(wanted.type.name),
            url=wanted.url,
            count=len(result.items),
            requests=result.requests,
            size=size(result.bytes_received),
        )
    )
    print_table(
        (t("When"), t("Title"), t("Author"), t("Address")),
        (
            (from_now(item.published_at or item.updated_at), item.title, item.author, item.url)
            for item in result.items
        ),
        empty=t("It has no items."),
    )


@app.command("list", help=t("List sources: all, or those that you choose."))
def list_(
    context: typer.Context,
    folder: InFolder = None,
    type_name: OfType = None,
    state: InState = None,
    search: Matching = None,
    json: Json = False,
) -> None:
    from headwater.collectors.types import type_title
    from headwater.schedule.explain import explain_next
    from headwater.states import find_state, next_visit_at, tell_failure, tell_state
    from headwater.store.collecting.sources import iterate_sources
    from headwater.store.core.clock import database_time
    from headwater.store.reports.catalog import SourceFilter, iterate_matching

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        wanted = read_filter(connection, search, type_name, folder, state)
        is_all = wanted == SourceFilter()
        now = database_time(connection)
        found = iterate_sources(connection) if is_all else iterate_matching(connection, wanted, now=now)
        if json:
            print_json_list(sources_as_json(session, connection, found))
            return
        print_table(
            (
                *("ID", t("Name"), t("Type"), t("State"), t("Visits")),
                *(t("Last visit"), t("Next visit"), t("Why")),
            ),
            (
                (
                    source.id,
                    source.name,
                    type_title(source.type),
                    tell_state(find_state(source)),
                    source.fetch_count,
                    from_now(source.last_fetched_at),
                    from_now(next_visit_at(source)),
                    tell_failure(source) or explain_next(source),
                )
                for source in found
            ),
            empty=t("There are no sources yet. Add one with: headwater source add URL")
            if is_all
            else t("No sources match."),
        )


@app.command(
    "read-back", help=t("Read a feed's archives back to its beginning. Interrupted, it goes on from there.")
)
def read_back_(
    context: typer.Context,
    source_name: OneSource,
    again: Annotated[
        bool, typer.Option("--again", help=t("Begin once more at the newest document."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.cli.output import progress_bar
    from headwater.collect.archive import Place, read_back
    from headwater.collect.context import read_visit_context
    from headwater.fetch.client import make_fetcher
    from headwater.store.collecting.sources import find_source

    session: Session = context.obj
    with session.open_store() as store:
        with store.reading() as connection:
            source = find_source(connection, source_name)

        async def work() -> Place:
            with progress_bar(t("Reading back"), quiet=json) as advance:

                def show(place: Place) -> None:
                    note = t("{count} new {count:item|items}").format(count=place.items)
                    advance(place.documents, place.documents + (place.url is not None), note)

                async with make_fetcher(session.settings) as fetcher:
                    visit_context = await read_visit_context(store, session.settings, fetcher)
                    return await read_back(source.id, visit_context, again=again, progress=show)

        place = run(work())
    if json:
        print_json({"source_id": source.id, "documents": place.documents, "items": place.items})
        return
    say(
        t("read {documents} {documents:document|documents} back: {count} new {count:item|items}").format(
            documents=place.documents, count=place.items
        )
    )


@app.command(help=t("Unsubscribe from the newsletter that sent a source's newest e-mail."))
def unsubscribe(context: typer.Context, source_name: OneSource) -> None:
    from headwater.fetch.client import make_fetcher
    from headwater.newsletters.unsubscribing import newest_letter
    from headwater.newsletters.unsubscribing import unsubscribe as ask_sender
    from headwater.store.collecting.sources import find_source

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        item = newest_letter(connection, find_source(connection, source_name).id)

    async def ask() -> str:
        async with make_fetcher(session.settings) as fetcher:
            return await ask_sender(item, fetcher)

    say(t("asked {host} to send no more e-mails; the source stays").format(host=run(ask())))


@app.command(help=t("Show one source in full."))
def show(context: typer.Context, source_name: OneSource, json: Json = False) -> None:
    from headwater.cli.source_facts import tell_source
    from headwater.collectors.intervals import intervals_in_force
    from headwater.store.collecting.push import read_subscription
    from headwater.store.collecting.sources import find_source
    from headwater.store.core.clock import database_time
    from headwater.store.pipelines.templates import get_template
    from headwater.store.reports.statistics import read_source_statistics

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        source = find_source(connection, source_name)
        if json:
            print_json(whole_source_as_json(session, connection, source))
            return
        template_id = source.pipeline_template_id
        facts = tell_source(
            source,
            intervals_in_force(connection, session.settings).get(source.type, 0.0),
            None if template_id is None else get_template(connection, template_id).name,
            read_subscription(connection, source.id),
            read_source_statistics(connection, source.id, database_time(connection)),
        )
    print_facts(facts)


def read_assignments(
    assignments: list[str], url: str | None, type_name: str | None, rules: "AddressRules | None" = None
) -> dict[str, Any]:
    """KEY=VALUE pairs; where a key takes something else than text, a value that is JSON is taken as such."""
    from headwater.collectors.base import read_text
    from headwater.collectors.recognition import package_rules, recognise
    from headwater.collectors.types import config_model_of

    model = config_model_of(type_name or recognise(url or "", rules or package_rules()).type.name)
    config: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InputError("--config {text} is not KEY=VALUE", text=assignment)
        config[key.strip()] = read_text(model, key.strip(), value)
    return config


def sources_as_json(
    session: Session, connection: "Connection", found: Iterable[Source]
) -> Iterator[dict[str, Any]]:
    from headwater.collectors.intervals import intervals_in_force
    from headwater.views.sources import source_json

    intervals = intervals_in_force(connection, session.settings)
    return (source_json(source, intervals) for source in found)


def whole_source_as_json(session: Session, connection: "Connection", source: Source) -> dict[str, Any]:
    from headwater.collectors.intervals import intervals_in_force
    from headwater.store.collecting.push import read_subscription
    from headwater.store.core.clock import database_time
    from headwater.store.reports.statistics import read_source_statistics
    from headwater.views.sources import whole_source_json

    return whole_source_json(
        source,
        intervals_in_force(connection, session.settings),
        read_subscription(connection, source.id),
        read_source_statistics(connection, source.id, database_time(connection)),
    )
