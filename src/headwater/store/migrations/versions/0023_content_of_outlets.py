"""Outlets choose what they publish of an item: the original, or what pipelines made of it.

Revision ID: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.add_column(
        "outlets",
        sa.Column("content", sa.Text(), server_default=sa.text("""'["original"]'"""), nullable=False),
    )
    op.add_column("outlets", sa.Column("template", sa.Text(), nullable=True))
