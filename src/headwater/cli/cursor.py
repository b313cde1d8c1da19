"""`headwater cursor …`: how other programs read everything that was collected, each at its own pace."""

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.cursor_digest import digest
from headwater.cli.output import BIGGEST, Json, from_now, print_json, print_json_line, print_table, say
from headwater.cli.selection import (
    Folders,
    Has,
    MinScore,
    Search,
    Sources,
    Tags,
    Types,
    read_selection,
)
from headwater.cli.session import Session
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.reading.cursors import Cursor

app = typer.Typer(
    no_args_is_help=True,
    help=t("Read all items since the last acknowledgement, in order, through a named cursor."),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help=t("The cursor's name."))]


class When(StrEnum):
    STORED = "stored"
    CHANGED = "changed"
    PROCESSED = "processed"


@app.command(help=t("Create a cursor: a named reader that remembers its position."))
def create(
    context: typer.Context,
    name: Name,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    has: Has = None,
    tag: Tags = None,
    min_score: MinScore = None,
    when: Annotated[
        When,
        typer.Option(
            help=t("When an item comes up: as it is stored, also when it is changed, or once processed.")
        ),
    ] = When.STORED,
    changes: Annotated[
        bool, typer.Option("--changes", help=t("Changed items come up again: --when changed."))
    ] = False,
    from_now_on: Annotated[
        bool, typer.Option("--from-now", help=t("Leave out what is stored already."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.reading.cursors import create_cursor
    from headwater.views.cursors import cursor_json

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        wanted = read_selection(
            connection, source, folder, type_name, search, has=has, tag=tag, min_score=min_score
        )
        made = create_cursor(
            connection,
            name,
            now=time.time(),
            selection=wanted,
            when="changed" if changes else when.value,
            from_now=from_now_on,
        )
    if json:
        print_json(cursor_json(made))
    else:
        say(t("made the cursor {name}; read it with: headwater cursor read {name}").format(name=name))


@app.command("list", help=t("List all cursors."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.reading.cursors import count_before, list_cursors
    from headwater.store.reading.selection import tell_selections
    from headwater.views.cursors import cursor_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = [(cursor, count_before(connection, cursor)) for cursor in list_cursors(connection)]
        told = tell_selections(connection, [cursor.selection for cursor, _ in found])
    if json:
        print_json([{**cursor_json(cursor), "waiting": waiting} for cursor, waiting in found])
        return
    print_table(
        (t("Name"), t("Place"), t("Waiting"), t("Acknowledged"), t("Only")),
        (
            (
                cursor.name,
                cursor.position,
                waiting,
                from_now(cursor.acknowledged_at),
                only,
            )
            for (cursor, waiting), only in zip(found, told, strict=True)
        ),
        empty=t("There are no cursors. Make one: headwater cursor create NAME"),
    )


@app.command(help=t("Show the items after the last acknowledgement, oldest first."))
def read(
    context: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=BIGGEST, help=t("How many at most."))] = 100,
    acknowledge_all: Annotated[
        bool, typer.Option("--ack", help=t("Acknowledge the items once they are printed."))
    ] = False,
    json: Annotated[bool, typer.Option("--json", help=t("Print JSON, one item a line."))] = False,
) -> None:
    from headwater.store.reading.cursors import acknowledge, read_cursor
    from headwater.store.reading.search import index_all
    from headwater.views.cursors import placed_item_json

    session: Session = context.obj
    with session.open_store() as store:
        index_all(store, time.time())
        with store.reading() as connection:
            page = read_cursor(connection, name, limit=limit)
        if json:
            for placed in page.items:
                print_json_line(placed_item_json(placed))
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
            sys.stdout.flush()  # written out before it counts as read
            with store.writing() as connection:
                acknowledge(connection, name, page.position, now=time.time())


@app.command(help=t("Acknowledge all items up to and including a position that `read` shows."))
def ack(
    context: typer.Context,
    name: Name,
    position: Annotated[
        int,
        typer.Argument(
            metavar="PLACE", min=0, max=BIGGEST, help=t("The position of the last item you have processed.")
        ),
    ],
    json: Json = False,
) -> None:
    from headwater.store.reading.cursors import acknowledge

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        cursor = acknowledge(connection, name, position, now=time.time())
    _show_place(cursor, json)


@app.command(help=t("Move a cursor back, to read items again."))
def reset(
    context: typer.Context,
    name: Name,
    position: Annotated[
        int,
        typer.Option("--to", metavar="PLACE", min=0, max=BIGGEST, help=t("The position to move to.")),
    ] = 0,
    json: Json = False,
) -> None:
    from headwater.store.reading.cursors import reset_cursor

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        cursor = reset_cursor(connection, name, position=position)
    _show_place(cursor, json)


@app.command(help=t("Delete a cursor."))
def remove(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.reading.cursors import remove_cursor

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        remove_cursor(connection, name)
    if json:
        print_json({"name": name, "removed": True})
    else:
        say(t("removed the cursor {name}").format(name=name))


app.command("digest", help=t("Write what is new for a cursor as one document."))(digest)


def _show_place(cursor: "Cursor", json: bool) -> None:
    from headwater.views.cursors import cursor_json

    if json:
        print_json(cursor_json(cursor))
    else:
        say(t("the cursor {name} is at {place}").format(name=cursor.name, place=cursor.position))
