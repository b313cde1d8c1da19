"""What long lists are found by: when items were found, which are analysed; folders, names and templates of sources.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_index("ix_items_first_seen_at", "items", ["first_seen_at", "id"])
    analyzed = sa.text("status = 'ANALYZED'")
    op.create_index(
        "ix_items_analyzed", "items", ["item_at", "id"], sqlite_where=analyzed, postgresql_where=analyzed
    )
    op.create_index("ix_sources_folder", "sources", ["folder", "is_deleted"])
    op.create_index("ix_sources_name", "sources", ["is_deleted", "name", "url"])
    attached = sa.text("pipeline_template_id IS NOT NULL")
    op.create_index(
        "ix_sources_template",
        "sources",
        ["pipeline_template_id"],
        sqlite_where=attached,
        postgresql_where=attached,
    )
