"""The times of a source's items are read from an index alone: the rows they stand in are long.

Revision ID: 0011
"""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_index("ix_items_source_times", "items", ["source_id", "item_at", "published_at"])
    op.drop_index("ix_items_source_item_at", "items")
