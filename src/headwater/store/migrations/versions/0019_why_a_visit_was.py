"""Why there was a visit, and when the one before was: what a budget counts, and which dates can be believed.

Revision ID: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.add_column(
        "collection_records",
        sa.Column("planned_by", sa.Text(), server_default=sa.text("'adaptive'"), nullable=False),
    )
    op.add_column("collection_records", sa.Column("since_at", Seconds, nullable=True))
