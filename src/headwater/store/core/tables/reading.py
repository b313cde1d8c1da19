"""The tables of what people read: subscriptions, folders, reading state, stars, tags, bookmarks.

Reading state grows with what people did. A subscription has a level: items of its source stored at or before that
position are read, later ones are unread. `read_exceptions` holds the items for which the opposite is true.
"""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from headwater.store.core.tables.columns import Id, Seconds, column, metadata

source_counts = Table(  # of sources that have shown an item
    "source_counts",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    column("stored", Id, "0"),  # items ever stored, deleted ones included
    column("last_position", Id, "0"),  # of its newest item (see store.reading.positions)
    column("last_stored_at", Seconds, "0"),
)

folders = Table(
    "folders",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("parent_id", Id, ForeignKey("folders.id", ondelete="CASCADE")),
    column("name", Text),
    column("position", Integer, "0"),  # among the folders of its parent
    column("view", Text, "'{}'"),  # JSON: how it is shown, where that differs from the person's preferences
)
Index("ix_folders_user_id", folders.c.user_id)
Index("ix_folders_parent_id", folders.c.parent_id)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    column("title", Text, null=True),  # NULL: the source's name
    Column("folder_id", Id, ForeignKey("folders.id", ondelete="SET NULL")),
    column("position", Integer, "0"),  # among the subscriptions of its folder
    column("is_muted", Boolean, "false"),  # left out of the lists of several subscriptions
    column("level", Id, "0"),  # items up to this position are read, apart from the exceptions
    # Items of the source that are not unread any more: read, or deleted while unread. `stored` less this is unread.
    column("settled", Id, "0"),
    column("created_at", Seconds),
    UniqueConstraint("user_id", "source_id"),
)
Index("ix_subscriptions_source_id", subscriptions.c.source_id)
Index("ix_subscriptions_folder_id", subscriptions.c.folder_id)

read_exceptions = Table(
    "read_exceptions",
    metadata,
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("source_id", Id, primary_key=True, autoincrement=False),
    Column("position", Id, primary_key=True, autoincrement=False),  # of the item
    column("is_read", Boolean),  # true: above the level; false: at or below it
    sqlite_with_rowid=False,
)

entry_marks = Table(  # what a person did with an item beyond reading it; retention keeps these items
    "entry_marks",
    metadata,
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    column("source_id", Id),
    column("position", Id),  # of the item
    column("starred_at", Seconds, null=True),
    column("later_at", Seconds, null=True),  # when it was put on the list of what to read later
    column("later_until", Seconds, null=True),  # NULL: it stays there
)
Index("ix_entry_marks_item_id", entry_marks.c.item_id)
Index(
    "ix_entry_marks_later_until",
    entry_marks.c.later_until,
    sqlite_where=text("later_until IS NOT NULL"),
    postgresql_where=text("later_until IS NOT NULL"),
)

entry_tags = Table(
    "entry_tags",
    metadata,
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("tag", Text, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    column("source_id", Id),
    column("position", Id),
    column("tagged_at", Seconds),
)
Index("ix_entry_tags_item_id", entry_tags.c.item_id)

story_keys = Table(  # by which copies of a story are found: of each key, the newest item
    "story_keys",
    metadata,
    Column("key", Id, primary_key=True, autoincrement=False),
    column("item_id", Id),  # which may have been deleted
    column("source_id", Id),
    column("sketch", LargeBinary),
    column("seen_at", Seconds),
)
Index("ix_story_keys_seen_at", story_keys.c.seen_at)

story_items = Table(  # items whose story another source tells as well
    "story_items",
    metadata,
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    column("story_id", Id),  # the number of one of its items, which may have been deleted
    column("source_id", Id),
    column("position", Id),  # of the item
)
Index("ix_story_items_story_id", story_items.c.story_id)

saved_searches = Table(
    "saved_searches",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    column("name", Text),
    column("filter", Text, "'{}'"),  # JSON: the parameters of a list of entries
    column("position", Integer, "0"),
    column("created_at", Seconds),
    UniqueConstraint("user_id", "name"),
)

rules = Table(  # of people, for new items of their subscriptions
    "rules",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    column("name", Text),
    column("filter", Text, "'{}'"),  # JSON: a config of filter_content
    column("source_ids", Text, "'[]'"),  # JSON; empty: of all subscriptions
    column("actions", Text, "'{}'"),  # JSON
    column("is_active", Boolean, "true"),
    column("matched", Id, "0"),  # items so far
    column("matched_at", Seconds, null=True),
    column("created_at", Seconds),
    UniqueConstraint("user_id", "name"),
)

notifications = Table(
    "notifications",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), nullable=False),
    column("rule_name", Text),
    column("created_at", Seconds),
    column("seen_at", Seconds, null=True),
    UniqueConstraint("user_id", "item_id"),
)
Index("ix_notifications_item_id", notifications.c.item_id)

bookmarks = Table(
    "bookmarks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("item_id", Id, ForeignKey("items.id", ondelete="SET NULL")),  # NULL: of an address, or deleted
    column("url", Text),
    column("url_key", Text),
    column("title", Text, null=True),
    column("excerpt", Text, null=True),
    column("image_url", Text, null=True),
    column("content", Text, null=True),  # a copy, which outlives the item and its source
    column("note", Text, null=True),
    column("tags", Text, "'[]'"),  # JSON
    column("fetch_at", Seconds, null=True),  # when its page is to be fetched; NULL: done, or given up
    column("attempts", Integer, "0"),
    column("error", Text, null=True),  # why its page could not be read
    column("created_at", Seconds),
    column("updated_at", Seconds),
    UniqueConstraint("user_id", "url_key"),
)
Index("ix_bookmarks_item_id", bookmarks.c.item_id)
Index(
    "ix_bookmarks_fetch_at",
    bookmarks.c.fetch_at,
    sqlite_where=text("fetch_at IS NOT NULL"),
    postgresql_where=text("fetch_at IS NOT NULL"),
)
