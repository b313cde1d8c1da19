"""Visits by the hour, which outlive the visit records, and an index on the sources that want attention.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")
UNUSUAL = (
    "is_deleted OR NOT schedule_enabled OR NOT is_active OR status <> 'ok' OR last_error_kind IS NOT NULL"
)


def upgrade() -> None:
    op.create_table(
        "collection_hours",
        sa.Column("hour_at", Seconds, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=False),
        *(
            sa.Column(name, Id, server_default=sa.text("0"), nullable=False)
            for name in (
                "visits",
                "items_found",
                "items_new",
                "items_updated",
                "requests",
                "bytes_received",
            )
        ),
        sa.PrimaryKeyConstraint("hour_at", "status", "error_kind", name="pk_collection_hours"),
    )
    op.create_index(
        "ix_sources_unusual",
        "sources",
        ["is_deleted", "schedule_enabled", "is_active", "status", "last_error_kind"],
        sqlite_where=sa.text(UNUSUAL),
        postgresql_where=sa.text(UNUSUAL),
    )
