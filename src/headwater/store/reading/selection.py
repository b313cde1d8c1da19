"""Which items are meant: by source, folder, type, words, time, state. The one way to say it, everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, literal_column, or_, select, text

from headwater.errors import InputError, NotFoundError
from headwater.language import Language, translate
from headwater.model import fold_tag, read_result_key
from headwater.store.core.bulk import storable
from headwater.store.core.tables import (
    LIVE,
    UNUSUAL,
    item_results,
    items,
    outlet_items,
    result_tags,
    sources,
)
from headwater.store.reading.search import matches
from headwater.wording import iso


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
    has: tuple[str, ...] = ()  # results, as `summary`, `translation` (into any language) or `translation:zh`
    tags: tuple[str, ...] = ()  # that pipelines gave
    min_score: float | None = None

    @property
    def asks_for_results(self) -> bool:
        """Whether it depends on what pipelines make of items."""
        return bool(self.has or self.tags or self.outlet or self.status) or self.min_score is not None


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
    wanted += [_in(query, item_by_item) for query in _result_queries(selection)]
    return wanted


def _result_queries(selection: Selection) -> list[tuple[ColumnElement[int], Select[tuple[int]]]]:
    """Queries for the items with certain results, each with its column of items."""
    result, current = item_results.c, item_results.c.replaced_at.is_(None)
    queries: list[tuple[ColumnElement[int], Select[tuple[int]]]] = []
    if selection.has:
        named = [read_result_key(key) for key in selection.has]
        any_of = or_(
            *(
                and_(result.kind == kind, result.name == name) if name else result.kind == kind
                for kind, name in named
            )
        )
        queries.append((result.item_id, select(result.item_id).where(any_of, current)))
    if selection.min_score is not None:
        scored = select(result.item_id).where(
            result.kind == literal_column("'score'"), current, result.value >= selection.min_score
        )
        queries.append((result.item_id, scored))
    if selection.tags:
        wanted = [storable(fold_tag(tag)) for tag in selection.tags]
        tagged = select(result_tags.c.item_id).where(result_tags.c.tag.in_(wanted))
        queries.append((result_tags.c.item_id, tagged))
    return queries


def _in(query: tuple[ColumnElement[int], Select[tuple[int]]], item_by_item: bool) -> ColumnElement[bool]:
    item_id, found = query
    if not item_by_item:
        return items.c.id.in_(found)
    return found.where(item_id == items.c.id).correlate(items).exists()


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
            "there is no source {id}", hint="`headwater source list` shows them all", id=min(missing)
        )


def tell_selections(
    connection: Connection, selections: Sequence[Selection], language: Language | None = None
) -> list[str]:
    """Each selection in words for people: sources by their names, several values separated by commas."""
    wanted = sorted({source_id for each in selections for source_id in each.source_ids})
    query = select(sources.c.id, sources.c.name).where(sources.c.id.in_(wanted))
    names = {row.id: row.name for row in connection.execute(query)} if wanted else {}
    return [_tell(selection, names, language) for selection in selections]


def _tell(selection: Selection, names: Mapping[int, str], language: Language | None) -> str:
    its_names = [names.get(source_id, str(source_id)) for source_id in selection.source_ids]
    parts = (
        (translate("sources", language), its_names),
        (translate("folders", language), selection.folders),
        (translate("types", language), selection.types),
        (translate("search", language), [selection.search] if selection.search else ()),
        (translate("since", language), [iso(selection.since) or ""] if selection.since else ()),
        (translate("until", language), [iso(selection.until) or ""] if selection.until else ()),
        (translate("state", language), [selection.status] if selection.status else ()),
        (translate("published by pipelines", language), [selection.outlet] if selection.outlet else ()),
        (translate("results", language), selection.has),
        (translate("tags", language), selection.tags),
        (
            translate("score at least", language),
            [f"{selection.min_score:g}"] if selection.min_score is not None else (),
        ),
    )
    told = [f"{name}: {', '.join(values)}" for name, values in parts if values]
    return "; ".join(told) or translate("everything", language)


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
