"""What is remembered of the sitemaps that become feeds.

Revision ID: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "site_memories",
        sa.Column("site_name", sa.Text(), nullable=False),
        sa.Column("runs", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("memory", sa.LargeBinary(), nullable=False),
        sa.Column("entries", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.ForeignKeyConstraint(
            ["site_name"],
            ["site_states.site_name"],
            name="fk_site_memories_site_name_site_states",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("site_name", name="pk_site_memories"),
    )
