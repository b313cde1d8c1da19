"""`headwater sign-in-link` and `headwater session …`: who is signed in to the dashboard."""

import time
from typing import Annotated

import typer

from headwater.cli.output import BIGGEST, Json, from_now, iso, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

app = typer.Typer(no_args_is_help=True, help=t("List and end the sessions of the dashboard."))


def sign_in_link(
    context: typer.Context,
    user: Annotated[
        str | None, typer.Option(help=t("The user to sign in. Default: the first admin."))
    ] = None,
    json: Json = False,
) -> None:
    from headwater.store.people.sessions import LINK_SECONDS, make_link
    from headwater.store.people.users import require_user
    from headwater.web.hosts import link_address

    session: Session = context.obj
    now = time.time()
    with session.open_store() as store, store.writing() as connection:
        user_id = None if user is None else require_user(connection, user).id
        token = make_link(connection, now, user_id)
    address = link_address(session.settings, session.settings.port, token)
    if json:
        print_json({"link": address, "expires_at": iso(now + LINK_SECONDS)})
    else:
        if user is None:
            say(t("This link signs in once, within an hour, and may do everything:"), error=True)
        else:
            say(t("This link signs {name} in once, within an hour:").format(name=user), error=True)
        say(address)  # alone on the standard output, for scripts


@app.command("list", help=t("List the sessions in force."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.people.sessions import list_sessions
    from headwater.views.keys import session_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_sessions(connection, time.time())
    if json:
        print_json([session_json(each) for each in found])
        return
    print_table(
        ("ID", t("Signed in by"), t("Scopes"), t("Address"), t("Begun"), t("Last used"), t("Expires")),
        (
            (
                each.id,
                t("key {name}").format(name=each.key_name) if each.key_name else t(each.signed_in_by),
                ", ".join(each.scopes),
                each.address or "",
                from_now(each.created_at),
                from_now(each.last_used_at),
                from_now(each.expires_at),
            )
            for each in found
        ),
        empty=t("No one is signed in."),
    )


@app.command(help=t("End a session, or all of them: the browser has to sign in again."))
def end(
    context: typer.Context,
    session_id: Annotated[
        int | None, typer.Argument(metavar="ID", max=BIGGEST, help=t("The session's number, as listed."))
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help=t("End every session."))] = False,
    json: Json = False,
) -> None:
    from headwater.store.people.sessions import end_all_sessions, end_session

    if (session_id is None) is not all_:
        raise InputError("name one session by its ID, or end all with --all")
    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        if session_id is None:
            ended = end_all_sessions(connection)
        else:
            end_session(connection, session_id)
            ended = 1
    if json:
        print_json({"ended": ended})
    else:
        say(t("ended {count} {count:session|sessions}").format(count=ended))
