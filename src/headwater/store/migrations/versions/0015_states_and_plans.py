"""Since when a source fails, whether its items are found late, and of what its plan was made.

Revision ID: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0019"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")
_UNUSUAL = sa.text(
    "is_deleted OR NOT schedule_enabled OR NOT is_active OR status <> 'ok' OR last_error_kind IS NOT NULL"
    " OR consecutive_failures > 0 OR is_late OR last_fetched_at IS NULL"
)
_UNUSUAL_COLUMNS = [
    "is_deleted",
    "schedule_enabled",
    "is_active",
    "status",
    "last_error_kind",
    "consecutive_failures",
    "is_late",
    "last_fetched_at",
]
_OUTDATED = sa.text("planned_from IS NULL")


def upgrade() -> None:
    op.add_column("sources", sa.Column("planned_from", Id, server_default=sa.text("0"), nullable=True))
    op.add_column("sources", sa.Column("failing_since_at", Seconds, nullable=True))
    op.add_column(
        "sources", sa.Column("is_late", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    # The first of the failed visits after the last that was something else, as far back as visits are kept.
    op.execute(
        "UPDATE sources SET failing_since_at = (SELECT min(failed.started_at) FROM collection_records AS failed"
        " WHERE failed.source_id = sources.id AND failed.status = 'failed' AND failed.lease_no >"
        " (SELECT coalesce(max(other.lease_no), 0) FROM collection_records AS other"
        " WHERE other.source_id = sources.id AND other.status <> 'failed'))"
        " WHERE consecutive_failures > 0"
    )
    op.drop_index("ix_sources_unusual", "sources")
    op.create_index(
        "ix_sources_unusual",
        "sources",
        _UNUSUAL_COLUMNS,
        sqlite_where=_UNUSUAL,
        postgresql_where=_UNUSUAL,
    )
    op.create_index(
        "ix_sources_outdated", "sources", ["id"], sqlite_where=_OUTDATED, postgresql_where=_OUTDATED
    )
