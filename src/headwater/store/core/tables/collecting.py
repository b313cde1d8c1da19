"""The tables of collecting: sources, their plans and statistics, visits, and the memory of sites."""

from sqlalchemy import (
    TIMESTAMP,
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

sources = Table(
    "sources",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),
    column("type", Text),
    column("url", Text),
    column("url_key", Text),  # the URL normalised, by which duplicates are recognised
    column("config", Text, "'{}'"),
    column("is_active", Boolean, "true"),
    column("schedule_enabled", Boolean, "true"),
    column("is_deleted", Boolean, "false"),
    column("policy", Text, null=True),
    # The first template that is attached to the source itself; all are in pipeline_attachments.
    Column("pipeline_template_id", Id, ForeignKey("pipeline_templates.id", ondelete="SET NULL")),
    column("folder", Text, null=True),
    # What the source says of itself.
    column("title", Text, null=True),
    column("description", Text, null=True),
    column("site_url", Text, null=True),
    column("language", Text, null=True),
    column("icon_url", Text, null=True),
    column("details", Text, null=True),  # JSON: what its document says beyond that; NULL: nothing
    column("repairs", Text, null=True),  # JSON: what was wrong with the document read last; NULL: nothing
    # Validators, opaque.
    column("etag", LargeBinary, null=True),
    column("last_modified", LargeBinary, null=True),
    column("body_hash", LargeBinary, null=True),
    column("moved_to", Text, null=True),  # a permanent redirect, followed for good once seen often enough
    column("moved_count", Integer, "0"),
    # The plan, and the state its policy works from.
    column("next_fetch_at", Seconds, null=True),
    column("plan_reason", Text, "'{}'"),
    column("policy_state", LargeBinary, null=True),
    # A checksum of all that the plan was made of (see collect.replanning); NULL: outdated, to be planned again.
    column("planned_from", Id, "0", null=True),
    column("hints", Text, "'{}'"),  # JSON: what its document says of when to come back
    # Statistics and error state.
    column("status", Text, "'ok'"),
    column("last_fetched_at", Seconds, null=True),
    column("last_entry_at", Seconds, null=True),
    column("fetch_count", Id, "0"),
    column("hit_count", Id, "0"),
    column("fetch_error_count", Id, "0"),
    column("consecutive_failures", Integer, "0"),
    column("last_error", Text, null=True),
    column("last_error_kind", Text, null=True),
    column("failing_since_at", Seconds, null=True),  # when the first visit failed since the last that worked
    column("is_late", Boolean, "false"),  # see headwater.states
    # The queue: `due_at` is the place in line (see store.queue), NULL when out of it.
    column("due_at", Seconds, null=True),
    column("refresh_requested_at", Seconds, null=True),
    column("lease_no", Id, "0"),  # of the last lease that has ended
    column("created_at", Seconds),
    column("updated_at", Seconds),
)
# The second is for lists, and costs little here, where it is written along; its own index would cost every visit.
Index("ix_sources_due", sources.c.due_at, sources.c.last_fetched_at)
# PostgreSQL would look at every row all the same, and writes all indexes at every visit anyway.
Index("ix_sources_last_fetched_at", sources.c.last_fetched_at).ddl_if(dialect="postgresql")
Index(
    "uq_sources_type_url",
    sources.c.type,
    sources.c.url_key,
    unique=True,
    sqlite_where=text("NOT is_deleted"),
    postgresql_where=text("NOT is_deleted"),
)
# Few are out of the ordinary, so that counting those and all together counts every kind.
UNUSUAL = (
    "is_deleted OR NOT schedule_enabled OR NOT is_active OR status <> 'ok' OR last_error_kind IS NOT NULL"
    " OR consecutive_failures > 0 OR is_late OR last_fetched_at IS NULL"
)
Index(
    "ix_sources_unusual",
    sources.c.is_deleted,
    sources.c.schedule_enabled,
    sources.c.is_active,
    sources.c.status,
    sources.c.last_error_kind,
    sources.c.consecutive_failures,
    sources.c.is_late,
    sources.c.last_fetched_at,
    sqlite_where=text(UNUSUAL),
    postgresql_where=text(UNUSUAL),
)
OUTDATED = "planned_from IS NULL"
Index(
    "ix_sources_outdated",
    sources.c.id,
    sqlite_where=text(OUTDATED),
    postgresql_where=text(OUTDATED),
)
# As the indexes of those that are not deleted have it: SQLite uses them for a query that says it in the same words.
LIVE = "NOT sources.is_deleted"
Index("ix_sources_folder", sources.c.folder, sources.c.is_deleted)
Index(
    "ix_sources_template",
    sources.c.pipeline_template_id,
    sources.c.is_deleted,
    sqlite_where=text("pipeline_template_id IS NOT NULL"),
    postgresql_where=text("pipeline_template_id IS NOT NULL"),
)

# Those that are being visited, and so few that a claim writes next to each other what is scattered in `sources`.
# No foreign key: looking after it would cost more than the lease, and no source ever goes for good.
source_leases = Table(
    "source_leases",
    metadata,
    Column("source_id", Id, primary_key=True, autoincrement=False),
    column("lease_no", Id),
    column("lease_until", Seconds),
)

source_names = Table(  # of sources that are not deleted; kept by triggers (see migration 0010)
    "source_names",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    column("name_key", Text),  # the name in small letters, by which lists are sorted
    column("search_text", Text),  # name and address in small letters, in which is looked for words
)
Index("ix_source_names_name_key", source_names.c.name_key, source_names.c.source_id)

source_memories = Table(
    "source_memories",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    column("memory", LargeBinary),  # its collector's own; apart from the source, for it can be large
)

