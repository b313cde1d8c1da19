"""What collectors remember of their sources.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "source_memories",
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        sa.Column("memory", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name="fk_source_memories_source_id_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_memories"),
    )
