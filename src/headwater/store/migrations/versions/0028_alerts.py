"""Alerts: what needs a person, since when, and whether it was told.

Revision ID: 0028
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", Id, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("data", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("since_at", Seconds, nullable=False),
        sa.Column("seen_at", Seconds, nullable=False),
        sa.Column("told_at", Seconds, nullable=True),
        sa.Column("ended_at", Seconds, nullable=True),
        sa.Column("end_told_at", Seconds, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
    )
    is_open = sa.text("ended_at IS NULL")
    op.create_index(
        "uq_alerts_open",
        "alerts",
        ["kind", "subject"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    untold = sa.text("told_at IS NULL OR (ended_at IS NOT NULL AND end_told_at IS NULL)")
    op.create_index("ix_alerts_untold", "alerts", ["id"], sqlite_where=untold, postgresql_where=untold)
    op.create_index("ix_alerts_ended_at", "alerts", ["ended_at"])
    op.add_column(
        "model_usage", sa.Column("refused", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
