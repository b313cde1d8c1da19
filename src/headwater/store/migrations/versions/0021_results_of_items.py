"""Results of items: what pipelines make is stored with the item, found by search and read by cursors.

Revision ID: 0021
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0017"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "item_results",
        sa.Column("id", Id, nullable=False),
        sa.Column("item_id", Id, nullable=False),
        sa.Column("item_version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("format", sa.Text(), server_default=sa.text("'text'"), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("value", Seconds, nullable=True),
        sa.Column("run_id", Id, nullable=True),
        sa.Column("template_id", Id, nullable=True),
        sa.Column("step_index", sa.Integer(), nullable=True),
        sa.Column("step_type", sa.Text(), nullable=True),
        sa.Column("made_at", Seconds, nullable=False),
        sa.Column("replaced_at", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_item_results_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_item_results"),
    )
    op.create_index("ix_item_results_item_id", "item_results", ["item_id"])
    current = sa.text("replaced_at IS NULL")
    op.create_index(
        "uq_item_results_current",
        "item_results",
        ["kind", "name", "item_id"],
        unique=True,
        sqlite_where=current,
        postgresql_where=current,
    )
    score = sa.text("kind = 'score' AND replaced_at IS NULL")
    op.create_index(
        "ix_item_results_score",
        "item_results",
        ["value", "item_id"],
        sqlite_where=score,
        postgresql_where=score,
    )
    op.create_table(
        "result_tags",
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_result_tags_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tag", "item_id", name="pk_result_tags"),
    )
    op.create_index("ix_result_tags_item_id", "result_tags", ["item_id"])
    op.create_table(
        "items_to_index",
        sa.Column("id", Id, nullable=False),
        sa.Column("item_id", Id, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_items_to_index"),
    )
    op.add_column("items", sa.Column("processed_position", Id, server_default=sa.text("0"), nullable=False))
    processed = sa.text("processed_position > 0")
    op.create_index(
        "ix_items_processed_position",
        "items",
        ["processed_position"],
        sqlite_where=processed,
        postgresql_where=processed,
    )
    op.add_column(
        "consumer_cursors",
        sa.Column("read_when", sa.Text(), server_default=sa.text("'stored'"), nullable=False),
    )
    op.execute("UPDATE consumer_cursors SET read_when = 'changed' WHERE with_changes")
    op.drop_column("consumer_cursors", "with_changes")
