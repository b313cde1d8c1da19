"""`headwater outlet …` and `headwater publish`: feeds of what was collected."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, print_json, print_table, progress_bar, say
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
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.reading.outlets import Outlet

app = typer.Typer(no_args_is_help=True, help=t("Publish what was collected as your own feeds."))

Name = Annotated[str, typer.Argument(help=t("The outlet's name, as it stands in its address."))]
ByPipelines = Annotated[
    bool, typer.Option("--by-pipelines", help=t("Only items that a pipeline has published to this outlet."))
]
Title = Annotated[str | None, typer.Option(help=t("The feed's title; else its name."))]
Description = Annotated[str | None, typer.Option(help=t("The feed's description."))]
Limit = Annotated[int | None, typer.Option(min=1, max=1_000, help=t("How many items, newest first."))]
Content = Annotated[
    str | None,
    typer.Option(
        "--publish",
        metavar="CONTENT",
        help=t(
            "What to publish of an item, the first that there is: original, full_text, summary, translation:zh,"
            " transcript, analysis, template; separated by commas."
        ),
    ),
]
BodyTemplate = Annotated[
    str | None,
    typer.Option("--template", help=t("A template that makes the body of each item; publishes `template`.")),
]
OwnMedia = Annotated[
    bool | None,
    typer.Option(
        "--own-media/--publishers-media",
        help=t("Let readers fetch archived images and files from here, not from their publishers."),
    ),
]
OfDigest = Annotated[
    str | None, typer.Option("--digest", help=t("Publish the issues of this digest instead of items."))
]
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
    has: Has = None,
    tag: Tags = None,
    min_score: MinScore = None,
    by_pipelines: ByPipelines = False,
    content: Content = None,
    template: BodyTemplate = None,
    own_media: OwnMedia = None,
    digest: OfDigest = None,
    limit: Limit = None,
    hub: Hub = None,
    private: Annotated[
        bool, typer.Option("--private", help=t("Served only under an address that carries a secret."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.publish.outlets import check_outlet, read_content
    from headwater.store.reading.outlets import ORIGINAL, TEMPLATE, Outlet, add_outlet

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        by = name if by_pipelines else None
        selection = read_selection(
            connection, source, folder, type_name, search, outlet=by, has=has, tag=tag, min_score=min_score
        )
        wanted = read_content(content) if content else (TEMPLATE,) if template else (ORIGINAL,)
        outlet = Outlet(
            name,
            title or name,
            selection,
            description,
            limit or 50,
            hub,
            content=wanted,
            template=template,
            own_media=bool(own_media),
            digest=digest,
        )
        check_outlet(outlet)
        added = add_outlet(connection, outlet, time.time(), private=private)
    if json:
        _print(added)
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
    has: Has = None,
    tag: Tags = None,
    min_score: MinScore = None,
    by_pipelines: ByPipelines = False,
    content: Content = None,
    template: BodyTemplate = None,
    own_media: OwnMedia = None,
    limit: Limit = None,
    hub: Hub = None,
    json: Json = False,
) -> None:
    from headwater.publish.outlets import check_outlet, read_content
    from headwater.store.reading.outlets import TEMPLATE, change_outlet
    from headwater.store.reading.selection import EVERYTHING

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        by = name if by_pipelines else None
        selection = read_selection(
            connection, source, folder, type_name, search, outlet=by, has=has, tag=tag, min_score=min_score
        )
        changes: dict[str, Any] = {
            "title": title,
            "description": description,
            "item_limit": limit,
            "hub_url": hub,
            "selection": None if selection == EVERYTHING else selection,
            "content": read_content(content) if content else (TEMPLATE,) if template else None,
            "template": template,
            "own_media": own_media,
        }
        if content and TEMPLATE not in changes["content"]:
            changes["template"] = ""
        given = {key: value for key, value in changes.items() if value is not None}
        if "template" in given:
            given["template"] = given["template"] or None
        changed = change_outlet(connection, name, time.time(), **given)
        check_outlet(changed)
    if json:
        _print(changed)
    else:
        say(t("changed outlet {name}").format(name=name))


@app.command("list", help=t("List all outlets."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.reading.outlets import list_outlets
    from headwater.store.reading.selection import tell_selections
    from headwater.views.outlets import outlet_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_outlets(connection)
        told = tell_selections(connection, [outlet.selection for outlet in found])
    if json:
        print_json([outlet_json(outlet, with_token=True) for outlet in found])
        return
    print_table(
        (t("Name"), t("Title"), t("Shows"), t("Publishes"), t("Address")),
        (
            (
                outlet.name,
                outlet.title,
                shows,
                ", ".join(outlet.content),
                _path(outlet),
            )
            for outlet, shows in zip(found, told, strict=True)
        ),
        empty=t("There are no outlets yet. Add one with: headwater outlet add NAME"),
    )


@app.command(help=t("Remove an outlet. The items stay."))
def remove(context: typer.Context, name: Name) -> None:
    from headwater.store.reading.outlets import remove_outlet

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        remove_outlet(connection, name)
    say(t("removed outlet {name}").format(name=name))


def publish(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help=t("The outlets to write; all that are not private when left out.")
        ),
    ] = None,
    directory: Annotated[Path, typer.Option(help=t("The directory to write to."))] = Path("outlets"),
    formats: Annotated[
        str, typer.Option("--format", help=t("Which of rss, atom and json, separated by commas."))
    ] = "rss,atom,json",
    base_url: Annotated[
        str | None,
        typer.Option(help=t("The public address of the files; it is written into them.")),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.publish.media import MediaAddresses
    from headwater.publish.outlets import write_outlet
    from headwater.store.reading.media import media_secret
    from headwater.store.reading.outlets import list_outlets
    from headwater.store.reading.search import index_all
    from headwater.views.outlets import FORMATS

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
            # A private one is put where everyone can read it only when asked for.
            chosen = names or [outlet.name for outlet in list_outlets(connection) if outlet.token is None]
        with progress_bar(t("Publishing"), quiet=json) as advance:
            for number, name in enumerate(chosen):
                advance(number, len(chosen), name)
                with store.reading() as connection:
                    site = session.settings.public_url
                    addresses = site and MediaAddresses.under(
                        session.settings.data_dir, media_secret(connection), site
                    )
                    written += write_outlet(connection, name, directory, wanted, base_url, addresses or None)
    if json:
        print_json([{"path": str(path), "written": is_new} for path, is_new in written])
    elif not written:
        say(t("There are no outlets yet. Add one with: headwater outlet add NAME"))
    for path, is_new in written if not json else ():
        say((t("{path}: written") if is_new else t("{path}: nothing new")).format(path=path))


def _print(outlet: "Outlet") -> None:
    from headwater.views.outlets import outlet_json

    print_json(outlet_json(outlet, with_token=True))


def _path(outlet: "Outlet") -> str:
    from headwater.views.outlets import outlet_json

    return str(outlet_json(outlet, with_token=True)["paths"]["rss"])
