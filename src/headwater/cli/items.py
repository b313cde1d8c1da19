"""`headwater items`: what was collected."""

import time
from enum import StrEnum
from typing import Annotated

import typer

from headwater.cli.output import BIGGEST, Json, from_now, print_json, print_table
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


class Order(StrEnum):
    NEWEST = "newest"
    SCORE = "score"


def items(
    context: typer.Context,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    has: Has = None,
    tag: Tags = None,
    min_score: MinScore = None,
    sort: Annotated[
        Order, typer.Option(help=t("The newest first, or those with the best score."))
    ] = Order.NEWEST,
    limit: Annotated[int, typer.Option(min=1, max=BIGGEST, help=t("How many, newest first."))] = 50,
    json: Json = False,
) -> None:
    from headwater.store.reading.items import list_items
    from headwater.store.reading.listing import best_items, read_items
    from headwater.store.reading.search import index_all
    from headwater.store.reading.selection import EVERYTHING
    from headwater.views.items import item_json

    session: Session = context.obj
    with session.open_store() as store:
        with store.reading() as connection:
            selection = read_selection(
                connection, source, folder, type_name, search, has=has, tag=tag, min_score=min_score
            )
        if search is not None and not store.is_read_only:
            index_all(store, time.time())
        with store.reading() as connection:
            if sort == Order.SCORE:
                best = best_items(connection, selection, limit=limit)[:limit]
                found = read_items(connection, [each.item.id for each in best])
            else:
                found = list_items(connection, selection=selection, limit=limit)
    if json:
        print_json([item_json(item) for item in found])
        return
    print_table(
        ("ID", t("When"), t("Source"), t("Title"), t("Results"), t("Address")),
        (
            (
                item.id,
                from_now(item.published_at or item.updated_at or item.first_seen_at),
                item.source_name,
                item.title,
                ", ".join(item.results),
                item.url,
            )
            for item in found
        ),
        empty=t("Nothing was collected yet. Run: headwater collect")
        if selection == EVERYTHING
        else t("No items match."),
    )
