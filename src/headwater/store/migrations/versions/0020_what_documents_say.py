"""What a source's document says beyond the usual, and what had to be repaired to read it.

Revision ID: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("sources", sa.Column("details", sa.Text(), nullable=True))
    op.add_column("sources", sa.Column("repairs", sa.Text(), nullable=True))
