"""`headwater user …`: people with an account."""

import getpass
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import Json, from_now, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.model import User

app = typer.Typer(no_args_is_help=True, help=t("Add, list and remove people with an account."))

Name = Annotated[str, typer.Argument(help=t("The user's name."))]
Role = Annotated[
    str,
    typer.Option(help=t("admin: everything; reader: their own subscriptions and reading.")),
]


@app.command(help=t("Add a user. The password is asked for, or read from the standard input."))
def add(
    context: typer.Context,
    name: Name,
    role: Role = "reader",
    email: Annotated[str | None, typer.Option(help=t("The user's email address."))] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help=t("Without a password: they sign in by other means."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.people.passwords import hash_password
    from headwater.store.people.users import add_user, count_users
    from headwater.views.users import user_json

    password_hash = None if no_password else hash_password(_ask_password())
    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        user = add_user(
            connection, name=name, role=role, email=email, password_hash=password_hash, now=time.time()
        )
        is_second = count_users(connection) == 2
    if json:
        print_json(user_json(user))
        return
    say(t("added user {id}: {name} ({role})").format(id=user.id, name=user.name, role=user.role))
    if is_second:
        say(
            t(
                "There is more than one user now, so everyone signs in, on this machine too."
                " `headwater user passwd admin` sets your password; `headwater sign-in-link` signs you in once."
            ),
            error=True,
        )


@app.command("list", help=t("List all users."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.people.users import list_users
    from headwater.views.users import user_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_users(connection)
    if json:
        print_json([user_json(user) for user in found])
        return
    print_table(
        ("ID", t("Name"), t("Role"), t("Email"), t("State"), t("Created"), t("Last seen")),
        (
            (
                user.id,
                user.name,
                user.role,
                user.email or "",
                t("disabled") if user.is_disabled else "",
                from_now(user.created_at),
                from_now(user.last_seen_at),
            )
            for user in found
        ),
        empty=t("There are no users."),
    )


@app.command(help=t("Set a user's password and end their sessions."))
def passwd(
    context: typer.Context,
    name: Name,
    remove: Annotated[
        bool, typer.Option("--remove", help=t("Remove the password: they sign in by other means."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.people.passwords import hash_password
    from headwater.store.people.users import require_user, set_password

    session: Session = context.obj
    with session.open_store() as store:
        with store.reading() as connection:
            user = require_user(connection, name)
        password_hash = None if remove else hash_password(_ask_password())
        with store.writing() as connection:
            user = set_password(connection, user.id, password_hash)
    _tell(user, t("the password of {name} is set; their sessions have ended"), json)


@app.command(help=t("Disable or enable a user. Their data is kept."))
def disable(
    context: typer.Context,
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help=t("Enable the user again."))] = False,
    json: Json = False,
) -> None:
    from headwater.store.people.users import disable_user, require_user

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        user = disable_user(connection, require_user(connection, name).id, is_disabled=not undo)
    _tell(user, t("{name} can sign in again") if undo else t("{name} is disabled"), json)


@app.command(help=t("Delete a user with all their data: keys, subscriptions, reading state."))
def remove(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help=t("Do not ask."))] = False,
    json: Json = False,
) -> None:
    from headwater.store.people.users import remove_user, require_user

    session: Session = context.obj
    with session.open_store() as store:
        with store.reading() as connection:
            user = require_user(connection, name)
        if not yes:
            if not sys.stdin.isatty():
                raise InputError("this deletes all data of {name}; confirm with --yes", name=user.name)
            typer.confirm(t("Delete {name} with all their data?").format(name=user.name), abort=True)
        with store.writing() as connection:
            user = remove_user(connection, user.id)
    _tell(user, t("removed {name}"), json)


@app.command(help=t("Make a link with which one person can make an account."))
def invite(
    context: typer.Context,
    role: Role = "reader",
    days: Annotated[float, typer.Option(help=t("After how many days it expires."))] = 7.0,
    json: Json = False,
) -> None:
    from headwater.store.people.invitations import add_invitation
    from headwater.store.people.users import first_admin
    from headwater.views.users import invitation_json
    from headwater.web.hosts import invitation_address

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        creator = first_admin(connection)
        invitation, token = add_invitation(
            connection, role=role, created_by=creator.id, now=time.time(), days=days
        )
    link = invitation_address(session.settings, session.settings.port, token)
    if json:
        print_json({**invitation_json(invitation), "token": token, "link": link})
    else:
        told = t("This link makes one account ({role}); it expires {when}. It is not shown again.")
        say(told.format(role=invitation.role, when=from_now(invitation.expires_at)), error=True)
        say(link)  # alone on the standard output, for scripts


def _ask_password() -> str:
    """The new password: asked for twice at a terminal, else the first line of the standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(t("New password: "))
    if getpass.getpass(t("Again: ")) != password:
        raise InputError("the two passwords differ")
    return password


def _tell(user: "User", told: str, json: bool) -> None:
    from headwater.views.users import user_json

    if json:
        print_json(user_json(user))
    else:
        say(told.format(name=user.name))
