"""`headwater items`: what was collected."""

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
    limit: Annotated[int, typer.Option(min=1, max=BIGGEST, help=t("How many, newest first."))] = 50,
    json: Json = False,
) -> None:
    from headwater.store.items import list_items
    from headwater.store.sources import get_source

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        if source is not None:
            get_source(connection, source)
        found = list_items(connection, source_id=source, limit=limit)
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
        empty=t("Nothing was collected yet. Run: headwater collect"),
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
