"""Items in the order in which they were found.

Revision ID: 0009
"""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_index("ix_items_first_seen_at", "items", ["first_seen_at", "id"])
