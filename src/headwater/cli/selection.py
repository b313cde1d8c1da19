"""The options by which commands choose items: the same everywhere."""

from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.choosing import find_ids
from headwater.language import translate as t

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.store.reading.selection import Selection

Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="SOURCE",
        help=t("Items of this source, by its number, name or address; may be repeated."),
    ),
]
Folders = Annotated[
    list[str] | None, typer.Option("--folder", help=t("Items of sources in this folder; may be repeated."))
]
Types = Annotated[
    list[str] | None, typer.Option("--type", help=t("Items of sources of this type; may be repeated."))
]
Search = Annotated[
    str | None, typer.Option("--search", help=t('Items with these words; "a phrase", begin* and -not work.'))
]
Has = Annotated[
    list[str] | None,
    typer.Option(
        "--has",
        metavar="RESULT",
        help=t("Items with this result of a pipeline: summary, translation:zh, …; may be repeated."),
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help=t("Items with this tag of a pipeline; may be repeated."))
]
MinScore = Annotated[
    float | None, typer.Option("--min-score", help=t("Items that a pipeline has scored this high or higher."))
]


def read_selection(
    connection: "Connection",
    source: list[str] | None,
    folder: list[str] | None,
    type_name: list[str] | None,
    search: str | None,
    *,
    outlet: str | None = None,
    has: list[str] | None = None,
    tag: list[str] | None = None,
    min_score: float | None = None,
) -> "Selection":
    """What the options say; InputError for a source, a folder or a type that is not there, or a search that is none."""
    from headwater.collectors.types import find_type
    from headwater.model import read_result_key
    from headwater.store.reading.listing import refuse_unknown_folders
    from headwater.store.reading.search import read_query
    from headwater.store.reading.selection import Selection

    if search is not None:
        read_query(search)
    refuse_unknown_folders(connection, folder or ())
    return Selection(
        source_ids=tuple(find_ids(connection, source or (), removed=True)),
        folders=tuple(folder or ()),
        types=tuple(find_type(each).name for each in type_name or ()),
        search=search,
        outlet=outlet,
        has=tuple(":".join(filter(None, read_result_key(key))) for key in has or ()),
        tags=tuple(tag or ()),
        min_score=min_score,
    )
