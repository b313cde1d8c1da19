"""`headwater outlet …` and `headwater publish`: feeds of what was collected."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, iso, print_json, print_table, progress_bar, say
from headwater.cli.selection import Folders, Search, Sources, Types, read_selection
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.outlets import Outlet

app = typer.Typer(no_args_is_help=True, help=t("Publish what was collected as feeds of your own."))

Name = Annotated[str, typer.Argument(help=t("The outlet's name, as it stands in its address."))]
ByPipelines = Annotated[
    bool, typer.Option("--by-pipelines", help=t("Only items that a pipeline has published to this outlet."))
]
Title = Annotated[str | None, typer.Option(help=t("The feed's title; else its name."))]
Description = Annotated[str | None, typer.Option(help=t("The feed's description."))]
Limit = Annotated[int | None, typer.Option(min=1, max=1_000, help=t("How many items, newest first."))]
Hub = Annotated[str | None, typer.Option(help=t("The address of a WebSub hub that the feed names."))]


@app.command(help=t("Add an outlet: a feed of the items you choose. Without a choice, of all."))
def add(
    context: typer.Context,
    name: Name,
    title: Title = None,
    description: Description = None,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    by_pipelines: ByPipelines = False,
    limit: Limit = None,
    hub: Hub = None,
    private: Annotated[
        bool, typer.Option("--private", help=t("Served only under an address that carries a secret."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.outlets import Outlet, add_outlet

    session: Session = context.obj
    outlet = Outlet(
        name,
        title or name,
        read_selection(source, folder, type_name, search, outlet=name if by_pipelines else None),
        description,
        limit or 50,
        hub,
    )
    with session.open_store() as store, store.writing() as connection:
        added = add_outlet(connection, outlet, time.time(), private=private)
    if json:
        print_json(outlet_as_json(added))
    else:
        say(
            t(
                "added outlet {name}; `headwater serve` shows it at {path}, `headwater publish` writes it to files"
            ).format(name=name, path=_path(added))
        )


@app.command(help=t("Change an outlet; what is not given stays as it is."))
def edit(
    context: typer.Context,
    name: Name,
    title: Title = None,
    description: Description = None,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    by_pipelines: ByPipelines = False,
    limit: Limit = None,
    hub: Hub = None,
    json: Json = False,
) -> None:
    from headwater.store.outlets import change_outlet
    from headwater.store.selection import EVERYTHING

    session: Session = context.obj
    selection = read_selection(source, folder, type_name, search, outlet=name if by_pipelines else None)
    changes: dict[str, Any] = {
        "title": title,
        "description": description,
        "item_limit": limit,
        "hub_url": hub,
        "selection": None if selection == EVERYTHING else selection,
    }
    with session.open_store() as store, store.writing() as connection:
        changed = change_outlet(
            connection,
            name,
            time.time(),
            **{key: value for key, value in changes.items() if value is not None},
        )
    if json:
        print_json(outlet_as_json(changed))
    else:
        say(t("changed outlet {name}").format(name=name))


@app.command("list", help=t("List all outlets."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.outlets import list_outlets
    from headwater.store.selection import to_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_outlets(connection)
    if json:
        print_json([outlet_as_json(outlet) for outlet in found])
        return
    print_table(
        (t("Name"), t("Title"), t("Shows"), t("Address")),
        (
            (
                outlet.name,
                outlet.title,
                ", ".join(f"{key}={value}" for key, value in to_json(outlet.selection).items())
                or t("everything"),
                _path(outlet),
            )
            for outlet in found
        ),
        empty=t("There are no outlets yet. Add one with: headwater outlet add NAME"),
    )


@app.command(help=t("Remove an outlet. The items stay."))
def remove(context: typer.Context, name: Name) -> None:
    from headwater.store.outlets import remove_outlet

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        remove_outlet(connection, name)
    say(t("removed outlet {name}").format(name=name))


def publish(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help=t("The outlets to write; all that are not private when left out.")
        ),
    ] = None,
    directory: Annotated[Path, typer.Option(help=t("Where the files go."))] = Path("outlets"),
    formats: Annotated[
        str, typer.Option("--format", help=t("Which of rss, atom and json, separated by commas."))
    ] = "rss,atom,json",
    base_url: Annotated[
        str | None,
        typer.Option(help=t("The address under which the files will be found, for them to say so.")),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.outlets import FORMATS, write_outlet
    from headwater.store.outlets import list_outlets
    from headwater.store.search import index_all

    session: Session = context.obj
    wanted = [format.strip() for format in formats.split(",") if format.strip()]
    for format in wanted:
        if format not in FORMATS:
            raise InputError(
                "there is no format {format}; choose of {known}", format=format, known=", ".join(FORMATS)
            )
    written: list[tuple[Path, bool]] = []
    with session.open_store() as store:
        index_all(store, time.time())
        with store.reading() as connection:
            # A private one is not put where everybody reads without being asked for.
            chosen = names or [outlet.name for outlet in list_outlets(connection) if outlet.token is None]
        with progress_bar(t("Publishing"), quiet=json) as advance:
            for number, name in enumerate(chosen):
                advance(number, len(chosen), name)
                with store.reading() as connection:
                    written += write_outlet(connection, name, directory, wanted, base_url)
    if json:
        print_json([{"path": str(path), "written": is_new} for path, is_new in written])
    elif not written:
        say(t("There are no outlets yet. Add one with: headwater outlet add NAME"))
    for path, is_new in written if not json else ():
        say((t("{path}: written") if is_new else t("{path}: nothing new")).format(path=path))


def outlet_as_json(outlet: "Outlet") -> dict[str, Any]:
    """An outlet as programs read it."""
    from headwater.outlets import FORMATS
    from headwater.store.selection import to_json

    return {
        "name": outlet.name,
        "title": outlet.title,
        "description": outlet.description,
        "selection": to_json(outlet.selection),
        "item_limit": outlet.item_limit,
        "hub_url": outlet.hub_url,
        "paths": {format: _path(outlet, format) for format in FORMATS},
        "created_at": iso(outlet.created_at),
        "updated_at": iso(outlet.updated_at),
    }


def _path(outlet: "Outlet", format: str = "rss") -> str:
    from headwater.outlets import path_of

    return f"/outlets/{path_of(outlet.name, format)}" + (f"?token={outlet.token}" if outlet.token else "")
