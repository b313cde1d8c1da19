"""Which items somebody means: by source, folder, type, words, time, state. The one way to say it, everywhere."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, literal_column, select, text

from headwater.errors import InputError, NotFoundError
from headwater.store.search import matches
from headwater.store.tables import LIVE, UNUSUAL, items, outlet_items, sources


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that must all hold; an empty one does not count. Within one, any of its values will do."""

    source_ids: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    search: str | None = None
    since: float | None = None  # published, or else first seen
    until: float | None = None
    status: str | None = None
    outlet: str | None = None  # what pipelines have published to it


EVERYTHING = Selection()
FEW_SOURCES = 200
WALKED_ITEMS = (
    5_000  # among which a page of many sources' items, or of items with a common word, is looked for first
)


def conditions(
    connection: Connection, selection: Selection, *, item_by_item: bool = False
) -> list[ColumnElement[bool]]:
    """What `selection` says, for a query over items joined with their sources.

    With `item_by_item`, a database is to go through the items and look at the source and the words of each, and not the
    other way round.
    """
    wanted: list[ColumnElement[bool]] = []
    if selection.source_ids:
        wanted.append(items.c.source_id.in_(selection.source_ids))
    if selection.folders or selection.types:
        of_sources = _of_sources(selection, sources.c.folder, sources.c.type)
        few = _first_sources(connection, selection, of_sources)
        # The items of few sources are quickest found by these, the items of many among the newest of all.
        if len(few) <= FEW_SOURCES:
            wanted.append(items.c.source_id.in_(few))
        elif item_by_item:
            wanted += _of_sources(selection, _of_its_source("folder"), _of_its_source("type"))
        else:
            wanted += of_sources
    if selection.since is not None:
        wanted.append(items.c.item_at >= selection.since)
    if selection.until is not None:
        wanted.append(items.c.item_at < selection.until)
    if selection.status is not None:
        # As a literal, by which SQLite knows that the index of these items alone will do.
        status: Any = literal_column("'ANALYZED'") if selection.status == "ANALYZED" else selection.status
        wanted.append(items.c.status == status)
    if selection.search is not None:
        wanted.append(matches(connection, selection.search, item_by_item=item_by_item))
    if selection.outlet is not None:
        published = select(outlet_items.c.item_id).where(outlet_items.c.outlet_name == selection.outlet)
        wanted.append(items.c.id.in_(published))
    return wanted


def _first_sources(
    connection: Connection, selection: Selection, of_sources: list[ColumnElement[bool]]
) -> list[int]:
    """The first of these sources, one more than are few. In the order of an index, so that a database takes it even
    where it has planned for another type or folder, of which there are many.
    """
    each = select(sources.c.id).where(*of_sources).limit(FEW_SOURCES + 1)
    column = sources.c
    by_index = (column.folder, column.is_deleted) if selection.folders else (column.type, column.url_key)
    live = each.where(text(LIVE)).order_by(*by_index)
    found = list(connection.execute(live).scalars())
    if len(found) <= FEW_SOURCES:  # those that were removed are in the index of those out of the ordinary
        found += connection.execute(each.where(column.is_deleted, text(f"({UNUSUAL})"))).scalars()
    return found


def _of_sources(
    selection: Selection, folder: ColumnElement[Any], type_: ColumnElement[Any]
) -> list[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = []
    if selection.folders:
        wanted.append(folder.in_(selection.folders))
    if selection.types:
        wanted.append(type_.in_(selection.types))
    return wanted


def _of_its_source(name: str) -> ColumnElement[Any]:
    its = sources.alias("its")
    return select(its.c[name]).where(its.c.id == items.c.source_id).correlate(items).scalar_subquery()


def refuse_unknown_sources(connection: Connection, selection: Selection) -> None:
    """NotFoundError for the first source in `selection` that is not there."""
    query = select(sources.c.id).where(sources.c.id.in_(selection.source_ids))
    if missing := set(selection.source_ids) - set(connection.execute(query).scalars()):
        raise NotFoundError(
            "there is no source {id}; `headwater source list` shows them all", id=min(missing)
        )


def to_json(selection: Selection) -> dict[str, Any]:
    """The conditions that count, as they are stored."""
    return {key: value for key, value in asdict(selection).items() if value not in (None, ())}


def from_json(stored: dict[str, Any]) -> Selection:
    unknown = set(stored) - set(Selection.__dataclass_fields__)
    if unknown:
        raise InputError(
            "a selection has no {key}; it takes {known}",
            key=", ".join(sorted(unknown)),
            known=", ".join(Selection.__dataclass_fields__),
        )
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()
    }
    return Selection(**fields)
