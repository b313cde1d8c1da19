"""Every table, for SQLite and PostgreSQL alike. Migrations build the same thing step by step.

Times are seconds since the Unix epoch (DOUBLE PRECISION), except where a seed document fixes another type.
The names of `source_stats`, `site_states`, `url_states`, `collection_records` and the three `pipeline_…`
tables, and of their columns, are public.
"""

from typing import Any

from sqlalchemy import (
    REAL,
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows only in a column spelt INTEGER; PostgreSQL's INTEGER is too small for either use.
Id = BigInteger().with_variant(Integer, "sqlite")
Seconds: TypeEngine[float] = Double().with_variant(REAL, "sqlite")


def _column(
    name: str,
    kind: TypeEngine[Any] | type[TypeEngine[Any]],
    default: str | None = None,
    *,
    null: bool = False,
) -> Column[Any]:
    return Column(name, kind, nullable=null, server_default=None if default is None else text(default))


pipeline_templates = Table(
    "pipeline_templates",
    metadata,
    Column("id", Id, primary_key=True),
    _column("name", Text),
    _column("description", Text, null=True),
    _column("steps", Text, "'[]'"),  # JSON: [{step_type, is_critical, config, timeout_seconds, retries}]
    _column("run_on_change", Boolean, "false"),
    _column("created_at", Seconds),
    _column("updated_at", Seconds),
    UniqueConstraint("name"),
)

sources = Table(
    "sources",
    metadata,
    Column("id", Id, primary_key=True),
    _column("name", Text),
    _column("type", Text),
    _column("url", Text),
    _column("url_key", Text),  # the URL normalised, by which duplicates are recognised
    _column("config", Text, "'{}'"),
    _column("is_active", Boolean, "true"),
    _column("schedule_enabled", Boolean, "true"),
    _column("is_deleted", Boolean, "false"),
    _column("policy", Text, null=True),
    Column("pipeline_template_id", Id, ForeignKey("pipeline_templates.id", ondelete="SET NULL")),
    _column("folder", Text, null=True),
    # What the source says of itself.
    _column("title", Text, null=True),
    _column("description", Text, null=True),
    _column("site_url", Text, null=True),
    _column("language", Text, null=True),
    _column("icon_url", Text, null=True),
    # Validators, opaque.
    _column("etag", LargeBinary, null=True),
    _column("last_modified", LargeBinary, null=True),
    _column("body_hash", LargeBinary, null=True),
    _column("moved_to", Text, null=True),  # a permanent redirect, followed for good once seen often enough
    _column("moved_count", Integer, "0"),
    # The plan, and the state its policy works from.
    _column("next_fetch_at", Seconds, null=True),
    _column("plan_reason", Text, "'{}'"),
    _column("policy_state", LargeBinary, null=True),
    _column("hints", Text, "'{}'"),  # JSON: what its document says of when to come back
    # Statistics and error state.
    _column("status", Text, "'ok'"),
    _column("last_fetched_at", Seconds, null=True),
    _column("last_entry_at", Seconds, null=True),
    _column("fetch_count", Id, "0"),
    _column("hit_count", Id, "0"),
    _column("fetch_error_count", Id, "0"),
    _column("consecutive_failures", Integer, "0"),
    _column("last_error", Text, null=True),
    _column("last_error_kind", Text, null=True),
    # The queue: `due_at` is the place in line (see store.queue), NULL when out of it.
    _column("due_at", Seconds, null=True),
    _column("refresh_requested_at", Seconds, null=True),
    _column("lease_no", Id, "0"),  # of the last lease that has ended
    _column("created_at", Seconds),
    _column("updated_at", Seconds),
)
# The second is for lists, and costs little here, where it is written along; an index of its own would cost every visit.
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
)
Index(
    "ix_sources_unusual",
    sources.c.is_deleted,
    sources.c.schedule_enabled,
    sources.c.is_active,
    sources.c.status,
    sources.c.last_error_kind,
    sqlite_where=text(UNUSUAL),
    postgresql_where=text(UNUSUAL),
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

# Those that somebody is visiting, and so few that a claim writes next to each other what is scattered in `sources`.
# No foreign key: looking after it would cost more than the lease, and no source ever goes for good.
source_leases = Table(
    "source_leases",
    metadata,
    Column("source_id", Id, primary_key=True, autoincrement=False),
    _column("lease_no", Id),
    _column("lease_until", Seconds),
)

source_names = Table(  # of sources that are not deleted; kept by triggers (see migration 0010)
    "source_names",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    _column("name_key", Text),  # the name in small letters, by which lists are sorted
    _column("search_text", Text),  # name and address in small letters, in which is looked for words
)
Index("ix_source_names_name_key", source_names.c.name_key, source_names.c.source_id)

source_memories = Table(
    "source_memories",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    _column("memory", LargeBinary),  # its collector's own; apart from the source, for it can be large
)

push_subscriptions = Table(
    "push_subscriptions",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    _column("hub", Text),
    _column("topic", Text),
    _column("token", Text),  # the last part of our address, which nobody but the hub knows
    _column("secret", Text),  # with which the hub signs
    _column("state", Text, "'wanted'"),  # wanted, pending, active, refused, leaving
    _column("act_at", Seconds, null=True),  # when something is to be done about it; NULL: never
    _column("attempts", Integer, "0"),  # requests to the hub since it last confirmed
    _column("verified_at", Seconds, null=True),  # when this subscription began
    _column("lease_ends_at", Seconds, null=True),
    _column("last_pushed_at", Seconds, null=True),
    _column("missed_at", Seconds, null=True),  # when it was found that the hub does not push everything
    _column("pushes", Id, "0"),
    _column("forged", Id, "0"),  # deliveries without a right signature, refused
    _column("missed", Integer, "0"),
    _column("last_error", Text, null=True),
    _column("created_at", Seconds),
    UniqueConstraint("token"),
)
Index("ix_push_subscriptions_act_at", push_subscriptions.c.act_at)

source_stats = Table(
    "source_stats",
    metadata,
    Column("source_id", Text, primary_key=True),
    _column("source_type", Text, "'rss'"),
    _column("frequency_type", Text, "'daily'", null=True),
    _column("cadence", Text, "'P2'", null=True),
    _column("avg_publish_hour", Seconds, null=True),
    _column("std_publish_hour", Seconds, null=True),
    _column("next_due_at", Id, "0", null=True),
    _column("last_check_at", Id, "0", null=True),
    _column("last_article_at", Id, "0", null=True),
    _column("fail_count", Id, "0", null=True),
    _column("backoff_until", Id, "0", null=True),
    _column("last_error", Text, null=True),
    _column("check_count", Id, "0", null=True),
    _column("hit_count", Id, "0", null=True),
    _column("created_at", Id, null=True),
    _column("updated_at", Id, null=True),
    sqlite_with_rowid=False,  # found by its text in one tree and not in two
)
Index("idx_source_stats_next_due", source_stats.c.next_due_at)
Index("idx_source_stats_cadence", source_stats.c.cadence)
Index("idx_source_stats_type", source_stats.c.source_type)
Index("idx_source_stats_type_due", source_stats.c.source_type, source_stats.c.next_due_at)

items = Table(
    "items",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    _column("external_id", Text),
    _column("id_hash", LargeBinary),  # of the external id, which may be too long for an index
    _column("url", Text, null=True),
    _column("title", Text),
    _column("author", Text, null=True),
    _column("summary", Text, null=True),
    _column("content", Text, null=True),
    _column("published_at", Seconds, null=True),
    _column("updated_at", Seconds, null=True),
    _column("item_at", Seconds),  # published, else first seen: what lists are sorted by
    _column("date_invented", Boolean, "false"),
    _column("first_seen_at", Seconds),
    _column("language", Text, null=True),
    _column("extra", Text, "'{}'"),  # JSON: image_url, comments_url, categories, enclosures
    _column("content_hash", LargeBinary),
    _column("version", Integer, "1"),
    _column("status", Text, "'NEW'"),  # ANALYZED once a pipeline has completed
    # Places in the order in which items were stored, and last changed (see store.positions).
    _column("position", Id, "0"),
    _column("changed_position", Id, "0"),
    UniqueConstraint("source_id", "id_hash"),
)
Index("ix_items_item_at", items.c.item_at, items.c.id)
Index("ix_items_first_seen_at", items.c.first_seen_at, items.c.id)
Index("ix_items_position", items.c.position)
Index("ix_items_changed_position", items.c.changed_position)
Index(
    "ix_items_analyzed",
    items.c.item_at,
    items.c.id,
    sqlite_where=text("status = 'ANALYZED'"),
    postgresql_where=text("status = 'ANALYZED'"),
)
Index("ix_items_source_times", items.c.source_id, items.c.item_at, items.c.published_at)

item_versions = Table(
    "item_versions",
    metadata,
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    _column("title", Text),
    _column("summary", Text, null=True),
    _column("content", Text, null=True),
    _column("updated_at", Seconds, null=True),
    _column("content_hash", LargeBinary),
    _column("replaced_at", Seconds),
)

item_clock = Table(
    "item_clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # there is one row, 1
    _column("last_position", Id),  # on SQLite; PostgreSQL has the sequence `item_positions`
)

consumer_cursors = Table(
    "consumer_cursors",
    metadata,
    Column("name", Text, primary_key=True),
    _column("position", Id, "0"),  # everything up to here is acknowledged
    _column("with_changes", Boolean, "false"),
    _column("filters", Text, "'{}'"),  # JSON: source_id, folder, type, query
    _column("created_at", Seconds),
    _column("acknowledged_at", Seconds, null=True),
)

seen_ids = Table(
    "seen_ids",
    metadata,
    Column(
        "source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("id_hash", LargeBinary, primary_key=True),  # of an item's id, or of its likeness
    _column("item_hash", LargeBinary),  # the id hash under which the item is stored
    _column(
        "content_hash", LargeBinary
    ),  # of the newest version seen, under its id; of a likeness nobody asks for it
    _column("first_seen_at", Seconds),
    sqlite_with_rowid=False,  # the key is the row: half the size, one lookup
)

collection_records = Table(
    "collection_records",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", Id, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    _column("lease_no", Id),
    _column("status", Text),  # new, unchanged, failed, skipped
    _column("started_at", Seconds),
    _column("finished_at", Seconds),
    _column("items_found", Integer, "0"),
    _column("items_new", Integer, "0"),
    _column("items_updated", Integer, "0"),
    _column("overflow", Boolean, "false"),
    _column("http_status", Integer, null=True),
    _column("requests", Integer, "0"),
    _column("bytes_received", Id, "0"),
    _column("error_kind", Text, null=True),
    _column("error_message", Text, null=True),
    UniqueConstraint("source_id", "lease_no"),
)
Index("ix_collection_records_started_at", collection_records.c.started_at)

collection_hours = Table(
    "collection_hours",  # the visit records of each hour added up, by how they ended
    metadata,
    Column("hour_at", Seconds, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("error_kind", Text, primary_key=True),  # empty for none
    _column("visits", Id, "0"),
    _column("items_found", Id, "0"),
    _column("items_new", Id, "0"),
    _column("items_updated", Id, "0"),
    _column("requests", Id, "0"),
    _column("bytes_received", Id, "0"),
    _column("not_modified", Id, "0"),  # visits that were answered with 304
)

collection_minutes = Table(
    "collection_minutes",  # likewise of each minute of the last days
    metadata,
    Column("slot_at", Seconds, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("error_kind", Text, primary_key=True),  # empty for none
    _column("visits", Id, "0"),
    _column("items_found", Id, "0"),
    _column("items_new", Id, "0"),
    _column("items_updated", Id, "0"),
    _column("requests", Id, "0"),
    _column("bytes_received", Id, "0"),
    _column("not_modified", Id, "0"),  # visits that were answered with 304
)

site_states = Table(
    "site_states",
    metadata,
    Column("site_name", Text, primary_key=True),
    _column("last_run", TIMESTAMP, null=True),
    _column("last_sitemap_etag", Text, null=True),
    _column("config_hash", Text, null=True),
    _column("created_at", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
    _column("updated_at", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
)

url_states = Table(
    "url_states",
    metadata,
    Column("site_name", Text, ForeignKey("site_states.site_name"), primary_key=True),
    Column("url", Text, primary_key=True),
    _column("last_modified", TIMESTAMP, null=True),
    _column("content_hash", Text, null=True),
    _column("first_seen", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
    _column("last_seen", TIMESTAMP, "CURRENT_TIMESTAMP", null=True),
)
site_memories = Table(
    "site_memories",
    metadata,
    Column("site_name", Text, ForeignKey("site_states.site_name", ondelete="CASCADE"), primary_key=True),
    _column("runs", Id, "0"),  # so that of two runs at once only one is written
    _column("memory", LargeBinary),  # the ledger of its sitemaps
    _column("entries", Text, "'[]'"),  # JSON: what its feed shows
)

Index("idx_url_lastmod", url_states.c.last_modified)
Index("idx_url_lastseen", url_states.c.last_seen)

pipeline_executions = Table(
    "pipeline_executions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), nullable=False),
    _column("item_version", Integer),
    Column("template_id", Id, ForeignKey("pipeline_templates.id", ondelete="SET NULL")),
    _column("status", Text, "'pending'"),  # pending, running, completed, failed, skipped
    _column("current_step_index", Integer, "0"),
    _column("trigger", Text, "'scheduled'"),  # scheduled, manual
    _column("runtime_config", Text, "'{}'"),
    _column("error_message", Text, null=True),
    _column("created_at", Seconds),
    _column("started_at", Seconds, null=True),
    _column("completed_at", Seconds, null=True),
    _column("lease_no", Id, "0"),
    _column("lease_until", Seconds, null=True),
    _column("forced_no", Integer, "0"),  # 0: the one run of this version; 1, 2, …: asked for all the same
    _column("rerun_no", Integer, "0"),  # how often steps that had completed were run again
    # The queue: `due_at` is the place in line as in `sources`, NULL when the run has ended.
    _column("next_step_type", Text, null=True),
    _column("due_at", Seconds, null=True),
    _column("slot_at", Seconds, null=True),  # the start a rate limit has given to the next step
    _column("cancel_requested_at", Seconds, null=True),
)
Index("ix_pipeline_executions_due", pipeline_executions.c.due_at)
Index(
    "uq_pipeline_executions_version",
    pipeline_executions.c.item_id,
    pipeline_executions.c.item_version,
    pipeline_executions.c.template_id,
    pipeline_executions.c.forced_no,
    unique=True,
)
Index("ix_pipeline_executions_status", pipeline_executions.c.status, pipeline_executions.c.id)
Index("ix_pipeline_executions_item", pipeline_executions.c.item_id)

pipeline_steps = Table(
    "pipeline_steps",
    metadata,
    Column("id", Id, primary_key=True),
    Column(
        "execution_id",
        Id,
        ForeignKey("pipeline_executions.id", ondelete="CASCADE"),
        nullable=False,
    ),
    _column("step_index", Integer),
    _column("step_type", Text),
    _column("is_critical", Boolean, "true"),
    _column("config", Text, "'{}'"),
    _column("timeout_seconds", Seconds, null=True),
    _column("retries", Integer, "0"),
    _column("status", Text, "'pending'"),
    _column("attempts", Integer, "0"),
    _column("crashes", Integer, "0"),  # attempts that began and never ended: their worker died
    _column("output_data", Text, null=True),
    _column("error_message", Text, null=True),
    _column("started_at", Seconds, null=True),
    _column("completed_at", Seconds, null=True),
    UniqueConstraint("execution_id", "step_index"),
)

step_rates = Table(
    "step_rates",
    metadata,
    Column("step_type", Text, primary_key=True),
    _column("next_at", Seconds),  # the next free start under the type's rate limit, for all workers together
)

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    _column("value", Text),  # JSON
    _column("updated_at", Seconds),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    _column("name", Text),
    _column("prefix", Text),  # what people see of the key afterwards
    _column("key_hash", LargeBinary),
    _column("scopes", Text, "'[]'"),  # JSON
    _column("created_at", Seconds),
    _column("last_used_at", Seconds, null=True),
    _column("revoked_at", Seconds, null=True),
    UniqueConstraint("key_hash"),
)

outlets = Table(
    "outlets",
    metadata,
    Column("id", Id, primary_key=True),
    _column("name", Text),  # as it stands in addresses and file names
    _column("title", Text),
    _column("description", Text, null=True),
    _column("selection", Text, "'{}'"),  # JSON: which items it shows (store.selection)
    _column("item_limit", Integer, "50"),
    _column("hub_url", Text, null=True),
    _column("token", Text, null=True),  # which its address must carry; NULL: open to all
    _column("created_at", Seconds),
    _column("updated_at", Seconds),
    UniqueConstraint("name"),
)

outlet_items = Table(  # what pipelines have published to an outlet
    "outlet_items",
    metadata,
    Column("outlet_name", Text, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    _column("published_at", Seconds),
)
Index("ix_outlet_items_item_id", outlet_items.c.item_id)

# Search has a table that each database makes in its own way, `item_words`: see store.search.
