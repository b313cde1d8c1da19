"""`headwater key …`: who may use the API."""

import time
from typing import Annotated

import typer

from headwater.cli.output import BIGGEST, Json, from_now, print_json, print_table, say
from headwater.cli.session import Session
from headwater.language import translate as t

app = typer.Typer(no_args_is_help=True, help=t("Make, list and revoke the keys of the API."))


@app.command(help=t("Make a key. It is shown this once and cannot be read again."))
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help=t("A name that identifies the key."))],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help=t(
                "A scope of the key: read, refresh, edit (the owner's reading state) or admin (everything);"
                " may be repeated. Default: read."
            )
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help=t("The owner of the key. Default: the first admin."))
    ] = None,
    days: Annotated[
        float | None, typer.Option(help=t("After how many days it expires. Default: never."))
    ] = None,
    json: Json = False,
) -> None:
    from headwater.store.people.keys import add_key
    from headwater.store.people.users import require_user
    from headwater.views.keys import new_key_json

    session: Session = context.obj
    now = time.time()
    with session.open_store() as store, store.writing() as connection:
        key, secret = add_key(
            connection,
            name=name,
            scopes=scope or ["read"],
            now=now,
            user_id=None if user is None else require_user(connection, user).id,
            expires_at=None if days is None else now + days * 86_400.0,
        )
    if json:
        print_json(new_key_json(key, secret))
    else:
        told = t("key {id}, {name}, with the scopes: {scopes}. Keep it, it is not shown again.")
        say(told.format(id=key.id, name=key.name, scopes=", ".join(key.scopes)), error=True)
        if not key.allows("admin") and key.role == "admin":
            say(t("A key that may do everything: headwater key add NAME --scope admin"), error=True)
        say(secret)  # alone on the standard output, for scripts


@app.command("list", help=t("List all keys, without the keys themselves."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.people.keys import list_keys
    from headwater.views.keys import key_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_keys(connection)
    if json:
        print_json([key_json(key) for key in found])
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


@app.command(help=t("Revoke a key. It stops working at once and cannot be restored."))
def revoke(
    context: typer.Context,
    key_id: Annotated[int, typer.Argument(metavar="ID", max=BIGGEST, help=t("The key's number, as listed."))],
    json: Json = False,
) -> None:
    from headwater.store.people.keys import revoke_key
    from headwater.views.keys import key_json

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        key = revoke_key(connection, key_id, time.time())
    if json:
        print_json(key_json(key))
    else:
        say(t("revoked key {id}: {name}").format(id=key.id, name=key.name))
