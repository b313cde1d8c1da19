"""Places in the order of storing, and the cursors of those who read in it.

Revision ID: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    for name in ("position", "changed_position"):
        op.add_column("items", sa.Column(name, Id, server_default=sa.text("0"), nullable=False))
    op.execute("UPDATE items SET position = id, changed_position = id")
    op.create_index("ix_items_position", "items", ["position"])
    op.create_index("ix_items_changed_position", "items", ["changed_position"])
    op.create_table(
        "item_clock",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_position", Id, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_item_clock"),
    )
    op.create_table(
        "consumer_cursors",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("with_changes", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("filters", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("acknowledged_at", Seconds, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_consumer_cursors"),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute("INSERT INTO item_clock SELECT 1, coalesce(max(id), 0) FROM items")
    else:
        op.execute("CREATE SEQUENCE item_positions")
        op.execute("SELECT setval('item_positions', max(id)) FROM items HAVING max(id) > 0")
