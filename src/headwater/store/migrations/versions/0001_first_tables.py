"""The first tables.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Seconds: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("last_used_at", Seconds, nullable=True),
        sa.Column("revoked_at", Seconds, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("key_hash", name="uq_api_keys_key_hash"),
    )
    op.create_table(
        "pipeline_templates",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("steps", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("run_on_change", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("updated_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pipeline_templates"),
        sa.UniqueConstraint("name", name="uq_pipeline_templates_name"),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", Seconds, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_settings"),
    )
    op.create_table(
        "site_states",
        sa.Column("site_name", sa.Text(), nullable=False),
        sa.Column("last_run", sa.TIMESTAMP(), nullable=True),
        sa.Column("last_sitemap_etag", sa.Text(), nullable=True),
        sa.Column("config_hash", sa.Text(), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(), server_default=sa.text("CURRENT_TIMESTAMP"), nullable=True),
        sa.Column("updated_at", sa.TIMESTAMP(), server_default=sa.text("CURRENT_TIMESTAMP"), nullable=True),
        sa.PrimaryKeyConstraint("site_name", name="pk_site_states"),
    )
    op.create_table(
        "source_stats",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("source_type", sa.Text(), server_default=sa.text("'rss'"), nullable=False),
        sa.Column("frequency_type", sa.Text(), server_default=sa.text("'daily'"), nullable=True),
        sa.Column("cadence", sa.Text(), server_default=sa.text("'P2'"), nullable=True),
        sa.Column("avg_publish_hour", Seconds, nullable=True),
        sa.Column("std_publish_hour", Seconds, nullable=True),
        sa.Column("next_due_at", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("last_check_at", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("last_article_at", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("fail_count", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("backoff_until", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("check_count", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("hit_count", Id, server_default=sa.text("0"), nullable=True),
        sa.Column("created_at", Id, nullable=True),
        sa.Column("updated_at", Id, nullable=True),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_stats"),
    )
    op.create_index("idx_source_stats_cadence", "source_stats", ["cadence"], unique=False)
    op.create_index("idx_source_stats_next_due", "source_stats", ["next_due_at"], unique=False)
    op.create_index("idx_source_stats_type", "source_stats", ["source_type"], unique=False)
    op.create_index("idx_source_stats_type_due", "source_stats", ["source_type", "next_due_at"], unique=False)
    op.create_table(
        "sources",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_key", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("schedule_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("policy", sa.Text(), nullable=True),
        sa.Column("pipeline_template_id", Id, nullable=True),
        sa.Column("folder", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("site_url", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("icon_url", sa.Text(), nullable=True),
        sa.Column("etag", sa.LargeBinary(), nullable=True),
        sa.Column("last_modified", sa.LargeBinary(), nullable=True),
        sa.Column("body_hash", sa.LargeBinary(), nullable=True),
        sa.Column("moved_to", sa.Text(), nullable=True),
        sa.Column("moved_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_fetch_at", Seconds, nullable=True),
        sa.Column("plan_reason", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("policy_state", sa.LargeBinary(), nullable=True),
        sa.Column("hints", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'ok'"), nullable=False),
        sa.Column("last_fetched_at", Seconds, nullable=True),
        sa.Column("last_entry_at", Seconds, nullable=True),
        sa.Column("fetch_count", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("hit_count", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("fetch_error_count", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("consecutive_failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_kind", sa.Text(), nullable=True),
        sa.Column("due_at", Seconds, nullable=True),
        sa.Column("refresh_requested_at", Seconds, nullable=True),
        sa.Column("lease_no", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("lease_until", Seconds, nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("updated_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["pipeline_template_id"],
            ["pipeline_templates.id"],
            name="fk_sources_pipeline_template_id_pipeline_templates",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sources"),
    )
    op.create_index("ix_sources_due", "sources", ["due_at"], unique=False)
    op.create_index(
        "uq_sources_type_url",
        "sources",
        ["type", "url_key"],
        unique=True,
        sqlite_where=sa.text("NOT is_deleted"),
        postgresql_where=sa.text("NOT is_deleted"),
    )
    op.create_table(
        "url_states",
        sa.Column("site_name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("last_modified", sa.TIMESTAMP(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=True),
        sa.Column("first_seen", sa.TIMESTAMP(), server_default=sa.text("CURRENT_TIMESTAMP"), nullable=True),
        sa.Column("last_seen", sa.TIMESTAMP(), server_default=sa.text("CURRENT_TIMESTAMP"), nullable=True),
        sa.ForeignKeyConstraint(
            ["site_name"], ["site_states.site_name"], name="fk_url_states_site_name_site_states"
        ),
        sa.PrimaryKeyConstraint("site_name", "url", name="pk_url_states"),
    )
    op.create_index("idx_url_lastmod", "url_states", ["last_modified"], unique=False)
    op.create_index("idx_url_lastseen", "url_states", ["last_seen"], unique=False)
    op.create_table(
        "collection_records",
        sa.Column("id", Id, nullable=False),
        sa.Column("source_id", Id, nullable=False),
        sa.Column("lease_no", Id, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", Seconds, nullable=False),
        sa.Column("finished_at", Seconds, nullable=False),
        sa.Column("items_found", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("items_new", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("items_updated", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("overflow", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("requests", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("bytes_received", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name="fk_collection_records_source_id_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_collection_records"),
        sa.UniqueConstraint("source_id", "lease_no", name="uq_collection_records_source_id_lease_no"),
    )
    op.create_index("ix_collection_records_started_at", "collection_records", ["started_at"], unique=False)
    op.create_table(
        "items",
        sa.Column("id", Id, nullable=False),
        sa.Column("source_id", Id, nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("published_at", Seconds, nullable=True),
        sa.Column("updated_at", Seconds, nullable=True),
        sa.Column("item_at", Seconds, nullable=False),
        sa.Column("date_invented", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("first_seen_at", Seconds, nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("extra", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'NEW'"), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name="fk_items_source_id_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_items"),
        sa.UniqueConstraint("source_id", "external_id", name="uq_items_source_id_external_id"),
    )
    op.create_index("ix_items_item_at", "items", ["item_at", "id"], unique=False)
    op.create_index("ix_items_source_item_at", "items", ["source_id", "item_at"], unique=False)
    op.create_table(
        "seen_ids",
        sa.Column("source_id", Id, autoincrement=False, nullable=False),
        sa.Column("id_hash", sa.LargeBinary(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name="fk_seen_ids_source_id_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "id_hash", name="pk_seen_ids"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "item_versions",
        sa.Column("item_id", Id, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("updated_at", Seconds, nullable=True),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("replaced_at", Seconds, nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_item_versions_item_id_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("item_id", "version", name="pk_item_versions"),
    )
    op.create_table(
        "pipeline_executions",
        sa.Column("id", Id, nullable=False),
        sa.Column("item_id", Id, nullable=False),
        sa.Column("item_version", sa.Integer(), nullable=False),
        sa.Column("template_id", Id, nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("current_step_index", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("trigger", sa.Text(), server_default=sa.text("'scheduled'"), nullable=False),
        sa.Column("runtime_config", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("created_at", Seconds, nullable=False),
        sa.Column("started_at", Seconds, nullable=True),
        sa.Column("completed_at", Seconds, nullable=True),
        sa.Column("lease_no", Id, server_default=sa.text("0"), nullable=False),
        sa.Column("lease_until", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name="fk_pipeline_executions_item_id_items", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["template_id"],
            ["pipeline_templates.id"],
            name="fk_pipeline_executions_template_id_pipeline_templates",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pipeline_executions"),
    )
    op.create_index("ix_pipeline_executions_item", "pipeline_executions", ["item_id"], unique=False)
    op.create_index("ix_pipeline_executions_status", "pipeline_executions", ["status", "id"], unique=False)
    op.create_table(
        "pipeline_steps",
        sa.Column("id", Id, nullable=False),
        sa.Column("execution_id", Id, nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("step_type", sa.Text(), nullable=False),
        sa.Column("is_critical", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("config", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("timeout_seconds", Seconds, nullable=True),
        sa.Column("retries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_data", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("started_at", Seconds, nullable=True),
        sa.Column("completed_at", Seconds, nullable=True),
        sa.ForeignKeyConstraint(
            ["execution_id"],
            ["pipeline_executions.id"],
            name="fk_pipeline_steps_execution_id_pipeline_executions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pipeline_steps"),
        sa.UniqueConstraint("execution_id", "step_index", name="uq_pipeline_steps_execution_id_step_index"),
    )
