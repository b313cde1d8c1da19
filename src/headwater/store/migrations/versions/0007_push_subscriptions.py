"""Subscriptions to hubs that push what sources publish.

Revision ID: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "push_subscriptions",
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        sa.Column("hub", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'wanted'"), nullable=False),
        sa.Column("act_at", Seconds, nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("verified_at", Seconds, nullable=True),
        sa.Column("lease_ends_at", Seconds, nullable=True),
        sa.Column("last_pushed_at", Seconds, nullable=True),
        sa.Column("missed_at", Seconds, nullable=True),
        sa.Column("pushes", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("forged", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("missed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name="fk_push_subscriptions_source_id_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", name="pk_push_subscriptions"),
        sa.UniqueConstraint("token", name="uq_push_subscriptions_token"),
    )
    op.create_index("ix_push_subscriptions_act_at", "push_subscriptions", ["act_at"])
