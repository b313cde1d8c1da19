"""Rows for any table, made from its columns: so that a test of all tables knows those that come later too."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    delete,
    insert,
)

from headwater.store.core.database import Store
from headwater.store.transfer.copying import copied_tables, stream_rows

LEFT_OUT = ("alembic_version", "item_clock", "source_names")
# What has to be something that Headwater reads.
FIXED = {
    ("sources", "type"): "rss.feed",
    ("sources", "status"): "ok",
    ("sources", "last_error_kind"): None,
    ("sources", "policy"): None,
    ("sources", "policy_state"): None,
    ("sources", "is_deleted"): False,
    ("outlets", "content"): '["original"]',
    ("outlets", "digest"): None,
    ("outlets", "template"): None,
    ("consumer_cursors", "read_when"): "stored",
    ("pipeline_attachments", "scope"): "tag",
    ("targets", "kind"): "webhook",
    ("deliveries", "kind"): "item",
    ("deliveries", "status"): "sent",
    ("digests", "schedule"): "daily 07:30",
    ("digests", "zone"): "UTC",
    ("digests", "read_when"): "stored",
    ("alerts", "kind"): "gone",
    ("sources", "details"): None,  # these two are JSON
    ("sources", "repairs"): None,
    ("item_results", "data"): None,  # JSON
    ("item_results", "replaced_at"): None,
    ("settings", "value"): '{"some": "setting"}',
    ("users", "role"): "admin",
    ("users", "is_disabled"): False,
    ("pipeline_executions", "status"): "pending",
    ("pipeline_executions", "next_step_type"): "filter_content",
    ("pipeline_executions", "lease_until"): None,
    ("source_leases", "lease_until"): 1.0,  # expired long ago: no worker is at work
}


def tables_to_fill(schema: MetaData) -> list[Table]:
    return [
        table
        for table in schema.sorted_tables
        if table.name not in LEFT_OUT and not table.name.startswith("item_words")
    ]


def value_for(column: Column[Any], number: int) -> Any:
    """The value of a column in row `number`; a reference points to the row of the same number."""
    for key in column.foreign_keys:
        return value_for(key.column, number)
    if (column.table.name, column.name) in FIXED:
        return FIXED[column.table.name, column.name]
    default = str(getattr(column.server_default, "arg", ""))
    if "{}" in default or "[]" in default:  # JSON
        return "{}" if "{}" in default else "[]"
    if isinstance(column.type, Boolean):
        return number % 2 == 0
    if isinstance(column.type, Integer):
        return number
    if isinstance(column.type, Float):
        return 1_700_000_000.25 + number
    if isinstance(column.type, LargeBinary):
        return f"{column.name} {number}".encode() + b"\x00\xff"
    if isinstance(column.type, DateTime):
        return datetime(2026, 1, 1, 12, number % 60, 3)  # noqa: DTZ001 - as the document's tables have it
    return f"{column.name} {number} 新闻 'quoted'\n\\"


def fill(connection: Connection, schema: MetaData, count: int = 3) -> None:
    """`count` rows in every table."""
    if "users" in schema.tables:
        connection.execute(delete(schema.tables["users"]))  # the one that every database begins with
    for table in tables_to_fill(schema):
        connection.execute(
            insert(table),
            [
                {column.name: value_for(column, number) for column in table.c}
                for number in range(1, count + 1)
            ],
        )


def everything(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that a copy of the database must have; what is remembered of the search index is each one's own."""
    with store.reading() as connection:
        return {
            table.name: sorted(
                row
                for rows in stream_rows(connection, table)
                for row in rows
                if not str(row[0]).startswith("search.")
            )
            for table in copied_tables()
        }
