"""Full-text search, and outlets.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "outlets",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("selection", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("item_limit", sa.Integer(), server_default=sa.text("50"), nullable=False),
        sa.Column("hub_url", sa.Text(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("updated_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outlets"),
        sa.UniqueConstraint("name", name="uq_outlets_name"),
    )
    op.create_table(
        "outlet_items",
        sa.Column("outlet_name", sa.Text(), nullable=False),
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        sa.Column("published_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_outlet_items_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("outlet_name", "item_id", name="pk_outlet_items"),
    )
    op.create_index("ix_outlet_items_item_id", "outlet_items", ["item_id"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE item_words USING fts5(words, tokenize = 'unicode61 remove_diacritics 0')"
        )
        op.execute(
            "CREATE TRIGGER item_words_gone AFTER DELETE ON items"
            " BEGIN DELETE FROM item_words WHERE rowid = old.id; END"
        )
    else:
        op.execute(
            "CREATE TABLE item_words ("
            "item_id BIGINT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE, words TSVECTOR NOT NULL)"
        )
        op.execute("CREATE INDEX ix_item_words_words ON item_words USING gin (words)")
