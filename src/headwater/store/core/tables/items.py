"""The tables of what was collected: items, their versions and results, files, and cursors of consumers."""

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

items = Table(
    "items",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    column("external_id", Text),
    column("id_hash", LargeBinary),  # of the external id, which may be too long for an index
    column("url", Text, null=True),
    column("title", Text),
    column("author", Text, null=True),
    column("summary", Text, null=True),
    column("content", Text, null=True),
    column("published_at", Seconds, null=True),
    column("updated_at", Seconds, null=True),
    column("item_at", Seconds),  # published, else first seen: what lists are sorted by
    column("date_invented", Boolean, "false"),
    column("first_seen_at", Seconds),
    column("language", Text, null=True),
    column("extra", Text, "'{}'"),  # JSON: image_url, comments_url, categories, enclosures, season, …
    column("content_hash", LargeBinary),
    column("version", Integer, "1"),
    column("status", Text, "'NEW'"),  # ANALYZED once a pipeline has completed
    # Places in the order in which items were stored, and last changed (see store.positions).
    column("position", Id, "0"),
    column("changed_position", Id, "0"),
    column("processed_position", Id, "0"),  # 0: no pipeline has finished it yet
    UniqueConstraint("source_id", "id_hash"),
)
Index("ix_items_item_at", items.c.item_at, items.c.id)
Index("ix_items_first_seen_at", items.c.first_seen_at, items.c.id)
Index("ix_items_position", items.c.position)
Index("ix_items_changed_position", items.c.changed_position)
PROCESSED = "processed_position > 0"
Index(
    "ix_items_processed_position",
    items.c.processed_position,
    sqlite_where=text(PROCESSED),
    postgresql_where=text(PROCESSED),
)
Index(
    "ix_items_analyzed",
    items.c.item_at,
    items.c.id,
    sqlite_where=text("status = 'ANALYZED'"),
    postgresql_where=text("status = 'ANALYZED'"),
)
Index("ix_items_source_times", items.c.source_id, items.c.item_at, items.c.published_at)
# What is unread of a subscription is read from this one alone.
Index(
    "ix_items_source_position",
    items.c.source_id,
    items.c.position,
    items.c.item_at,
    items.c.first_seen_at,
    postgresql_include=["id"],  # SQLite has it in every index
)

item_versions = Table(
    "item_versions",
    metadata,
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    column("title", Text),
    column("summary", Text, null=True),
    column("content", Text, null=True),
    column("updated_at", Seconds, null=True),
    column("content_hash", LargeBinary),
    column("replaced_at", Seconds),
)

item_results = (
    Table(  # what pipelines have made of items; a newer result replaces the one of its kind and name
        "item_results",
        metadata,
        Column("id", Id, primary_key=True),
        Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), nullable=False),
        column("item_version", Integer),  # the version of the item it was made of
        column("kind", Text),  # full_text, summary, translation, … (model.RESULT_KINDS)
        column(
            "name", Text, "''"
        ),  # tells results of one kind apart: a translation's language, an analysis' name
        column("format", Text, "'text'"),  # of the body: text or html
        column("language", Text, null=True),
        column("body", Text, null=True),
        column("data", Text, null=True),  # JSON
        column("value", Seconds, null=True),  # of a score, by which items are sorted
        # Who made it. No foreign keys: a run is only deleted with its item.
        column("run_id", Id, null=True),
        column("template_id", Id, null=True),
        column("step_index", Integer, null=True),
        column("step_type", Text, null=True),
        column("made_at", Seconds),
        column("replaced_at", Seconds, null=True),  # NULL: it is the current one
    )
)
CURRENT_RESULT = "replaced_at IS NULL"
CURRENT_SCORE = "kind = 'score' AND replaced_at IS NULL"
Index("ix_item_results_item_id", item_results.c.item_id)
Index(
    "uq_item_results_current",
    item_results.c.kind,
    item_results.c.name,
    item_results.c.item_id,
    unique=True,
    sqlite_where=text(CURRENT_RESULT),
    postgresql_where=text(CURRENT_RESULT),
)
Index(
    "ix_item_results_score",
    item_results.c.value,
    item_results.c.item_id,
    sqlite_where=text(CURRENT_SCORE),
    postgresql_where=text(CURRENT_SCORE),
)

result_tags = Table(  # the tags of items' current results, in small letters, to find items by
    "result_tags",
    metadata,
    Column("tag", Text, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
)
Index("ix_result_tags_item_id", result_tags.c.item_id)

media_files = Table(  # files that archive_media keeps, by what is in them
    "media_files",
    metadata,
    Column("sha256", Text, primary_key=True),
    column("media_type", Text),
    column("size_bytes", Id),
    column("stored_at", Seconds),
)
Index("ix_media_files_stored_at", media_files.c.stored_at)

media_uses = Table(  # the items whose current results name a file: without any, it is deleted
    "media_uses",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
)
Index("ix_media_uses_item_id", media_uses.c.item_id)

items_to_index = Table(  # items whose words have to be indexed again: their results have changed
    "items_to_index",
    metadata,
    Column("id", Id, primary_key=True),
    column("item_id", Id),
)

item_clock = Table(
    "item_clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # there is one row, 1
    column("last_position", Id),  # on SQLite; PostgreSQL has the sequence `item_positions`
)

consumer_cursors = Table(
    "consumer_cursors",
    metadata,
    Column("name", Text, primary_key=True),
    column("position", Id, "0"),  # everything up to here is acknowledged
    column("read_when", Text, "'stored'"),  # an item comes up when it is stored, changed or processed
    column("filters", Text, "'{}'"),  # JSON: source_id, folder, type, query
    column("created_at", Seconds),
    column("acknowledged_at", Seconds, null=True),
)