push_subscriptions = Table(
    "push_subscriptions",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    column("hub", Text),
    column("topic", Text),
    column("token", Text),  # the last part of our address, which only the hub knows
    column("secret", Text),  # with which the hub signs
    column("state", Text, "'wanted'"),  # wanted, pending, active, refused, leaving
    column("act_at", Seconds, null=True),  # when something is to be done about it; NULL: never
    column("attempts", Integer, "0"),  # requests to the hub since it last confirmed
    column("verified_at", Seconds, null=True),  # when this subscription began
    column("lease_ends_at", Seconds, null=True),
    column("last_pushed_at", Seconds, null=True),
    column("missed_at", Seconds, null=True),  # when it was found that the hub does not push everything
    column("pushes", Id, "0"),
    column("forged", Id, "0"),  # deliveries without a right signature, refused
    column("missed", Integer, "0"),
    column("last_error", Text, null=True),
    column("created_at", Seconds),
    UniqueConstraint("token"),
)
Index("ix_push_subscriptions_act_at", push_subscriptions.c.act_at)

source_stats = Table(
    "source_stats",
    metadata,
    Column("source_id", Text, primary_key=True),
    column("source_type", Text, "'rss'"),
    column("frequency_type", Text, "'daily'", null=True),
    column("cadence", Text, "'P2'", null=True),
    column("avg_publish_hour", Seconds, null=True),
    column("std_publish_hour", Seconds, null=True),
    column("next_due_at", Id, "0", null=True),
    column("last_check_at", Id, "0", null=True),
    column("last_article_at", Id, "0", null=True),
    column("fail_count", Id, "0", null=True),
    column("backoff_until", Id, "0", null=True),
    column("last_error", Text, null=True),
    column("check_count", Id, "0", null=True),
    column("hit_count", Id, "0", null=True),
    column("created_at", Id, null=True),
    column("updated_at", Id, null=True),
    sqlite_with_rowid=False,  # found by its text in one tree and not in two
)
Index("idx_source_stats_next_due", source_stats.c.next_due_at)
Index("idx_source_stats_cadence", source_stats.c.cadence)
Index("idx_source_stats_type", source_stats.c.source_type)
Index("idx_source_stats_type_due", source_stats.c.source_type, source_stats.c.next_due_at)

seen_ids = Table(
    "seen_ids",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("id_hash", LargeBinary, primary_key=True),  # of an item's id, or of its likeness
    column("item_hash", LargeBinary),  # the id hash under which the item is stored
    column(
        "content_hash", LargeBinary
    ),  # of the newest version seen, under its id; of a likeness it is never asked for
    column("first_seen_at", Seconds),
    sqlite_with_rowid=False,  # the key is the row: half the size, one lookup
)

collection_records = Table(
    "collection_records",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    column("lease_no", Id),
    column("status", Text),  # new, unchanged, failed, skipped
    column("started_at", Seconds),
    column("finished_at", Seconds),
    column("items_found", Integer, "0"),
    column("items_new", Integer, "0"),
    column("items_updated", Integer, "0"),
    column("overflow", Boolean, "false"),
    column("http_status", Integer, null=True),
    column("requests", Integer, "0"),
    column("bytes_received", Id, "0"),
    column("error_kind", Text, null=True),
    column("error_message", Text, null=True),
    column("planned_by", Text, "'adaptive'"),  # the policy that plans the source, or asked, or pushed
    column("since_at", Seconds, null=True),  # the visit before, if it worked: what is new appeared after it
    UniqueConstraint("source_id", "lease_no"),
)
Index("ix_collection_records_started_at", collection_records.c.started_at)

collection_hours = Table(
    "collection_hours",  # the visit records of each hour added up, by how they ended
    metadata,
    Column("hour_at", Seconds, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("error_kind", Text, primary_key=True),  # empty for none
    column("visits", Id, "0"),
    column("items_found", Id, "0"),
    column("items_new", Id, "0"),
    column("items_updated", Id, "0"),
    column("requests", Id, "0"),
    column("bytes_received", Id, "0"),
    column("not_modified", Id, "0"),  # visits that were answered with 304
)

collection_minutes = Table(
    "collection_minutes",  # likewise of each minute of the last days
    metadata,
    Column("slot_at", Seconds, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("error_kind", Text, primary_key=True),  # empty for none
    column("visits", Id, "0"),
    column("items_found", Id, "0"),
    column("items_new", Id, "0"),
    column("items_updated", Id, "0"),
    column("requests", Id, "0"),
    column("bytes_received", Id, "0"),
    column("not_modified", Id, "0"),  # visits that were answered with 304
)

site_states = Table(
    "site_states",
    metadata,
    Column("site_name", Text, primary_key=True),
    column("last_run", TIMESTAMP, null=True),
    column("last_sitemap_etag", Text, null=True),
    column("config_hash", Text, null=True),
    column("created_at", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
    column("updated_at", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
)

url_states = Table(
    "url_states",
    metadata,
    Column("site_name", Text, ForeignKey("site_states.site_name"), primary_key=True),
    Column("url", Text, primary_key=True),
    column("last_modified", TIMESTAMP, null=True),
    column("content_hash", Text, null=True),
    column("first_seen", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
    column("last_seen", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
)
site_memories = Table(
    "site_memories",
    metadata,
    Column("site_name", Text, ForeignKey("site_states.site_name", ondelete="CASCADE"), primary_key=True),
    column("runs", Id, "0"),  # so that of two runs at once only one is written
    column("memory", LargeBinary),  # the ledger of its sitemaps
    column("entries", Text, "'[]'"),  # JSON: what its feed shows
)

Index("idx_url_lastmod", url_states.c.last_modified)
Index("idx_url_lastseen", url_states.c.last_seen)

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    column("value", Text),  # JSON
    column("updated_at", Seconds),
)
