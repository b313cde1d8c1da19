"""The database's tables, columns, indexes and triggers, compared with those of this version of the schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Index, Table, inspect

from headwater.errors import Text
from headwater.store.core.bulk import is_sqlite
from headwater.store.core.tables import metadata

SEARCH_TABLE = "item_words"  # each database has its own kind
TRIGGERS = {
    "sqlite": {"source_named", "source_renamed", "item_words_gone"},
    "postgresql": {"source_named", "source_renamed"},
}


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs, in words; `missing` is what `repair` can make again without losing a row."""

    message: Text
    missing: Table | Column[Any] | Index | None = None


def schema_differences(connection: Connection) -> list[Difference]:
    """What the schema lacks or has in another form. Tables, columns and indexes of other programs do not count."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "compare_server_default": True,
            "include_name": lambda name, kind, parents: not str(name).startswith(SEARCH_TABLE),
            "include_object": lambda made, name, *about: _is_of(made, connection.dialect.name),
        },
    )
    changes = list(_flat(compare_metadata(context, metadata)))
    tables = {made.name for kind, made, *_ in changes if kind == "add_table"}
    found = [_difference(*change) for change in changes if not _belongs_to(change, tables)]
    return [each for each in found if each is not None] + list(_made_by_hand(connection))


def repair(connection: Connection) -> list[Difference]:
    """Make what is missing; return what is still different. Tables that were missing are empty afterwards."""
    for difference in schema_differences(connection):
        match difference.missing:
            case Index() as index:
                index.drop(connection, checkfirst=True)
                index.create(connection)
            case Table() as table:
                table.create(connection, checkfirst=True)
            case Column() as column:
                _add_column(connection, column)
    inspect(connection).clear_cache()
    return schema_differences(connection)


def _is_of(made: Any, dialect: str) -> bool:
    """Whether a table or index is meant for this database."""
    only = getattr(made, "_ddl_if", None)
    return only is None or only.dialect == dialect


def _flat(changes: list[Any]) -> Iterator[tuple[Any, ...]]:
    for change in changes:
        yield from change if isinstance(change, list) else [change]


def _belongs_to(change: tuple[Any, ...], tables: set[str]) -> bool:
    """Whether it is an index of one of these tables, which comes with the table."""
    return change[0] == "add_index" and change[1].table.name in tables


def _difference(kind: str, *about: Any) -> Difference | None:
    match kind, about:
        case "add_table", (Table() as table,):
            return Difference(
                Text("the table {name} is missing", name=table.name), metadata.tables[table.name]
            )
        case "add_column", (_, table_name, Column() as column):
            can = column.nullable or column.server_default is not None
            name = f"{table_name}.{column.name}"
            return Difference(
                Text("the column {name} is missing", name=name),
                metadata.tables[table_name].c[column.name] if can else None,
            )
        case "add_index", (Index() as index,):
            return Difference(
                Text("the index {name} is missing, or has other columns", name=index.name), index
            )
        case (("add_constraint" | "add_fk"), (made,)):
            return Difference(Text("the constraint {name} is missing", name=made.name))
        case str(), (_, table_name, column_name, *_) if kind.startswith("modify_"):
            name = f"{table_name}.{column_name}"
            return Difference(Text("the column {name} has another type or default", name=name))
        case _:  # something that is not ours
            return None


def _made_by_hand(connection: Connection) -> Iterator[Difference]:
    """What migrations make by their own statements."""
    if not inspect(connection).has_table(SEARCH_TABLE):
        yield Difference(Text("the table {name} is missing", name=SEARCH_TABLE))
    query = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if is_sqlite(connection)
        else "SELECT tgname FROM pg_trigger WHERE tgrelid = 'sources'::regclass"
    )
    for name in sorted(TRIGGERS[connection.dialect.name] - set(connection.exec_driver_sql(query).scalars())):
        yield Difference(Text("the trigger {name} is missing", name=name))


def _add_column(connection: Connection, column: Column[Any]) -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    copy: Column[Any] = Column(
        column.name, column.type, nullable=column.nullable, server_default=column.server_default
    )
    Operations(MigrationContext.configure(connection)).add_column(column.table.name, copy)
