"""Leases in a table of their own, so that a claim writes a few rows side by side instead of one in every place.

On SQLite `source_stats` becomes one tree: its rows were found by their text in one and read in another.

Revision ID: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")
_STATS_INDEXES = {
    "idx_source_stats_cadence": ["cadence"],
    "idx_source_stats_next_due": ["next_due_at"],
    "idx_source_stats_type": ["source_type"],
    "idx_source_stats_type_due": ["source_type", "next_due_at"],
}


def upgrade() -> None:
    op.create_table(
        "source_leases",
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        sa.Column("lease_no", Id, nullable=False),
        sa.Column("lease_until", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_leases"),
    )
    op.execute(
        "INSERT INTO source_leases (source_id, lease_no, lease_until)"
        " SELECT id, lease_no, lease_until FROM sources WHERE lease_until IS NOT NULL"
    )
    op.drop_column("sources", "lease_until")
    if op.get_context().dialect.name != "sqlite":
        # Rows come and go with every visit; what is left of them is cleared away before it grows long.
        op.execute(
            "ALTER TABLE source_leases SET"
            " (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0)"
        )
        return
    for name in _STATS_INDEXES:
        op.drop_index(name, "source_stats")
    op.rename_table("source_stats", "source_stats_before")
    op.create_table(
        "source_stats",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("source_type", sa.Text(), server_default=sa.text("'rss'"), nullable=False),
        sa.Column("frequency_type", sa.Text(), server_default=sa.text("'daily'"), nullable=True),
        sa.Column("cadence", sa.Text(), server_default=sa.text("'P2'"), nullable=True),
        sa.Column("avg_publish_hour", Seconds, nullable=True),
        sa.Column("std_publish_hour", Seconds, nullable=True),
        *(
            sa.Column(name, Id, server_default=sa.text("0"), nullable=True)
            for name in ("next_due_at", "last_check_at", "last_article_at", "fail_count", "backoff_until")
        ),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("check_count", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("hit_count", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("created_at", Id, nullable=True),
        sa.Column("updated_at", Id, nullable=True),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_stats"),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO source_stats SELECT * FROM source_stats_before ORDER BY source_id")
    op.drop_table("source_stats_before")
    for name, columns in _STATS_INDEXES.items():
        op.create_index(name, "source_stats", columns)
