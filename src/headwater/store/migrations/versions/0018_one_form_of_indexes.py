"""Indexes that early databases have in another form, because migrations 0009 and 0010 were changed after release.

Revision ID: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0012"

_ANALYZED = "status = 'ANALYZED'"
_ATTACHED = "pipeline_template_id IS NOT NULL"
# Table, columns and condition of each.
_INDEXES: dict[str, tuple[str, list[str], str | None]] = {
    "ix_items_analyzed": ("items", ["item_at", "id"], _ANALYZED),
    "ix_sources_folder": ("sources", ["folder", "is_deleted"], None),
    "ix_sources_due": ("sources", ["due_at", "last_fetched_at"], None),
    "ix_sources_template": ("sources", ["pipeline_template_id", "is_deleted"], _ATTACHED),
}


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    found = {
        index["name"]: index["column_names"]
        for table in ("items", "sources")
        for index in inspector.get_indexes(table)
    }
    for name, (table, columns, condition) in _INDEXES.items():
        if found.get(name) == columns:
            continue
        op.drop_index(name, table, if_exists=True)
        where = None if condition is None else sa.text(condition)
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
    if op.get_context().dialect.name == "sqlite":
        op.drop_index("ix_sources_last_fetched_at", "sources", if_exists=True)
