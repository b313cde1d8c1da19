"""`headwater target …`: where messages are sent, and what became of them."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.configs import Configs, read_config
from headwater.cli.output import Json, from_now, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.publishing.targets import Target

app = typer.Typer(
    no_args_is_help=True, help=t("Name mailboxes, webhooks and chats that messages are sent to.")
)

Name = Annotated[str, typer.Argument(metavar="NAME", help=t("The target's name."))]
BatchMinutes = Annotated[
    float | None,
    typer.Option(help=t("Send at most one message in so many minutes, with several items; 0: each at once.")),
]
BatchItems = Annotated[int | None, typer.Option(help=t("How many items at most in one message."))]


@app.command(help=t("Add a target: e-mail, a webhook, or chat services."))
def add(
    context: typer.Context,
    name: Name,
    email: Annotated[
        list[str] | None, typer.Option(help=t("An address to send e-mail to; may be repeated."))
    ] = None,
    webhook: Annotated[str | None, typer.Option(help=t("The address of a webhook."))] = None,
    apprise: Annotated[
        list[str] | None, typer.Option(help=t("A chat service, as apprise writes it; may be repeated."))
    ] = None,
    config: Configs = None,
    batch_minutes: BatchMinutes = None,
    batch_items: BatchItems = None,
    json: Json = False,
) -> None:
    from headwater.publish.targets import read_target, shown_target
    from headwater.store.publishing.targets import add_target

    session: Session = context.obj
    session.settings  # noqa: B018 - from here on, messages are in the user's language
    ways = {"recipients": email, "url": webhook, "apprise_urls": apprise}
    given = {key: value for key, value in ways.items() if value}
    if len(given) != 1:
        raise InputError("say where to: --email, --webhook or --apprise")
    [(key, value)] = given.items()
    kind = {"recipients": "email", "url": "webhook", "apprise_urls": "apprise"}[key]
    target = read_target(
        name, kind, {key: value, **read_config(config)}, batch_minutes or None, batch_items or 20
    )
    with session.open_store() as store, store.writing() as connection:
        added = add_target(connection, target, time.time())
    if json:
        print_json(shown_target(added))
    else:
        say(t("added target {name}; try it with: headwater target test {name}").format(name=name))


@app.command(help=t("Change a target; what is not given stays as it is."))
def edit(
    context: typer.Context,
    name: Name,
    config: Configs = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="KEY", help=t("A key to remove from its config."))
    ] = None,
    batch_minutes: BatchMinutes = None,
    batch_items: BatchItems = None,
    json: Json = False,
) -> None:
    from headwater.publish.targets import read_target, shown_target
    from headwater.store.publishing.targets import change_target, get_target

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        before = get_target(connection, name)
        whole = {key: value for key, value in before.config.items() if key not in (unset or ())}
        minutes = before.batch_minutes if batch_minutes is None else batch_minutes or None
        wanted = read_target(
            name, before.kind, {**whole, **read_config(config)}, minutes, batch_items or before.batch_items
        )
        changed = change_target(
            connection,
            name,
            time.time(),
            config=wanted.config,
            batch_minutes=wanted.batch_minutes,
            batch_items=wanted.batch_items,
        )
    if json:
        print_json(shown_target(changed))
    else:
        say(t("changed target {name}").format(name=name))


@app.command("list", help=t("List all targets."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.publish.targets import shown_target, tell_place
    from headwater.store.publishing.targets import list_targets

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_targets(connection)
    if json:
        print_json([shown_target(target) for target in found])
        return
    print_table(
        (t("Name"), t("Kind"), t("Sends to"), t("Batches")),
        (
            (
                target.name,
                target.kind,
                tell_place(target),
                ""
                if target.batch_minutes is None
                else t("every {minutes:g} min, {items} items").format(
                    minutes=target.batch_minutes, items=target.batch_items
                ),
            )
            for target in found
        ),
        empty=t("There are no targets yet. Add one with: headwater target add NAME --email ann@example.org"),
    )


@app.command(help=t("Remove a target and its unsent messages."))
def remove(context: typer.Context, name: Name) -> None:
    from headwater.store.publishing.targets import remove_target

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        remove_target(connection, name)
    say(t("removed target {name}").format(name=name))


@app.command(help=t("Send a test message now and say whether it arrived."))
def test(context: typer.Context, name: Name) -> None:
    from headwater.store.publishing.targets import get_target

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        target = get_target(connection, name)
    asyncio.run(_send_test(session, target))
    say(t("sent a test message to {name}").format(name=name))


@app.command(help=t("Show the message about an item as this target would get it; sends nothing."))
def preview(
    context: typer.Context,
    name: Name,
    item: Annotated[int, typer.Argument(metavar="ITEM", help=t("The item's number."))],
    json: Json = False,
) -> None:
    from headwater.publish.targets import preview_message
    from headwater.store.publishing.targets import get_target
    from headwater.store.reading.items import get_item

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        target = get_target(connection, name)
        found = get_item(connection, item)
    message = asyncio.run(preview_message(target, found))
    if json:
        print_json({"title": message.title, "text": message.text, "html": message.html})
    else:
        say(f"{message.title}\n\n{message.text}")


@app.command(help=t("List what was sent, is to be sent, or could not be sent."))
def deliveries(
    context: typer.Context,
    failed: Annotated[bool, typer.Option("--failed", help=t("Only those that failed."))] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help=t("How many, newest first."))] = 50,
    json: Json = False,
) -> None:
    from headwater.store.publishing.outbox import list_deliveries
    from headwater.views.targets import delivery_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_deliveries(connection, status="failed" if failed else None, limit=limit)
    if json:
        print_json([delivery_json(each) for each in found])
        return
    print_table(
        ("ID", t("When"), t("Target"), t("Title"), t("State"), t("Error")),
        (
            (
                each.id,
                from_now(each.created_at),
                each.target,
                each.title,
                t(each.status),
                each.error_message or "",
            )
            for each in found
        ),
        empty=t("Nothing was sent yet."),
    )


@app.command(help=t("Send a delivery again that failed."))
def retry(
    context: typer.Context,
    number: Annotated[int, typer.Argument(metavar="ID", help=t("The delivery's number."))],
) -> None:
    from headwater.store.publishing.outbox import retry_delivery

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        retry_delivery(connection, number, time.time())
    say(t("delivery {id} is sent again").format(id=number))


async def _send_test(session: Session, target: "Target") -> None:
    from headwater.fetch.client import make_fetcher
    from headwater.publish.outbox import SendingContext, read_target_config
    from headwater.services.requests import secrets_for_steps
    from headwater.services.targets import Message, mail_defaults, send

    settings = session.settings
    text = t("Headwater can send messages to this target.")
    async with make_fetcher(settings) as fetcher:
        sending = SendingContext(fetcher, secrets_for_steps(settings.secrets), mail_defaults(settings))
        config = read_target_config(target.config)
        await send(sending, target.kind, config, Message(text, text), f"test-{time.time()}")  # type: ignore[arg-type]
