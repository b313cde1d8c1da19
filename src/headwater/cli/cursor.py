"""`headwater cursor …`: how other programs read everything that was collected, each at its own pace."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.items import item_as_json
from headwater.cli.output import BIGGEST, Json, from_now, iso, print_json, print_json_line, print_table, say
from headwater.cli.selection import Folders, Search, Sources, Types, read_selection
from headwater.cli.session import Session
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.cursors import Cursor

app = typer.Typer(
    no_args_is_help=True, help=t("Read everything since the last acknowledgement, in order and by name.")
)

Name = Annotated[str, typer.Argument(metavar="NAME", help=t("The cursor's name."))]


@app.command(help=t("Make a cursor: a named reader with a place of its own."))
def create(
    context: typer.Context,
    name: Name,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    changes: Annotated[bool, typer.Option("--changes", help=t("Changed items come up again."))] = False,
    from_now_on: Annotated[
        bool, typer.Option("--from-now", help=t("Leave out what is stored already."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.cursors import create_cursor

    session: Session = context.obj
    wanted = read_selection(source, folder, type_name, search)
    with session.open_store() as store, store.writing() as connection:
        made = create_cursor(
            connection, name, now=time.time(), selection=wanted, with_changes=changes, from_now=from_now_on
        )
    if json:
        print_json(_as_json(made))
    else:
        say(t("made the cursor {name}; read it with: headwater cursor read {name}").format(name=name))


@app.command("list", help=t("List all cursors."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.cursors import count_before, list_cursors
    from headwater.store.selection import to_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = [(cursor, count_before(connection, cursor)) for cursor in list_cursors(connection)]
    if json:
        print_json([_as_json(cursor) | {"waiting": waiting} for cursor, waiting in found])
        return
    print_table(
        (t("Name"), t("Place"), t("Waiting"), t("Acknowledged"), t("Only")),
        (
            (
                cursor.name,
                cursor.position,
                waiting,
                from_now(cursor.acknowledged_at),
                ", ".join(f"{key}={value}" for key, value in to_json(cursor.selection).items()),
            )
            for cursor, waiting in found
        ),
        empty=t("There are no cursors. Make one: headwater cursor create NAME"),
    )


@app.command(help=t("Show what comes after the last acknowledgement, oldest first."))
def read(
    context: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=BIGGEST, help=t("How many at most."))] = 100,
    acknowledge_all: Annotated[
        bool, typer.Option("--ack", help=t("Acknowledge them once they are written out."))
    ] = False,
    json: Annotated[bool, typer.Option("--json", help=t("Print JSON, one item a line."))] = False,
) -> None:
    from headwater.store.cursors import acknowledge, read_cursor
    from headwater.store.search import index_all

    session: Session = context.obj
    with session.open_store() as store:
        index_all(store, time.time())
        with store.reading() as connection:
            page = read_cursor(connection, name, limit=limit)
        if json:
            for placed in page.items:
                print_json_line({"position": placed.position, **item_as_json(placed.item)})
        else:
            print_table(
                (t("Place"), "ID", t("When"), t("Source"), t("Title"), t("Address")),
                (
                    (
                        placed.position,
                        placed.item.id,
                        from_now(placed.item.first_seen_at),
                        placed.item.source_name,
                        placed.item.title,
                        placed.item.url,
                    )
                    for placed in page.items
                ),
                empty=t("Nothing new for this cursor."),
            )
        if acknowledge_all:
            sys.stdout.flush()  # whoever reads our output has it before it counts as read
            with store.writing() as connection:
                acknowledge(connection, name, page.position, now=time.time())


@app.command(help=t("Acknowledge everything up to a place, as `read` shows it."))
def ack(
    context: typer.Context,
    name: Name,
    position: Annotated[
        int, typer.Argument(metavar="PLACE", min=0, max=BIGGEST, help=t("The place of the last item done."))
    ],
    json: Json = False,
) -> None:
    from headwater.store.cursors import acknowledge

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        cursor = acknowledge(connection, name, position, now=time.time())
    _show_place(cursor, json)


@app.command(help=t("Put a cursor back, to read again."))
def reset(
    context: typer.Context,
    name: Name,
    position: Annotated[
        int,
        typer.Option("--to", metavar="PLACE", min=0, max=BIGGEST, help=t("The place to go back to.")),
    ] = 0,
    json: Json = False,
) -> None:
    from headwater.store.cursors import reset_cursor

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        cursor = reset_cursor(connection, name, position=position)
    _show_place(cursor, json)


@app.command(help=t("Forget a cursor."))
def remove(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.cursors import remove_cursor

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        remove_cursor(connection, name)
    if json:
        print_json({"name": name, "removed": True})
    else:
        say(t("removed the cursor {name}").format(name=name))


def _show_place(cursor: "Cursor", json: bool) -> None:
    if json:
        print_json(_as_json(cursor))
    else:
        say(t("the cursor {name} is at {place}").format(name=cursor.name, place=cursor.position))


def _as_json(cursor: "Cursor") -> dict[str, Any]:
    from headwater.store.selection import to_json

    return {
        "name": cursor.name,
        "position": cursor.position,
        "with_changes": cursor.with_changes,
        "selection": to_json(cursor.selection),
        "created_at": iso(cursor.created_at),
        "acknowledged_at": iso(cursor.acknowledged_at),
    }
