"""`headwater key …`: who may use the API."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import BIGGEST, Json, from_now, iso, print_json, print_table, say
from headwater.cli.session import Session
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.keys import ApiKey

app = typer.Typer(no_args_is_help=True, help=t("Make, list and revoke the keys of the API."))


@app.command(help=t("Make a key. It is shown this once and cannot be read again."))
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help=t("A name, by which it is told from the others."))],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help=t(
                "What its holder may do: read, refresh or admin (everything); may be repeated. Else: read."
            )
        ),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.store.keys import add_key

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        key, secret = add_key(connection, name=name, scopes=scope or ["read"], now=time.time())
    if json:
        print_json({**key_as_json(key), "key": secret})
    else:
        say(
            t("key {id}, {name}: keep it, it is not shown again").format(id=key.id, name=key.name), error=True
        )
        say(secret)  # alone on the standard output, for scripts


@app.command("list", help=t("List all keys, without the keys themselves."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.keys import list_keys

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_keys(connection)
    if json:
        print_json([key_as_json(key) for key in found])
        return
    print_table(
        ("ID", t("Name"), t("Begins with"), t("Scopes"), t("Made"), t("Last used"), t("Revoked")),
        (
            (
                key.id,
                key.name,
                f"{key.prefix}…",
                ", ".join(key.scopes),
                from_now(key.created_at),
                from_now(key.last_used_at),
                from_now(key.revoked_at),
            )
            for key in found
        ),
        empty=t("There are no keys yet. Make one with: headwater key add NAME --scope read"),
    )


@app.command(help=t("Make a key worthless, at once and for ever."))
def revoke(
    context: typer.Context,
    key_id: Annotated[int, typer.Argument(metavar="ID", max=BIGGEST, help=t("The key's number, as listed."))],
    json: Json = False,
) -> None:
    from headwater.store.keys import revoke_key

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        key = revoke_key(connection, key_id, time.time())
    if json:
        print_json(key_as_json(key))
    else:
        say(t("revoked key {id}: {name}").format(id=key.id, name=key.name))


def key_as_json(key: "ApiKey") -> dict[str, Any]:
    """A key as programs read it: all but the key itself."""
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": list(key.scopes),
        "created_at": iso(key.created_at),
        "last_used_at": iso(key.last_used_at),
        "revoked_at": iso(key.revoked_at),
    }
