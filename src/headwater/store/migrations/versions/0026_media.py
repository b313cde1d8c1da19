"""Images and files that are kept of items, and outlets that publish them from here.

Revision ID: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "media_files",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", Id, nullable=False),
        sa.Column("stored_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_media_files"),
    )
    op.create_index("ix_media_files_stored_at", "media_files", ["stored_at"])
    op.create_table(
        "media_uses",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_media_uses_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sha256", "item_id", name="pk_media_uses"),
    )
    op.create_index("ix_media_uses_item_id", "media_uses", ["item_id"])
    op.add_column(
        "outlets", sa.Column("own_media", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
