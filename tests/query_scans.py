"""Which statements may read a whole large table, and why. Keep it short: at a million sources each takes seconds."""

# A handful of rows, whatever the size of the fleet.
SMALL_TABLES = frozenset(
    {
        *("alembic_version", "api_keys", "consumer_cursors", "item_clock", "outlets", "pipeline_templates"),
        *("sessions", "settings", "sign_in_links", "step_rates"),
        "items_to_index",  # a queue that the indexer empties
        *("app_passwords", "invitations", "users"),
        "source_leases",  # those that are being visited
        "alerts",  # few hold at a time, and those that are over are deleted
        "digests",
        "targets",
    }
)

# By module or function, and words of the statement after a bar. A page that skips the few deleted sources on its way
# counts as a scan here; and PostgreSQL, asked about tiny tables, sometimes sorts them.
ALLOWED = {
    "store/migrations": "once, when the schema changes",
    "store/transfer": "copies, counts and compares whole databases",
    # All of them are wanted, a page in memory at a time.
    "store/collecting/sources.py:list_sources": "in tests, and of a few",
    "store/collecting/sources.py:iterate_sources": "lists and exports of everything",
    "store/reports/catalog.py:iterate_matching": "lists by a filter that has no index",
    "store/reports/statistics.py:read_scheduler_statistics": "a sum over all; no page that renews itself asks for it",
    "store/collecting/sources.py:_put_first": "a refresh of every source changes every row",
    "store/collecting/sites.py:list_sites": "a clean-up and a backup visit every site",
    "store/collecting/push.py:suspend_subscriptions": "all end when Headwater has no public address any more",
    # Hourly, by the upkeep, outside of a write transaction.
    "store/collecting/counting.py": "the hourly count, and the first one before there was an upkeep",
    "store/reading/items.py:count_items": "the first count, before there was an upkeep",
    "store/reading/items.py:count_all_items": "the hourly count",
    "store/reading/retention.py:own_rules": "few sources have their own rule, and no index tells which",
    "store/reading/retention.py:all_source_ids": "once after the rules have changed",
    # Pages in the order of an index.
    "store/reading/listing.py:first_sources": "a page, past the few that are deleted",
    "store/reports/catalog.py:_read": "a page; the words of a search are looked for in a narrow table",
    "store/reports/catalog.py:sources_page": "likewise",
    "store/reports/catalog.py:find_sources": "likewise",
    "store/reports/catalog.py:_count": "likewise, up to 10,000",
    "store/reports/catalog.py:matching_ids": "a bulk action on all that a filter finds",
    "store/collecting/queue.py:_lease | sources.id IN": "so many of a tiny table; of a large one by number",
    "store/collecting/spending.py:_sample | id = ANY": "likewise, at most SAMPLE_SOURCES",
    "store/reports/catalog.py:_ids_by_parts": "a page, past the few in another state",
    "store/reports/catalog.py:read": "a page by the last visit",
    "store/reports/attention.py:_read": "the few that need a person, by the index of unusual sources",
    "store/reports/overview.py:_last_visits": "the newest five of an index, joined with their sources",
    "store/people/subscriptions.py:list_subscriptions": "one person's, by number; PostgreSQL reads a tiny table whole",
    "store/people/subscriptions.py:find_subscriptions": "a page of one person's, by title; likewise",
    "store/people/entries.py:_read": "a page by time; of a tiny table, PostgreSQL walks the items by time",
    # Reading room.
    "store/reading/listing.py:read": "items in the order of time until a page is full; WALKED_ITEMS bounds it first",
    "store/reading/items.py:list_items": "likewise",
    "store/reading/listing.py:newest_rows": "the time of the item that is WALKED_ITEMS behind the newest",
    "store/reading/raw_items.py:found_items": "a page by time",
    "store/reading/raw_items.py:item_counts": "a page, past the few sources that are deleted",
    "store/reports/trends.py:count_delays": "the newest items up to a limit",
    "store/publishing/outbox.py:list_deliveries": "a page of the newest; old ones are deleted",
    "store/pipelines/starting.py:list_runs": "a page, unless a caller wants all runs",
    "store/pipelines/starting.py:find_run_ids": "a bulk action on all runs since a time",
    "store/pipelines/attaching.py:remove_template": "the foreign key of runs, which no other statement looks up",
}
