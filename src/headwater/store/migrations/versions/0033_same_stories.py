"""Items of different sources that tell the same story, and the keys by which copies are found.

Revision ID: 0033
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "story_keys",
        sa.Column("key", Id, autoincrement=False, nullable=False),
        sa.Column("item_id", Id, nullable=False),
        sa.Column("source_id", Id, nullable=False),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.Column("seen_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_story_keys"),
    )
    op.create_index("ix_story_keys_seen_at", "story_keys", ["seen_at"])
    op.create_table(
        "story_items",
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        sa.Column("story_id", Id, nullable=False),
        sa.Column("source_id", Id, nullable=False),
        sa.Column("position", Id, nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_story_items_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("item_id", name="pk_story_items"),
    )
    op.create_index("ix_story_items_story_id", "story_items", ["story_id"])
