"""How commands let people say which sources: by number, name or address, or all that a filter finds."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.store.reports.catalog import SourceFilter

OneSource = Annotated[str, typer.Argument(metavar="SOURCE", help=t("The source's number, name or address."))]
ManySources = Annotated[
    list[str] | None,
    typer.Argument(metavar="SOURCE", help=t("The sources' numbers, names or addresses.")),
]
OfSource = Annotated[
    str | None,
    typer.Option("--source", metavar="SOURCE", help=t("Only this source's; its number, name or address.")),
]
InFolder = Annotated[
    str | None, typer.Option("--folder", "--in-folder", help=t("All sources in this folder."))
]
OfType = Annotated[str | None, typer.Option("--type", "--of-type", help=t("All sources of this type."))]
InState = Annotated[str | None, typer.Option("--state", "--in-state", help=t("All sources in this state."))]
Matching = Annotated[
    str | None, typer.Option("--search", help=t("All sources with this in their name or address."))
]


def find_ids(connection: "Connection", names: Iterable[str], *, removed: bool = False) -> list[int]:
    """The numbers of the sources that are meant; an InputError says which is not there, or is not clear."""
    from headwater.store.collecting.sources import find_source

    return list(dict.fromkeys(find_source(connection, name, removed=removed).id for name in names))


def read_filter(
    connection: "Connection", search: str | None, type_name: str | None, folder: str | None, state: str | None
) -> "SourceFilter":
    """What the options say; an InputError names a type, a folder or a state that there is not."""
    from headwater.collectors.types import find_type
    from headwater.store.reading.listing import refuse_unknown_folders
    from headwater.store.reports.catalog import STATES, SourceFilter

    if folder:
        refuse_unknown_folders(connection, [folder])
    known = next((each for each in STATES if each == (state or "").replace(" ", "_")), None)
    if state and known is None:
        raise InputError("there is no state {name}; choose from {names}", name=state, names=", ".join(STATES))
    return SourceFilter(
        (search or "").strip(), find_type(type_name).name if type_name else "", folder or "", known
    )


def choose_ids(
    connection: "Connection",
    names: Iterable[str] | None,
    wanted: "SourceFilter",
    now: float,
    *,
    removed: bool = False,
) -> list[int]:
    """The sources that are named, or else all that a filter finds; InputError when neither is given."""
    from headwater.store.reports.catalog import SourceFilter, matching_ids

    if bool(names) == (wanted != SourceFilter()):
        raise InputError("say which sources: name them, or give --folder, --type, --state or --search")
    return find_ids(connection, names, removed=removed) if names else matching_ids(connection, wanted, now)
