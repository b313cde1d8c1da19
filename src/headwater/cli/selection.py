"""How commands let somebody say which items: the same options everywhere."""

from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import BIGGEST
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.selection import Selection

Sources = Annotated[
    list[int] | None,
    typer.Option("--source", metavar="ID", max=BIGGEST, help=t("Items of this source; may be repeated.")),
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


def read_selection(
    source: list[int] | None,
    folder: list[str] | None,
    type_name: list[str] | None,
    search: str | None,
    *,
    outlet: str | None = None,
) -> "Selection":
    """What the options say; InputError for a type or a search that is none."""
    from headwater.collectors.types import find_type
    from headwater.store.search import read_query
    from headwater.store.selection import Selection

    if search is not None:
        read_query(search)
    return Selection(
        source_ids=tuple(source or ()),
        folders=tuple(folder or ()),
        types=tuple(find_type(each).name for each in type_name or ()),
        search=search,
        outlet=outlet,
    )
