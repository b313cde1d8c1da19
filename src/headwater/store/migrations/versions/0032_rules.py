"""Rules that people have for new items, and what they are told because of them.

Revision ID: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "rules",
        sa.Column("id", Id, nullable=False),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("filter", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("source_ids", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("actions", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("matched", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("matched_at", Seconds, nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_rules_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_rules"),
        sa.UniqueConstraint("user_id", "name", name="uq_rules_user_id_name"),
    )
    op.create_table(
        "notifications",
        sa.Column("id", Id, nullable=False),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("item_id", Id, nullable=False),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("seen_at", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_notifications_user_id_users", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_notifications_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint("user_id", "item_id", name="uq_notifications_user_id_item_id"),
    )
    op.create_index("ix_notifications_item_id", "notifications", ["item_id"])
