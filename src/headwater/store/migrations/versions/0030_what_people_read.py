"""Subscriptions, folders, reading state, stars, tags and bookmarks.

Every source becomes a subscription of the first user, under its own number; folders become a tree. What is stored by
now counts as read: nothing becomes unread by the upgrade.

Revision ID: 0030
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")
SEPARATOR = " / "  # between the names of nested folders
OWNER = 1


def upgrade() -> None:
    op.create_index(
        "ix_items_source_position",
        "items",
        ["source_id", "position", "item_at", "first_seen_at"],
        postgresql_include=["id"],
    )
    _make_reading_tables()
    _make_marks()
    _make_bookmarks()
    op.execute(
        "INSERT INTO source_counts (source_id, stored, last_position, last_stored_at)"
        " SELECT source_id, count(*), max(position), max(first_seen_at) FROM items GROUP BY source_id"
    )
    _subscribe_owner()


def _column(name: str, kind: Any, default: str | None = None, *, null: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, kind, nullable=null, server_default=None if default is None else sa.text(default))


def _key(table: str, column: str, target: str, ondelete: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=f"fk_{table}_{column}_{target}", ondelete=ondelete
    )


def _make_reading_tables() -> None:
    op.create_table(
        "source_counts",
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        _column("stored", Id, "0"),
        _column("last_position", Id, "0"),
        _column("last_stored_at", Seconds, "0"),
        _key("source_counts", "source_id", "sources", "CASCADE"),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_counts"),
    )
    op.create_table(
        "folders",
        _column("id", Id),
        _column("user_id", Id),
        _column("parent_id", Id, null=True),
        _column("name", sa.Text()),
        _column("position", sa.Integer(), "0"),
        _key("folders", "user_id", "users", "CASCADE"),
        _key("folders", "parent_id", "folders", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_folders"),
    )
    op.create_index("ix_folders_user_id", "folders", ["user_id"])
    op.create_index("ix_folders_parent_id", "folders", ["parent_id"])
    op.create_table(
        "subscriptions",
        _column("id", Id),
        _column("user_id", Id),
        _column("source_id", Id),
        _column("title", sa.Text(), null=True),
        _column("folder_id", Id, null=True),
        _column("position", sa.Integer(), "0"),
        _column("is_muted", sa.Boolean(), "false"),
        _column("level", Id, "0"),
        _column("settled", Id, "0"),
        _column("created_at", Seconds),
        _key("subscriptions", "user_id", "users", "CASCADE"),
        _key("subscriptions", "source_id", "sources", "CASCADE"),
        _key("subscriptions", "folder_id", "folders", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_subscriptions"),
        sa.UniqueConstraint("user_id", "source_id", name="uq_subscriptions_user_id_source_id"),
    )
    op.create_index("ix_subscriptions_source_id", "subscriptions", ["source_id"])
    op.create_index("ix_subscriptions_folder_id", "subscriptions", ["folder_id"])
    op.create_table(
        "read_exceptions",
        sa.Column("user_id", Id, autoincrement=False, nullable=False),
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        sa.Column("position", Id, autoincrement=False, nullable=False),
        _column("is_read", sa.Boolean()),
        _key("read_exceptions", "user_id", "users", "CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "source_id", "position", name="pk_read_exceptions"),
        sqlite_with_rowid=False,
    )


def _make_marks() -> None:
    op.create_table(
        "entry_marks",
        sa.Column("user_id", Id, autoincrement=False, nullable=False),
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        _column("source_id", Id),
        _column("position", Id),
        _column("starred_at", Seconds, null=True),
        _column("later_at", Seconds, null=True),
        _column("later_until", Seconds, null=True),
        _key("entry_marks", "user_id", "users", "CASCADE"),
        _key("entry_marks", "item_id", "items", "CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "item_id", name="pk_entry_marks"),
    )
    op.create_index("ix_entry_marks_item_id", "entry_marks", ["item_id"])
    some = sa.text("later_until IS NOT NULL")
    op.create_index(
        "ix_entry_marks_later_until",
        "entry_marks",
        ["later_until"],
        sqlite_where=some,
        postgresql_where=some,
    )
    op.create_table(
        "entry_tags",
        sa.Column("user_id", Id, autoincrement=False, nullable=False),
        _column("tag", sa.Text()),
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        _column("source_id", Id),
        _column("position", Id),
        _column("tagged_at", Seconds),
        _key("entry_tags", "user_id", "users", "CASCADE"),
        _key("entry_tags", "item_id", "items", "CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "tag", "item_id", name="pk_entry_tags"),
    )
    op.create_index("ix_entry_tags_item_id", "entry_tags", ["item_id"])


def _make_bookmarks() -> None:
    op.create_table(
        "bookmarks",
        _column("id", Id),
        _column("user_id", Id),
        _column("item_id", Id, null=True),
        _column("url", sa.Text()),
        _column("url_key", sa.Text()),
        _column("title", sa.Text(), null=True),
        _column("excerpt", sa.Text(), null=True),
        _column("image_url", sa.Text(), null=True),
        _column("content", sa.Text(), null=True),
        _column("note", sa.Text(), null=True),
        _column("tags", sa.Text(), "'[]'"),
        _column("fetch_at", Seconds, null=True),
        _column("attempts", sa.Integer(), "0"),
        _column("error", sa.Text(), null=True),
        _column("created_at", Seconds),
        _column("updated_at", Seconds),
        _key("bookmarks", "user_id", "users", "CASCADE"),
        _key("bookmarks", "item_id", "items", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_bookmarks"),
        sa.UniqueConstraint("user_id", "url_key", name="uq_bookmarks_user_id_url_key"),
    )
    op.create_index("ix_bookmarks_item_id", "bookmarks", ["item_id"])
    some = sa.text("fetch_at IS NOT NULL")
    op.create_index(
        "ix_bookmarks_fetch_at", "bookmarks", ["fetch_at"], sqlite_where=some, postgresql_where=some
    )


def _subscribe_owner() -> None:
    bind = op.get_bind()
    numbers: dict[tuple[str, ...], int] = {}
    rows = bind.execute(
        sa.text("SELECT DISTINCT folder FROM sources WHERE folder IS NOT NULL AND NOT is_deleted")
    )
    paths = {str(row[0]): tuple(str(row[0]).split(SEPARATOR)) for row in rows}
    for names in sorted(paths.values()):
        for depth in range(1, len(names) + 1):
            if (path := names[:depth]) not in numbers:
                numbers[path] = len(numbers) + 1
                bind.execute(
                    sa.text(
                        "INSERT INTO folders (id, user_id, parent_id, name, position)"
                        " VALUES (:id, :user_id, :parent_id, :name, :position)"
                    ),
                    {
                        "id": numbers[path],
                        "user_id": OWNER,
                        "parent_id": numbers.get(path[:-1]),
                        "name": path[-1],
                        "position": numbers[path],
                    },
                )
    bind.execute(
        sa.text(
            "INSERT INTO subscriptions (id, user_id, source_id, level, settled, created_at)"
            " SELECT sources.id, :user_id, sources.id, coalesce(last_position, 0), coalesce(stored, 0), created_at"
            " FROM sources LEFT JOIN source_counts ON source_id = sources.id WHERE NOT is_deleted"
        ),
        {"user_id": OWNER},
    )
    for folder, names in paths.items():
        bind.execute(
            sa.text(
                "UPDATE subscriptions SET folder_id = :folder_id"
                " WHERE source_id IN (SELECT id FROM sources WHERE folder = :folder AND NOT is_deleted)"
            ),
            {"folder_id": numbers[names], "folder": folder},
        )
    if bind.dialect.name == "postgresql":
        for table in ("folders", "subscriptions"):
            bind.execute(
                sa.text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
                    " HAVING max(id) > 0"
                )
            )
