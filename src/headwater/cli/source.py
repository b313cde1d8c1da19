"""`headwater source …`: what to collect from."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from headwater.cli.loop import run
from headwater.cli.output import BIGGEST, Json, from_now, iso, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.model import Source
from headwater.wording import NOTHING

if TYPE_CHECKING:
    from headwater.store.push import Subscription

app = typer.Typer(no_args_is_help=True, help=t("Add, list, pause, resume and remove sources."))

Id = Annotated[int, typer.Argument(metavar="ID", max=BIGGEST, help=t("The source's number, as listed."))]

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
        typer.Argument(help=t("The address of the source; some types do without, by their config.")),
    ] = None,
    type_name: TypeName = None,
    name: Annotated[str | None, typer.Option(help=t("A name; else the source's own title."))] = None,
    folder: Annotated[str | None, typer.Option(help=t("A folder to keep it in."))] = None,
    config: Assignments = None,
    check: Annotated[
        bool, typer.Option(help=t("Visit it now; --no-check leaves the first visit to the collector."))
    ] = True,
    json: Json = False,
) -> None:
    from headwater.collect.adding import add_and_visit, add_unvisited, read_new_source
    from headwater.collect.surroundings import make_fetcher, read_surroundings
    from headwater.store.clock import database_time

    session: Session = context.obj
    if url is None and type_name is None:
        raise InputError("give an address, or a --type that needs none")
    _ = session.settings  # complains in the language they ask for
    wanted = read_new_source(url, type_name, _read_assignments(config or [], url, type_name), name, folder)
    with session.open_store() as store:

        async def visit() -> Source:
            async with make_fetcher(session.settings) as fetcher:
                return await add_and_visit(wanted, await read_surroundings(store, session.settings, fetcher))

        if check:
            added = run(visit())
        else:
            with store.writing() as connection:
                added = add_unvisited(connection, wanted, database_time(connection))
    if json:
        print_json(source_as_json(added))
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
    from headwater.collect.adding import first_visit, read_new_source, read_wanted_config
    from headwater.collect.surroundings import make_fetcher
    from headwater.collect.visit import NO_COLLECTOR
    from headwater.collectors.base import Harvest
    from headwater.collectors.types import collector_of, is_type

    session: Session = context.obj
    settings = session.settings
    session.log_to_terminal()
    url: str | None = place
    if type_name is None and is_type(place):
        url, type_name = None, place
    wanted = read_new_source(url, type_name, _read_assignments(config or [], url, type_name))
    collector = collector_of(wanted.type.name)
    reason = (
        NO_COLLECTOR if collector is None else collector.why_skipped(read_wanted_config(wanted, collector))
    )
    if collector is None or reason is not None:
        raise InputError("sources of type {type} are skipped: {reason}", type=wanted.type.name, reason=reason)

    async def visit() -> Harvest:
        async with make_fetcher(settings) as fetcher:
            return await first_visit(
                wanted, collector, fetcher, settings.secrets, settings.visit_timeout_seconds
            )

    harvest = run(visit())
    if json:
        print_json(
            {
                "type": wanted.type.name,
                "url": wanted.url,
                "title": harvest.metadata.title,
                "requests": harvest.requests,
                "bytes_received": harvest.bytes_received,
                "left_out": harvest.left_out_count,
                "items": [
                    {
                        **asdict(item),
                        "published_at": iso(item.published_at),
                        "updated_at": iso(item.updated_at),
                    }
                    for item in harvest.items
                ],
            }
        )
        return
    say(
        t(
            "{type} at {url}: {count} {count:item|items} with {requests} {requests:request|requests}"
            " and {bytes} bytes; nothing was stored"
        ).format(
            type=wanted.type.name,
            url=wanted.url,
            count=len(harvest.items),
            requests=harvest.requests,
            bytes=harvest.bytes_received,
        )
    )
    print_table(
        (t("When"), t("Title"), t("Author"), t("Address")),
        (
            (from_now(item.published_at or item.updated_at), item.title, item.author, item.url)
            for item in harvest.items
        ),
        empty=t("It has no items."),
    )


@app.command("list", help=t("List all sources."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.sources import list_sources

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_sources(connection)
    if json:
        print_json([source_as_json(source) for source in found])
        return
    print_table(
        (
            "ID",
            t("Name"),
            t("Type"),
            t("State"),
            t("Visits"),
            t("Last visit"),
            t("Next visit"),
            t("Why"),
        ),
        (
            (
                source.id,
                source.name,
                source.type,
                t(_state(source)),
                source.fetch_count,
                from_now(source.last_fetched_at),
                from_now(source.next_fetch_at) if source.schedule_enabled else NOTHING,
                source.last_error or _why(source),
            )
            for source in found
        ),
        empty=t("There are no sources yet. Add one with: headwater source add URL"),
    )


@app.command(help=t("Show one source with everything known of it."))
def show(context: typer.Context, source_id: Id, json: Json = False) -> None:
    from headwater.store.push import read_subscription
    from headwater.store.sources import get_source

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        source = get_source(connection, source_id)
        subscription = read_subscription(connection, source_id)
    shown = source_as_json(source)
    if subscription is not None:
        shown["push"] = _subscription_as_json(subscription)
    if json:
        print_json(shown)
    else:
        print_table(
            (t("Field"), t("Value")),
            (
                (key, orjson.dumps(value).decode() if isinstance(value, dict) else value)
                for key, value in shown.items()
            ),
            empty="",
        )


@app.command(help=t("Stop visiting a source until it is resumed."))
def pause(context: typer.Context, source_id: Id, json: Json = False) -> None:
    _switch(context.obj, source_id, False, t("paused source {id}: {name}"), json)


@app.command(help=t("Visit a paused source again."))
def resume(context: typer.Context, source_id: Id, json: Json = False) -> None:
    _switch(context.obj, source_id, True, t("resumed source {id}: {name}"), json)


@app.command(help=t("Remove a source. Its items, and the memory of what it has shown, stay."))
def remove(context: typer.Context, source_id: Id, json: Json = False) -> None:
    from headwater.store.clock import database_time
    from headwater.store.sources import remove_source

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        removed = remove_source(connection, source_id, database_time(connection))
    if json:
        print_json(source_as_json(removed))
    else:
        say(t("removed source {id}: {name}").format(id=removed.id, name=removed.name))


def _switch(session: Session, source_id: int, enabled: bool, message: str, json: bool) -> None:
    from headwater.store.clock import database_time
    from headwater.store.sources import set_schedule_enabled

    with session.open_store() as store, store.writing() as connection:
        source = set_schedule_enabled(connection, source_id, enabled, database_time(connection))
    if json:
        print_json(source_as_json(source))
    else:
        say(message.format(id=source.id, name=source.name))


def _read_assignments(assignments: list[str], url: str | None, type_name: str | None) -> dict[str, Any]:
    """KEY=VALUE pairs; where a key takes something else than text, a value that is JSON is taken as such."""
    from headwater.collectors.base import read_text
    from headwater.collectors.types import config_model_of, recognise_type

    model = config_model_of(type_name or recognise_type(url or "").name)
    config: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InputError("--config {text} is not KEY=VALUE", text=assignment)
        config[key.strip()] = read_text(model, key.strip(), value)
    return config


def _state(source: Source) -> str:
    if not source.schedule_enabled:
        return "off"
    return "new" if source.last_fetched_at is None and source.status == "ok" else source.status


def _why(source: Source) -> str:
    """Why the next visit is when it is, in one sentence."""
    from headwater.model import Plan
    from headwater.schedule.explain import explain_plan

    if source.next_fetch_at is None:
        return t("it has not been visited yet and is first in line")
    return explain_plan(Plan(source.next_fetch_at, source.plan_reason), state=source.policy_state)


def _subscription_as_json(subscription: "Subscription") -> dict[str, Any]:
    """What a source's hub does for it. Its token and secret are nobody's business."""
    return {
        "hub": subscription.hub,
        "topic": subscription.topic,
        "state": subscription.state,
        "lease_ends_at": iso(subscription.lease_ends_at),
        "last_pushed_at": iso(subscription.last_pushed_at),
        "pushes": subscription.pushes,
        "forged": subscription.forged,
        "missed": subscription.missed,
        "last_error": subscription.last_error,
    }


def source_as_json(source: Source) -> dict[str, Any]:
    """A source as programs read it. Secrets in its config are starred out."""
    from headwater.collectors.base import shown_config
    from headwater.collectors.types import config_model_of

    return {
        "id": source.id,
        "name": source.name,
        "type": source.type,
        "url": source.url,
        "config": shown_config(source.config, config_model_of(source.type)),
        "folder": source.folder,
        "is_active": source.is_active,
        "schedule_enabled": source.schedule_enabled,
        "status": source.status,
        "policy": source.policy,
        "pipeline_template_id": source.pipeline_template_id,
        "title": source.metadata.title,
        "description": source.metadata.description,
        "site_url": source.metadata.site_url,
        "language": source.metadata.language,
        "icon_url": source.metadata.icon_url,
        "created_at": iso(source.created_at),
        "last_fetched_at": iso(source.last_fetched_at),
        "next_fetch_at": iso(source.next_fetch_at),
        "plan_reason": dict(source.plan_reason),
        "last_entry_at": iso(source.last_entry_at),
        "fetch_count": source.fetch_count,
        "hit_count": source.hit_count,
        "fetch_error_count": source.fetch_error_count,
        "consecutive_failures": source.consecutive_failures,
        "last_error": source.last_error,
        "last_error_kind": source.last_error_kind,
    }
