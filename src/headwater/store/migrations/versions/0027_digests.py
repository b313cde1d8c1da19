"""Digests on a schedule, their issues, and outlets that publish them.

Revision ID: 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "digests",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), server_default=sa.text("'UTC'"), nullable=False),
        sa.Column("selection", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("read_when", sa.Text(), server_default=sa.text("'stored'"), nullable=False),
        sa.Column("config", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("targets", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("position", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", Seconds, nullable=False),
        sa.Column("claim_at", Seconds, nullable=False),
        sa.Column("lease_no", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("updated_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_digests"),
        sa.UniqueConstraint("name", name="uq_digests_name"),
    )
    op.create_table(
        "digest_issues",
        sa.Column("id", Id, nullable=False),
        sa.Column("digest_id", Id, nullable=False),
        sa.Column("due_at", Seconds, nullable=False),
        sa.Column("language", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("revision", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("item_ids", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("omitted", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("data", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("made_at", Seconds, nullable=False),
        sa.Column("sends", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["digest_id"], ["digests.id"], name="fk_digest_issues_digest_id_digests", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_digest_issues"),
        sa.UniqueConstraint(
            "digest_id", "due_at", "language", name="uq_digest_issues_digest_id_due_at_language"
        ),
    )
    op.add_column("outlets", sa.Column("digest", sa.Text(), nullable=True))
