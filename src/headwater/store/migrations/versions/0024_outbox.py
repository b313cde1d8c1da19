"""Targets by name, and the outbox from which messages are sent.

Revision ID: 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "targets",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("batch_minutes", Seconds, nullable=True),
        sa.Column("batch_items", sa.Integer(), server_default=sa.text("20"), nullable=False),
        sa.Column("batched_at", Seconds, nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("updated_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_targets"),
        sa.UniqueConstraint("name", name="uq_targets_name"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", Id, nullable=False),
        sa.Column("target_id", Id, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("lease_no", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", Seconds, nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("ended_at", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["target_id"], ["targets.id"], name="fk_deliveries_target_id_targets", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("target_id", "idempotency_key", name="uq_deliveries_target_id_idempotency_key"),
    )
    due = sa.text("due_at IS NOT NULL")
    op.create_index("ix_deliveries_due_at", "deliveries", ["due_at"], sqlite_where=due, postgresql_where=due)
    ended = sa.text("ended_at IS NOT NULL")
    op.create_index(
        "ix_deliveries_ended_at", "deliveries", ["ended_at"], sqlite_where=ended, postgresql_where=ended
    )
    op.create_table(
        "waiting_messages",
        sa.Column("id", Id, nullable=False),
        sa.Column("target_id", Id, nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["target_id"], ["targets.id"], name="fk_waiting_messages_target_id_targets", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_waiting_messages"),
        sa.UniqueConstraint(
            "target_id", "idempotency_key", name="uq_waiting_messages_target_id_idempotency_key"
        ),
    )
