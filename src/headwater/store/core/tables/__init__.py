"""Every table, for SQLite and PostgreSQL alike. Migrations build the same thing step by step.

Times are seconds since the Unix epoch (DOUBLE PRECISION), except where a seed document fixes another type.
The names of `source_stats`, `site_states`, `url_states`, `collection_records` and the three `pipeline_…`
tables, and of their columns, are public.
"""

from headwater.store.core.tables.collecting import LIVE, OUTDATED, UNUSUAL, collection_hours, collection_minutes, collection_records, push_subscriptions, seen_ids, settings, site_memories, site_states, source_leases, source_memories, source_names, source_stats, sources, url_states
from headwater.store.core.tables.columns import Id, Seconds, metadata
from headwater.store.core.tables.items import CURRENT_RESULT, CURRENT_SCORE, PROCESSED, consumer_cursors, item_clock, item_results, item_versions, items, items_to_index, media_files, media_uses, result_tags
from headwater.store.core.tables.people import api_keys, app_passwords, invitations, sessions, sign_in_links, users
from headwater.store.core.tables.pipelines import model_answers, model_usage, pipeline_attachments, pipeline_executions, pipeline_step_results, pipeline_steps, pipeline_templates, step_rates
from headwater.store.core.tables.publishing import DUE_DELIVERY, ENDED_DELIVERY, OPEN_ALERT, UNTOLD_ALERT, alerts, deliveries, digest_issues, digests, outlet_items, outlets, targets, waiting_messages
from headwater.store.core.tables.reading import bookmarks, entry_marks, entry_tags, folders, read_exceptions, source_counts, subscriptions

__all__ = [
    "CURRENT_RESULT",
    "CURRENT_SCORE",
    "DUE_DELIVERY",
    "ENDED_DELIVERY",
    "Id",
    "LIVE",
    "OPEN_ALERT",
    "OUTDATED",
    "PROCESSED",
    "Seconds",
    "UNTOLD_ALERT",
    "UNUSUAL",
    "alerts",
    "api_keys",
    "app_passwords",
    "bookmarks",
    "collection_hours",
    "collection_minutes",
    "collection_records",
    "consumer_cursors",
    "deliveries",
    "digest_issues",
    "digests",
    "entry_marks",
    "entry_tags",
    "folders",
    "invitations",
    "item_clock",
    "item_results",
    "item_versions",
    "items",
    "items_to_index",
    "media_files",
    "media_uses",
    "metadata",
    "model_answers",
    "model_usage",
    "outlet_items",
    "outlets",
    "pipeline_attachments",
    "pipeline_executions",
    "pipeline_step_results",
    "pipeline_steps",
    "pipeline_templates",
    "push_subscriptions",
    "read_exceptions",
    "result_tags",
    "seen_ids",
    "sessions",
    "settings",
    "sign_in_links",
    "site_memories",
    "site_states",
    "source_counts",
    "source_leases",
    "source_memories",
    "source_names",
    "source_stats",
    "sources",
    "step_rates",
    "subscriptions",
    "targets",
    "url_states",
    "users",
    "waiting_messages",
]

# Search has a table that each database makes in its own way, `item_words`: see store.search.
