"""What models were asked: a cache of answers, and what was spent in a day.

Revision ID: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "model_usage",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("requests", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("cached", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("cost", Seconds, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("day", "owner", "model", name="pk_model_usage"),
    )
    op.create_table(
        "model_answers",
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("used_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_model_answers"),
    )
    op.create_index("ix_model_answers_used_at", "model_answers", ["used_at"])
