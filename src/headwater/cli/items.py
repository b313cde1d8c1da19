"""`headwater items`: what was collected."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import BIGGEST, Json, from_now, iso, print_json, print_table
from headwater.cli.session import Session
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.items import StoredItem


def items(
    context: typer.Context,
    source: Annotated[
        int | None, typer.Option(metavar="ID", max=BIGGEST, help=t("Only this source's."))
    ] = None,
    folder: Annotated[str | None, typer.Option(help=t("Only of sources in this folder."))] = None,
    search: Annotated[
        str | None, typer.Option(help=t('Only with these words; "a phrase", begin* and -not work.'))
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=BIGGEST, help=t("How many, newest first."))] = 50,
    json: Json = False,
) -> None:
    from headwater.store.items import list_items
    from headwater.store.search import index_all, read_query
    from headwater.store.selection import EVERYTHING, Selection
    from headwater.store.sources import get_source

    session: Session = context.obj
    selection = Selection(
        source_ids=() if source is None else (source,),
        folders=() if folder is None else (folder,),
        search=search,
    )
    with session.open_store() as store:
        if search is not None:
            read_query(search)
            index_all(store, time.time())
        with store.reading() as connection:
            if source is not None:
                get_source(connection, source)
            found = list_items(connection, selection=selection, limit=limit)
    if json:
        print_json([item_as_json(item) for item in found])
        return
    print_table(
        ("ID", t("When"), t("Source"), t("Title"), t("Address")),
        (
            (
                item.id,
                from_now(item.published_at or item.updated_at or item.first_seen_at),
                item.source_name,
                item.title,
                item.url,
            )
            for item in found
        ),
        empty=t("Nothing was collected yet. Run: headwater collect")
        if selection == EVERYTHING
        else t("Nothing that was collected is like that."),
    )


def item_as_json(item: "StoredItem") -> dict[str, Any]:
    """An item as programs read it."""
    return {
        "id": item.id,
        "source_id": item.source_id,
        "source_name": item.source_name,
        "external_id": item.external_id,
        "url": item.url,
        "title": item.title,
        "author": item.author,
        "summary": item.summary,
        "content": item.content,
        "published_at": iso(item.published_at),
        "updated_at": iso(item.updated_at),
        "first_seen_at": iso(item.first_seen_at),
        "date_invented": item.date_invented,
        "version": item.version,
        "status": item.status,
        **item.extra,
    }
